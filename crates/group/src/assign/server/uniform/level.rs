//! One subscription for all: everyone up to the quota, nobody above it, nothing else moves.
//!
//! With P partitions and M members, P mod M members may own one more than P / M. Members above
//! that give up what is too much, no matter who they are, and the free partitions go to members
//! below. No balanced assignment keeps more partitions where they are: a member that owns `n`
//! keeps `n` or its quota, whichever is less, and the longer quotas are with those that use them.

use super::super::facts::{Facts, MemberIx, RackMask};
use super::super::target::Changed;
use super::Uniform;
use super::islands::Island;
use super::ladder::CohortIx;
use super::table::PartitionIx;
use alloc::vec::Vec;
use core::cmp::Reverse;

/// How many partitions of a member are looked at to choose the one it gives up.
const CHOICE_MAX: usize = 64;

/// A member and how many partitions it is to be given.
#[derive(Clone, Copy, Debug)]
pub(super) struct Taker {
    pub(super) member: MemberIx,
    pub(super) cohort: CohortIx,
    pub(super) need: u32,
}

impl Uniform {
    /// Levels an island of one class; says whether it is level, or there was not enough left of
    /// the budget.
    pub(super) fn level(
        &mut self,
        facts: &Facts,
        island: &mut Island,
        left: &mut usize,
        changed: &mut Changed,
    ) -> bool {
        let members: usize =
            island.cohorts.iter().map(|(cohort, _)| self.ladders.len(*cohort)).sum();
        if members == 0 {
            return true;
        }
        let quota = (island.partitions / members) as u32;
        let longer = island.partitions % members;
        let longer = longer - self.trim(facts, island, quota, longer, changed).min(longer);
        island.free.append(&mut self.free);
        if island.free.is_empty() {
            return true;
        }
        let takers = self.takers(island, quota, longer);
        let members: Vec<MemberIx> = takers.iter().map(|taker| taker.member).collect();
        let is_done = if island.has_racks {
            self.deal_by_rack(facts, island, takers, left)
        } else {
            self.deal(island, takers, left)
        };
        self.settle_loads(&island.cohorts, &members, changed);
        is_done
    }

    /// Takes from members what is above the quota; returns how many still own one more.
    fn trim(
        &mut self,
        facts: &Facts,
        island: &Island,
        quota: u32,
        longer: usize,
        changed: &mut Changed,
    ) -> usize {
        let short =
            island.cohorts.iter().filter(|(at, _)| !self.ladders.below(*at, quota).is_empty());
        self.wanted = short.fold(0, |racks, (_, rack)| racks | rack);
        let mut above = 0;
        for (cohort, _) in &island.cohorts {
            while let Some((load, members)) =
                self.ladders.most(*cohort).filter(|(load, _)| *load > quota + 1)
            {
                self.shorten(facts, island, members[0], load - (quota + 1), changed);
            }
            above += self.ladders.at(*cohort, quota + 1).len();
        }
        for (cohort, _) in &island.cohorts {
            while above > longer {
                let Some(member) = self.ladders.at(*cohort, quota + 1).first() else { break };
                self.shorten(facts, island, *member, 1, changed);
                above -= 1;
            }
        }
        above
    }

    /// Takes `excess` partitions from a member.
    fn shorten(
        &mut self,
        facts: &Facts,
        island: &Island,
        member: MemberIx,
        excess: u32,
        changed: &mut Changed,
    ) {
        let load = self.table.load(member);
        let given_up = if island.has_racks {
            self.least_at_home(facts, member, excess as usize)
        } else {
            self.spread_out(member, load as usize, excess as usize)
        };
        for partition in given_up {
            self.set_free(partition);
        }
        self.ladders.set_load(member, load - excess);
        changed.insert(member);
    }

    /// Partitions from all over a member's topics.
    fn spread_out(&mut self, member: MemberIx, load: usize, excess: usize) -> Vec<PartitionIx> {
        self.turn = self.turn.wrapping_add(1);
        if excess == 1 {
            let skip = self.turn % load.min(CHOICE_MAX);
            return self.table.hand(member).nth(skip).into_iter().collect();
        }
        // Every (choice / excess)th of those that are looked at.
        let choice = load.min(CHOICE_MAX.max(excess * 2));
        let hand = self.table.hand(member).take(choice).enumerate();
        let chosen = hand.filter(|(at, _)| at * excess / choice != (at + 1) * excess / choice);
        chosen.map(|(_, partition)| partition).collect()
    }

    /// Partitions of a member without a replica in its rack first, then those that are at home
    /// where members own too little.
    fn least_at_home(
        &mut self,
        facts: &Facts,
        member: MemberIx,
        excess: usize,
    ) -> Vec<PartitionIx> {
        let rack = facts.member(member).rack;
        let mut hand: Vec<_> = self.table.hand(member).collect();
        hand.sort_by_cached_key(|partition| {
            let racks = self.racks(facts, *partition);
            let wanted = (racks & self.wanted).count_ones();
            (racks & rack != 0, Reverse(wanted), Reverse(racks.count_ones()))
        });
        hand.truncate(excess);
        hand
    }

    /// Who is to be given how much: everyone up to the quota, `longer` of them one more.
    fn takers(&self, island: &Island, quota: u32, mut longer: usize) -> Vec<Taker> {
        let mut takers = Vec::new();
        for (cohort, _) in &island.cohorts {
            for member in self.ladders.below(*cohort, quota) {
                let extra = u32::from(longer > 0);
                longer -= extra as usize;
                let need = quota - self.table.load(*member) + extra;
                takers.push(Taker { member: *member, cohort: *cohort, need });
            }
        }
        for (cohort, _) in &island.cohorts {
            let at_quota = self.ladders.at(*cohort, quota).iter().take(longer);
            longer -= at_quota.len();
            takers.extend(at_quota.map(|member| Taker {
                member: *member,
                cohort: *cohort,
                need: 1,
            }));
        }
        takers
    }

    /// Deals out what is free in turn, so that neighbouring partitions go to different members
    /// and a busy topic is shared by many.
    fn deal(&mut self, island: &mut Island, mut takers: Vec<Taker>, left: &mut usize) -> bool {
        let mut at = 0;
        while let Some(run) = island.free.pop() {
            for partition in run.clone() {
                if self.table.owner(partition).is_some() {
                    continue;
                }
                let Some(taker) = takers.get_mut(at).filter(|_| *left > 0) else {
                    island.free.push(partition..run.end);
                    debug_assert!(*left == 0, "needs add up to what is free");
                    return takers.is_empty();
                };
                self.table.give(partition, taker.member);
                *left -= 1;
                taker.need -= 1;
                if taker.need == 0 {
                    takers.swap_remove(at);
                } else {
                    at += 1;
                }
                at = if at < takers.len() { at } else { 0 };
            }
            *left = left.saturating_sub(run.len() / 8);
        }
        true
    }

    /// Puts members on the rungs their loads now belong to.
    fn settle_loads(
        &mut self,
        cohorts: &[(CohortIx, RackMask)],
        members: &[MemberIx],
        changed: &mut Changed,
    ) {
        members.iter().for_each(|member| changed.insert(*member));
        let all: usize = cohorts.iter().map(|(cohort, _)| self.ladders.len(*cohort)).sum();
        if members.len() * 8 < all {
            for member in members {
                self.ladders.set_load(*member, self.table.load(*member));
            }
        } else {
            for (cohort, _) in cohorts {
                self.ladders.sort(*cohort, |member| self.table.load(member));
            }
        }
    }

    /// The racks of a partition.
    pub(super) fn racks(&self, facts: &Facts, partition: PartitionIx) -> RackMask {
        let (topic, index) = self.table.locate(partition);
        facts.topic(topic).racks.get(index as usize).copied().unwrap_or(0)
    }
}
