//! Record kind: what a member of the consumer protocol should own.

use super::FRAMING_BYTES;
use crate::message::consumer::Partitions;
use ottla_model::{GroupId, MemberId};

/// A member's part of the target, or its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsumerGroupTargetAssignmentMember {
    /// Key: the group.
    pub group: GroupId,
    /// Key: the member.
    pub member: MemberId,
    /// Its partitions, in any order; `None` is the tombstone.
    pub value: Option<Partitions>,
}

impl ConsumerGroupTargetAssignmentMember {
    pub(super) fn estimated_bytes(&self) -> usize {
        let topics = self.value.iter().flatten().map(|(_, partitions)| 22 + 4 * partitions.len());
        FRAMING_BYTES + self.group.len() + self.member.len() + 8 + topics.sum::<usize>()
    }
}
