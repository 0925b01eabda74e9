//! Record kind: which topics a pattern of a group of the consumer protocol stands for.

use super::FRAMING_BYTES;
use alloc::sync::Arc;
use alloc::vec::Vec;
use ottla_model::{GroupId, Timestamp, TopicName};

/// A pattern's topics, or the pattern's end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsumerGroupRegularExpression {
    /// Key: the group.
    pub group: GroupId,
    /// Key: the pattern.
    pub regex: Arc<str>,
    /// What it stands for; `None` is the tombstone.
    pub value: Option<ConsumerGroupRegularExpressionValue>,
}

/// The topics whose whole name a pattern matches, at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsumerGroupRegularExpressionValue {
    /// The topics.
    pub topics: Vec<TopicName>,
    /// The version of the topics it was matched against, as its writer counts them.
    pub version: i64,
    /// When it was matched.
    pub resolved_at: Timestamp,
}

impl ConsumerGroupRegularExpression {
    pub(super) fn estimated_bytes(&self) -> usize {
        let topics = self.value.iter().flat_map(|value| &value.topics);
        let topics: usize = topics.map(|topic| 5 + topic.len()).sum();
        FRAMING_BYTES + self.group.len() + self.regex.len() + 32 + topics
    }
}
