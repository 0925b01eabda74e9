//! Record kind: the epoch of a group of the consumer protocol.

use super::FRAMING_BYTES;
use ottla_model::{Generation, GroupId};

/// A group's epoch, or the group's end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsumerGroupMetadata {
    /// Key: the group.
    pub group: GroupId,
    /// The epoch; `None` is the tombstone, the last record of a group.
    pub value: Option<ConsumerGroupMetadataValue>,
}

/// Which version of members, subscriptions and topics is the latest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConsumerGroupMetadataValue {
    /// The group's epoch.
    pub epoch: Generation,
    /// A digest of what the subscribed topics looked like at this epoch; zero where nobody took
    /// one. Whoever reads it compares it with its own and no more.
    pub metadata_hash: i64,
}

impl ConsumerGroupMetadata {
    pub(super) fn estimated_bytes(&self) -> usize {
        FRAMING_BYTES + self.group.len() + 24
    }
}
