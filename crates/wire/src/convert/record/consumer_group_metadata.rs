//! Kind 3: the epoch of a group of the consumer protocol.

use ottla_group::coordinator::record::{ConsumerGroupMetadata, ConsumerGroupMetadataValue};
use ottla_model::{Generation, GroupId};

use super::{Encoded, numbered};
use crate::generated::{ConsumerGroupMetadataKey, ConsumerGroupMetadataValue as WireValue};
use crate::{DecodeError, EncodeError, Message, Reader};

pub(super) const KIND: i16 = 3;

pub(super) fn decode(
    key: &[u8],
    value: Option<(i16, &[u8])>,
) -> Result<ConsumerGroupMetadata, DecodeError> {
    let key = ConsumerGroupMetadataKey::decode(&mut Reader::new(key), VERSION)?;
    let value = value.map(|(version, value)| WireValue::decode(&mut Reader::new(value), version));
    let value = value.transpose()?.map(|value| ConsumerGroupMetadataValue {
        epoch: Generation(value.epoch),
        metadata_hash: value.metadata_hash,
    });
    Ok(ConsumerGroupMetadata { group: GroupId::from(key.group_id), value })
}

pub(super) fn encode(record: &ConsumerGroupMetadata) -> Result<Encoded, EncodeError> {
    let key = numbered(KIND, &ConsumerGroupMetadataKey { group_id: &record.group }, VERSION)?;
    let value = record.value.map(|value| {
        let ConsumerGroupMetadataValue { epoch, metadata_hash } = value;
        numbered(VERSION, &WireValue { epoch: epoch.0, metadata_hash }, VERSION)
    });
    Ok(Encoded { key, value: value.transpose()? })
}

const VERSION: i16 = 0;
