//! The groups that subscribe to each topic (S28): whom a change of a topic concerns (S6).
//!
//! Groups whose coordinator assigns are here; a group whose members assign watches its topics
//! itself, unless its leader cannot tell what it was assigned by. Knows no protocol.

use super::view::Cause;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use ottla_model::{GroupId, Topic, TopicName, TopicsView};

/// A topic and what happened to it.
pub(super) type Changed = (TopicName, Cause);

/// Topic to groups.
#[derive(Debug, Default)]
pub(super) struct Watch {
    groups: BTreeMap<TopicName, BTreeSet<GroupId>>,
}

impl Watch {
    /// `group` subscribed to `before` and subscribes to `now`.
    pub(super) fn change(
        &mut self,
        group: &GroupId,
        before: Option<&BTreeSet<TopicName>>,
        now: &BTreeSet<TopicName>,
    ) {
        for topic in before.into_iter().flatten().filter(|topic| !now.contains(*topic)) {
            if let Some(groups) = self.groups.get_mut(topic) {
                groups.remove(group);
                if groups.is_empty() {
                    self.groups.remove(topic);
                }
            }
        }
        for topic in now {
            self.groups.entry(topic.clone()).or_default().insert(group.clone());
        }
    }

    /// Every group that a difference between two views concerns, in the order of their ids, with
    /// the topics that differ.
    pub(super) fn concerned(
        &self,
        before: &TopicsView,
        after: &TopicsView,
    ) -> BTreeMap<GroupId, Vec<Changed>> {
        let mut concerned: BTreeMap<GroupId, Vec<Changed>> = BTreeMap::new();
        for topic in differing(before, after) {
            let cause = difference(before.topic(topic), after.topic(topic));
            for group in self.groups.get(&**topic).into_iter().flatten() {
                concerned.entry(group.clone()).or_default().push((topic.clone(), cause));
            }
        }
        concerned
    }

    /// Nobody subscribes any more.
    pub(super) fn clear(&mut self) {
        self.groups.clear();
    }
}

/// For tests that look behind it.
#[cfg(test)]
impl Watch {
    pub(super) fn all(&self) -> &BTreeMap<TopicName, BTreeSet<GroupId>> {
        &self.groups
    }
}

/// Topics that were created, deleted or recreated, or have another number of partitions.
fn differing<'a>(before: &'a TopicsView, after: &'a TopicsView) -> Vec<&'a TopicName> {
    let differs = |topic: &&Topic, other: &TopicsView| {
        let same =
            |now: &Topic| now.id == topic.id && now.partitions.len() == topic.partitions.len();
        !other.topic(&topic.name).is_some_and(same)
    };
    let gone_or_changed = before.topics().filter(|topic| differs(topic, after));
    let created = after.topics().filter(|topic| before.topic(&topic.name).is_none());
    let mut names: Vec<_> = gone_or_changed.chain(created).map(|topic| &topic.name).collect();
    names.sort_unstable();
    names
}

/// What happened to a topic that differs between two views.
pub(super) fn difference(before: Option<&Topic>, after: Option<&Topic>) -> Cause {
    match (before, after) {
        (None, _) => Cause::TopicCreated,
        (Some(_), None) => Cause::TopicDeleted,
        (Some(before), Some(after)) => {
            let has_grown = after.partitions.len() > before.partitions.len();
            let is_same = before.id == after.id;
            if is_same && has_grown { Cause::PartitionsAdded } else { Cause::TopicChanged }
        }
    }
}
