//! Kinds 0 and 1: a committed offset.
//!
//! Kind 0 is what Kafka wrote before 0.9; its key is the same, and it is written no more. Of the
//! value's layouts, 1 alone can say when the offset expires, 3 adds the leader epoch, and 4 the
//! topic's id. Kafka 4.4 writes 1 where an expiry is asked for, else 4.

use ottla_group::coordinator::record::{OffsetCommit, OffsetCommitValue};
use ottla_model::{GroupId, LeaderEpoch, Offset, PartitionId, Timestamp, TopicName};

use super::{Encoded, numbered};
use crate::generated::{OffsetCommitKey, OffsetCommitValue as WireValue};
use crate::{DecodeError, EncodeError, Message, Reader, Uuid};

pub(super) const LEGACY_KIND: i16 = 0;
pub(super) const KIND: i16 = 1;

pub(super) fn decode(key: &[u8], value: Option<(i16, &[u8])>) -> Result<OffsetCommit, DecodeError> {
    let key = OffsetCommitKey::decode(&mut Reader::new(key), KEY_VERSION)?;
    let value = value.map(read_value).transpose()?;
    Ok(OffsetCommit {
        group: GroupId::from(key.group),
        topic: TopicName::from(key.topic),
        partition: PartitionId(key.partition),
        value: value.map(|value| OffsetCommitValue {
            offset: Offset(value.offset),
            leader_epoch: (value.leader_epoch >= 0).then_some(LeaderEpoch(value.leader_epoch)),
            metadata: value.metadata.into(),
            committed_at: Timestamp(value.commit_timestamp),
            expires_at: (value.expire_timestamp >= 0).then_some(Timestamp(value.expire_timestamp)),
            topic_id: value.topic_id.into(),
        }),
    })
}

fn read_value((version, value): (i16, &[u8])) -> Result<WireValue<'_>, DecodeError> {
    WireValue::decode(&mut Reader::new(value), version)
}

pub(super) fn encode(record: &OffsetCommit) -> Result<Encoded, EncodeError> {
    let key = OffsetCommitKey {
        group: &record.group,
        topic: &record.topic,
        partition: record.partition.0,
    };
    let key = numbered(KIND, &key, KEY_VERSION)?;
    let value = record.value.as_ref().map(encode_value).transpose()?;
    Ok(Encoded { key, value })
}

fn encode_value(value: &OffsetCommitValue) -> Result<Vec<u8>, EncodeError> {
    let version = if value.expires_at.is_some() { EXPIRING_VERSION } else { VERSION };
    let value = WireValue {
        offset: value.offset.0,
        leader_epoch: value.leader_epoch.map_or(-1, |epoch| epoch.0),
        metadata: &value.metadata,
        commit_timestamp: value.committed_at.0,
        expire_timestamp: value.expires_at.map_or(-1, |at| at.0),
        topic_id: Uuid::from(value.topic_id),
    };
    numbered(version, &value, version)
}

const KEY_VERSION: i16 = 0;
const VERSION: i16 = 4;
const EXPIRING_VERSION: i16 = 1;
