//! Sticky: as balanced as the subscriptions allow, moving as little as possible (KIP-54).
//!
//! Members keep what they own while that is fair; what is left goes to whoever has least. With one
//! subscription for all, loads differ by at most one. With different ones, no single move of a
//! partition to another subscriber of its topic would bring two loads closer together. A set of
//! claims is believed by generation: the younger claim wins, two of one generation cancel.

use super::Subscriber;
use super::problem::{MemberIx, NOBODY, PartitionIx, Problem, TopicIx, TopicSpan};
use crate::probe::{self, Mark};
use alloc::collections::{BinaryHeap, VecDeque};
use alloc::vec;
use alloc::vec::Vec;
use core::cmp::Reverse;
use ottla_model::Generation;

/// The owner of each partition.
pub(super) fn assign(problem: &Problem, subscribers: &[Subscriber<'_>]) -> Vec<MemberIx> {
    let claimed = believed_claims(problem, subscribers);
    if problem.is_uniform() { level(problem, claimed) } else { settle(problem, claimed) }
}

/// KIP-429: takes back from `owners` each partition that someone other than its new owner says it
/// holds, so that nobody gets it before that one has given it up.
pub(super) fn withhold_held_elsewhere(
    problem: &Problem,
    subscribers: &[Subscriber<'_>],
    owners: &mut [MemberIx],
) {
    let mut held_by_owner = vec![false; owners.len()];
    let mut held_by_other = vec![false; owners.len()];
    for (member, partition) in claims(problem, subscribers) {
        let holder = if owners[partition as usize] == member {
            &mut held_by_owner
        } else {
            &mut held_by_other
        };
        holder[partition as usize] = true;
    }
    for (partition, owner) in owners.iter_mut().enumerate() {
        if held_by_other[partition] && !held_by_owner[partition] {
            probe::hit(Mark::MemberWithheld);
            *owner = NOBODY;
        }
    }
}

/// Every claim to a partition that still exists, whether or not its claimant still subscribes.
fn claims<'p>(
    problem: &'p Problem,
    subscribers: &'p [Subscriber<'_>],
) -> impl Iterator<Item = (MemberIx, PartitionIx)> + 'p {
    problem.order.iter().enumerate().flat_map(move |(member, at)| {
        subscribers[*at].owned.by_topic().flat_map(move |(name, partitions)| {
            let topic = problem.topic_named(name).map(|topic| &problem.topics[topic as usize]);
            let (first, count) = topic.map_or((0, 0), |topic| (topic.first, topic.count));
            partitions.iter().filter_map(move |partition| {
                let index = u32::try_from(partition.0).ok().filter(|index| *index < count)?;
                Some((member as MemberIx, first + index))
            })
        })
    })
}

/// Who may keep what: per partition the claimant of the youngest generation that still subscribes
/// to it; nobody where two claim it in one generation, because one of them is wrong.
fn believed_claims(problem: &Problem, subscribers: &[Subscriber<'_>]) -> Vec<MemberIx> {
    let mut owners = vec![NOBODY; problem.partition_count()];
    let mut youngest: Vec<Option<Generation>> = vec![None; owners.len()];
    let mut is_claimed = vec![false; owners.len()];
    for (member, partition) in claims(problem, subscribers) {
        let at = partition as usize;
        let generation = subscribers[problem.order[member as usize]].generation;
        let keeps = problem.subscribes(member, topic_of(problem, partition));
        let claimant = if keeps { member } else { NOBODY };
        if !is_claimed[at] || generation > youngest[at] {
            (owners[at], youngest[at], is_claimed[at]) = (claimant, generation, true);
        } else if generation == youngest[at] {
            owners[at] = NOBODY;
        }
    }
    owners
}

fn topic_of(problem: &Problem, partition: PartitionIx) -> TopicIx {
    problem.topics.partition_point(|topic| topic.first <= partition) as TopicIx - 1
}

/// One subscription for all: each keeps up to its quota, the rest is dealt to those below it.
fn level(problem: &Problem, mut owners: Vec<MemberIx>) -> Vec<MemberIx> {
    let members = problem.member_count();
    if members == 0 {
        return owners;
    }
    let (quota, mut longer) = (owners.len() / members, owners.len() % members);
    // Members that hold more than the quota are the ones to be one longer: nothing moves for it.
    let mut loads = loads_of(&owners, members);
    for load in &mut loads {
        let extra = usize::from(*load > quota && longer > 0);
        longer -= extra;
        *load = (*load).min(quota + extra);
    }
    let mut kept = vec![0; members];
    let mut free = Vec::new();
    for (partition, owner) in owners.iter_mut().enumerate() {
        if *owner != NOBODY && kept[*owner as usize] < loads[*owner as usize] {
            kept[*owner as usize] += 1;
        } else {
            *owner = NOBODY;
            free.push(partition);
        }
    }
    deal(&mut owners, free, loads, quota);
    owners
}

/// Gives each free partition to the next member below the quota, then one more each. Neighbouring
/// partitions go to different members, which spreads a hot topic.
fn deal(owners: &mut [MemberIx], free: Vec<usize>, mut loads: Vec<usize>, quota: usize) {
    let below = |load: &usize| *load < quota;
    let mut hungry: VecDeque<usize> = (0..loads.len()).filter(|m| below(&loads[*m])).collect();
    let mut at_quota = None;
    for partition in free {
        let member = if let Some(member) = hungry.pop_front() {
            if loads[member] + 1 < quota {
                hungry.push_back(member);
            }
            member
        } else {
            let level: &mut VecDeque<usize> = at_quota.get_or_insert_with(|| {
                (0..loads.len()).filter(|member| loads[*member] == quota).collect()
            });
            level.pop_front().expect("the remainder is smaller than the number of members")
        };
        loads[member] += 1;
        owners[partition] = member as MemberIx;
    }
}

/// Different subscriptions: place what is free, then move what makes loads more even.
fn settle(problem: &Problem, mut owners: Vec<MemberIx>) -> Vec<MemberIx> {
    let claimed = owners.clone();
    let mut loads = loads_of(&owners, problem.member_count());
    // The fewer can take a topic, the earlier it chooses.
    let mut topics: Vec<&TopicSpan> = problem.topics.iter().collect();
    topics.sort_by_key(|topic| problem.audience(topic).len());
    for topic in &topics {
        place_free(problem.audience(topic), span(topic), &mut owners, &mut loads);
    }
    // Ends: every move lowers the sum of the squared loads.
    while topics
        .iter()
        .fold(false, |any, topic| even_out(problem, topic, &claimed, &mut owners, &mut loads) | any)
    {
    }
    owners
}

fn span(topic: &TopicSpan) -> core::ops::Range<usize> {
    topic.first as usize..(topic.first + topic.count) as usize
}

fn place_free(
    audience: &[MemberIx],
    partitions: core::ops::Range<usize>,
    owners: &mut [MemberIx],
    loads: &mut [usize],
) {
    if !owners[partitions.clone()].contains(&NOBODY) {
        return;
    }
    let mut least: BinaryHeap<Reverse<(usize, MemberIx)>> =
        audience.iter().map(|member| Reverse((loads[*member as usize], *member))).collect();
    for owner in owners[partitions].iter_mut().filter(|owner| **owner == NOBODY) {
        let Some(mut top) = least.peek_mut() else { return };
        let Reverse((load, member)) = &mut *top;
        *owner = *member;
        *load += 1;
        loads[*member as usize] += 1;
    }
}

/// Moves partitions of one topic from its most to its least loaded subscriber while that helps;
/// says whether any moved. A partition its owner did not claim moves before one it did.
fn even_out(
    problem: &Problem,
    topic: &TopicSpan,
    claimed: &[MemberIx],
    owners: &mut [MemberIx],
    loads: &mut [usize],
) -> bool {
    let mut moved = false;
    loop {
        let audience = problem.audience(topic);
        let Some(taker) = audience.iter().copied().min_by_key(|m| (loads[*m as usize], *m)) else {
            return moved;
        };
        let giver = span(topic)
            .max_by_key(|p| (loads[owners[*p] as usize], claimed[*p] != owners[*p]))
            .filter(|p| loads[owners[*p] as usize] >= loads[taker as usize] + 2);
        let Some(partition) = giver else { return moved };
        loads[owners[partition] as usize] -= 1;
        loads[taker as usize] += 1;
        owners[partition] = taker;
        moved = true;
    }
}

fn loads_of(owners: &[MemberIx], members: usize) -> Vec<usize> {
    let mut loads = vec![0; members];
    for owner in owners.iter().filter(|owner| **owner != NOBODY) {
        loads[*owner as usize] += 1;
    }
    loads
}
