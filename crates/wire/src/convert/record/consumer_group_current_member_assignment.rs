//! Kind 8: where a member of the consumer protocol stands on its way to the target.

use std::sync::Arc;

use ottla_group::coordinator::record::{
    ConsumerGroupCurrentMemberAssignment, ConsumerGroupCurrentMemberAssignmentValue,
    HeldPartitions, StoredState,
};
use ottla_model::{Generation, GroupId, MemberId, PartitionId};

use super::{Encoded, numbered};
use crate::generated::consumer_group_current_member_assignment_value::TopicPartitions;
use crate::generated::{
    ConsumerGroupCurrentMemberAssignmentKey, ConsumerGroupCurrentMemberAssignmentValue as WireValue,
};
use crate::{DecodeError, EncodeError, Message, Reader};

pub(super) const KIND: i16 = 8;

pub(super) fn decode(
    key: &[u8],
    value: Option<(i16, &[u8])>,
) -> Result<ConsumerGroupCurrentMemberAssignment, DecodeError> {
    let key = ConsumerGroupCurrentMemberAssignmentKey::decode(&mut Reader::new(key), VERSION)?;
    let value = value.map(|(version, value)| WireValue::decode(&mut Reader::new(value), version));
    Ok(ConsumerGroupCurrentMemberAssignment {
        group: GroupId::from(key.group_id),
        member: MemberId::from(key.member_id),
        value: value.transpose()?.map(|value| Arc::new(decode_value(&value))),
    })
}

fn decode_value(value: &WireValue) -> ConsumerGroupCurrentMemberAssignmentValue {
    let held = |topics: &[TopicPartitions]| topics.iter().map(decode_held).collect();
    ConsumerGroupCurrentMemberAssignmentValue {
        epoch: Generation(value.member_epoch),
        previous_epoch: Generation(value.previous_member_epoch),
        state: match value.state {
            0 => StoredState::Stable,
            1 => StoredState::Unrevoked,
            2 => StoredState::Unreleased,
            later => StoredState::Unknown(later),
        },
        assigned: held(&value.assigned_partitions),
        revoking: held(&value.partitions_pending_revocation),
    }
}

fn decode_held(topic: &TopicPartitions) -> HeldPartitions {
    let epochs = topic.assignment_epochs.as_ref();
    HeldPartitions {
        topic: topic.topic_id.into(),
        partitions: topic.partitions.iter().copied().map(PartitionId).collect(),
        epochs: epochs.map(|epochs| epochs.iter().copied().map(Generation).collect()),
    }
}

pub(super) fn encode(
    record: &ConsumerGroupCurrentMemberAssignment,
) -> Result<Encoded, EncodeError> {
    let key = ConsumerGroupCurrentMemberAssignmentKey {
        group_id: &record.group,
        member_id: &record.member,
    };
    let value = record.value.as_deref().map(encode_value).transpose()?;
    Ok(Encoded { key: numbered(KIND, &key, VERSION)?, value })
}

fn encode_value(value: &ConsumerGroupCurrentMemberAssignmentValue) -> Result<Vec<u8>, EncodeError> {
    let held = |topics: &[HeldPartitions]| topics.iter().map(encode_held).collect();
    let value = WireValue {
        member_epoch: value.epoch.0,
        previous_member_epoch: value.previous_epoch.0,
        state: match value.state {
            StoredState::Stable => 0,
            StoredState::Unrevoked => 1,
            StoredState::Unreleased => 2,
            StoredState::Unknown(later) => later,
        },
        assigned_partitions: held(&value.assigned),
        partitions_pending_revocation: held(&value.revoking),
    };
    numbered(VERSION, &value, VERSION)
}

fn encode_held(topic: &HeldPartitions) -> TopicPartitions {
    let epochs = topic.epochs.as_ref();
    TopicPartitions {
        topic_id: topic.topic.into(),
        partitions: topic.partitions.iter().map(|partition| partition.0).collect(),
        assignment_epochs: epochs.map(|epochs| epochs.iter().map(|epoch| epoch.0).collect()),
    }
}

const VERSION: i16 = 0;
