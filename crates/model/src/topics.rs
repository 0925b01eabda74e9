//! The immutable view of topics that the pure crates are handed, never a live handle.

use crate::{PartitionId, TopicId, TopicName};
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Bound;

/// What assignment and subscription rules need to know of the cluster's topics, as of one moment.
/// A change makes a new view; holders of the old one are handed the new one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TopicsView {
    by_name: BTreeMap<TopicName, Arc<Topic>>,
    names: BTreeMap<TopicId, TopicName>,
}

/// One topic of the view.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topic {
    /// Its id; a recreated topic has a new one.
    pub id: TopicId,
    /// Its name.
    pub name: TopicName,
    /// Its partitions; the index is the partition's id.
    pub partitions: Vec<Partition>,
}

/// One partition of the view.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Partition {
    /// The racks that hold a replica, for rack-aware assignment. Empty where racks are unknown.
    pub racks: Vec<Arc<str>>,
}

impl TopicsView {
    /// The view of exactly these topics.
    pub fn new(topics: impl IntoIterator<Item = Topic>) -> Self {
        topics.into_iter().map(Arc::new).collect()
    }

    /// Puts a topic in, in place of one of the same name.
    pub fn insert(&mut self, topic: Arc<Topic>) {
        self.remove(&topic.name);
        self.names.insert(topic.id, topic.name.clone());
        self.by_name.insert(topic.name.clone(), topic);
    }

    /// Takes a topic out; nothing happens if there is none.
    pub fn remove(&mut self, name: &str) {
        if let Some(topic) = self.by_name.remove(name) {
            self.names.remove(&topic.id);
        }
    }

    /// The topic of this name.
    pub fn topic(&self, name: &str) -> Option<&Topic> {
        self.by_name.get(name).map(|topic| &**topic)
    }

    /// The topic of this id.
    pub fn topic_by_id(&self, id: TopicId) -> Option<&Topic> {
        self.names.get(&id).and_then(|name| self.topic(name))
    }

    /// The topics whose names come after this one, in the order of their names; all without one.
    pub fn topics_after(&self, name: Option<&str>) -> impl Iterator<Item = &Topic> {
        let from = name.map_or(Bound::Unbounded, Bound::Excluded);
        self.by_name.range::<str, _>((from, Bound::Unbounded)).map(|(_, topic)| &**topic)
    }

    /// Every topic, in the order of their names.
    pub fn topics(&self) -> impl Iterator<Item = &Topic> {
        self.by_name.values().map(|topic| &**topic)
    }
}

impl FromIterator<Arc<Topic>> for TopicsView {
    /// The view of exactly these topics, sharing them with older views.
    fn from_iter<I: IntoIterator<Item = Arc<Topic>>>(topics: I) -> Self {
        let mut view = Self::default();
        topics.into_iter().for_each(|topic| view.insert(topic));
        view
    }
}

impl Topic {
    /// The ids of its partitions, ascending.
    pub fn partition_ids(&self) -> impl Iterator<Item = PartitionId> + '_ {
        (0..self.partitions.len()).map(|index| PartitionId(index as i32))
    }
}
