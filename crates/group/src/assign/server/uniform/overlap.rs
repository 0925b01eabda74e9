//! Different subscriptions: topic by topic, from the most to the least loaded subscriber.
//!
//! A topic is even once no subscriber owns a partition of it while another owns two partitions
//! less in all. Topics are gone through until all are even, as Kafka does; every move lowers the
//! sum of the squared loads, so that ends. Subscriptions that overlap without being equal can be
//! left a little uneven where only a chain of moves would help.

use super::super::facts::{ClassIx, Facts, MemberIx, RackMask, TopicIx};
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
    /// Nobody gives what is not above this.
    floor: u32,
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
            let order = self.ordered(facts, island);
            island.round = Round { order, at: 0, even: 0, floor: self.fair_load(island) };
        }
        if !island.free.is_empty() && !self.place_free(facts, island, left, changed) {
            return false;
        }
        loop {
            if !self.sweep(facts, island, left, changed) {
                return false;
            }
            if island.round.floor == 0 {
                return true;
            }
            (island.round.floor, island.round.even) = (0, 0);
        }
    }

    /// What everyone owns at most where all can own as much as all others. Those above it give
    /// first: where that is enough, nothing moves twice.
    fn fair_load(&self, island: &Island) -> u32 {
        let members = island.cohorts.iter().map(|(cohort, _)| self.ladders.len(*cohort));
        island.partitions.div_ceil(members.sum::<usize>().max(1)) as u32
    }

    /// Goes through the topics until all are even in a row; says whether they are.
    fn sweep(
        &mut self,
        facts: &Facts,
        island: &mut Island,
        left: &mut usize,
        changed: &mut Changed,
    ) -> bool {
        let topics = island.round.order.len();
        let floor = island.round.floor;
        // Topics side by side mostly have the same subscribers.
        let mut even_classes: &[ClassIx] = &[];
        if self.is_even(floor, island.cohorts.iter().copied()) {
            return true;
        }
        while island.round.even < topics {
            if *left == 0 {
                return false;
            }
            let topic = island.round.order[island.round.at];
            let classes = &facts.topic(topic).classes;
            let mut has_moved = false;
            if even_classes != classes {
                let cohorts = classes.iter().flat_map(|class| self.cohorts_of(*class));
                if self.is_even(floor, cohorts) {
                    even_classes = classes;
                } else {
                    has_moved = self.even_topic(facts, island, topic, left, changed);
                }
                *left = left.saturating_sub(1);
            }
            if has_moved {
                (island.round.even, even_classes) = (0, &[]);
                if self.is_even(floor, island.cohorts.iter().copied()) {
                    return true;
                }
            } else {
                island.round.even += 1;
            }
            island.round.at = (island.round.at + 1) % topics;
        }
        true
    }

    /// Whether no move between these cohorts could make their members' loads more even, or none
    /// of them is above the floor.
    fn is_even(&self, floor: u32, cohorts: impl Iterator<Item = (CohortIx, RackMask)>) -> bool {
        let (mut least, mut most) = (u32::MAX, 0);
        for (cohort, _) in cohorts {
            if let (Some((low, _)), Some((high, _))) =
                (self.ladders.least(cohort), self.ladders.most(cohort))
            {
                (least, most) = (least.min(low), most.max(high));
            }
        }
        most <= floor || most < least.saturating_add(2)
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
            *left = left.saturating_sub(run.len());
            if !island.has_racks {
                self.spread(run, subscribers, changed);
                continue;
            }
            for partition in run {
                if self.table.owner(partition).is_none() {
                    let racks = self.racks(facts, partition);
                    if let Some((_, member)) = subscribers.least(&self.ladders, racks) {
                        self.move_to(partition, member, subscribers, changed);
                    }
                }
            }
        }
        true
    }

    /// Gives free partitions of a run to the least loaded, one to each at a time.
    fn spread(
        &mut self,
        run: Range<PartitionIx>,
        subscribers: &mut Subscribers,
        changed: &mut Changed,
    ) {
        let mut rest = run.peekable();
        while rest.peek().is_some() {
            let is_free = |cell: &PartitionIx| self.table.owner(*cell).is_none();
            let mut free = rest.clone().take_while(is_free).count();
            while free > 0 {
                let Some(cohort) = subscribers.least_cohort(&self.ladders) else { return };
                let raised = self.ladders.raise_least(cohort, free);
                free -= raised.len();
                for member in raised {
                    self.table.give(rest.next().expect("no more than are free"), *member);
                    changed.insert(*member);
                }
                subscribers.note(&self.ladders, cohort);
            }
            while rest.next_if(|cell| self.table.owner(*cell).is_some()).is_some() {}
        }
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
        let Some((least, _)) = subscribers.least(&self.ladders, 0) else { return false };
        let floor = island.round.floor;
        let mut givers = self.givers(facts, island, topic, (least + 2).max(floor + 1));
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
            if current < least + 2 || current <= floor {
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
        ladders.least(self.least_cohort(ladders)?).map(|(load, members)| (load, members[0]))
    }

    /// The cohort with the least loaded subscriber, where racks do not count.
    fn least_cohort(&mut self, ladders: &Ladders) -> Option<CohortIx> {
        while let Some(Reverse((load, cohort))) = self.least.peek() {
            match ladders.least(*cohort) {
                Some((now, _)) if now == *load => return Some(*cohort),
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
