//! What a member is told about itself: names, timeouts, assignors. Names and defaults are Kafka's.

use crate::assign::{Assignor, Handover};
use crate::message::register::Detection;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;
use ottla_model::{GroupId, InstanceId};

/// How a member coordinates with its group.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Protocol {
    /// JoinGroup and SyncGroup: a barrier, and a member assigns. Every broker has it.
    Classic,
    /// RegisterConsumer: a barrier, and the coordinator assigns (`docs/register-protocol.md`).
    /// Ottla has it.
    Register(Detection),
    /// ConsumerGroupHeartbeat: the coordinator assigns, and each member moves by itself (KIP-848).
    Consumer,
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
    /// `group.remote.assignor`: which of the coordinator's assignors it votes for, if any; of the
    /// consumer protocol alone.
    pub remote_assignor: Option<String>,
    /// `client.rack`.
    pub rack: Option<String>,
    /// The host it says it runs on; empty where it does not say. Register alone tells it.
    pub host: String,
    /// `session.timeout.ms`: silence after which either side gives the other up. In the consumer
    /// protocol the coordinator's is its own setting, and this must be no longer.
    pub session_timeout: Duration,
    /// `heartbeat.interval.ms`; in the consumer protocol, until the coordinator tells
    /// another. Register derives it from the session timeout (S15).
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
            remote_assignor: None,
            rack: None,
            host: String::new(),
            session_timeout: Duration::from_secs(45),
            heartbeat_interval: Duration::from_secs(3),
            rebalance_timeout: Duration::from_secs(300),
            request_timeout: Duration::from_secs(30),
            retry_backoff_min: Duration::from_millis(100),
            retry_backoff_max: Duration::from_secs(1),
        }
    }

    /// From one heartbeat to the next (S10, S12, S15).
    pub fn beat_interval(&self) -> Duration {
        match self.protocol {
            Protocol::Classic | Protocol::Consumer => self.heartbeat_interval,
            Protocol::Register(detection) => detection.interval(self.session_timeout),
        }
    }

    /// Silence of the coordinator after which what is owned may be another's (decision 27).
    pub fn silence_max(&self) -> Duration {
        match self.protocol {
            Protocol::Classic | Protocol::Consumer => self.session_timeout,
            Protocol::Register(detection) => {
                self.session_timeout.min(detection.limit(self.session_timeout))
            }
        }
    }

    /// Whether a heartbeat that is told of a rebalance keeps its member alive (decision 25).
    pub(super) fn is_renewed_by_rebalance(&self) -> bool {
        !matches!(self.protocol, Protocol::Register(_))
    }

    /// Cooperative only where every assignor is: the group may settle on any of them (KIP-429).
    /// In the register protocol everyone stops before it registers again.
    pub fn handover(&self) -> Handover {
        if let Protocol::Register(_) = self.protocol {
            return Handover::Eager;
        }
        let is_cooperative = |assignor: &Assignor| assignor.handover() == Handover::Cooperative;
        if self.assignors.iter().all(is_cooperative) {
            Handover::Cooperative
        } else {
            Handover::Eager
        }
    }
}
