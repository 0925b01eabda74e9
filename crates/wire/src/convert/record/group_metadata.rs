//! Kind 2: the last generation of a classic group.
//!
//! Of the value's layouts, 1 adds the members' rebalance timeouts, 2 when the group came into
//! its state, 3 static members. 4 is 3 in compact form; Kafka 4.4 reads it and writes 3.

use std::sync::Arc;

use ottla_group::coordinator::record::{GroupMetadata, GroupMetadataValue, StoredMember};
use ottla_model::{Generation, GroupId, InstanceId, MemberId, Timestamp};

use super::{Encoded, numbered};
use crate::convert::{duration, millis};
use crate::generated::group_metadata_value::MemberMetadata;
use crate::generated::{GroupMetadataKey, GroupMetadataValue as WireValue};
use crate::{DecodeError, EncodeError, Message, Reader};

pub(super) const KIND: i16 = 2;

pub(super) fn decode(
    key: &[u8],
    value: Option<(i16, &[u8])>,
) -> Result<GroupMetadata, DecodeError> {
    let key = GroupMetadataKey::decode(&mut Reader::new(key), KEY_VERSION)?;
    let value = value.map(read_value).transpose()?;
    let value = value.map(|value| Arc::new(decode_value(&value)));
    Ok(GroupMetadata { group: GroupId::from(key.group), value })
}

fn read_value((version, value): (i16, &[u8])) -> Result<WireValue<'_>, DecodeError> {
    WireValue::decode(&mut Reader::new(value), version)
}

fn decode_value(value: &WireValue<'_>) -> GroupMetadataValue {
    let since = value.current_state_timestamp;
    GroupMetadataValue {
        protocol_type: value.protocol_type.into(),
        generation: Generation(value.generation),
        protocol: value.protocol.map(Arc::from),
        leader: value.leader.map(MemberId::from),
        state_since: (since >= 0).then_some(Timestamp(since)),
        members: value.members.iter().map(decode_member).collect(),
    }
}

fn decode_member(member: &MemberMetadata<'_>) -> StoredMember {
    let rebalance_timeout = match member.rebalance_timeout {
        ..0 => member.session_timeout,
        told => told,
    };
    StoredMember {
        member: MemberId::from(member.member_id),
        instance: member.group_instance_id.map(InstanceId::from),
        client_id: member.client_id.into(),
        client_host: member.client_host.into(),
        rebalance_timeout: duration(rebalance_timeout),
        session_timeout: duration(member.session_timeout),
        subscription: member.subscription.into(),
        assignment: member.assignment.into(),
    }
}

pub(super) fn encode(record: &GroupMetadata) -> Result<Encoded, EncodeError> {
    let key = numbered(KIND, &GroupMetadataKey { group: &record.group }, KEY_VERSION)?;
    let value = record.value.as_deref().map(encode_value).transpose()?;
    Ok(Encoded { key, value })
}

fn encode_value(value: &GroupMetadataValue) -> Result<Vec<u8>, EncodeError> {
    let value = WireValue {
        protocol_type: &value.protocol_type,
        generation: value.generation.0,
        protocol: value.protocol.as_deref(),
        leader: value.leader.as_deref(),
        current_state_timestamp: value.state_since.map_or(-1, |since| since.0),
        members: value.members.iter().map(encode_member).collect(),
    };
    numbered(VERSION, &value, VERSION)
}

fn encode_member(member: &StoredMember) -> MemberMetadata<'_> {
    MemberMetadata {
        member_id: &member.member,
        group_instance_id: member.instance.as_deref(),
        client_id: &member.client_id,
        client_host: &member.client_host,
        rebalance_timeout: millis(member.rebalance_timeout),
        session_timeout: millis(member.session_timeout),
        subscription: &member.subscription,
        assignment: &member.assignment,
    }
}

const KEY_VERSION: i16 = 0;
const VERSION: i16 = 3;
