//! Kind 4: the subscribed topics of a group of the consumer protocol, which Kafka 4.4 writes no
//! more.

use std::sync::Arc;

use ottla_group::coordinator::record::{ConsumerGroupPartitionMetadata, StoredTopic};
use ottla_model::{GroupId, PartitionId, TopicName};

use super::{Encoded, numbered};
use crate::generated::consumer_group_partition_metadata_value::{PartitionMetadata, TopicMetadata};
use crate::generated::{
    ConsumerGroupPartitionMetadataKey, ConsumerGroupPartitionMetadataValue as WireValue,
};
use crate::{DecodeError, EncodeError, Message, Reader};

pub(super) const KIND: i16 = 4;

pub(super) fn decode(
    key: &[u8],
    value: Option<(i16, &[u8])>,
) -> Result<ConsumerGroupPartitionMetadata, DecodeError> {
    let key = ConsumerGroupPartitionMetadataKey::decode(&mut Reader::new(key), VERSION)?;
    let value = value.map(|(version, value)| WireValue::decode(&mut Reader::new(value), version));
    let value = value.transpose()?.map(|value| value.topics.iter().map(decode_topic).collect());
    Ok(ConsumerGroupPartitionMetadata { group: GroupId::from(key.group_id), value })
}

fn decode_topic(topic: &TopicMetadata<'_>) -> StoredTopic {
    let racks = topic.partition_metadata.iter().map(|partition| {
        let racks = partition.racks.iter().copied().map(Arc::from).collect();
        (PartitionId(partition.partition), racks)
    });
    StoredTopic {
        id: topic.topic_id.into(),
        topic: TopicName::from(topic.topic_name),
        partitions: topic.num_partitions,
        racks: racks.collect(),
    }
}

pub(super) fn encode(record: &ConsumerGroupPartitionMetadata) -> Result<Encoded, EncodeError> {
    let key = ConsumerGroupPartitionMetadataKey { group_id: &record.group };
    let value = record.value.as_ref().map(|topics| {
        let topics = topics.iter().map(encode_topic).collect();
        numbered(VERSION, &WireValue { topics }, VERSION)
    });
    Ok(Encoded { key: numbered(KIND, &key, VERSION)?, value: value.transpose()? })
}

fn encode_topic(topic: &StoredTopic) -> TopicMetadata<'_> {
    let racks = topic.racks.iter().map(|(partition, racks)| PartitionMetadata {
        partition: partition.0,
        racks: racks.iter().map(|rack| &**rack).collect(),
    });
    TopicMetadata {
        topic_id: topic.id.into(),
        topic_name: &topic.topic,
        num_partitions: topic.partitions,
        partition_metadata: racks.collect(),
    }
}

const VERSION: i16 = 0;
