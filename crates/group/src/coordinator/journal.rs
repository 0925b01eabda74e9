//! Why a group rebalanced, and who kept it waiting: what users read when they ask "why?".
//!
//! Bounded per group, and in bytes per shard. It observes; no decision depends on it. How it is
//! kept beyond this process is the business of `notes` and of the driver.

use super::consumers::Consumers;
use super::motion::Arrivals;
use super::reconcile::Slot;
use super::record::GroupMetadataValue;
use super::roster::{Member, Roster};
use super::shard::RecordAt;
use super::view::{Cause, JournalEntry, MemberTimes, Move, Outcome, Trigger, Who};
use crate::assign::subscription::Assignment;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec::Vec;
use core::time::Duration;
use ottla_model::{Generation, Instant, MemberId, Now, Offset, PartitionId, TopicId, TopicName};

/// What asked for one rebalance, in the order it came.
#[derive(Debug, Default)]
pub(super) struct Triggers {
    kept: Vec<Trigger>,
    more: u32,
}

/// The last generations of one group.
#[derive(Debug, Default)]
pub(super) struct Journal {
    /// Oldest first; the last `unwritten` of them have no record yet.
    entries: VecDeque<JournalEntry>,
    unwritten: u32,
    /// Of those that have a record.
    bytes: u32,
}

impl Triggers {
    /// What asked first.
    pub(super) fn first(&self) -> Option<&Trigger> {
        self.kept.first()
    }

    /// All that another rebalance was asked for, which never came.
    pub(super) fn absorb(&mut self, others: Self) {
        self.more = self.more.saturating_add(others.more);
        self.extend(others.kept);
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

impl IntoIterator for Triggers {
    type Item = Trigger;
    type IntoIter = alloc::vec::IntoIter<Trigger>;

    /// Those that are kept.
    fn into_iter(self) -> Self::IntoIter {
        self.kept.into_iter()
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
        let entry = JournalEntry {
            record: None,
            outcome: Outcome::Running,
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
        };
        self.push(entry, bound);
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
        entry.outcome = Outcome::Assigned;
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
        let is_empty = consumers.is_empty();
        let entry = JournalEntry {
            record: None,
            outcome: if is_empty { Outcome::Emptied } else { Outcome::Running },
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
        };
        self.push(entry, bound);
    }

    /// Consumer protocol: what the last target takes from members, as `before` has them, and gives
    /// to others.
    pub(super) fn note_moves(
        &mut self,
        consumers: &Consumers,
        changed: &BTreeSet<MemberId>,
        before: &BTreeMap<Slot, MemberId>,
        name_of: impl Fn(TopicId) -> Option<TopicName>,
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
            if entry.moves.len() < MOVES_MAX
                && let Some(topic) = name_of(topic)
            {
                entry.moves.push(Move { topic, partition, from, to });
            }
        }
        entry.moved = Some(moved);
    }

    /// Consumer protocol: every member has what the last target, computed at `since`, gave it. Says
    /// which generation that was.
    pub(super) fn arrived(
        &mut self,
        consumers: &Consumers,
        arrivals: &Arrivals,
        since: Instant,
        now: Instant,
    ) -> Option<Generation> {
        let entry = self.entries.back_mut().filter(|entry| entry.outcome != Outcome::Lost)?;
        entry.sync_took = Some(now.since(since));
        let times = arrivals.last().filter_map(|(id, at)| {
            let (id, member) = consumers.member(id)?;
            let sync_took = Some(at.since(since));
            Some(MemberTimes { who: member.who(id), join_took: entry.join_took, sync_took })
        });
        entry.slowest = times.collect();
        if entry.outcome == Outcome::Running {
            entry.outcome = Outcome::Assigned;
        }
        Some(entry.generation)
    }

    /// Nobody is left in the generation that began last.
    pub(super) fn emptied(&mut self) {
        if let Some(entry) = self.entries.back_mut() {
            entry.outcome = Outcome::Emptied;
        }
    }

    /// Oldest first.
    pub(super) fn entries(&self) -> impl Iterator<Item = &JournalEntry> {
        self.entries.iter()
    }

    fn push(&mut self, entry: JournalEntry, bound: usize) {
        if let Some(last) = self.entries.back_mut().filter(|last| !last.is_over()) {
            last.outcome = Outcome::Overtaken;
        }
        if self.unwritten as usize >= bound.max(1) {
            // None of them came to be true: the eldest says least.
            self.entries.remove(self.entries.len() - self.unwritten as usize);
            self.unwritten -= 1;
        }
        self.entries.push_back(entry);
        self.unwritten += 1;
    }
}

/// What of it is kept beyond this process.
impl Journal {
    /// The group's record of the last generation was decided: from now on the entries up to it are
    /// history. Keeps at most `bound` of them, and fewer, but one, while they exceed `room` bytes.
    /// Says which generations are new.
    pub(super) fn written(&mut self, bound: usize, room: usize) -> Vec<Generation> {
        let new = core::mem::take(&mut self.unwritten);
        let from = self.entries.len() - new as usize;
        self.bytes += self.entries.range(from..).map(bytes_of).sum::<u32>();
        let new = self.entries.range(from..).map(|entry| entry.generation).collect();
        self.trim(bound, room);
        new
    }

    /// Bytes of the entries that are history, about.
    pub(super) fn bytes(&self) -> usize {
        self.bytes as usize
    }

    /// The record that made this generation true begins there.
    pub(super) fn recorded(&mut self, generation: Generation, at: Offset) -> Option<&JournalEntry> {
        let mut entries = self.entries.iter_mut().rev();
        let entry = entries.find(|entry| entry.generation == generation)?;
        entry.record = Some(at);
        Some(entry)
    }

    /// The entry of a generation whose record is appended.
    pub(super) fn entry(&self, generation: Generation) -> Option<&JournalEntry> {
        let mut entries = self.entries.iter().rev();
        entries.find(|entry| entry.generation == generation && entry.record.is_some())
    }

    /// Forgets what no record tells of: a coordinator that starts over falls back behind it.
    pub(super) fn forget_unwritten(&mut self) {
        self.entries.truncate(self.entries.len() - self.unwritten as usize);
        self.unwritten = 0;
    }

    /// Takes back an entry that was kept. Generations rise within one group's life.
    pub(super) fn take_back(&mut self, entry: JournalEntry, bound: usize, room: usize) {
        if self.entries.back().is_some_and(|last| last.generation == entry.generation) {
            self.drop_last();
        } else if self.entries.back().is_some_and(|last| last.generation > entry.generation) {
            *self = Self::default();
        }
        if let Some(last) = self.entries.back_mut().filter(|last| !last.is_over()) {
            last.outcome = Outcome::Overtaken;
        }
        self.bytes += bytes_of(&entry);
        self.entries.push_back(entry);
        self.trim(bound, room);
    }

    /// The generation in force has a record, at `at`, and no entry: what it was about is lost.
    pub(super) fn complete_lost(&mut self, generation: Generation, members: usize, at: RecordAt) {
        if self.entries.back().is_some_and(|last| last.generation == generation) {
            return;
        }
        let lost = JournalEntry {
            record: Some(at.offset),
            outcome: Outcome::Lost,
            generation,
            triggers: alloc::vec![Trigger::new(Cause::LostInCrash)],
            absorbed: 0,
            began_at: at.appended_at,
            join_took: Duration::ZERO,
            sync_took: None,
            members,
            slowest: Vec::new(),
            moved: None,
            moves: Vec::new(),
        };
        self.take_back(lost, usize::MAX, usize::MAX);
    }

    fn trim(&mut self, bound: usize, room: usize) {
        while self.entries.len() > bound.max(1) || (self.bytes() > room && self.entries.len() > 1) {
            if let Some(eldest) = self.entries.pop_front() {
                self.bytes -= bytes_of(&eldest);
            }
        }
    }

    fn drop_last(&mut self) {
        if let Some(last) = self.entries.pop_back() {
            self.bytes -= bytes_of(&last);
        }
    }
}

/// What an entry takes, about. Nothing counts that still changes once it is history.
fn bytes_of(entry: &JournalEntry) -> u32 {
    let trigger = |trigger: &Trigger| {
        let who = trigger.who.as_ref().map_or(0, bytes_of_who);
        let topic = trigger.topic.as_ref().map_or(0, |topic| topic.len());
        let reason = trigger.reason.as_ref().map_or(0, |reason| reason.len());
        ITEM_BYTES + who + topic + reason
    };
    let moved = |moved: &Move| {
        let id = |id: &Option<MemberId>| id.as_ref().map_or(0, |id| id.len());
        ITEM_BYTES + moved.topic.len() + id(&moved.from) + id(&moved.to)
    };
    let slow = |times: &MemberTimes| ITEM_BYTES + bytes_of_who(&times.who);
    let lists = entry.triggers.iter().map(trigger).sum::<usize>()
        + entry.moves.iter().map(moved).sum::<usize>()
        + entry.slowest.iter().map(slow).sum::<usize>();
    // Its lists and their texts are bounded.
    u32::try_from(ENTRY_BYTES + lists).unwrap_or(u32::MAX)
}

fn bytes_of_who(who: &Who) -> usize {
    let instance = who.instance.as_ref().map_or(0, |instance| instance.len());
    who.member.len() + instance + who.client_id.len() + who.client_host.len()
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
pub(super) const SLOWEST_MAX: usize = 8;
/// Moves kept of one rebalance.
const MOVES_MAX: usize = 32;
/// Bytes of assignments up to which moves are looked for: some 30,000 partitions.
const MOVES_BYTES_MAX: usize = 256 << 10;
/// What an entry takes beside its lists.
const ENTRY_BYTES: usize = 160;
/// What one item of a list takes beside its texts.
const ITEM_BYTES: usize = 64;
