//! Kind 16: which topics a pattern of a group of the consumer protocol stands for.

use ottla_group::coordinator::record::{
    ConsumerGroupRegularExpression, ConsumerGroupRegularExpressionValue,
};
use ottla_model::{GroupId, Timestamp, TopicName};

use super::{Encoded, numbered};
use crate::generated::{
    ConsumerGroupRegularExpressionKey, ConsumerGroupRegularExpressionValue as WireValue,
};
use crate::{DecodeError, EncodeError, Message, Reader};

pub(super) const KIND: i16 = 16;

pub(super) fn decode(
    key: &[u8],
    value: Option<(i16, &[u8])>,
) -> Result<ConsumerGroupRegularExpression, DecodeError> {
    let key = ConsumerGroupRegularExpressionKey::decode(&mut Reader::new(key), VERSION)?;
    let value = value.map(|(version, value)| WireValue::decode(&mut Reader::new(value), version));
    let value = value.transpose()?.map(|value| ConsumerGroupRegularExpressionValue {
        topics: value.topics.iter().copied().map(TopicName::from).collect(),
        version: value.version,
        resolved_at: Timestamp(value.timestamp),
    });
    let (group, regex) = (GroupId::from(key.group_id), key.regular_expression.into());
    Ok(ConsumerGroupRegularExpression { group, regex, value })
}

pub(super) fn encode(record: &ConsumerGroupRegularExpression) -> Result<Encoded, EncodeError> {
    let key = ConsumerGroupRegularExpressionKey {
        group_id: &record.group,
        regular_expression: &record.regex,
    };
    let value = record.value.as_ref().map(|value| {
        let value = WireValue {
            topics: value.topics.iter().map(|topic| &**topic).collect(),
            version: value.version,
            timestamp: value.resolved_at.0,
        };
        numbered(VERSION, &value, VERSION)
    });
    Ok(Encoded { key: numbered(KIND, &key, VERSION)?, value: value.transpose()? })
}

const VERSION: i16 = 0;
