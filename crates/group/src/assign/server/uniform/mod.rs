//! Uniform: everyone owns as much as everyone else, and as little as possible moves.
//!
//! Classes of members that share topics, directly or through others, form an *island*; no
//! partition can cross to another. An island of one class is levelled ([`level`]): the least that
//! can move is known, and only that moves. Where different subscriptions overlap, partitions go
//! topic by topic from the most to the least loaded of its subscribers ([`overlap`]). Both take
//! ownership as it is, so facts may change between two steps, and a share that is even is never
//! looked at.

mod islands;
mod ladder;
mod level;
mod overlap;
mod racks;
mod table;

use super::facts::{ClassIx, Facts, MemberIx, RackMask, TopicIx};
use super::target::{Changed, Progress};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::ops::Range;
use islands::Islands;
use ladder::{CohortIx, Ladders};
use ottla_model::TopicId;
use table::{PartitionIx, Table};

/// Ownership under uniform.
#[derive(Clone, Debug, Default)]
pub(super) struct Uniform {
    table: Table,
    ladders: Ladders,
    cohorts: BTreeMap<(ClassIx, RackMask), CohortIx>,
    islands: Islands,
    /// Runs of cells of one topic each that may be without owner, not yet sorted by island.
    free: Vec<Range<PartitionIx>>,
    /// Spreads what is taken over the topics of those it is taken from.
    turn: usize,
    /// The racks of members that own too little.
    wanted: RackMask,
}

impl Uniform {
    /// A member is new.
    pub(super) fn joined(&mut self, facts: &Facts, member: MemberIx) {
        let facts = facts.member(member);
        self.table.admit(member);
        let cohort = self.cohort_for(facts.class, facts.rack);
        self.ladders.insert(member, cohort, self.table.load(member));
        self.islands.touch(facts.class);
    }

    /// A member is about to go.
    pub(super) fn left(&mut self, facts: &Facts, member: MemberIx) {
        self.ladders.remove(member);
        let hand: Vec<_> = self.table.hand(member).collect();
        hand.into_iter().for_each(|partition| self.set_free(partition));
        self.islands.touch(facts.member(member).class);
    }

    /// A member has another subscription or rack than `before`.
    pub(super) fn changed(
        &mut self,
        facts: &Facts,
        member: MemberIx,
        before: ClassIx,
        changed: &mut Changed,
    ) {
        self.ladders.remove(member);
        self.islands.touch(before);
        let now = facts.member(member);
        let hand: Vec<_> = self.table.hand(member).collect();
        for partition in hand {
            let (topic, _) = self.table.locate(partition);
            if facts.class(now.class).topics.binary_search(&topic).is_err() {
                self.set_free(partition);
                changed.insert(member);
            }
        }
        self.joined(facts, member);
    }

    /// Classes came, went, or share other topics than before.
    pub(super) fn classes_changed(&mut self) {
        self.islands.forget();
    }

    /// A topic is new, or is not what it was.
    pub(super) fn topic_changed(&mut self, facts: &Facts, topic: TopicIx, changed: &mut Changed) {
        let now = facts.topic(topic);
        if self.table.id(topic) != now.id || self.table.count(topic) > now.count {
            self.forget_topic(topic, changed);
        }
        let fresh = self.table.lay(topic, now.id, now.count);
        if !fresh.is_empty() {
            self.free.push(fresh);
        }
        self.islands.forget();
    }

    /// Nobody subscribes to a topic any more, or it is gone.
    pub(super) fn forget_topic(&mut self, topic: TopicIx, changed: &mut Changed) {
        let cells: Vec<_> = self.table.cells(topic).collect();
        for partition in cells.into_iter().flatten() {
            if let Some(owner) = self.table.owner(partition) {
                self.table.take(partition);
                self.ladders.set_load(owner, self.table.load(owner));
                changed.insert(owner);
            }
        }
        self.table.drop_topic(topic);
        self.islands.forget();
    }

    /// The log says that the member owns exactly this, ascending.
    pub(super) fn restore(
        &mut self,
        facts: &Facts,
        member: MemberIx,
        owned: &[(TopicIx, u32)],
        changed: &mut Changed,
    ) {
        let class = facts.class(facts.member(member).class);
        let mut cells = Vec::with_capacity(owned.len());
        for (topic, index) in owned {
            match self.table.cell(*topic, *index) {
                Some(cell) if class.topics.binary_search(topic).is_ok() => cells.push(cell),
                _ => changed.insert(member),
            }
        }
        let has = |cell: &PartitionIx| self.table.owner(*cell) == Some(member);
        if cells.len() == self.table.load(member) as usize && cells.iter().all(has) {
            return;
        }
        let hand: Vec<_> = self.table.hand(member).collect();
        hand.into_iter().for_each(|partition| self.set_free(partition));
        for cell in cells {
            if let Some(owner) = self.table.owner(cell).filter(|owner| *owner != member) {
                self.table.take(cell);
                self.ladders.set_load(owner, self.table.load(owner));
                changed.insert(owner);
                self.islands.touch(facts.member(owner).class);
            }
            if self.table.owner(cell).is_none() {
                self.table.give(cell, member);
            }
        }
        self.ladders.set_load(member, self.table.load(member));
        self.islands.touch(facts.member(member).class);
    }

    /// Works for about `budget` units: a partition given or looked at.
    pub(super) fn step(&mut self, facts: &Facts, budget: usize, changed: &mut Changed) -> Progress {
        self.compact();
        let mut left = budget;
        let free = core::mem::take(&mut self.free);
        self.islands.refresh(facts, free, |cell| self.table.topic_of(cell), &self.cohorts);
        while let Some(mut island) = self.islands.take_next() {
            let is_done = match island.classes[..] {
                [_] => self.level(facts, &mut island, &mut left, changed),
                _ => self.even_out(facts, &mut island, &mut left, changed),
            };
            // What was taken meanwhile belongs to the same island.
            island.free.append(&mut self.free);
            self.islands.put_back(island, is_done);
            if !is_done {
                return Progress::Working;
            }
        }
        Progress::Settled
    }

    /// What the member owns, as runs of partition ids.
    pub(super) fn visit(&self, member: MemberIx, mut each: impl FnMut(TopicId, Range<u32>)) {
        self.table.runs(member, |topic, run| each(self.table.id(topic), run));
    }

    fn set_free(&mut self, partition: PartitionIx) {
        self.table.take(partition);
        self.free.push(partition..partition + 1);
    }

    fn cohort_for(&mut self, class: ClassIx, rack: RackMask) -> CohortIx {
        if let Some(cohort) = self.cohorts.get(&(class, rack)) {
            return *cohort;
        }
        let cohort = self.ladders.add_cohort();
        self.cohorts.insert((class, rack), cohort);
        self.islands.forget();
        cohort
    }

    /// Gives away the room of topics that are gone, once it is half of all.
    fn compact(&mut self) {
        if !self.table.is_wasteful() {
            return;
        }
        self.table = self.table.compacted();
        self.islands.forget_free();
        self.free = self.table.topics().flat_map(|topic| self.table.cells(topic)).collect();
    }
}
