//! Kind 6: for which epoch the target of a group of the consumer protocol was computed.

use ottla_group::coordinator::record::{
    ConsumerGroupTargetAssignmentMetadata, ConsumerGroupTargetAssignmentMetadataValue,
};
use ottla_model::{Generation, GroupId, Timestamp};

use super::{Encoded, numbered};
use crate::generated::{
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue as WireValue,
};
use crate::{DecodeError, EncodeError, Message, Reader};

pub(super) const KIND: i16 = 6;

pub(super) fn decode(
    key: &[u8],
    value: Option<(i16, &[u8])>,
) -> Result<ConsumerGroupTargetAssignmentMetadata, DecodeError> {
    let key = ConsumerGroupTargetAssignmentMetadataKey::decode(&mut Reader::new(key), VERSION)?;
    let value = value.map(|(version, value)| WireValue::decode(&mut Reader::new(value), version));
    let value = value.transpose()?.map(|value| ConsumerGroupTargetAssignmentMetadataValue {
        epoch: Generation(value.assignment_epoch),
        assigned_at: Timestamp(value.assignment_timestamp),
    });
    Ok(ConsumerGroupTargetAssignmentMetadata { group: GroupId::from(key.group_id), value })
}

pub(super) fn encode(
    record: &ConsumerGroupTargetAssignmentMetadata,
) -> Result<Encoded, EncodeError> {
    let key = ConsumerGroupTargetAssignmentMetadataKey { group_id: &record.group };
    let value = record.value.map(|value| {
        let value = WireValue {
            assignment_epoch: value.epoch.0,
            assignment_timestamp: value.assigned_at.0,
        };
        numbered(VERSION, &value, VERSION)
    });
    Ok(Encoded { key: numbered(KIND, &key, VERSION)?, value: value.transpose()? })
}

const VERSION: i16 = 0;
