//! The coordinator of one partition of the offsets topic: its face, and what it may answer when.

use super::config::Config;
use super::output::{Append, Index, Outgoing};
use super::record::Record;
use super::view::{CommittedView, GroupView, Observed, StateCounts};
use crate::message::{Request, Token};
use alloc::sync::Arc;
use ottla_model::{
    ConnectionId, Instant, Now, Offset, OwnershipEpoch, PartitionId, Timestamp, TopicsView,
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
/// one's (an earlier one is taken as the last). A deadline may be handled late, never early; how
/// late only delays timeouts. Wall time is used for what is written down and may jump.
///
/// # Durability
///
/// A handler decides; a decision is a batch of records. It is replayed into the shard's state at
/// once, so the next request sees it, and comes out of `poll_append` with the next [`Index`].
/// Append batches in that order, each whole or not at all, fenced by the ownership epoch. Call
/// [`handle_durable`](Self::handle_durable) when an index and all before it can no longer be
/// lost. A reply with `after: Some(index)` must not leave before that, and nothing else of the
/// shard's state may be shown before it either ([`Observed`]). Replies that need not wait have
/// `None`: a heartbeat waits for its own group's last generation, never for another group's
/// records nor for any commit. An answer of absence (no such group, no such offset) waits for the
/// removal.
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
    config: Config,
    partition: PartitionId,
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

impl Shard {
    /// A shard for this partition of the offsets topic, owning nothing yet.
    pub fn new(config: Config, partition: PartitionId) -> Self {
        Self { config, partition }
    }

    /// The partition of the offsets topic this shard coordinates.
    pub fn partition(&self) -> PartitionId {
        self.partition
    }

    /// The settings it was made with.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Where it stands in its reign.
    pub fn lifecycle(&self) -> Lifecycle {
        Lifecycle::Disowned
    }

    /// This shard is ours under `epoch` until `until`. A new epoch begins a reign: everything
    /// known is forgotten and the log must be replayed. The current epoch renews.
    pub fn handle_owned(&mut self, epoch: OwnershipEpoch, until: Instant, now: Now) {
        let _ = (epoch, until, now);
    }

    /// This shard is no longer ours: everything is forgotten, parked requests are answered.
    pub fn handle_disowned(&mut self) {}

    /// One record of the log, in order, between `handle_owned` and `handle_loaded`.
    pub fn replay(&mut self, record: Record, at: RecordAt) {
        let _ = (record, at);
    }

    /// The log is read to its end. Timers start in full; not to be called before the former
    /// owner's T.
    pub fn handle_loaded(&mut self, now: Now) {
        let _ = now;
    }

    /// One request. Exactly one reply with its token will come out of `poll_reply`, now or later,
    /// unless its connection closes first.
    pub fn handle_request(&mut self, request: Request<'_>) {
        let _ = request;
    }

    /// This connection is gone; replies to its requests need not be sent any more.
    pub fn handle_connection_closed(&mut self, connection: ConnectionId, now: Now) {
        let _ = (connection, now);
    }

    /// Another request waits on the same connection behind this one, which should be answered
    /// rather than held. Only held heartbeats care; other parked requests wait for others.
    pub fn handle_waiting_behind(&mut self, token: Token, now: Now) {
        let _ = (token, now);
    }

    /// The topics of the cluster, complete, as of now. Offsets of topics that are gone or were
    /// recreated under the same name are removed by tombstones.
    pub fn handle_topics(&mut self, topics: Arc<TopicsView>, now: Now) {
        let _ = (topics, now);
    }

    /// Every append up to and including `index` is durable.
    pub fn handle_durable(&mut self, index: Index) {
        let _ = index;
    }

    /// An append failed or its outcome is unknown; see the contract above.
    pub fn handle_append_failed(&mut self) {}

    /// The time has come that `poll_timeout` named, or later; harmless if earlier.
    pub fn handle_timeout(&mut self, now: Now) {
        let _ = now;
    }

    /// The next decision to append, in order.
    pub fn poll_append(&mut self) -> Option<Append> {
        None
    }

    /// The next reply.
    pub fn poll_reply(&mut self) -> Option<Outgoing> {
        None
    }

    /// The next connection to close (the register protocol breaks a dead member's socket, S19).
    pub fn poll_close(&mut self) -> Option<ConnectionId> {
        None
    }

    /// When to call `handle_timeout`, if nothing happens before. May be earlier than needed.
    pub fn poll_timeout(&self) -> Option<Instant> {
        None
    }

    /// The last index handed out; zero before the first.
    pub fn last_index(&self) -> Index {
        Index::default()
    }

    /// Groups by state.
    pub fn states(&self) -> Observed<StateCounts> {
        Observed { value: StateCounts::default(), after: None }
    }

    /// One group in full: state, who blocks it, its journal. `None` where there is no such group.
    pub fn group(&self, group: &str) -> Observed<Option<GroupView>> {
        let _ = group;
        Observed { value: None, after: None }
    }

    /// Calls `each` with every committed offset; the index covers all of them.
    pub fn committed(&self, each: &mut dyn FnMut(CommittedView<'_>)) -> Option<Index> {
        let _ = each;
        None
    }
}
