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
    pub(super) fn watch_for_leader(&mut self) {
        let Some(topics) = &self.group.subscribed else { return };
        self.services.watch.change(&self.group.id, None, topics);
        self.group.is_led_anew = true;
    }

    /// A new generation is assigned by its leader, which watches from then on.
    pub(super) fn leave_watch_to_leader(&mut self) {
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
            let cause = Cause::TopicChanged;
            self.rebalance(Some(Trigger { cause, who: None, topic: Some(topic), reason: None }));
        }
    }

    /// A subscribed topic that has a partition nobody was assigned; none where that cannot be told.
    pub(super) fn first_unassigned(&self) -> Option<TopicName> {
        let view = self.services.topics.as_deref()?;
        let mut parts: Vec<Partitions> = Vec::new();
        for (_, member) in self.group.roster.in_order() {
            let part = self.group.assignment_of(member);
            if !part.is_empty() {
                parts.push(Assignment::decode(&part).ok()?.partitions);
            }
        }
        let assigned: BTreeSet<(&TopicName, PartitionId)> =
            parts.iter().flat_map(Partitions::iter).collect();
        let topics = self.group.subscribed.iter().flatten().filter_map(|name| view.topic(name));
        let mut lacking = topics
            .filter(|topic| topic.partition_ids().any(|id| !assigned.contains(&(&topic.name, id))));
        lacking.next().map(|topic| topic.name.clone())
    }
}
