//! Different subscriptions: topic by topic, from the most to the least loaded subscriber.
//!
//! A topic is even once no subscriber owns a partition of it while another owns two partitions
//! less in all. Topics are gone through until all are even, as Kafka does; every move lowers the
//! sum of the squared loads, so that ends. Subscriptions that overlap without being equal can be
//! left a little uneven where only a chain of moves would help.

use super::super::facts::{Facts, MemberIx, RackMask, TopicIx};
use super::super::target::Changed;
use super::Uniform;
use super::islands::Island;
use super::ladder::{CohortIx, Ladders};
use super::table::PartitionIx;
use alloc::collections::BinaryHeap;
use alloc::vec::Vec;
use core::cmp::{Ordering, Reverse};
use core::ops::Range;

/// How far through the topics of an island the work has come.
#[derive(Clone, Debug, Default)]
pub(super) struct Round {
    /// Topics, those with most partitions per subscriber first; empty before the first.
    order: Vec<TopicIx>,
    at: usize,
    /// How many topics in a row were even.
    even: usize,
}

/// Who can be given a partition of one topic: the cohorts of its classes.
struct Subscribers {
    cohorts: Vec<(CohortIx, RackMask)>,
    /// The least load of each cohort, possibly outdated; unused where racks count.
    least: BinaryHeap<Reverse<(u32, CohortIx)>>,
    by_rack: bool,
}

impl Uniform {
    /// Evens out an island of several classes; says whether it is even, or there was not enough
    /// left of the budget.
    pub(super) fn even_out(
        &mut self,
        facts: &Facts,
        island: &mut Island,
        left: &mut usize,
        changed: &mut Changed,
    ) -> bool {
        if island.round.order.is_empty() {
            island.round = Round { order: self.ordered(facts, island), at: 0, even: 0 };
        }
        if !island.free.is_empty() && !self.place_free(facts, island, left, changed) {
            return false;
        }
        let topics = island.round.order.len();
        while island.round.even < topics {
            if *left == 0 {
                return false;
            }
            let topic = island.round.order[island.round.at];
            let has_moved = self.even_topic(facts, island, topic, left, changed);
            island.round.at = (island.round.at + 1) % topics;
            island.round.even = if has_moved { 0 } else { island.round.even + 1 };
        }
        true
    }

    /// The topics of an island: most partitions per subscriber first, then fewest subscribers,
    /// then by id.
    fn ordered(&self, facts: &Facts, island: &Island) -> Vec<TopicIx> {
        let mut topics: Vec<_> = island
            .topics
            .iter()
            .map(|ix| {
                let topic = facts.topic(*ix);
                let classes = topic.classes.iter().map(|class| facts.class(*class).members);
                (u64::from(topic.count), classes.map(u64::from).sum::<u64>(), topic.id, *ix)
            })
            .collect();
        topics.sort_unstable_by(|a, b| {
            let denser = (b.0 * a.1).cmp(&(a.0 * b.1));
            denser.then(a.1.cmp(&b.1)).then(a.2.cmp(&b.2))
        });
        topics.into_iter().map(|(_, _, _, ix)| ix).collect()
    }

    /// Gives each free partition to the least loaded subscriber of its topic.
    fn place_free(
        &mut self,
        facts: &Facts,
        island: &mut Island,
        left: &mut usize,
        changed: &mut Changed,
    ) -> bool {
        let mut rank = alloc::collections::BTreeMap::new();
        rank.extend(island.round.order.iter().copied().zip(0_usize..));
        let key = |run: &Range<PartitionIx>| {
            let topic = self.table.locate(run.start).0;
            (Reverse(rank.get(&topic).copied()), Reverse(run.start))
        };
        island.free.sort_by_cached_key(key);
        let mut current: Option<(TopicIx, Subscribers)> = None;
        while let Some(run) = island.free.pop() {
            if *left == 0 {
                island.free.push(run);
                return false;
            }
            let topic = self.table.locate(run.start).0;
            if current.as_ref().is_none_or(|(known, _)| *known != topic) {
                current = Some((topic, self.subscribers(facts, island, topic, left)));
            }
            let Some((_, subscribers)) = &mut current else { continue };
            for partition in run {
                if self.table.owner(partition).is_none() {
                    let racks = if island.has_racks { self.racks(facts, partition) } else { 0 };
                    if let Some((_, member)) = subscribers.least(&self.ladders, racks) {
                        self.move_to(partition, member, subscribers, changed);
                    }
                }
                *left = left.saturating_sub(1);
            }
        }
        true
    }

    /// Moves partitions of one topic while that evens out loads; says whether any moved.
    fn even_topic(
        &mut self,
        facts: &Facts,
        island: &Island,
        topic: TopicIx,
        left: &mut usize,
        changed: &mut Changed,
    ) -> bool {
        let mut subscribers = self.subscribers(facts, island, topic, left);
        let cohorts = subscribers.cohorts.iter();
        let most = cohorts.filter_map(|(cohort, _)| Some(self.ladders.most(*cohort)?.0)).max();
        let Some((least, _)) = subscribers.least(&self.ladders, 0) else { return false };
        if most.is_none_or(|most| most < least + 2) {
            return false;
        }
        let mut givers = self.givers(facts, island, topic, least + 2);
        *left = left.saturating_sub(self.table.count(topic) as usize);
        let mut has_moved = false;
        while let Some((load, strays, partition)) = givers.pop() {
            let owner = self.table.owner(partition).expect("givers are owners");
            let current = self.table.load(owner);
            if current < load {
                givers.push((current, strays, partition));
                continue;
            }
            let racks = if island.has_racks { self.racks(facts, partition) } else { 0 };
            let Some((least, member)) = subscribers.least(&self.ladders, racks) else { break };
            if current < least + 2 {
                break;
            }
            self.move_to(partition, member, &mut subscribers, changed);
            *left = left.saturating_sub(1);
            has_moved = true;
        }
        has_moved
    }

    /// The partitions of a topic whose owners own at least so much, by load; among equals those
    /// without a replica in their owner's rack first.
    fn givers(
        &self,
        facts: &Facts,
        island: &Island,
        topic: TopicIx,
        load_min: u32,
    ) -> BinaryHeap<(u32, bool, PartitionIx)> {
        let owned = self.table.cells(topic).flatten().filter_map(|partition| {
            let owner = self.table.owner(partition)?;
            let load = self.table.load(owner);
            let rack = facts.member(owner).rack;
            let is_stray = island.has_racks && self.racks(facts, partition) & rack == 0;
            (load >= load_min).then_some((load, is_stray, partition))
        });
        owned.collect()
    }

    fn move_to(
        &mut self,
        partition: PartitionIx,
        member: MemberIx,
        subscribers: &mut Subscribers,
        changed: &mut Changed,
    ) {
        if let Some(owner) = self.table.owner(partition) {
            self.table.take(partition);
            self.reload(owner, subscribers);
            changed.insert(owner);
        }
        self.table.give(partition, member);
        self.reload(member, subscribers);
        changed.insert(member);
    }

    fn reload(&mut self, member: MemberIx, subscribers: &mut Subscribers) {
        self.ladders.set_load(member, self.table.load(member));
        subscribers.note(&self.ladders, self.ladders.cohort_of(member));
    }

    fn subscribers(
        &self,
        facts: &Facts,
        island: &Island,
        topic: TopicIx,
        left: &mut usize,
    ) -> Subscribers {
        let classes = &facts.topic(topic).classes;
        let cohorts: Vec<_> = classes.iter().flat_map(|class| self.cohorts_of(*class)).collect();
        *left = left.saturating_sub(cohorts.len());
        let mut found =
            Subscribers { cohorts, least: BinaryHeap::new(), by_rack: island.has_racks };
        for at in 0..found.cohorts.len() {
            found.note(&self.ladders, found.cohorts[at].0);
        }
        found
    }

    fn cohorts_of(&self, class: u32) -> impl Iterator<Item = (CohortIx, RackMask)> + '_ {
        let cohorts = self.cohorts.range((class, 0)..=(class, RackMask::MAX));
        cohorts.map(|((_, rack), cohort)| (*cohort, *rack))
    }
}

impl Subscribers {
    /// The least loaded subscriber, and how much it owns; among equals one in one of `racks`.
    fn least(&mut self, ladders: &Ladders, racks: RackMask) -> Option<(u32, MemberIx)> {
        if self.by_rack {
            let least = self.cohorts.iter().filter_map(|(cohort, rack)| {
                let (load, members) = ladders.least(*cohort)?;
                Some((load, rack & racks == 0, members[0]))
            });
            let by = |a: &(u32, bool, u32), b: &(u32, bool, u32)| -> Ordering {
                (a.0, a.1).cmp(&(b.0, b.1))
            };
            return least.min_by(by).map(|(load, _, member)| (load, member));
        }
        while let Some(Reverse((load, cohort))) = self.least.peek() {
            match ladders.least(*cohort) {
                Some((now, members)) if now == *load => return Some((now, members[0])),
                // There is another entry for what it is now.
                _ => drop(self.least.pop()),
            }
        }
        None
    }

    /// Notes the least load of a cohort, which may have changed.
    fn note(&mut self, ladders: &Ladders, cohort: CohortIx) {
        if self.by_rack {
            return;
        }
        if let Some((load, _)) = ladders.least(cohort) {
            self.least.push(Reverse((load, cohort)));
        }
    }
}
