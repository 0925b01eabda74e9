//! The coordinator of one partition of the offsets topic: its face, and what it may answer when.

mod reign;
mod requests;
mod views;

use super::chores::Chores;
use super::config::Config;
use super::group::{Group, Marks};
use super::lifelines::Lifelines;
use super::map::{Map, seeded};
use super::notes::Notes;
use super::output::{Append, Closing, Index, Outbox, Outgoing};
use super::settings::SettingsView;
use super::timers::{Deadline, Due, Timer, Timers};
use super::turn::{Call, Services, Turn};
use super::watch::Watch;
use crate::message::{GroupError, Reply, Request, Token};
use crate::probe::{self, Mark};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::Arc;
use alloc::vec::Vec;
use ottla_model::{
    ConnectionId, GroupId, Instant, Now, Offset, OwnershipEpoch, PartitionId, Timestamp, Topic,
    TopicName, TopicsView,
};

/// The coordinator of every group that hashes to one partition of `__consumer_offsets`.
///
/// A shard is a value: it does nothing until a method is called and returns at once. Its driver
/// owns it alone, feeds it and carries out what it hands back.
///
/// # Call order
///
/// [`new`](Self::new) makes a shard that owns nothing. Then, for one reign:
/// [`handle_owned`](Self::handle_owned), [`replay`](Self::replay) for every record of the
/// partition's log in order, [`handle_loaded`](Self::handle_loaded). From then on any `handle_*`
/// in any order. After each, or after a batch of them, poll until each answers `None`, in this
/// order: [`poll_append`](Self::poll_append), [`poll_reply`](Self::poll_reply),
/// [`poll_close`](Self::poll_close), and last [`poll_timeout`](Self::poll_timeout), which says
/// when to call [`handle_timeout`](Self::handle_timeout) if nothing else happens first.
/// [`handle_disowned`](Self::handle_disowned) ends the reign. Requests may come at any time:
/// before the reign they get `NotCoordinator`, while it loads `LoadInProgress`.
///
/// # Time
///
/// Time is an argument and never goes backward: each call's `now.mono` is at or after the last
/// one's (an earlier one is taken as the last). A deadline may be handled late, never early. One
/// handled more than a second late lasts a little longer (up to three seconds): whoever stood
/// still did not listen either, and heartbeats may be waiting to be read. Wall time is used for
/// what is written down and may jump.
///
/// # Durability
///
/// A handler decides; a decision is a batch of records. It is replayed into the shard's state at
/// once, so the next request sees it, and comes out of `poll_append` with the next [`Index`].
/// Append batches in that order, each whole or not at all, fenced by the ownership epoch. Call
/// [`handle_durable`](Self::handle_durable) when an index and all before it can no longer be
/// lost. A reply with `after: Some(index)` must not leave before that, and nothing else of the
/// shard's state may be shown before it either ([`Observed`](super::Observed)). Replies that need
/// not wait have `None`: a heartbeat waits for its own group's last generation, never for another
/// group's records nor for any commit. An answer of absence (no such group, no such offset) waits
/// for the removal.
///
/// # A failed append
///
/// If an append fails, or its outcome is unknown, call
/// [`handle_append_failed`](Self::handle_append_failed): memory is then ahead of the log and must
/// not be believed. Every parked request is answered `NotCoordinator` and so is every later one.
/// Replies the driver still holds for that index or a later one must be replaced by
/// [`Reply::refused`](crate::message::Reply::refused)`(NotCoordinator)`. Drop the shard and load
/// a new one from the log; there is no rollback.
///
/// # Ownership
///
/// `handle_owned(epoch, until)` says: you alone may answer until `until` (T). A shard falls
/// silent [`Config::ownership_margin`] before T: from then on every request, parked or new, gets
/// `NotCoordinator`. Appends are fenced by the epoch in storage, but a heartbeat appends nothing,
/// so only time can silence a deposed coordinator. The driver checks T again when a reply goes to
/// the socket. A renewal (same epoch, later T) before T changes nothing else; after T the shard
/// starts over from its durable state, with full timers, as a new owner would. A new owner's
/// `handle_loaded` must not come before its predecessor's T: timers start there, in full, and
/// until then both would be heard.
#[derive(Debug)]
pub struct Shard {
    partition: PartitionId,
    pub(super) groups: Map<GroupId, Group>,
    pub(super) services: Services,
    /// Marks of groups that are gone, until that is durable: absence too is an answer.
    gone: Map<GroupId, Marks>,
    stage: Stage,
    epoch: OwnershipEpoch,
    /// When it falls silent: the end of its ownership less the margin.
    silent_from: Instant,
    /// Whether it has fallen silent and was not renewed since.
    lapsed: bool,
    latest: Instant,
}

/// How far a reign has come, whether or not it lapsed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    Disowned,
    Loading,
    Active,
    Failed,
}

/// Where a shard stands in its reign.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lifecycle {
    /// Not the owner: every request gets `NotCoordinator`.
    Disowned,
    /// Owner, reading the log: every request gets `LoadInProgress`.
    Loading(OwnershipEpoch),
    /// Owner, at work.
    Active(OwnershipEpoch),
    /// Ownership ran out and may be renewed: every request gets `NotCoordinator`.
    Lapsed(OwnershipEpoch),
    /// An append failed: every request gets `NotCoordinator`, for good.
    Failed,
}

/// Where in the log a replayed record lies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RecordAt {
    /// Its offset.
    pub offset: Offset,
    /// When it was appended.
    pub appended_at: Timestamp,
}

/// Making one.
impl Shard {
    /// A shard for this partition of the offsets topic, owning nothing yet.
    pub fn new(config: Config, partition: PartitionId) -> Self {
        let seed = config.hash_seed;
        let services = Services {
            config,
            timers: Timers::default(),
            outbox: Outbox::default(),
            expiry: Deadline::unarmed(),
            topics: None,
            topics_before: None,
            watch: Watch::default(),
            settings: Arc::default(),
            lifelines: Lifelines::new(seed),
            notes: Notes::default(),
            held: seeded(seed),
            parked: 0,
            strangers: seeded(seed),
            rebalances: BTreeMap::new(),
            chores: Chores::default(),
        };
        Self {
            partition,
            groups: seeded(seed),
            services,
            gone: seeded(seed),
            stage: Stage::Disowned,
            epoch: OwnershipEpoch::default(),
            silent_from: Instant::ZERO,
            lapsed: false,
            latest: Instant::ZERO,
        }
    }

    /// The partition of the offsets topic this shard coordinates.
    pub fn partition(&self) -> PartitionId {
        self.partition
    }

    /// The settings it was made with.
    pub fn config(&self) -> &Config {
        &self.services.config
    }

    /// Where it stands in its reign.
    pub fn lifecycle(&self) -> Lifecycle {
        match self.stage {
            Stage::Disowned => Lifecycle::Disowned,
            Stage::Failed => Lifecycle::Failed,
            Stage::Loading | Stage::Active if self.lapsed => Lifecycle::Lapsed(self.epoch),
            Stage::Loading => Lifecycle::Loading(self.epoch),
            Stage::Active => Lifecycle::Active(self.epoch),
        }
    }
}

/// What comes in while it reigns.
impl Shard {
    /// One request. Exactly one reply with its token will come out of `poll_reply`, now or later,
    /// unless its connection closes first.
    pub fn handle_request(&mut self, request: Request<'_>) {
        let now = self.observe(request.now);
        let Request { token, connection, client, fresh, body, .. } = request;
        let call = Call { token, connection, client, fresh };
        match self.lifecycle() {
            Lifecycle::Active(_) => self.dispatch(now, &call, &body),
            Lifecycle::Loading(_) => self.refuse(token, body.refused(GroupError::LoadInProgress)),
            Lifecycle::Disowned | Lifecycle::Lapsed(_) | Lifecycle::Failed => {
                self.refuse(token, body.refused(GroupError::NotCoordinator));
            }
        }
    }

    /// This connection is gone; replies to its requests need not be sent any more.
    pub fn handle_connection_closed(&mut self, connection: ConnectionId, now: Now) {
        let now = self.observe(now);
        for (group, member) in self.services.strangers.remove(&connection).unwrap_or_default() {
            self.turn(&group, now, |turn| turn.stranger_gone(&member, connection));
        }
    }

    /// Another request waits on the same connection behind this one, which should be answered
    /// rather than held. Only held heartbeats care; other parked requests wait for others.
    pub fn handle_waiting_behind(&mut self, token: Token, now: Now) {
        let now = self.observe(now);
        if let Some((group, member)) = self.services.held.get(&token).cloned() {
            probe::hit(Mark::CoordinatorHoldGaveWay);
            self.turn(&group, now, |turn| turn.give_way(&member));
        }
    }

    /// The topics of the cluster: complete, and no older than any record or request given to this
    /// shard, for what differs is taken to be gone. Offsets of topics that are gone or were
    /// recreated under the same name are removed by tombstones. May come at any time, owner or
    /// not; the last view is the one that counts.
    pub fn handle_topics(&mut self, topics: Arc<TopicsView>, now: Now) {
        let now = self.observe(now);
        let whole_before = self.services.topics.replace(topics.clone());
        let before = whole_before.as_deref();
        if !matches!(self.lifecycle(), Lifecycle::Active(_)) {
            return;
        }
        if before.is_none_or(|before| has_lost_any(before, &topics)) {
            self.each_group(now, |turn| turn.forget_lost_topics(before, &topics));
        }
        let differing = before.map(|before| Arc::new(differing(before, &topics)));
        self.services.topics_before = whole_before.clone();
        self.each_group(now, |turn| turn.consumer_topics_changed(differing.as_ref()));
        self.services.topics_before = None;
        self.work_off(now);
        match before {
            Some(before) => {
                for (group, changed) in self.services.watch.concerned(before, &topics) {
                    self.turn(&group, now, |turn| turn.topics_changed(changed));
                }
            }
            None => self.each_group(now, |turn| turn.check_topics()),
        }
    }

    /// The settings of single groups: complete. May come at any time; the last one counts. Groups
    /// whose assignment a difference changes are rebalanced.
    pub fn handle_settings(&mut self, settings: Arc<SettingsView>, now: Now) {
        let now = self.observe(now);
        let before = core::mem::replace(&mut self.services.settings, settings);
        if matches!(self.lifecycle(), Lifecycle::Active(_)) {
            for group in before.differing(&self.services.settings.clone()) {
                let was = before.of(&group);
                self.turn(&group, now, |turn| turn.settings_changed(was));
            }
        }
    }

    /// The answer to this member's registration leaves now, not when it was decided: its failure
    /// detection starts with it (S14, decision 5). Need not be called for answers that waited for
    /// nothing.
    pub fn handle_answered(&mut self, group: &str, member: &str, now: Now) {
        let now = self.observe(now);
        if matches!(self.lifecycle(), Lifecycle::Active(_)) {
            self.turn(group, now, |turn| turn.registration_answered(member));
        }
    }

    /// Every append up to and including `index` is durable.
    pub fn handle_durable(&mut self, index: Index) {
        self.services.outbox.durable(index);
        self.services.notes.forget(index);
        if !self.gone.is_empty() {
            let durable = self.services.outbox.durable_index();
            self.gone.retain(|_, marks| marks.latest() > durable);
        }
    }

    /// The time has come that `poll_timeout` named, or later; harmless if earlier.
    pub fn handle_timeout(&mut self, now: Now) {
        let now = self.observe(now);
        while let Some((queued, timer)) = self.services.timers.pop(now.mono) {
            let due = match &timer {
                Timer::Barrier(group) => {
                    self.turn(group, now, |turn| turn.barrier_surfaced(queued))
                }
                Timer::Session(group, member) => {
                    self.turn(group, now, |turn| turn.session_surfaced(member, queued))
                }
                Timer::Pending(group, member) => {
                    self.turn(group, now, |turn| turn.pending_surfaced(member, queued))
                }
                Timer::Revocation(group, member) => {
                    self.turn(group, now, |turn| turn.revocation_surfaced(member, queued))
                }
                Timer::Hold(group, member) => {
                    self.turn(group, now, |turn| turn.hold_surfaced(member, queued))
                }
                Timer::Assignment(group) => {
                    self.turn(group, now, |turn| turn.assignment_surfaced(queued))
                }
                Timer::Chores => Some(self.chores_surfaced(queued, now)),
                Timer::OffsetExpiry => Some(self.expiry_surfaced(queued, now)),
            };
            if let Some(Due::Later(at)) = due {
                self.services.timers.push(at, timer);
            }
        }
    }

    fn expiry_surfaced(&mut self, queued: Instant, now: Now) -> Due {
        let due = self.services.expiry.surfaced(queued, now.mono);
        if due == Due::Now {
            // Commits that named a topic after it went are found here.
            let topics = self.services.topics.clone();
            self.each_group(now, |turn| {
                if let Some(topics) = &topics {
                    turn.forget_lost_topics(None, topics);
                }
                turn.expire_offsets();
            });
            let interval = self.services.config.offsets_retention_check_interval;
            let Services { timers, expiry, .. } = &mut self.services;
            timers.arm(expiry, now.mono, interval, || Timer::OffsetExpiry);
        }
        due
    }

    fn refuse(&mut self, token: Token, reply: Reply) {
        self.services.outbox.reply(token, reply, Index::default());
    }

    /// Every group, in no order.
    #[cfg(test)]
    pub(super) fn all_groups(&self) -> impl Iterator<Item = &Group> {
        self.groups.values()
    }

    /// What is kept beside the groups.
    #[cfg(test)]
    pub(super) fn services(&self) -> &Services {
        &self.services
    }

    /// How many requests count as parked.
    #[cfg(test)]
    pub(super) fn parked(&self) -> usize {
        self.services.parked
    }

    /// All hard state, as the fewest records that would make it, in order.
    #[cfg(test)]
    pub(super) fn hard_records(&self) -> Vec<super::record::Record> {
        let mut groups: Vec<_> = self.groups.values().collect();
        groups.sort_unstable_by(|a, b| a.id.cmp(&b.id));
        groups.into_iter().flat_map(|group| group.hard.records(&group.id)).collect()
    }

    /// Gives a group its turn, and lets it go if nothing is left of it afterwards.
    pub(super) fn turn<R>(
        &mut self,
        id: &str,
        now: Now,
        handle: impl FnOnce(&mut Turn<'_>) -> R,
    ) -> Option<R> {
        let group = self.groups.get_mut(id)?;
        let mut turn = Turn { group, services: &mut self.services, now };
        let result = handle(&mut turn);
        turn.tell_consumers();
        if group.is_void() {
            self.drop_group(id);
        }
        Some(result)
    }

    /// Gives every group a turn, in the order of their ids.
    fn each_group(&mut self, now: Now, mut handle: impl FnMut(&mut Turn<'_>)) {
        let mut groups: Vec<_> = self.groups.values_mut().collect();
        groups.sort_unstable_by(|a, b| a.id.cmp(&b.id));
        let mut void = Vec::new();
        for group in groups {
            let mut turn = Turn { group, services: &mut self.services, now };
            handle(&mut turn);
            turn.tell_consumers();
            if group.is_void() {
                void.push(group.id.clone());
            }
        }
        void.iter().for_each(|id| self.drop_group(id));
    }

    fn drop_group(&mut self, id: &str) {
        let bytes = self.groups.get(id).map_or(0, |group| group.journal.bytes());
        self.services.notes.bytes -= bytes;
        if let Some((id, group)) = self.groups.remove_entry(id)
            && self.services.outbox.pending(group.marks.latest()).is_some()
        {
            self.gone.insert(id, group.marks);
        }
    }
}

/// What goes out.
impl Shard {
    /// The next decision to append, in order.
    pub fn poll_append(&mut self) -> Option<Append> {
        self.services.outbox.pop_append()
    }

    /// The next reply.
    pub fn poll_reply(&mut self) -> Option<Outgoing> {
        self.services.outbox.pop_reply()
    }

    /// The next connection to close (the register protocol breaks a dead member's socket, S19).
    pub fn poll_close(&mut self) -> Option<Closing> {
        self.services.outbox.pop_close()
    }

    /// Whether a live member of one of this shard's groups speaks on `connection`: then no dead
    /// member of another shard takes it down (S19).
    pub fn speaks_on(&self, connection: ConnectionId) -> bool {
        self.services.lifelines.has(connection)
    }

    /// When to call `handle_timeout`, if nothing happens before. May be earlier than needed.
    pub fn poll_timeout(&self) -> Option<Instant> {
        match self.lifecycle() {
            Lifecycle::Loading(_) => Some(self.silent_from),
            Lifecycle::Active(_) => {
                let timer = self.services.timers.next();
                Some(timer.map_or(self.silent_from, |timer| timer.min(self.silent_from)))
            }
            Lifecycle::Disowned | Lifecycle::Lapsed(_) | Lifecycle::Failed => None,
        }
    }

    /// The last index handed out; zero before the first.
    pub fn last_index(&self) -> Index {
        self.services.outbox.decided()
    }
}

/// Topics that the two views do not show alike.
fn differing(before: &TopicsView, after: &TopicsView) -> BTreeSet<TopicName> {
    // Views share what did not change.
    let is_same = |topic: &Topic, now: &Topic| core::ptr::eq(topic, now) || topic == now;
    let gone_or_changed = before
        .topics()
        .filter(|topic| !after.topic(&topic.name).is_some_and(|now| is_same(topic, now)));
    let created = after.topics().filter(|topic| before.topic(&topic.name).is_none());
    gone_or_changed.chain(created).map(|topic| topic.name.clone()).collect()
}

/// Whether a topic of the older view is missing in the newer, or is another one there.
fn has_lost_any(before: &TopicsView, after: &TopicsView) -> bool {
    before.topics().any(|topic| after.topic(&topic.name).is_none_or(|now| now.id != topic.id))
}
