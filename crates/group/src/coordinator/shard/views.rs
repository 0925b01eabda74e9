//! What is seen of a shard from outside, beside replies.

use super::super::group::Group;
use super::super::output::Index;
use super::super::view::{CommittedView, GroupView, Observed, StateCounts};
use super::Shard;

impl Shard {
    /// Groups by state.
    pub fn states(&self) -> Observed<StateCounts> {
        let mut value = StateCounts::default();
        for group in self.groups.values() {
            value.count(group.phase.state());
        }
        let after = self.services.outbox.pending(self.last_index());
        Observed { value, after }
    }

    /// One group in full: state, who blocks it, its journal. `None` where there is no such group.
    pub fn group(&self, group: &str) -> Observed<Option<GroupView>> {
        let found = self.groups.get(group);
        let marks = found.map(|group| group.marks).or_else(|| self.gone.get(group).copied());
        let mark = marks.unwrap_or_default().membership;
        Observed { value: found.map(Group::view), after: self.services.outbox.pending(mark) }
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
        self.services.outbox.pending(self.last_index())
    }
}
