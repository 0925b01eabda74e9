//! One turn: one group and what its shard offers, for as long as one input is handled.
//!
//! Fronts are written as methods of [`Turn`]. It is the only way to decide (records out, replayed
//! at once) and to answer (with the index to wait for), so no front can get either wrong.

use super::chores::Chores;
use super::config::Config;
use super::group::{Group, Marks};
use super::lifelines::Lifelines;
use super::map::Map;
use super::notes::Notes;
use super::output::{Index, Outbox};
use super::record::Record;
use super::roster::Member;
use super::settings::SettingsView;
use super::timers::{Deadline, Timer, Timers};
use super::view::{Cause, Trigger};
use super::watch::Watch;
use crate::message::{Client, GroupError, Reply, Token};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;
use ottla_model::{ConnectionId, GroupId, MemberId, Now, TopicsView};

/// What a shard keeps beside its groups.
#[derive(Debug)]
pub(super) struct Services {
    pub(super) config: Config,
    pub(super) timers: Timers,
    pub(super) outbox: Outbox,
    /// When expired offsets are looked for next.
    pub(super) expiry: Deadline,
    pub(super) topics: Option<Arc<TopicsView>>,
    /// What they were, while a change of them is handled; for the journal.
    pub(super) topics_before: Option<Arc<TopicsView>>,
    /// Which groups subscribe to each topic, of those whose coordinator assigns.
    pub(super) watch: Watch,
    /// Settings of single groups.
    pub(super) settings: Arc<SettingsView>,
    /// Connections that members speak on.
    pub(super) lifelines: Lifelines,
    /// What is to be kept of the groups' journals.
    pub(super) notes: Notes,
    /// Heartbeats whose answers are kept, over all groups: whose they are.
    pub(super) held: Map<Token, (GroupId, MemberId)>,
    /// Requests parked over all groups.
    pub(super) parked: usize,
    /// Parked joins of members that were never told their id, by connection.
    pub(super) strangers: Map<ConnectionId, BTreeSet<(GroupId, MemberId)>>,
    /// Generations begun, by what first asked for them.
    pub(super) rebalances: BTreeMap<Cause, u64>,
    /// Groups whose patterns and topics are to be looked at.
    pub(super) chores: Chores,
}

/// One group's turn.
pub(super) struct Turn<'s> {
    pub(super) group: &'s mut Group,
    pub(super) services: &'s mut Services,
    pub(super) now: Now,
}

/// Where a request came from and where its reply goes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Call<'a> {
    pub(super) token: Token,
    pub(super) connection: ConnectionId,
    pub(super) client: Client<'a>,
    pub(super) fresh: [u8; 16],
}

impl Turn<'_> {
    /// Makes `records` true: replays them, queues them as one batch, and returns its index.
    /// Refused, with nothing changed, where they exceed the batch bound.
    pub(super) fn decide(&mut self, records: Vec<Record>) -> Result<Index, GroupError> {
        let bytes: usize = records.iter().map(Record::estimated_bytes).sum();
        if BATCH_HEADER_BYTES + bytes > self.services.config.batch_bytes_max {
            return Err(GroupError::RecordTooLarge);
        }
        Ok(self.commit(records))
    }

    /// Like [`decide`](Self::decide) for decisions that may be split: as many batches as the
    /// bound asks for. Returns the last index.
    pub(super) fn decide_split(&mut self, records: Vec<Record>) -> Option<Index> {
        let bound = self.services.config.batch_bytes_max;
        let mut last = None;
        let mut batch = Vec::new();
        let mut bytes = BATCH_HEADER_BYTES;
        for record in records {
            let size = record.estimated_bytes();
            if bytes + size > bound && !batch.is_empty() {
                last = Some(self.commit(core::mem::take(&mut batch)));
                bytes = BATCH_HEADER_BYTES;
            }
            bytes += size;
            batch.push(record);
        }
        if !batch.is_empty() {
            last = Some(self.commit(batch));
        }
        last
    }

    /// Makes `records` true together with an earlier decision of the same turn: in its batch where
    /// that has room, else in batches of their own. Only for records without which the earlier
    /// decision is whole all the same. Returns the last index.
    pub(super) fn decide_also(
        &mut self,
        with: Option<Index>,
        records: Vec<Record>,
    ) -> Option<Index> {
        if records.is_empty() {
            return with;
        }
        match with.filter(|index| self.batch_has_room(*index, &records)) {
            Some(index) => {
                self.add_to(index, records);
                with
            }
            None => self.decide_split(records),
        }
    }

    /// Makes `records` true as one: in the batch of an earlier decision of the same turn where
    /// that has room, else in one of their own. Refused as in [`decide`](Self::decide).
    pub(super) fn decide_with(
        &mut self,
        with: Option<Index>,
        records: Vec<Record>,
    ) -> Result<Index, GroupError> {
        match with.filter(|index| self.batch_has_room(*index, &records)) {
            Some(index) => {
                self.add_to(index, records);
                Ok(index)
            }
            None => self.decide(records),
        }
    }

    fn batch_has_room(&self, index: Index, records: &[Record]) -> bool {
        let room = self.services.config.batch_bytes_max.saturating_sub(BATCH_HEADER_BYTES);
        self.services.outbox.has_room(index, records, room)
    }

    fn add_to(&mut self, index: Index, records: Vec<Record>) {
        let was_void = self.group.hard.is_void();
        let touched = self.replay_all(&records);
        self.services.outbox.extend(records);
        self.mark(index, touched, was_void);
    }

    /// Answers a request about this group's members.
    pub(super) fn reply(&mut self, token: Token, reply: Reply) {
        self.services.outbox.reply(token, reply, self.group.marks.membership);
    }

    /// Answers a request about this group's offsets, which was judged by its members.
    pub(super) fn reply_offsets(&mut self, token: Token, reply: Reply) {
        self.services.outbox.reply(token, reply, self.group.marks.latest());
    }

    /// Sets when the barrier's time is up.
    pub(super) fn arm_barrier(&mut self, after: Duration) {
        let Group { id, barrier, .. } = &mut *self.group;
        let now = self.now.mono;
        self.services.timers.arm(barrier, now, after, || Timer::Barrier(id.clone()));
    }

    /// A valid request of a member came: its silence starts anew, and this is its connection.
    pub(super) fn hear(&mut self, id: &str, call: &Call<'_>) {
        self.follow(id, call);
        self.renew_session(id);
    }

    /// A valid request of a member came on this connection.
    pub(super) fn follow(&mut self, id: &str, call: &Call<'_>) {
        if let Some(member) = self.group.roster.member_mut(id) {
            self.services.lifelines.follow(&mut member.connection, call.connection);
        }
    }

    /// Starts a member's silence anew, in full.
    pub(super) fn renew_session(&mut self, id: &str) {
        self.arm_session(id, Member::silence_max);
    }

    /// Sets when a member is taken for dead if nothing is heard of it.
    pub(super) fn arm_session(&mut self, id: &str, after: impl FnOnce(&Member) -> Duration) {
        let Group { id: group, roster, .. } = &mut *self.group;
        let Some((id, member)) = roster.entry_mut(id) else { return };
        let after = after(member);
        let timer = || Timer::Session(group.clone(), id.clone());
        self.services.timers.arm(&mut member.session, self.now.mono, after, timer);
    }

    /// What happened to a member, for the journal.
    pub(super) fn trigger(&self, cause: Cause, member: &str) -> Option<Trigger> {
        let who = self.group.roster.who(member)?;
        Some(Trigger::of(cause, who))
    }

    /// What a member did, and why in its own words, for the journal.
    pub(super) fn trigger_for(
        &self,
        cause: Cause,
        member: &str,
        reason: Option<&str>,
    ) -> Option<Trigger> {
        let reason = kept_reason(reason);
        self.trigger(cause, member).map(|trigger| Trigger { reason, ..trigger })
    }

    fn commit(&mut self, records: Vec<Record>) -> Index {
        let was_void = self.group.hard.is_void();
        let had_members = self.group.hard.has_had_members();
        let touched = self.replay_all(&records);
        let index = self.services.outbox.append(records);
        self.mark(index, touched, was_void);
        if had_members && !self.group.hard.has_had_members() {
            self.end_journal(index);
        }
        index
    }

    fn replay_all(&mut self, records: &[Record]) -> Touched {
        let mut touched = Touched::default();
        for record in records {
            match record {
                Record::OffsetCommit(_) => touched.offsets = true,
                _ => touched.membership = true,
            }
            self.group.hard.replay(record);
        }
        if touched.membership {
            self.follow_subscriptions();
        }
        touched
    }

    /// Lets answers wait for decision `index`, each kind for what it touched.
    fn mark(&mut self, index: Index, touched: Touched, was_void: bool) {
        let existence = was_void != self.group.hard.is_void();
        let Marks { membership, offsets } = &mut self.group.marks;
        if touched.membership || existence {
            *membership = index;
        }
        if touched.offsets || existence {
            *offsets = index;
        }
    }
}

/// What a decision is about.
#[derive(Clone, Copy, Default)]
struct Touched {
    membership: bool,
    offsets: bool,
}

/// What the journal keeps of a reason in a client's own words (KIP-800).
pub(super) fn kept_reason(reason: Option<&str>) -> Option<Arc<str>> {
    reason.map(|reason| Arc::from(cut(reason, REASON_BYTES_MAX)))
}

/// The beginning of `text`, at most so many bytes of it.
pub(super) fn cut(text: &str, bytes_max: usize) -> &str {
    let end = (0..=bytes_max.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    &text[..end.unwrap_or(0)]
}

/// The header of a record batch, format 2.
const BATCH_HEADER_BYTES: usize = 61;
/// Kept of a reason: what Kafka's own clients cut theirs to (KIP-800).
const REASON_BYTES_MAX: usize = 255;
