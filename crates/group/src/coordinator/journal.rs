//! Why a group rebalanced, and who kept it waiting: what users read when they ask "why?".
//!
//! Kept in memory, bounded per group. It observes; no decision depends on it.

use super::consumers::Consumers;
use super::reconcile::Slot;
use super::record::GroupMetadataValue;
use super::roster::{Member, Roster};
use super::view::{JournalEntry, MemberTimes, Move, Trigger};
use crate::assign::subscription::Assignment;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec::Vec;
use core::time::Duration;
use ottla_model::{
    Generation, Instant, MemberId, Now, PartitionId, TopicId, TopicName, TopicsView,
};

/// What asked for one rebalance, in the order it came.
#[derive(Debug, Default)]
pub(super) struct Triggers {
    kept: Vec<Trigger>,
    more: u32,
}

/// The last generations of one group.
#[derive(Debug, Default)]
pub(super) struct Journal {
    entries: VecDeque<JournalEntry>,
}

impl Triggers {
    /// What asked first.
    pub(super) fn first(&self) -> Option<&Trigger> {
        self.kept.first()
    }

    /// One more; beyond a bound only counted.
    pub(super) fn add(&mut self, trigger: Trigger) {
        if self.kept.len() < TRIGGERS_MAX {
            self.kept.push(trigger);
        } else {
            self.more = self.more.saturating_add(1);
        }
    }
}

impl Extend<Trigger> for Triggers {
    fn extend<T: IntoIterator<Item = Trigger>>(&mut self, triggers: T) {
        triggers.into_iter().for_each(|trigger| self.add(trigger));
    }
}

impl FromIterator<Trigger> for Triggers {
    fn from_iter<T: IntoIterator<Item = Trigger>>(triggers: T) -> Self {
        let mut gathered = Self::default();
        gathered.extend(triggers);
        gathered
    }
}

impl Journal {
    /// A generation began: the members in `roster` have joined.
    pub(super) fn begin(
        &mut self,
        generation: Generation,
        triggers: Triggers,
        began: Now,
        now: Instant,
        roster: &Roster,
        bound: usize,
    ) {
        while self.entries.len() >= bound.max(1) {
            self.entries.pop_front();
        }
        self.entries.push_back(JournalEntry {
            generation,
            triggers: triggers.kept,
            absorbed: triggers.more,
            began_at: began.wall,
            join_took: now.since(began.mono),
            sync_took: None,
            members: roster.len(),
            slowest: slowest(roster, began.mono, None),
            moved: None,
            moves: Vec::new(),
        });
    }

    /// The generation that began last has its assignment; the barrier closed at `closed`.
    pub(super) fn complete(
        &mut self,
        closed: Instant,
        now: Instant,
        roster: &Roster,
        before: Option<&GroupMetadataValue>,
        after: &GroupMetadataValue,
    ) {
        let Some(entry) = self.entries.back_mut() else { return };
        entry.sync_took = Some(now.since(closed));
        entry.slowest = slowest(roster, closed - entry.join_took, Some(closed));
        if let Some((moved, moves)) = moves(before, after) {
            entry.moved = Some(moved);
            entry.moves = moves;
        }
    }

    /// Consumer protocol: an epoch has its target.
    pub(super) fn begin_epoch(
        &mut self,
        consumers: &Consumers,
        triggers: Triggers,
        since: Now,
        now: Instant,
        bound: usize,
    ) {
        while self.entries.len() >= bound.max(1) {
            self.entries.pop_front();
        }
        self.entries.push_back(JournalEntry {
            generation: consumers.target_epoch(),
            triggers: triggers.kept,
            absorbed: triggers.more,
            began_at: since.wall,
            join_took: now.since(since.mono),
            sync_took: None,
            members: consumers.len(),
            slowest: Vec::new(),
            moved: None,
            moves: Vec::new(),
        });
    }

    /// Consumer protocol: what the last target takes from members, as `before` has them, and gives
    /// to others.
    pub(super) fn note_moves(
        &mut self,
        consumers: &Consumers,
        changed: &BTreeSet<MemberId>,
        before: &BTreeMap<Slot, MemberId>,
        view: &TopicsView,
    ) {
        let Some(entry) = self.entries.back_mut() else { return };
        let mut owners: BTreeMap<(TopicId, PartitionId), Owner> = BTreeMap::new();
        for (slot, from) in before {
            owners.entry(*slot).or_default().0 = Some(from.clone());
        }
        let changed = consumers.members().filter(|(id, _)| changed.contains(*id));
        for (id, member) in changed {
            for slot in member.target() {
                owners.entry(*slot).or_default().1 = Some(id.clone());
            }
        }
        let mut moved = 0;
        for ((topic, partition), (from, to)) in owners.into_iter().filter(|(_, (a, b))| a != b) {
            moved += 1;
            let name = view.topic_by_id(topic).map(|topic| topic.name.clone());
            if let Some(topic) = name.filter(|_| entry.moves.len() < MOVES_MAX) {
                entry.moves.push(Move { topic, partition, from, to });
            }
        }
        entry.moved = Some(moved);
    }

    /// Consumer protocol: every member has what the last target gave it.
    pub(super) fn arrived(&mut self, took: Duration) {
        if let Some(entry) = self.entries.back_mut() {
            entry.sync_took = Some(took);
        }
    }

    /// Oldest first.
    pub(super) fn entries(&self) -> impl Iterator<Item = &JournalEntry> {
        self.entries.iter()
    }
}

/// The members that took longest to join and sync, longest first.
fn slowest(roster: &Roster, began: Instant, closed: Option<Instant>) -> Vec<MemberTimes> {
    let took = |member: &Member| {
        let synced = closed.and_then(|closed| member.synced_at.map(|at| at.since(closed)));
        (member.joined_at.since(began), synced)
    };
    let mut members: Vec<_> =
        roster.in_order().into_iter().map(|(id, member)| (took(member), id, member)).collect();
    members.sort_by_key(|((join, sync), ..)| core::cmp::Reverse(*join + sync.unwrap_or_default()));
    members.truncate(SLOWEST_MAX);
    let times = |((join_took, sync_took), id, member): (_, &MemberId, &Member)| MemberTimes {
        who: member.who(id),
        join_took,
        sync_took,
    };
    members.into_iter().map(times).collect()
}

/// Partitions that changed hands between two generations of consumers: how many, and the first
/// of them. `None` where an assignment cannot be read, or where reading them would take long.
fn moves(
    before: Option<&GroupMetadataValue>,
    after: &GroupMetadataValue,
) -> Option<(u32, Vec<Move>)> {
    let bytes: usize = after.members.iter().map(|member| member.assignment.len()).sum();
    if &*after.protocol_type != super::group::CONSUMER || bytes > MOVES_BYTES_MAX {
        return None;
    }
    let mut owners: Owners = BTreeMap::new();
    if let Some(before) = before {
        note(&mut owners, before, |owner| &mut owner.0)?;
    }
    note(&mut owners, after, |owner| &mut owner.1)?;
    let mut count = 0;
    let mut moves = Vec::new();
    for ((topic, partition), (from, to)) in owners.into_iter().filter(|(_, (a, b))| a != b) {
        count += 1;
        if moves.len() < MOVES_MAX {
            moves.push(Move { topic, partition, from, to });
        }
    }
    Some((count, moves))
}

type Owner = (Option<MemberId>, Option<MemberId>);
type Owners = BTreeMap<(TopicName, PartitionId), Owner>;

fn note(
    owners: &mut Owners,
    generation: &GroupMetadataValue,
    side: impl Fn(&mut Owner) -> &mut Option<MemberId>,
) -> Option<()> {
    for member in &generation.members {
        let assignment = Assignment::decode(&member.assignment).ok()?;
        for (topic, partition) in assignment.partitions.iter() {
            let owner = owners.entry((topic.clone(), partition)).or_default();
            *side(owner) = Some(member.member.clone());
        }
    }
    Some(())
}

/// Triggers kept of one rebalance.
const TRIGGERS_MAX: usize = 8;
/// Members whose times are kept of one rebalance.
const SLOWEST_MAX: usize = 8;
/// Moves kept of one rebalance.
const MOVES_MAX: usize = 32;
/// Bytes of assignments up to which moves are looked for: some 30,000 partitions.
const MOVES_BYTES_MAX: usize = 256 << 10;
