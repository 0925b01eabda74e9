//! Topics of groups whose leader did not make the assignment in force.
//!
//! A classic leader watches the topics it assigned by and rebalances when they change (S6). A
//! static leader that restarts takes over an assignment without having made it (KIP-814), or does
//! not even know that it leads: partitions that came to be before it looks are nobody's, and it
//! would never tell. Until the next generation the coordinator looks for it.

use super::super::super::turn::Turn;
use super::super::super::view::{Cause, Trigger};
use crate::assign::Partitions;
use crate::assign::subscription::Assignment;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use ottla_model::{PartitionId, TopicName};

impl Turn<'_> {
    /// The leader is not, or may not be, the process that assigned.
    pub(in super::super) fn watch_for_leader(&mut self) {
        let Some(topics) = &self.group.subscribed else { return };
        self.services.watch.change(&self.group.id, None, topics);
        self.group.is_led_anew = true;
    }

    /// A new generation is assigned by its leader, which watches from then on.
    pub(in super::super) fn leave_watch_to_leader(&mut self) {
        if core::mem::take(&mut self.group.is_led_anew) {
            let topics = self.group.subscribed.as_ref();
            self.services.watch.change(&self.group.id, topics, &BTreeSet::new());
        }
    }

    /// Topics may be others than when the group's leader assigned: rebalances if so, where the
    /// leader would not.
    pub(in super::super) fn check_for_leader(&mut self) {
        if !self.group.is_led_anew || !self.group.phase.is_stable() {
            return;
        }
        if let Some(topic) = self.first_unassigned() {
            let cause = self.lack_of(&topic);
            self.rebalance(Some(Trigger::about(cause, topic)));
        }
    }

    /// Why the leader may have asked for another assignment, for the journal: a topic is not what
    /// it was when the last one was made.
    pub(super) fn topic_that_changed(&self) -> Option<(Cause, TopicName)> {
        if let Some(topic) = self.first_unassigned() {
            return Some((self.lack_of(&topic), topic));
        }
        let view = self.services.topics.as_deref()?;
        let gone = |topic: &TopicName| view.topic(topic).is_none();
        let parts = self.parts_in_force()?;
        let mut gone = parts.iter().flat_map(Partitions::iter).filter(|(topic, _)| gone(topic));
        gone.next().map(|(topic, _)| (Cause::TopicDeleted, topic.clone()))
    }

    /// What happened to a topic that has a partition nobody was assigned.
    fn lack_of(&self, topic: &TopicName) -> Cause {
        let parts = self.parts_in_force().unwrap_or_default();
        let is_assigned = parts.iter().flat_map(Partitions::iter).any(|(name, _)| name == topic);
        if is_assigned { Cause::PartitionsAdded } else { Cause::TopicCreated }
    }

    /// A subscribed topic that has a partition nobody was assigned; none where that cannot be told.
    pub(super) fn first_unassigned(&self) -> Option<TopicName> {
        let view = self.services.topics.as_deref()?;
        let parts = self.parts_in_force()?;
        let assigned: BTreeSet<(&TopicName, PartitionId)> =
            parts.iter().flat_map(Partitions::iter).collect();
        let topics = self.group.subscribed.iter().flatten().filter_map(|name| view.topic(name));
        let mut lacking = topics
            .filter(|topic| topic.partition_ids().any(|id| !assigned.contains(&(&topic.name, id))));
        lacking.next().map(|topic| topic.name.clone())
    }
    /// What each member was assigned; none where that cannot be read.
    fn parts_in_force(&self) -> Option<Vec<Partitions>> {
        let mut parts: Vec<Partitions> = Vec::new();
        for (_, member) in self.group.roster.in_order() {
            let part = self.group.assignment_of(member);
            if !part.is_empty() {
                parts.push(Assignment::decode(&part).ok()?.partitions);
            }
        }
        Some(parts)
    }
}
