//! Kind 5: what a member of the consumer protocol says of itself.

use std::sync::Arc;

use ottla_group::coordinator::record::{
    ClassicMember, ConsumerGroupMemberMetadata, ConsumerGroupMemberMetadataValue,
};
use ottla_model::{GroupId, InstanceId, MemberId, TopicName};

use super::{Encoded, numbered};
use crate::convert::{duration, millis};
use crate::generated::consumer_group_member_metadata_value::{
    ClassicMemberMetadata, ClassicProtocol,
};
use crate::generated::{
    ConsumerGroupMemberMetadataKey, ConsumerGroupMemberMetadataValue as WireValue,
};
use crate::{DecodeError, EncodeError, Message, Reader};

pub(super) const KIND: i16 = 5;

pub(super) fn decode(
    key: &[u8],
    value: Option<(i16, &[u8])>,
) -> Result<ConsumerGroupMemberMetadata, DecodeError> {
    let key = ConsumerGroupMemberMetadataKey::decode(&mut Reader::new(key), VERSION)?;
    let value = value.map(|(version, value)| WireValue::decode(&mut Reader::new(value), version));
    Ok(ConsumerGroupMemberMetadata {
        group: GroupId::from(key.group_id),
        member: MemberId::from(key.member_id),
        value: value.transpose()?.map(|value| Arc::new(decode_value(&value))),
    })
}

fn decode_value(value: &WireValue<'_>) -> ConsumerGroupMemberMetadataValue {
    let timeout = value.rebalance_timeout_ms;
    ConsumerGroupMemberMetadataValue {
        instance: value.instance_id.map(InstanceId::from),
        rack: value.rack_id.map(Arc::from),
        client_id: value.client_id.into(),
        client_host: value.client_host.into(),
        topics: value.subscribed_topic_names.iter().copied().map(TopicName::from).collect(),
        regex: value.subscribed_topic_regex.map(Arc::from),
        rebalance_timeout: (timeout >= 0).then(|| duration(timeout)),
        assignor: value.server_assignor.map(Arc::from),
        classic: value.classic_member_metadata.as_ref().map(decode_classic),
    }
}

fn decode_classic(classic: &ClassicMemberMetadata<'_>) -> ClassicMember {
    let protocols = classic.supported_protocols.iter();
    ClassicMember {
        session_timeout: duration(classic.session_timeout_ms),
        protocols: protocols.map(|p| (p.name.into(), p.metadata.into())).collect(),
    }
}

pub(super) fn encode(record: &ConsumerGroupMemberMetadata) -> Result<Encoded, EncodeError> {
    let key = ConsumerGroupMemberMetadataKey { group_id: &record.group, member_id: &record.member };
    let value = record.value.as_deref().map(encode_value).transpose()?;
    Ok(Encoded { key: numbered(KIND, &key, VERSION)?, value })
}

fn encode_value(value: &ConsumerGroupMemberMetadataValue) -> Result<Vec<u8>, EncodeError> {
    let value = WireValue {
        instance_id: value.instance.as_deref(),
        rack_id: value.rack.as_deref(),
        client_id: &value.client_id,
        client_host: &value.client_host,
        subscribed_topic_names: value.topics.iter().map(|topic| &**topic).collect(),
        subscribed_topic_regex: value.regex.as_deref(),
        rebalance_timeout_ms: value.rebalance_timeout.map_or(-1, millis),
        server_assignor: value.assignor.as_deref(),
        classic_member_metadata: value.classic.as_ref().map(encode_classic),
    };
    numbered(VERSION, &value, VERSION)
}

fn encode_classic(classic: &ClassicMember) -> ClassicMemberMetadata<'_> {
    let protocols = classic.protocols.iter();
    ClassicMemberMetadata {
        session_timeout_ms: millis(classic.session_timeout),
        supported_protocols: protocols
            .map(|(name, metadata)| ClassicProtocol { name, metadata })
            .collect(),
    }
}

const VERSION: i16 = 0;
