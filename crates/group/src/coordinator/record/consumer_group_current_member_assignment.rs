//! Record kind: where a member of the consumer protocol stands on its way to the target.

use super::FRAMING_BYTES;
use alloc::sync::Arc;
use alloc::vec::Vec;
use ottla_model::{Generation, GroupId, MemberId, PartitionId, TopicId};

/// A member's standing, or its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsumerGroupCurrentMemberAssignment {
    /// Key: the group.
    pub group: GroupId,
    /// Key: the member.
    pub member: MemberId,
    /// Its standing; `None` is the tombstone. Shared, because the shard keeps it too.
    pub value: Option<Arc<ConsumerGroupCurrentMemberAssignmentValue>>,
}

/// What a member holds, and for which epoch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsumerGroupCurrentMemberAssignmentValue {
    /// Its epoch; -2 for a static member that went and will be back.
    pub epoch: Generation,
    /// The epoch it had before: a member whose last answer was lost still names it.
    pub previous_epoch: Generation,
    /// How far it has come.
    pub state: StoredState,
    /// What it may own.
    pub assigned: Vec<HeldPartitions>,
    /// What it was told to give up and perhaps still owns.
    pub revoking: Vec<HeldPartitions>,
}

/// How far a member has come, as Kafka numbers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoredState {
    /// 0: it has all of its target.
    Stable,
    /// 1: it must give something up first.
    Unrevoked,
    /// 2: it waits for something that others still hold.
    Unreleased,
    /// Something that a later Kafka knows.
    Unknown(i8),
}

/// Partitions of one topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldPartitions {
    /// The topic.
    pub topic: TopicId,
    /// The partitions, in any order.
    pub partitions: Vec<PartitionId>,
    /// For each, the epoch with which the member came to hold it (KIP-1251). Absent in older
    /// records: then the member's epoch stands for all.
    pub epochs: Option<Vec<Generation>>,
}

impl ConsumerGroupCurrentMemberAssignment {
    pub(super) fn estimated_bytes(&self) -> usize {
        let held = |held: &Vec<HeldPartitions>| {
            held.iter().map(|topic| 32 + 8 * topic.partitions.len()).sum::<usize>()
        };
        let value = self.value.iter().map(|value| held(&value.assigned) + held(&value.revoking));
        FRAMING_BYTES + self.group.len() + self.member.len() + 32 + value.sum::<usize>()
    }
}
