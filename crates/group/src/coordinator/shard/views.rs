//! What is seen of a shard from outside, beside replies.

use super::super::output::Index;
use super::super::view::{Cause, CommittedView, GroupView, Observed, StateCounts, Waiting};
use super::Shard;
use crate::message::admin::{List, Listing};
use alloc::vec::Vec;
use ottla_model::Instant;

impl Shard {
    /// Heartbeats whose answers are kept now.
    pub fn held(&self) -> usize {
        self.services.held.len()
    }

    /// Groups by state.
    pub fn states(&self) -> Observed<StateCounts> {
        let mut value = StateCounts::default();
        for group in self.groups.values() {
            value.count(group.state());
        }
        Observed { value, after: self.pending_last() }
    }

    /// Generations begun since the shard was made, by what first asked for them.
    pub fn rebalances(&self) -> impl Iterator<Item = (Cause, u64)> {
        self.services.rebalances.iter().map(|(cause, count)| (*cause, *count))
    }

    /// Every group as a list shows it, in the order of their ids.
    pub fn groups(&self) -> Observed<Vec<Listing>> {
        Observed { value: self.listings(&List::default()), after: self.pending_last() }
    }

    /// One group in full: state, who blocks it, its journal. `None` where there is no such group.
    pub fn group(&self, group: &str) -> Observed<Option<GroupView>> {
        let found = self.groups.get(group);
        let marks = found.map(|group| group.marks).or_else(|| self.gone.get(group).copied());
        let mark = marks.unwrap_or_default().membership;
        let value = found.map(|group| group.view(&self.services.config));
        Observed { value, after: self.services.outbox.pending(mark) }
    }

    /// Groups that have waited for a member since `before` or earlier, as far as that can no longer
    /// be lost; in no order.
    pub fn waiting(&self, before: Instant) -> Vec<Waiting> {
        let safe = self.groups.values().filter(|group| {
            let pending = self.services.outbox.pending(group.marks.membership);
            pending.is_none() && group.state().is_under_way()
        });
        let waiting = safe.map(|group| Waiting {
            group: group.id.clone(),
            state: group.state(),
            blocking: group.blocking(),
        });
        let is_late = |it: &Waiting| it.blocking.first().is_some_and(|it| it.since <= before);
        waiting.filter(is_late).collect()
    }

    /// Calls `each` with every committed offset; the index covers all of them.
    pub fn committed(&self, each: &mut dyn FnMut(CommittedView<'_>)) -> Option<Index> {
        for group in self.groups.values() {
            for (topic, committed) in group.hard.offsets().topics() {
                for (partition, offset) in committed.offsets() {
                    each(CommittedView { group: &group.id, topic, partition, offset });
                }
            }
        }
        self.pending_last()
    }

    fn pending_last(&self) -> Option<Index> {
        self.services.outbox.pending(self.last_index())
    }
}
