//! What a member is told about itself: names, timeouts, assignors. Names and defaults are Kafka's.

use crate::assign::{Assignor, Handover};
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;
use ottla_model::{GroupId, InstanceId};

/// How a member coordinates with its group.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Protocol {
    /// JoinGroup and SyncGroup: a barrier, and a member assigns. Every broker has it.
    Classic,
    // Consumer (KIP-848) and Register join here: each brings a module beside `classic` and a
    // variant here and in the member's phase; link, offsets, calls and outputs are shared.
}

/// A member's configuration; the comments name Kafka's setting.
#[derive(Clone, Debug)]
pub struct Config {
    /// `group.id`.
    pub group: GroupId,
    /// `group.instance.id`: a static member if given (KIP-345).
    pub instance: Option<InstanceId>,
    /// `group.protocol`.
    pub protocol: Protocol,
    /// `partition.assignment.strategy`: most wanted first, at least one.
    pub assignors: Vec<Assignor>,
    /// `client.rack`.
    pub rack: Option<String>,
    /// `session.timeout.ms`: silence after which either side gives the other up.
    pub session_timeout: Duration,
    /// `heartbeat.interval.ms`.
    pub heartbeat_interval: Duration,
    /// `max.poll.interval.ms`: how long the application may take to give up partitions.
    pub rebalance_timeout: Duration,
    /// `request.timeout.ms`: silence after which a request counts as lost. Joins wait for the
    /// rebalance on top.
    pub request_timeout: Duration,
    /// `retry.backoff.ms`: the first pause before a retry; it doubles.
    pub retry_backoff_min: Duration,
    /// `retry.backoff.max.ms`: the longest pause before a retry.
    pub retry_backoff_max: Duration,
}

impl Config {
    /// Kafka's defaults for a member of `group`, with the assignor that moves least.
    pub fn new(group: impl Into<GroupId>) -> Self {
        Self {
            group: group.into(),
            instance: None,
            protocol: Protocol::Classic,
            assignors: alloc::vec![Assignor::CooperativeSticky],
            rack: None,
            session_timeout: Duration::from_secs(45),
            heartbeat_interval: Duration::from_secs(3),
            rebalance_timeout: Duration::from_secs(300),
            request_timeout: Duration::from_secs(30),
            retry_backoff_min: Duration::from_millis(100),
            retry_backoff_max: Duration::from_secs(1),
        }
    }

    /// Cooperative only where every assignor is: the group may settle on any of them (KIP-429).
    pub fn handover(&self) -> Handover {
        let is_cooperative = |assignor: &Assignor| assignor.handover() == Handover::Cooperative;
        if self.assignors.iter().all(is_cooperative) {
            Handover::Cooperative
        } else {
            Handover::Eager
        }
    }
}
