//! Kind 7: what a member of the consumer protocol should own.

use ottla_group::coordinator::record::ConsumerGroupTargetAssignmentMember;
use ottla_group::message::consumer::Partitions;
use ottla_model::{GroupId, MemberId, PartitionId};

use super::{Encoded, numbered};
use crate::generated::consumer_group_target_assignment_member_value::TopicPartition;
use crate::generated::{
    ConsumerGroupTargetAssignmentMemberKey, ConsumerGroupTargetAssignmentMemberValue as WireValue,
};
use crate::{DecodeError, EncodeError, Message, Reader};

pub(super) const KIND: i16 = 7;

pub(super) fn decode(
    key: &[u8],
    value: Option<(i16, &[u8])>,
) -> Result<ConsumerGroupTargetAssignmentMember, DecodeError> {
    let key = ConsumerGroupTargetAssignmentMemberKey::decode(&mut Reader::new(key), VERSION)?;
    let value = value.map(|(version, value)| WireValue::decode(&mut Reader::new(value), version));
    Ok(ConsumerGroupTargetAssignmentMember {
        group: GroupId::from(key.group_id),
        member: MemberId::from(key.member_id),
        value: value.transpose()?.map(|value| decode_value(&value)),
    })
}

fn decode_value(value: &WireValue) -> Partitions {
    let topics = value.topic_partitions.iter().map(|topic| {
        let partitions = topic.partitions.iter().copied().map(PartitionId).collect();
        (topic.topic_id.into(), partitions)
    });
    topics.collect()
}

pub(super) fn encode(record: &ConsumerGroupTargetAssignmentMember) -> Result<Encoded, EncodeError> {
    let key = ConsumerGroupTargetAssignmentMemberKey {
        group_id: &record.group,
        member_id: &record.member,
    };
    let value = record.value.as_ref().map(|value| {
        let topics = value.iter().map(|(topic, partitions)| TopicPartition {
            topic_id: (*topic).into(),
            partitions: partitions.iter().map(|partition| partition.0).collect(),
        });
        numbered(VERSION, &WireValue { topic_partitions: topics.collect() }, VERSION)
    });
    Ok(Encoded { key: numbered(KIND, &key, VERSION)?, value: value.transpose()? })
}

const VERSION: i16 = 0;
