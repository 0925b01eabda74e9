//! Dealing with racks known: a partition to a member with a replica at hand, where quotas allow.
//!
//! A partition that few racks can serve is placed before one that many can, and goes to the rack
//! that can least do without it. Nothing moves for a rack's sake alone: what is placed anyhow is
//! placed well.

use super::super::facts::{Facts, RackMask};
use super::Uniform;
use super::islands::Island;
use super::level::Taker;
use super::table::PartitionIx;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// The takers of one cohort.
struct Queue {
    rack: RackMask,
    takers: Vec<Taker>,
    at: usize,
    /// How many partitions its takers are to be given.
    need: usize,
    /// How many of those still to be placed have a replica in its rack.
    supply: usize,
}

impl Uniform {
    /// Deals out what is free, by rack first.
    pub(super) fn deal_by_rack(
        &mut self,
        facts: &Facts,
        island: &mut Island,
        takers: Vec<Taker>,
        left: &mut usize,
    ) -> bool {
        let mut queues = queues(island, takers);
        let mut waiting: Vec<_> = self.free_by_racks(facts, island, left).into_iter().collect();
        let choice =
            |racks: RackMask| queues.iter().filter(|queue| queue.rack & racks != 0).count();
        waiting.sort_by_key(|(racks, _)| choice(*racks));
        let mut homeless = Vec::new();
        for (racks, partitions) in &waiting {
            let near = queues.iter_mut().filter(|queue| queue.rack & racks != 0);
            near.for_each(|queue| queue.supply += partitions.len());
        }
        for (racks, partitions) in waiting {
            for partition in partitions {
                let near = |queue: &&mut Queue| queue.rack & racks != 0;
                queues.iter_mut().filter(near).for_each(|queue| queue.supply -= 1);
                let needy = queues.iter_mut().filter(near).filter(|queue| queue.need > 0);
                match needy.min_by_key(|queue| queue.supply as i64 - queue.need as i64) {
                    Some(queue) => self.table.give(partition, queue.next()),
                    None => homeless.push(partition),
                }
            }
        }
        for partition in homeless {
            let neediest = queues.iter_mut().max_by_key(|queue| queue.need);
            let queue = neediest.filter(|queue| queue.need > 0);
            let queue = queue.expect("needs add up to what is free");
            self.table.give(partition, queue.next());
        }
        island.free.is_empty()
    }

    /// Takes about as many free partitions as there is budget left, by their racks.
    fn free_by_racks(
        &self,
        facts: &Facts,
        island: &mut Island,
        left: &mut usize,
    ) -> BTreeMap<RackMask, Vec<PartitionIx>> {
        let mut waiting: BTreeMap<RackMask, Vec<PartitionIx>> = BTreeMap::new();
        while let Some(run) = island.free.pop() {
            if *left == 0 {
                island.free.push(run);
                break;
            }
            let end =
                run.end.min(run.start.saturating_add(u32::try_from(*left).unwrap_or(u32::MAX)));
            if end < run.end {
                island.free.push(end..run.end);
            }
            *left -= (end - run.start) as usize;
            let (topic, first) = self.table.locate(run.start);
            let racks = &facts.topic(topic).racks;
            for (partition, index) in (run.start..end).zip(first as usize..) {
                if self.table.owner(partition).is_none() {
                    let racks = racks.get(index).copied().unwrap_or(0);
                    waiting.entry(racks).or_default().push(partition);
                }
            }
        }
        // A cell may have been free twice over.
        for partitions in waiting.values_mut() {
            partitions.sort_unstable();
            partitions.dedup();
        }
        waiting
    }
}

impl Queue {
    /// The member whose turn it is, with one partition less to be given.
    fn next(&mut self) -> u32 {
        let taker = &mut self.takers[self.at];
        let member = taker.member;
        (taker.need, self.need) = (taker.need - 1, self.need - 1);
        if taker.need == 0 {
            self.takers.swap_remove(self.at);
        } else {
            self.at += 1;
        }
        if self.at >= self.takers.len() {
            self.at = 0;
        }
        member
    }
}

fn queues(island: &Island, takers: Vec<Taker>) -> Vec<Queue> {
    let cohorts = island.cohorts.iter();
    let mut queues: Vec<Queue> = cohorts
        .map(|(_, rack)| Queue { rack: *rack, takers: Vec::new(), at: 0, need: 0, supply: 0 })
        .collect();
    let place: BTreeMap<_, _> =
        island.cohorts.iter().enumerate().map(|(at, (cohort, _))| (*cohort, at)).collect();
    for taker in takers {
        let queue = &mut queues[place[&taker.cohort]];
        queue.need += taker.need as usize;
        queue.takers.push(taker);
    }
    queues
}
