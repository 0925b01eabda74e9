//! Record kind: what a member of the consumer protocol says of itself.

use super::FRAMING_BYTES;
use crate::message::Blob;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;
use ottla_model::{GroupId, InstanceId, MemberId, TopicName};

/// A member's own words, or the member's end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsumerGroupMemberMetadata {
    /// Key: the group.
    pub group: GroupId,
    /// Key: the member.
    pub member: MemberId,
    /// What it says; `None` is the tombstone, the last record of a member. Shared, because the
    /// shard keeps it too.
    pub value: Option<Arc<ConsumerGroupMemberMetadataValue>>,
}

/// Who it is and what it wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsumerGroupMemberMetadataValue {
    /// Its `group.instance.id`, if static.
    pub instance: Option<InstanceId>,
    /// Its rack.
    pub rack: Option<Arc<str>>,
    /// The client id it sent.
    pub client_id: Arc<str>,
    /// The address it came from.
    pub client_host: Arc<str>,
    /// The topics it subscribes to by name, as it sent them.
    pub topics: Vec<TopicName>,
    /// The pattern it subscribes to as well; empty where it gave that up.
    pub regex: Option<Arc<str>>,
    /// How long it may take to revoke partitions. `None` where it never said.
    pub rebalance_timeout: Option<Duration>,
    /// The assignor it votes for.
    pub assignor: Option<Arc<str>>,
    /// Of a member that speaks the classic protocol, in a group that is moving from one to the
    /// other.
    pub classic: Option<ClassicMember>,
}

/// What the classic protocol needs to know of a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassicMember {
    /// Silence after which it counts as dead.
    pub session_timeout: Duration,
    /// Its assignors with its metadata for each, most wanted first.
    pub protocols: Vec<(Arc<str>, Blob)>,
}

impl ClassicMember {
    /// Its most wanted assignor, with its metadata.
    pub(in super::super) fn most_wanted(&self) -> Option<&(Arc<str>, Blob)> {
        self.protocols.first()
    }

    /// Whether it supports this assignor.
    pub(in super::super) fn supports(&self, assignor: &str) -> bool {
        self.protocols.iter().any(|(name, _)| **name == *assignor)
    }
}

impl ConsumerGroupMemberMetadata {
    pub(super) fn estimated_bytes(&self) -> usize {
        let value = self.value.as_ref().map_or(0, |value| value.estimated_bytes());
        FRAMING_BYTES + self.group.len() + self.member.len() + 4 + value
    }
}

impl ConsumerGroupMemberMetadataValue {
    /// An upper estimate of its bytes.
    pub(in super::super) fn estimated_bytes(&self) -> usize {
        let optional = |text: Option<usize>| 5 + text.unwrap_or_default();
        let topics: usize = self.topics.iter().map(|topic| 5 + topic.len()).sum();
        let classic = self.classic.iter().flat_map(|classic| &classic.protocols);
        let classic: usize = classic.map(|(name, bytes)| 12 + name.len() + bytes.len()).sum();
        let texts = optional(self.instance.as_ref().map(|text| text.len()))
            + optional(self.rack.as_ref().map(|text| text.len()))
            + optional(self.regex.as_ref().map(|text| text.len()))
            + optional(self.assignor.as_ref().map(|text| text.len()));
        40 + self.client_id.len() + self.client_host.len() + texts + topics + classic
    }
}
