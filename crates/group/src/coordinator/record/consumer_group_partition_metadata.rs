//! Record kind: the subscribed topics of a group of the consumer protocol, as Kafka 4.0 wrote them.
//! Kafka 4.4 writes a digest beside the epoch instead; we only read this kind, and end it.

use super::FRAMING_BYTES;
use alloc::sync::Arc;
use alloc::vec::Vec;
use ottla_model::{GroupId, PartitionId, TopicId, TopicName};

/// What the subscribed topics looked like, or the end of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsumerGroupPartitionMetadata {
    /// Key: the group.
    pub group: GroupId,
    /// The topics; `None` is the tombstone.
    pub value: Option<Vec<StoredTopic>>,
}

/// One topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredTopic {
    /// Its id.
    pub id: TopicId,
    /// Its name.
    pub topic: TopicName,
    /// How many partitions it has.
    pub partitions: i32,
    /// The racks of some partitions' replicas.
    pub racks: Vec<(PartitionId, Vec<Arc<str>>)>,
}

impl ConsumerGroupPartitionMetadata {
    pub(super) fn estimated_bytes(&self) -> usize {
        let topics = self.value.iter().flatten().map(|topic| {
            let racks = topic
                .racks
                .iter()
                .map(|(_, racks)| 12 + racks.iter().map(|rack| 5 + rack.len()).sum::<usize>());
            40 + topic.topic.len() + racks.sum::<usize>()
        });
        FRAMING_BYTES + self.group.len() + 8 + topics.sum::<usize>()
    }
}
