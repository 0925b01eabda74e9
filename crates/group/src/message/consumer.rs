//! The consumer protocol (KIP-848, KIP-1082): one heartbeat does it all, and each member moves by
//! itself.
//!
//! A member says what it wants and what it owns; it is told its epoch, what it may own, and when
//! to come back. Partitions are named by topic id, so a recreated topic is another topic.

use super::GroupError;
use super::admin::GroupState;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;
use ottla_model::{Generation, GroupId, InstanceId, MemberId, PartitionId, TopicId, TopicName};

/// Partitions of several topics: no topic twice, none without partitions.
pub type Partitions = Vec<(TopicId, Vec<PartitionId>)>;

/// Joins, stays, acknowledges a revocation, or leaves.
///
/// What is `None` has not changed since the member's last request (a partial heartbeat); a request
/// that names [`rebalance_timeout`](Self::rebalance_timeout), [`topics`](Self::topics) and
/// [`owned`](Self::owned) is a full one and is told its assignment, changed or not.
#[derive(Clone, Debug)]
pub struct Heartbeat<'a> {
    /// The group.
    pub group: &'a str,
    /// The member, which names itself; empty only in a first join of version 0, whose member is
    /// named by the coordinator.
    pub member: &'a str,
    /// Where the member believes to stand.
    pub standing: Standing,
    /// Its `group.instance.id`, if static.
    pub instance: Option<&'a str>,
    /// Its rack.
    pub rack: Option<&'a str>,
    /// How long it may take to revoke partitions.
    pub rebalance_timeout: Option<Duration>,
    /// The topics it subscribes to by name.
    pub topics: Option<Vec<&'a str>>,
    /// The pattern it subscribes to as well; empty for none (any more).
    pub regex: Option<&'a str>,
    /// The server-side assignor it votes for.
    pub assignor: Option<&'a str>,
    /// What it owns at this moment. A partition that is missing here has been given up.
    pub owned: Option<Partitions>,
}

/// Where a member believes to stand. Kafka squeezes this into one number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Standing {
    /// It joins, or joins again after it was fenced (epoch 0).
    Joining,
    /// It is a member of this epoch (above 0).
    Member(Generation),
    /// It goes for good (epoch -1).
    Leaving,
    /// It is static and goes, but will be back within its session timeout (epoch -2).
    LeavingForNow,
}

/// How a member stands after its heartbeat.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Beat {
    /// Its id.
    pub member: MemberId,
    /// Its epoch; the one it left with where it left.
    pub standing: Standing,
    /// When to come back at the latest; zero for one that left.
    pub interval: Duration,
    /// All it may own. `None`: as it was told last.
    pub assignment: Option<Partitions>,
}

/// Describe one group of the consumer protocol.
#[derive(Clone, Copy, Debug)]
pub struct Describe<'a> {
    /// The group.
    pub group: &'a str,
}

/// A group of the consumer protocol as its coordinator sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Description {
    /// The group.
    pub group: GroupId,
    /// Its state.
    pub state: GroupState,
    /// Which version of members and subscriptions is the latest.
    pub epoch: Generation,
    /// For which of those versions the target was computed.
    pub assignment_epoch: Generation,
    /// The assignor the votes chose.
    pub assignor: Arc<str>,
    /// Its members, by id.
    pub members: Vec<DescribedMember>,
}

/// One member from outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DescribedMember {
    /// Its id.
    pub member: MemberId,
    /// Its `group.instance.id`, if static.
    pub instance: Option<InstanceId>,
    /// Its rack.
    pub rack: Option<Arc<str>>,
    /// Its epoch: -2 for a static member that went and will be back.
    pub epoch: Generation,
    /// The client id it sent.
    pub client_id: Arc<str>,
    /// The address it came from.
    pub client_host: Arc<str>,
    /// The topics it subscribes to by name.
    pub topics: Vec<TopicName>,
    /// The pattern it subscribes to.
    pub regex: Option<Arc<str>>,
    /// What it owns, or was told that it may own. Topics that are gone are left out.
    pub assignment: Vec<NamedPartitions>,
    /// What it should own.
    pub target: Vec<NamedPartitions>,
    /// Whether it speaks the classic protocol, in a group on its way from one to the other.
    pub is_classic: bool,
}

/// Partitions of one topic, which is named twice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedPartitions {
    /// Its id.
    pub id: TopicId,
    /// Its name.
    pub topic: TopicName,
    /// Its partitions, ascending.
    pub partitions: Vec<PartitionId>,
}

impl Standing {
    /// The standing that the wire's epoch means; [`GroupError::InvalidRequest`] below -2.
    pub fn from_epoch(epoch: i32) -> Result<Self, GroupError> {
        match epoch {
            0 => Ok(Self::Joining),
            -1 => Ok(Self::Leaving),
            -2 => Ok(Self::LeavingForNow),
            1.. => Ok(Self::Member(Generation(epoch))),
            _ => Err(GroupError::InvalidRequest),
        }
    }

    /// The wire's epoch for it.
    pub fn epoch(self) -> i32 {
        match self {
            Self::Joining => 0,
            Self::Member(epoch) => epoch.0,
            Self::Leaving => -1,
            Self::LeavingForNow => -2,
        }
    }
}
