//! How far a group has read: its committed offsets, packed tightly because there are millions.
//!
//! A group's offsets change only by replayed records (see [`replay`](super::replay)).

mod cleaning;
mod requests;

pub(super) use requests::nothing_committed;

use super::record::OffsetCommitValue;
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::sync::Arc;
use ottla_model::{LeaderEpoch, Offset, PartitionId, Timestamp, TopicId, TopicName};

/// The committed offsets of one group.
#[derive(Debug, Default)]
pub(super) struct Offsets {
    /// Partitions ascending, no topic without any. They go in order, from either end, so that a
    /// topic of very many goes without moving what is left of it each time.
    topics: BTreeMap<TopicName, VecDeque<Entry>>,
}

/// One committed offset in 48 bytes. What few offsets have is boxed.
#[derive(Debug)]
struct Entry {
    offset: i64,
    committed_at: i64,
    partition: i32,
    /// Negative where unknown.
    leader_epoch: i32,
    extra: Option<Box<Extra>>,
    topic_id: TopicId,
}

/// What one committed offset takes, its topic's name aside.
#[cfg(test)]
pub(super) const OFFSET_BYTES: usize = size_of::<Entry>();

#[derive(Debug)]
struct Extra {
    metadata: Arc<str>,
    expires_at: Option<Timestamp>,
}

impl Offsets {
    /// Whether nothing is committed.
    pub(super) fn is_empty(&self) -> bool {
        self.topics.is_empty()
    }

    /// What is committed for one partition.
    pub(super) fn value(&self, topic: &str, partition: PartitionId) -> Option<OffsetCommitValue> {
        self.entry(topic, partition).map(Entry::value)
    }

    /// Whether something is committed for one partition.
    pub(super) fn contains(&self, topic: &str, partition: PartitionId) -> bool {
        self.entry(topic, partition).is_some()
    }

    /// The name under which `topic` is kept, to share it rather than allocate another.
    pub(super) fn name(&self, topic: &str) -> Option<&TopicName> {
        self.topics.get_key_value(topic).map(|(name, _)| name)
    }

    /// Topics in order, each with its partitions ascending.
    pub(super) fn topics(&self) -> impl Iterator<Item = (&TopicName, Committed<'_>)> {
        self.topics.iter().map(|(topic, entries)| (topic, Committed { entries }))
    }

    /// Sets or removes the offset of one partition.
    pub(super) fn apply(
        &mut self,
        topic: &TopicName,
        partition: PartitionId,
        value: Option<&OffsetCommitValue>,
    ) {
        match value {
            Some(value) => self.set(topic, Entry::new(partition, value)),
            None => self.remove(topic, partition),
        }
    }

    fn entry(&self, topic: &str, partition: PartitionId) -> Option<&Entry> {
        let entries = self.topics.get(topic)?;
        let at = entries.binary_search_by_key(&partition.0, |entry| entry.partition).ok()?;
        entries.get(at)
    }

    fn set(&mut self, topic: &TopicName, entry: Entry) {
        let Some(entries) = self.topics.get_mut(&**topic) else {
            self.topics.insert(topic.clone(), VecDeque::from([entry]));
            return;
        };
        match entries.binary_search_by_key(&entry.partition, |entry| entry.partition) {
            Ok(at) => entries[at] = entry,
            Err(at) => {
                if entries.len() == entries.capacity() {
                    // By a quarter instead of twice: there are millions, and they stay.
                    entries.reserve_exact(entries.len() / 4 + 4);
                }
                entries.insert(at, entry);
            }
        }
    }

    fn remove(&mut self, topic: &TopicName, partition: PartitionId) {
        let Some(entries) = self.topics.get_mut(&**topic) else { return };
        if let Ok(at) = entries.binary_search_by_key(&partition.0, |entry| entry.partition) {
            entries.remove(at);
        }
        if entries.is_empty() {
            self.topics.remove(&**topic);
        }
    }
}

/// The committed offsets of one topic.
#[derive(Clone, Copy, Debug)]
pub(super) struct Committed<'a> {
    entries: &'a VecDeque<Entry>,
}

impl<'a> Committed<'a> {
    /// Every partition with what is committed there, ascending.
    pub(super) fn values(self) -> impl Iterator<Item = (PartitionId, OffsetCommitValue)> + 'a {
        self.entries.iter().map(|entry| (PartitionId(entry.partition), entry.value()))
    }

    /// Every partition with its offset, ascending.
    pub(super) fn offsets(self) -> impl Iterator<Item = (PartitionId, Offset)> + 'a {
        self.entries.iter().map(|entry| (PartitionId(entry.partition), Offset(entry.offset)))
    }

    /// The partitions for which `matches` is true of the topic's id at commit, and its time.
    pub(super) fn of_topic(
        self,
        matches: impl Fn(TopicId, Timestamp) -> bool + 'a,
    ) -> impl Iterator<Item = PartitionId> + 'a {
        let matching = self
            .entries
            .iter()
            .filter(move |entry| matches(entry.topic_id, Timestamp(entry.committed_at)));
        matching.map(|entry| PartitionId(entry.partition))
    }

    /// The partitions that have expired: past their own expiry where they have one, else
    /// `retention_ms` or more after `since`, or after their commit where that is `None`.
    pub(super) fn expired(
        self,
        now: Timestamp,
        since: Option<Timestamp>,
        retention_ms: i64,
    ) -> impl Iterator<Item = PartitionId> + 'a {
        let is_expired = move |entry: &&Entry| match entry.expires_at() {
            Some(expires_at) => now >= expires_at,
            None => {
                let base = since.map_or(entry.committed_at, |since| since.0);
                now.0.saturating_sub(base) >= retention_ms
            }
        };
        self.entries.iter().filter(is_expired).map(|entry| PartitionId(entry.partition))
    }

    /// How many.
    pub(super) fn len(self) -> usize {
        self.entries.len()
    }
}

impl Entry {
    fn new(partition: PartitionId, value: &OffsetCommitValue) -> Self {
        let plain = value.metadata.is_empty() && value.expires_at.is_none();
        let extra = (!plain).then(|| {
            Box::new(Extra { metadata: value.metadata.clone(), expires_at: value.expires_at })
        });
        Self {
            offset: value.offset.0,
            committed_at: value.committed_at.0,
            partition: partition.0,
            leader_epoch: value.leader_epoch.map_or(-1, |epoch| epoch.0),
            extra,
            topic_id: value.topic_id,
        }
    }

    fn value(&self) -> OffsetCommitValue {
        OffsetCommitValue {
            offset: Offset(self.offset),
            leader_epoch: (self.leader_epoch >= 0).then_some(LeaderEpoch(self.leader_epoch)),
            metadata: self.extra.as_ref().map_or_else(Arc::default, |extra| extra.metadata.clone()),
            committed_at: Timestamp(self.committed_at),
            expires_at: self.expires_at(),
            topic_id: self.topic_id,
        }
    }

    fn expires_at(&self) -> Option<Timestamp> {
        self.extra.as_ref().and_then(|extra| extra.expires_at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Issue 3: a group's offsets go partition by partition, and of very many each must not move
    /// all others: this would not end for hours.
    #[test]
    fn the_offsets_of_a_huge_topic_go_one_by_one() {
        let topic = TopicName::from("t");
        let partitions = 1_000_000;
        let value = OffsetCommitValue {
            offset: Offset(1),
            leader_epoch: None,
            metadata: Arc::default(),
            committed_at: Timestamp(0),
            expires_at: None,
            topic_id: TopicId::default(),
        };
        for ascending in [true, false] {
            let mut offsets = Offsets::default();
            for partition in 0..partitions {
                offsets.apply(&topic, PartitionId(partition), Some(&value));
            }
            for at in 0..partitions {
                let partition = if ascending { at } else { partitions - 1 - at };
                offsets.apply(&topic, PartitionId(partition), None);
                assert!(!offsets.contains(&topic, PartitionId(partition)));
            }
            assert!(offsets.is_empty());
        }
    }
}
