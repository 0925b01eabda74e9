//! A set of partitions, grouped by topic. Knows no member, no broker and no wire format.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::fmt;
use ottla_model::{PartitionId, TopicName, TopicPartition};

/// Partitions by topic: topics ascending, partitions of a topic ascending and distinct, no topic
/// without partitions. Two sets with the same partitions are equal and encode to the same bytes.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct Partitions {
    topics: BTreeMap<TopicName, Vec<PartitionId>>,
}

impl Partitions {
    /// The empty set.
    pub const fn new() -> Self {
        Self { topics: BTreeMap::new() }
    }

    /// How many partitions.
    pub fn len(&self) -> usize {
        self.topics.values().map(Vec::len).sum()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.topics.is_empty()
    }

    /// Whether `partition` of `topic` is in the set.
    pub fn contains(&self, topic: &str, partition: PartitionId) -> bool {
        self.of(topic).binary_search(&partition).is_ok()
    }

    /// The partitions of one topic, ascending; empty where the topic is absent.
    pub fn of(&self, topic: &str) -> &[PartitionId] {
        self.topics.get(topic).map_or(&[], Vec::as_slice)
    }

    /// Adds one partition; false where it was there.
    pub fn insert(&mut self, topic: &TopicName, partition: PartitionId) -> bool {
        if let Some(held) = self.topics.get_mut(topic) {
            return insert_sorted(held, partition);
        }
        self.topics.insert(topic.clone(), alloc::vec![partition]);
        true
    }

    /// Topics with their partitions, both ascending.
    pub fn by_topic(&self) -> impl ExactSizeIterator<Item = (&TopicName, &[PartitionId])> {
        self.topics.iter().map(|(topic, partitions)| (topic, partitions.as_slice()))
    }

    /// Every partition, by topic then index.
    pub fn iter(&self) -> impl Iterator<Item = (&TopicName, PartitionId)> {
        self.topics.iter().flat_map(|(topic, held)| held.iter().map(move |p| (topic, *p)))
    }

    /// What is here and not in `other`.
    pub fn minus(&self, other: &Self) -> Self {
        self.filtered(|topic, partition| !other.contains(topic, partition))
    }

    /// The partitions for which `keep` is true.
    pub fn filtered(&self, mut keep: impl FnMut(&TopicName, PartitionId) -> bool) -> Self {
        let mut kept = Self::new();
        for (topic, partitions) in &self.topics {
            let left: Vec<_> = partitions.iter().copied().filter(|p| keep(topic, *p)).collect();
            if !left.is_empty() {
                kept.topics.insert(topic.clone(), left);
            }
        }
        kept
    }

    /// The set of these lists, in any order and with repetitions; sorted once, so that a hostile
    /// order costs no more than a kind one.
    pub(crate) fn gather(lists: impl IntoIterator<Item = (TopicName, Vec<PartitionId>)>) -> Self {
        let mut topics: BTreeMap<TopicName, Vec<PartitionId>> = BTreeMap::new();
        for (topic, partitions) in lists {
            topics.entry(topic).or_default().extend(partitions);
        }
        topics.retain(|_, partitions| !partitions.is_empty());
        for partitions in topics.values_mut() {
            partitions.sort_unstable();
            partitions.dedup();
        }
        Self { topics }
    }

    /// Appends a whole topic whose partitions are ascending and distinct already.
    pub(super) fn push_topic(&mut self, topic: &TopicName, partitions: Vec<PartitionId>) {
        debug_assert!(partitions.is_sorted_by(|a, b| a < b), "callers hand in ascending ids");
        if !partitions.is_empty() {
            self.topics.insert(topic.clone(), partitions);
        }
    }
}

fn insert_sorted(held: &mut Vec<PartitionId>, partition: PartitionId) -> bool {
    // Ascending input, the common case, must not pay for a search.
    if held.last().is_none_or(|last| *last < partition) {
        held.push(partition);
        return true;
    }
    match held.binary_search(&partition) {
        Ok(_) => false,
        Err(at) => {
            held.insert(at, partition);
            true
        }
    }
}

impl FromIterator<TopicPartition> for Partitions {
    fn from_iter<I: IntoIterator<Item = TopicPartition>>(items: I) -> Self {
        let mut set = Self::new();
        for item in items {
            set.insert(&item.topic, item.partition);
        }
        set
    }
}

impl fmt::Debug for Partitions {
    /// `a[0 1] b[2]`: short enough to read in a transcript.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (topic, partitions)) in self.topics.iter().enumerate() {
            let gap = if index == 0 { "" } else { " " };
            write!(f, "{gap}{topic}[")?;
            for (at, partition) in partitions.iter().enumerate() {
                write!(f, "{}{partition}", if at == 0 { "" } else { " " })?;
            }
            f.write_str("]")?;
        }
        Ok(())
    }
}
