//! Record kind: for which epoch the target of a group of the consumer protocol was computed.

use super::FRAMING_BYTES;
use ottla_model::{Generation, GroupId, Timestamp};

/// The epoch of a group's target, or the target's end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsumerGroupTargetAssignmentMetadata {
    /// Key: the group.
    pub group: GroupId,
    /// The epoch; `None` is the tombstone.
    pub value: Option<ConsumerGroupTargetAssignmentMetadataValue>,
}

/// When a target was computed, on both scales.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConsumerGroupTargetAssignmentMetadataValue {
    /// The group's epoch it was computed for.
    pub epoch: Generation,
    /// When; zero where it is unknown.
    pub assigned_at: Timestamp,
}

impl ConsumerGroupTargetAssignmentMetadata {
    pub(super) fn estimated_bytes(&self) -> usize {
        FRAMING_BYTES + self.group.len() + 24
    }
}
