//! The one place where hard state changes: records, live or read from the log, become state here.
//!
//! [`Hard`] keeps its fields to itself, so that no handler can change them otherwise. It knows
//! nothing of who is waiting, of time or of replies.

use super::consumers::Consumers;
use super::offsets::Offsets;
use super::record::{GroupMetadataValue, Record};
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use ottla_model::TopicName;

/// Of one group, exactly what its records say: what survives this process.
#[derive(Debug, Default)]
pub(super) struct Hard {
    metadata: Option<Arc<GroupMetadataValue>>,
    offsets: Offsets,
    /// Boxed, because most groups speak another protocol.
    consumers: Option<Box<Consumers>>,
}

impl Hard {
    /// Applies one record of this group. Applying it twice is applying it once.
    pub(super) fn replay(&mut self, record: &Record) {
        match record {
            Record::OffsetCommit(commit) => {
                self.offsets.apply(&commit.topic, commit.partition, commit.value.as_ref());
            }
            Record::GroupMetadata(generation) => self.metadata = generation.value.clone(),
            other => {
                let consumers = self.consumers.get_or_insert_default();
                consumers.replay(other);
                if consumers.is_void() {
                    self.consumers = None;
                }
            }
        }
    }

    /// The last durable (or to be durable) generation; `None` for a group that never had one.
    pub(super) fn metadata(&self) -> Option<&Arc<GroupMetadataValue>> {
        self.metadata.as_ref()
    }

    /// The consumer protocol's side; void for a group that does not speak it.
    pub(super) fn consumers(&self) -> &Consumers {
        self.consumers.as_deref().unwrap_or(Consumers::none())
    }

    /// See [`Consumers::watch_subscriptions`]. Changes nothing that records say.
    pub(super) fn watch_subscriptions(&mut self) {
        self.consumers.get_or_insert_default().watch_subscriptions();
    }

    /// See [`Consumers::take_toggled`]. Changes nothing that records say.
    pub(super) fn take_toggled(&mut self) -> Vec<(TopicName, bool)> {
        self.consumers.as_mut().map(|consumers| consumers.take_toggled()).unwrap_or_default()
    }

    /// The committed offsets.
    pub(super) fn offsets(&self) -> &Offsets {
        &self.offsets
    }

    /// The fewest records that make this state.
    #[cfg(test)]
    pub(super) fn records(&self, id: &ottla_model::GroupId) -> alloc::vec::Vec<Record> {
        use super::record::{GroupMetadata, OffsetCommit};
        let metadata = self.metadata.iter().map(|value| {
            Record::GroupMetadata(GroupMetadata { group: id.clone(), value: Some(value.clone()) })
        });
        let offsets = self.offsets.topics().flat_map(|(topic, committed)| {
            committed.values().map(move |(partition, value)| {
                let (group, topic) = (id.clone(), topic.clone());
                Record::OffsetCommit(OffsetCommit { group, topic, partition, value: Some(value) })
            })
        });
        metadata.chain(offsets).collect()
    }

    /// Whether a record speaks of its members, or of there being none any more.
    pub(super) fn has_had_members(&self) -> bool {
        self.metadata.is_some() || self.consumers.is_some()
    }

    /// Whether no record speaks of this group (any more).
    pub(super) fn is_void(&self) -> bool {
        self.metadata.is_none() && self.consumers.is_none() && self.offsets.is_empty()
    }
}
