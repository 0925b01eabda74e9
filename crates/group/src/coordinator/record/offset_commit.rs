//! Record kind: the offset one group committed for one partition.

use super::FRAMING_BYTES;
use alloc::sync::Arc;
use ottla_model::{GroupId, LeaderEpoch, Offset, PartitionId, Timestamp, TopicId, TopicName};

/// The offset of one group for one partition, or its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OffsetCommit {
    /// Key: the group.
    pub group: GroupId,
    /// Key: the topic.
    pub topic: TopicName,
    /// Key: the partition.
    pub partition: PartitionId,
    /// What is committed; `None` is the tombstone.
    pub value: Option<OffsetCommitValue>,
}

/// What is committed (Kafka's `OffsetCommitValue` v0-v4).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OffsetCommitValue {
    /// The next offset to read.
    pub offset: Offset,
    /// The leader epoch of the last record read, where known (KIP-320).
    pub leader_epoch: Option<LeaderEpoch>,
    /// The application's own note.
    pub metadata: Arc<str>,
    /// When it was committed.
    pub committed_at: Timestamp,
    /// When it expires by the committer's own wish; only v1 of the value can say so.
    pub expires_at: Option<Timestamp>,
    /// The topic's id when it was committed; zero where unknown (KIP-848; tagged, v4).
    pub topic_id: TopicId,
}

impl OffsetCommit {
    pub(super) fn estimated_bytes(&self) -> usize {
        let key = self.group.len() + self.topic.len() + 10;
        let value = self.value.as_ref().map_or(0, |value| 48 + value.metadata.len());
        FRAMING_BYTES + key + value
    }
}
