//! Which classes of members can hand partitions to each other, and which of them need work.
//!
//! Found by joining classes that name one topic; worked out anew only when classes or topics
//! change, not when a member comes or goes. Knows no member and no owner.

use super::super::facts::{ClassIx, Facts, RackMask, TopicIx};
use super::ladder::CohortIx;
use super::table::PartitionIx;
use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

/// All islands of a group.
#[derive(Clone, Debug, Default)]
pub(super) struct Islands {
    islands: Vec<Island>,
    /// The island of each class slot.
    island_of: Vec<usize>,
    /// Islands that need work; a stack.
    due: Vec<usize>,
    is_known: bool,
}

/// Classes connected by topics they share.
#[derive(Clone, Debug, Default)]
pub(super) struct Island {
    at: usize,
    pub(super) classes: Vec<ClassIx>,
    /// The cohorts of its classes, each with its rack.
    pub(super) cohorts: Vec<(CohortIx, RackMask)>,
    pub(super) topics: Vec<TopicIx>,
    /// Partitions of all its topics.
    pub(super) partitions: usize,
    /// Whether both some member's and some partition's rack is known.
    pub(super) has_racks: bool,
    /// Runs of cells that may be without owner; the last is placed first.
    pub(super) free: Vec<Range<PartitionIx>>,
    /// How far [`overlap`](super::overlap) has come.
    pub(super) round: super::overlap::Round,
    is_due: bool,
}

impl Islands {
    /// A member of `class` came, went or changed.
    pub(super) fn touch(&mut self, class: ClassIx) {
        // Where it is not known, everything will be looked at.
        if self.is_known {
            self.set_due(self.island_of[class as usize]);
        }
    }

    /// Classes or topics changed.
    pub(super) fn forget(&mut self) {
        self.is_known = false;
    }

    /// The cells of free partitions are not what they were.
    pub(super) fn forget_free(&mut self) {
        self.islands.iter_mut().for_each(|island| island.free.clear());
        self.forget();
    }

    /// Finds the islands if they are not known, and hands each its part of `free`.
    pub(super) fn refresh(
        &mut self,
        facts: &Facts,
        mut free: Vec<Range<PartitionIx>>,
        topic_of: impl Fn(PartitionIx) -> Option<TopicIx>,
        cohorts: &BTreeMap<(ClassIx, RackMask), CohortIx>,
    ) {
        if !self.is_known {
            self.islands.iter_mut().for_each(|island| free.append(&mut island.free));
            *self = Self::found(facts, cohorts);
        }
        for run in free {
            // The cells may be those of a topic that is gone.
            if let Some(topic) = topic_of(run.start) {
                let class = facts.topic(topic).classes[0];
                self.islands[self.island_of[class as usize]].free.push(run);
            }
        }
    }

    /// An island that needs work, to be [put back](Self::put_back).
    pub(super) fn take_next(&mut self) -> Option<Island> {
        let at = *self.due.last()?;
        Some(core::mem::take(&mut self.islands[at]))
    }

    /// Puts an island back; it needs no more work if that is done.
    pub(super) fn put_back(&mut self, mut island: Island, is_done: bool) {
        let at = island.at;
        if is_done {
            self.due.pop();
            island.is_due = false;
        }
        self.islands[at] = island;
    }

    fn set_due(&mut self, at: usize) {
        let island = &mut self.islands[at];
        island.round = super::overlap::Round::default();
        if !core::mem::replace(&mut island.is_due, true) {
            self.due.push(at);
        }
    }

    fn found(facts: &Facts, cohorts: &BTreeMap<(ClassIx, RackMask), CohortIx>) -> Self {
        let mut found = Self { is_known: true, ..Self::default() };
        let mut roots = Roots::default();
        for (class, _) in facts.classes() {
            roots.root_of(class);
        }
        for (_, topic) in facts.topics() {
            for pair in topic.classes.windows(2) {
                roots.join(pair[0], pair[1]);
            }
        }
        found.island_of = vec![usize::MAX; roots.parents.len()];
        for (class, _) in facts.classes() {
            let root = roots.root_of(class) as usize;
            if found.island_of[root] == usize::MAX {
                found.island_of[root] = found.islands.len();
                found.islands.push(Island { at: found.islands.len(), ..Island::default() });
            }
            let at = found.island_of[root];
            found.island_of[class as usize] = at;
            found.islands[at].classes.push(class);
        }
        found.describe(facts, cohorts);
        (0..found.islands.len()).rev().for_each(|at| found.set_due(at));
        found
    }

    fn describe(&mut self, facts: &Facts, cohorts: &BTreeMap<(ClassIx, RackMask), CohortIx>) {
        for ((class, rack), cohort) in cohorts {
            // A class that is gone may have left its cohorts, empty.
            let island = self.island_of.get(*class as usize).filter(|at| **at != usize::MAX);
            if let Some(at) = island {
                self.islands[*at].cohorts.push((*cohort, *rack));
            }
        }
        for (ix, topic) in facts.topics().filter(|(_, topic)| topic.count > 0) {
            let island = &mut self.islands[self.island_of[topic.classes[0] as usize]];
            island.topics.push(ix);
            island.partitions += topic.count as usize;
            island.has_racks |= !topic.racks.is_empty();
        }
        for island in &mut self.islands {
            island.has_racks &= island.cohorts.iter().any(|(_, rack)| *rack != 0);
        }
    }
}

/// Disjoint sets of classes.
#[derive(Default)]
struct Roots {
    parents: Vec<ClassIx>,
}

impl Roots {
    fn root_of(&mut self, class: ClassIx) -> ClassIx {
        while self.parents.len() <= class as usize {
            self.parents.push(self.parents.len() as ClassIx);
        }
        let mut at = class;
        while self.parents[at as usize] != at {
            let above = self.parents[at as usize];
            self.parents[at as usize] = self.parents[above as usize];
            at = above;
        }
        at
    }

    fn join(&mut self, a: ClassIx, b: ClassIx) {
        let (a, b) = (self.root_of(a), self.root_of(b));
        // The lower one stays, so that the outcome does not depend on the order.
        self.parents[a.max(b) as usize] = a.min(b);
    }
}
