//! One shard, its lock, its log, and those who wait for its replies.

mod core;

use super::closings::Closings;
use super::delivery::{Asked, Delivery, Reign, Settled};
use super::journal::{self, Journal};
use super::load;
use super::timers::Timers;
use crate::clock;
use crate::metrics::Latency;
use crate::partitions::{Partition, Passes};
use ottla_cluster::lease::Grant;
use ottla_group::coordinator::{Config, Index, Lifecycle, SettingsView, Shard};
use ottla_group::message::{Ask, Client, GroupError, Request, Token};
use ottla_model::{ConnectionId, Instant, Now, Offset, OwnershipEpoch, PartitionId, TopicsView};
use ottla_storage::ReplaceJob;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, oneshot};

/// A shard and its driver.
pub(crate) struct Cell {
    id: PartitionId,
    config: Config,
    core: Mutex<Core>,
    timers: Arc<Timers>,
    reign: Arc<Reign>,
    /// Told when a load is done.
    installed: Arc<Notify>,
    /// Held by whoever loads or rewrites the journal's file, never taken under the core's lock.
    journal_turn: Mutex<()>,
}

/// Where a cell says what it has to say beside replies.
pub(super) struct Outlets {
    pub(super) timers: Arc<Timers>,
    pub(super) installed: Arc<Notify>,
    pub(super) closings: Closings,
    pub(super) rebalances: Arc<Latency>,
}

/// What the lock protects.
struct Core {
    shard: Shard,
    /// Where its journal is kept; none before it is loaded, or where it cannot be.
    journal: Option<Journal>,
    /// How long rebalances took.
    rebalances: Arc<Latency>,
    owned: Option<Owned>,
    /// Decisions that were appended, each with the offset of its last record, until they are safe.
    appended: VecDeque<(Index, Offset)>,
    parked: HashMap<Token, oneshot::Sender<Settled>>,
    next_token: u64,
    view: Arc<TopicsView>,
    /// Settings of single groups.
    settings: Arc<SettingsView>,
    /// Where to say which connections to close, and under whose reign.
    closings: (Closings, Arc<Reign>),
    /// Memory is ahead of the log: the shard must be loaded anew.
    failed: bool,
    /// Counts the loads begun; a load that was overtaken by another must not be installed.
    loads: u64,
    /// How long the last load took.
    load_took: Duration,
}

/// The reign, and the log it writes.
#[derive(Clone)]
struct Owned {
    epoch: OwnershipEpoch,
    until: Instant,
    partition: Arc<Partition>,
    /// The log's setbacks when the shard was loaded: one more, and memory is ahead of the log.
    setbacks: u64,
    /// After the disk was full, appends are not tried again before this.
    full_until: Instant,
}

impl Cell {
    /// The cell of one partition of the offsets topic, owning nothing.
    pub(super) fn new(
        id: PartitionId,
        config: &Config,
        outlets: Outlets,
        settings: Arc<SettingsView>,
    ) -> Self {
        let Outlets { timers, installed, closings, rebalances } = outlets;
        let reign = Arc::default();
        let core = Core {
            shard: Shard::new(config.clone(), id),
            journal: None,
            rebalances,
            owned: None,
            appended: VecDeque::new(),
            parked: HashMap::new(),
            next_token: 0,
            view: Arc::default(),
            settings,
            closings: (closings, Arc::clone(&reign)),
            failed: false,
            loads: 0,
            load_took: Duration::ZERO,
        };
        let (config, core, journal_turn) = (config.clone(), Mutex::new(core), Mutex::default());
        Self { id, config, core, timers, reign, installed, journal_turn }
    }

    /// Which one it is.
    pub(crate) fn id(&self) -> PartitionId {
        self.id
    }

    /// Whether the broker has claimed it.
    pub(super) fn is_owned(&self) -> bool {
        self.lock().owned.is_some()
    }

    /// How long the last load of its log took.
    pub(crate) fn load_took(&self) -> Duration {
        self.lock().load_took
    }

    /// Heartbeats whose answers are kept now.
    pub(super) fn held_heartbeats(&self) -> usize {
        self.lock().shard.held()
    }

    /// Whether it answers.
    pub(crate) fn is_active(&self) -> bool {
        matches!(self.lock().shard.lifecycle(), Lifecycle::Active(_))
    }

    /// Puts a request to the shard.
    pub(crate) fn ask(
        self: &Arc<Self>,
        connection: ConnectionId,
        client: Client<'_>,
        fresh: [u8; 16],
        now: Now,
        body: Ask<'_>,
    ) -> Asked {
        let lost = body.refused(GroupError::NotCoordinator);
        let is_heartbeat = matches!(body, Ask::Heartbeat(_) | Ask::ConsumerHeartbeat(_));
        let mut core = self.enter();
        if core.is_disk_full(now) && appends(&body) {
            return Asked::Now(lost.refused(GroupError::StorageError));
        }
        core.next_token += 1;
        let token = Token(core.next_token);
        core.shard.handle_request(Request { token, connection, client, fresh, now, body });
        let reign = || Arc::clone(&self.reign);
        let asked = match core.drain(now, Some(token)) {
            Some(Settled { reply, after: None }) => Asked::Now(reply),
            Some(Settled { reply, after: Some(passes) }) => {
                Asked::Later(Delivery::known((reply, passes), lost, reign()))
            }
            None => {
                let (sender, receiver) = oneshot::channel();
                core.parked.insert(token, sender);
                let delivery = Delivery::parked(receiver, lost, reign());
                if is_heartbeat { Asked::Held(delivery, token) } else { Asked::Later(delivery) }
            }
        };
        self.leave(core);
        asked
    }

    /// Another request waits on the same connection behind one that is held.
    pub(crate) fn waiting_behind(self: &Arc<Self>, token: Token) {
        self.tell(self.enter(), |shard, now| shard.handle_waiting_behind(token, now));
    }

    /// The shard is ours: reads the log into it, on a thread that may wait for the disk.
    pub(super) fn begin(
        self: &Arc<Self>,
        grant: Grant,
        partition: Arc<Partition>,
        view: Arc<TopicsView>,
    ) {
        let mut core = self.lock();
        let (epoch, until) = (grant.epoch, grant.until);
        self.reign.set(until);
        let setbacks = partition.setbacks();
        let full_until = Instant::ZERO;
        core.owned = Some(Owned { epoch, until, partition, setbacks, full_until });
        core.view = view;
        self.reload(core, Duration::ZERO);
    }

    /// It stays ours until then.
    pub(super) fn renew(self: &Arc<Self>, until: Instant) {
        let mut core = self.enter();
        if let Some(owned) = &mut core.owned {
            owned.until = until;
            self.reign.set(until);
            let epoch = owned.epoch;
            self.tell(core, |shard, now| shard.handle_owned(epoch, until, now));
        }
    }

    /// There are other topics.
    pub(super) fn topics_changed(self: &Arc<Self>, view: Arc<TopicsView>) {
        let mut core = self.enter();
        core.view = Arc::clone(&view);
        self.tell(core, |shard, now| shard.handle_topics(view, now));
    }

    /// Groups have other settings.
    pub(super) fn settings_changed(self: &Arc<Self>, settings: Arc<SettingsView>) {
        let mut core = self.enter();
        core.settings = Arc::clone(&settings);
        self.tell(core, |shard, now| shard.handle_settings(settings, now));
    }

    /// The answer to this member's registration, which had to wait, leaves now.
    pub(crate) fn answered(self: &Arc<Self>, group: &str, member: &str) {
        self.tell(self.enter(), |shard, now| shard.handle_answered(group, member, now));
    }

    /// Whether a live member of this shard's groups speaks on this connection.
    pub(super) fn speaks_on(&self, connection: ConnectionId) -> bool {
        self.lock().shard.speaks_on(connection)
    }

    /// A connection is gone.
    pub(super) fn connection_closed(self: &Arc<Self>, connection: ConnectionId) {
        self.tell(self.enter(), |shard, now| shard.handle_connection_closed(connection, now));
    }

    /// A deadline of the shard may have come.
    pub(super) fn timeout(self: &Arc<Self>) {
        self.tell(self.enter(), Shard::handle_timeout);
    }

    /// It is ours no longer.
    pub(super) fn resign(self: &Arc<Self>) {
        let mut core = self.lock();
        core.owned = None;
        core.loads += 1;
        self.tell(core, |shard, _| shard.handle_disowned());
    }

    /// Looks at the shard. What is seen may be shown once what comes with it has passed.
    pub(crate) fn observe<T>(
        &self,
        look: impl FnOnce(&Shard) -> (T, Option<Index>),
    ) -> (T, Option<Passes>) {
        let core = self.enter();
        let (seen, after) = look(&core.shard);
        (seen, after.and_then(|index| core.passes(index)))
    }

    fn tell(self: &Arc<Self>, mut core: MutexGuard<'_, Core>, what: impl FnOnce(&mut Shard, Now)) {
        let now = clock::now();
        what(&mut core.shard, now);
        core.drain(now, None);
        self.leave(core);
    }

    /// The lock, with the shard told what has become safe.
    fn enter(&self) -> MutexGuard<'_, Core> {
        let mut core = self.lock();
        core.settle();
        core
    }

    /// Leaves the lock: the shard's next deadline is known, and a failed shard is loaded anew.
    fn leave(self: &Arc<Self>, mut core: MutexGuard<'_, Core>) {
        let index = usize::try_from(self.id.0).unwrap_or(usize::MAX);
        self.timers.set(index, core.shard.poll_timeout());
        if let Some(rewrite) = core.journal.as_mut().and_then(Journal::due_rewrite) {
            let (cell, number) = (Arc::clone(self), core.loads);
            tokio::task::spawn_blocking(move || cell.rewrite_journal(rewrite, number));
        }
        if core.failed {
            self.reload(core, RELOAD_DELAY);
        }
    }

    /// Writes the journal anew, if it is still that of load `number`; heartbeats go on meanwhile.
    fn rewrite_journal(&self, rewrite: ReplaceJob, number: u64) {
        let _turn = self.journal_turn.lock().unwrap_or_else(PoisonError::into_inner);
        if self.lock().loads != number {
            return;
        }
        let replaced = rewrite.run();
        let mut core = self.lock();
        let core = &mut *core;
        if core.loads == number {
            journal::finish(&mut core.journal, replaced, &core.shard);
        }
    }

    /// Drops what is in memory and reads the log, after a while.
    fn reload(self: &Arc<Self>, mut core: MutexGuard<'_, Core>, delay: Duration) {
        core.loads += 1;
        core.failed = false;
        core.appended.clear();
        // Whoever is still parked here learns it by the sender's end.
        core.parked.clear();
        core.shard = Shard::new(self.config.clone(), self.id);
        core.journal = None;
        let now = clock::now();
        let Some(owned) = &mut core.owned else { return };
        owned.setbacks = owned.partition.setbacks();
        let (owned, number) = (owned.clone(), core.loads);
        core.shard.handle_owned(owned.epoch, owned.until, now);
        drop(core);
        let cell = Arc::clone(self);
        tokio::task::spawn_blocking(move || {
            std::thread::sleep(delay);
            cell.load(&owned, number);
        });
    }

    fn load(self: &Arc<Self>, owned: &Owned, number: u64) {
        let began = clock::mono();
        let is_current = || self.lock().loads == number;
        loop {
            let mut shard = Shard::new(self.config.clone(), self.id);
            shard.handle_owned(owned.epoch, owned.until, clock::now());
            match load::load(&mut shard, &owned.partition, &is_current) {
                Ok(loaded) => {
                    let took = clock::mono().since(began);
                    tracing::debug!(shard = %self.id, ?loaded, ?took, "loaded");
                    let turn = self.journal_turn.lock().unwrap_or_else(PoisonError::into_inner);
                    let journal = Journal::load(&mut shard, &owned.partition);
                    drop(turn);
                    let journal = journal.inspect_err(|error| {
                        tracing::error!(shard = %self.id, %error, "the journal cannot be kept");
                    });
                    return self.install(shard, journal.ok(), number, took);
                }
                Err(load::LoadError::Overtaken) => return,
                Err(error) => {
                    tracing::error!(shard = %self.id, %error, "groups of a shard cannot be loaded");
                    std::thread::sleep(LOAD_RETRY);
                }
            }
        }
    }

    fn install(
        self: &Arc<Self>,
        shard: Shard,
        journal: Option<Journal>,
        number: u64,
        took: Duration,
    ) {
        let mut core = self.lock();
        let Some(until) = core.owned.as_ref().map(|owned| (owned.epoch, owned.until)) else {
            return;
        };
        if core.loads != number {
            return;
        }
        core.shard = shard;
        core.journal = journal;
        core.load_took = took;
        let (view, settings) = (Arc::clone(&core.view), Arc::clone(&core.settings));
        self.tell(core, |shard, now| {
            shard.handle_owned(until.0, until.1, now);
            shard.handle_topics(view, now);
            shard.handle_settings(settings, now);
            shard.handle_loaded(now);
        });
        self.installed.notify_waiters();
    }

    fn lock(&self) -> MutexGuard<'_, Core> {
        self.core.lock().unwrap_or_else(|poisoned| {
            // A panic in the middle of a decision: memory cannot be believed, the log can.
            self.core.clear_poison();
            let mut core = poisoned.into_inner();
            core.failed = true;
            core.shard = Shard::new(self.config.clone(), self.id);
            core
        })
    }
}

/// Whether a request may make the shard write.
fn appends(body: &Ask<'_>) -> bool {
    match body {
        Ask::Heartbeat(_)
        | Ask::ConsumerDescribe(_)
        | Ask::ConsumerMetadata(_)
        | Ask::RegisterHeartbeat(_)
        | Ask::FetchOffsets(_)
        | Ask::Describe(_)
        | Ask::List(_) => false,
        Ask::Join(_)
        | Ask::Register(_)
        | Ask::Sync(_)
        | Ask::Leave(_)
        | Ask::ConsumerHeartbeat(_)
        | Ask::Commit(_)
        | Ask::DeleteOffsets(_)
        | Ask::DeleteGroup(_) => true,
    }
}

/// After a failed append the log is read again after this, so that a failing disk is not made
/// busier than it is.
const RELOAD_DELAY: Duration = Duration::from_millis(100);
/// A log that could not be read is tried again after this.
const LOAD_RETRY: Duration = Duration::from_secs(1);
