//! Looking at groups from outside, and deleting them.

use super::Blob;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use ottla_model::{GroupId, InstanceId, MemberId};

/// Describe one group.
#[derive(Clone, Copy, Debug)]
pub struct Describe<'a> {
    /// The group.
    pub group: &'a str,
}

/// A group as its coordinator sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Description {
    /// The group.
    pub group: GroupId,
    /// Its state.
    pub state: GroupState,
    /// Its protocol type (`consumer`, `connect`, ...); empty where it never had one.
    pub protocol_type: Arc<str>,
    /// The assignor in force; empty outside [`GroupState::Stable`].
    pub protocol: Arc<str>,
    /// Its members.
    pub members: Vec<DescribedMember>,
}

/// One member from outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DescribedMember {
    /// Its id.
    pub member: MemberId,
    /// Its `group.instance.id`, if static.
    pub instance: Option<InstanceId>,
    /// The client id it sent.
    pub client_id: Arc<str>,
    /// The address it came from.
    pub client_host: Arc<str>,
    /// Its subscription, in the assignor's terms.
    pub metadata: Blob,
    /// Its part of the assignment.
    pub assignment: Blob,
}

/// List this shard's groups.
#[derive(Clone, Debug, Default)]
pub struct List<'a> {
    /// Only groups in one of these states (names compared without case); empty for all (KIP-518).
    pub states: Vec<&'a str>,
    /// Only groups of one of these types (KIP-848); empty for all.
    pub types: Vec<&'a str>,
}

/// One group in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listing {
    /// The group.
    pub group: GroupId,
    /// Its protocol type.
    pub protocol_type: Arc<str>,
    /// Its state.
    pub state: GroupState,
    /// Which protocol its members speak.
    pub kind: GroupKind,
}

/// Delete one group and its offsets; it must have no members.
#[derive(Clone, Copy, Debug)]
pub struct DeleteGroup<'a> {
    /// The group.
    pub group: &'a str,
}

/// The states Kafka's tools know a group by.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum GroupState {
    /// No members; perhaps offsets.
    Empty,
    /// Waiting for members to join.
    PreparingRebalance,
    /// Waiting for the leader's assignment.
    CompletingRebalance,
    /// Consumer protocol: a new target is to be computed.
    Assigning,
    /// Consumer protocol: members are on their way to the target.
    Reconciling,
    /// Everyone has an assignment.
    Stable,
    /// Gone.
    Dead,
}

impl GroupState {
    /// Whether the group waits for members.
    pub fn is_under_way(self) -> bool {
        matches!(self, Self::PreparingRebalance | Self::CompletingRebalance | Self::Reconciling)
    }

    /// The name Kafka sends, prints and filters by.
    pub fn name(self) -> &'static str {
        match self {
            Self::Empty => "Empty",
            Self::PreparingRebalance => "PreparingRebalance",
            Self::CompletingRebalance => "CompletingRebalance",
            Self::Assigning => "Assigning",
            Self::Reconciling => "Reconciling",
            Self::Stable => "Stable",
            Self::Dead => "Dead",
        }
    }
}

impl fmt::Display for GroupState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Which protocol a group's members speak.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum GroupKind {
    /// JoinGroup and SyncGroup.
    Classic,
    /// ConsumerGroupHeartbeat (KIP-848).
    Consumer,
    /// RegisterConsumer (the design document's protocol).
    Register,
}

impl GroupKind {
    /// The project's own name for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Classic => "classic",
            Self::Consumer => "consumer",
            Self::Register => "register",
        }
    }

    /// The name Kafka sends and filters by, in lower case as it is on the wire. Kafka's tools ask
    /// for the types they know, so a register group is to them the classic group it looks like.
    pub fn kafka_name(self) -> &'static str {
        match self {
            Self::Classic | Self::Register => "classic",
            Self::Consumer => "consumer",
        }
    }
}

impl fmt::Display for GroupKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
