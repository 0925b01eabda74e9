//! Drivers of the coordinator shards: one [`Cell`] per partition of the offsets topic.
//!
//! A shard is a value; here it gets a lock, a log to append to, a clock and somebody who waits for
//! its replies. The connection's own task enters the lock, so a heartbeat needs no task hop. What
//! a group is, this module does not know.

mod cell;
mod closings;
mod delivery;
mod hangs;
mod journal;
mod load;
#[cfg(test)]
mod tests;
mod timers;
pub(crate) mod views;

pub(crate) use cell::Cell;
pub(crate) use delivery::Asked;

use crate::clock;
use crate::config::Config;
use crate::metrics::Latency;
use crate::partitions::{Partition, Partitions};
use arc_swap::ArcSwap;
use cell::Outlets;
use closings::{Closing, Closings};
use ottla_cluster::lease::Grant;
use ottla_cluster::names::OFFSETS_TOPIC;
use ottla_cluster::placement::group_partition;
use ottla_cluster::store::Revision;
use ottla_group::coordinator as group;
use ottla_model::{ConnectionId, Instant, PartitionId, TopicsView};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use timers::Timers;
use tokio::sync::{Notify, mpsc, watch};

/// All shards of this broker.
pub(crate) struct Shards {
    config: group::Config,
    cells: ArcSwap<Vec<Arc<Cell>>>,
    timers: Arc<Timers>,
    installed: Arc<Notify>,
    /// How long rebalances took.
    rebalances: Arc<Latency>,
    /// Settings of single groups.
    group_settings: ArcSwap<group::SettingsView>,
    /// The newest image whose topics and settings every shard has.
    told: watch::Sender<Revision>,
    closings: Closings,
    asked_to_close: Mutex<Option<mpsc::UnboundedReceiver<Closing>>>,
}

impl Shards {
    /// None yet; the offsets topic brings them.
    pub(crate) fn new(config: &Config) -> Self {
        let (closings, asked_to_close) = mpsc::unbounded_channel();
        Self {
            config: settings(config),
            cells: ArcSwap::default(),
            timers: Arc::default(),
            installed: Arc::default(),
            rebalances: Arc::default(),
            group_settings: ArcSwap::default(),
            told: watch::Sender::new(Revision::NONE),
            closings,
            asked_to_close: Mutex::new(Some(asked_to_close)),
        }
    }

    /// Makes cells for an offsets topic of this many partitions, once.
    pub(crate) fn prepare(&self, partitions: i32) {
        if self.cells.load().is_empty() {
            let cell = |index| {
                let (timers, installed) = (Arc::clone(&self.timers), Arc::clone(&self.installed));
                let (closings, rebalances) = (self.closings.clone(), Arc::clone(&self.rebalances));
                let outlets = Outlets { timers, installed, closings, rebalances };
                Cell::new(
                    PartitionId(index),
                    &self.config,
                    outlets,
                    self.group_settings.load_full(),
                )
            };
            self.cells
                .store(Arc::new((0..partitions).map(|index| Arc::new(cell(index))).collect()));
            self.timers.resize(&self.cells.load());
        }
    }

    /// Partitions of the offsets topic whose shard is not ours yet.
    pub(crate) fn unclaimed(&self) -> Vec<PartitionId> {
        let cells = self.cells.load();
        cells.iter().filter(|cell| !cell.is_owned()).map(|cell| cell.id()).collect()
    }

    /// A shard is ours: loads it, on a thread that may wait for the disk.
    pub(crate) fn begin(&self, grant: Grant, partition: Arc<Partition>, view: &Arc<TopicsView>) {
        if let Some(cell) = self.cell(grant.partition) {
            cell.begin(grant, partition, Arc::clone(view));
        }
    }

    /// The shards that are ours stay so until `until`.
    pub(crate) fn renew(&self, until: Instant) {
        self.each(|cell| cell.renew(until));
    }

    /// There are other topics.
    pub(crate) fn topics_changed(&self, view: &Arc<TopicsView>) {
        self.each(|cell| cell.topics_changed(Arc::clone(view)));
    }

    /// Groups have other settings.
    pub(crate) fn settings_changed(&self, settings: group::SettingsView) {
        if **self.group_settings.load() != settings {
            let settings = Arc::new(settings);
            self.group_settings.store(Arc::clone(&settings));
            self.each(|cell| cell.settings_changed(Arc::clone(&settings)));
        }
    }

    /// The shards have the topics and settings of this image.
    pub(crate) fn told(&self, revision: Revision) {
        self.told.send_replace(revision);
    }

    /// Waits until the shards have the topics and settings of the image of this revision.
    pub(crate) async fn know(&self, revision: Revision) {
        // The sender lives as long as this does.
        let _ = self.told.subscribe().wait_for(|told| *told >= revision).await;
    }

    /// The broker is shutting down: every parked request is answered, every later one refused.
    pub(crate) fn resign(&self) {
        self.each(Cell::resign);
    }

    /// Heartbeats whose answers are kept now.
    pub(crate) fn held_heartbeats(&self) -> usize {
        self.cells.load().iter().map(|cell| cell.held_heartbeats()).sum()
    }

    /// Tells a shard that holds something for a connection that the connection is gone.
    pub(crate) fn connection_closed(&self, shard: i32, connection: ConnectionId) {
        if let Some(cell) = self.cell(PartitionId(shard)) {
            cell.connection_closed(connection);
        }
    }

    /// Waits until there are shards and all of them answer.
    pub(crate) async fn ready(&self) {
        loop {
            let installed = self.installed.notified();
            let cells = self.cells.load();
            if !cells.is_empty() && cells.iter().all(|cell| cell.is_active()) {
                return;
            }
            drop(cells);
            installed.await;
        }
    }

    /// The shard a group belongs to; `None` while there is no offsets topic.
    pub(crate) fn of(&self, group: &str) -> Option<Arc<Cell>> {
        let cells = self.cells.load();
        let partition = group_partition(group, i32::try_from(cells.len()).ok()?);
        cells.get(usize::try_from(partition.0).ok()?).cloned()
    }

    /// How long rebalances took since the broker started.
    pub(crate) fn rebalances(&self) -> &Latency {
        &self.rebalances
    }

    /// All of them.
    pub(crate) fn all(&self) -> Arc<Vec<Arc<Cell>>> {
        self.cells.load_full()
    }

    /// Lets time pass in the shards, until the broker stops.
    pub(crate) async fn keep_time(&self) {
        loop {
            let due = self.timers.sleep().await;
            let cells = self.cells.load_full();
            due.into_iter().filter_map(|index| cells.get(index)).for_each(|cell| cell.timeout());
        }
    }

    /// Where shards say what to close; for whoever asks first.
    fn take_closings(&self) -> Option<mpsc::UnboundedReceiver<Closing>> {
        self.asked_to_close.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn cell(&self, id: PartitionId) -> Option<Arc<Cell>> {
        self.cells.load().get(usize::try_from(id.0).ok()?).cloned()
    }

    fn each(&self, act: impl Fn(&Arc<Cell>)) {
        self.cells.load().iter().for_each(act);
    }
}

/// The offsets partition of a shard, if its log is open here.
pub(crate) fn log_of(partitions: &Partitions, shard: PartitionId) -> Option<Arc<Partition>> {
    partitions.by_name(OFFSETS_TOPIC, shard)
}

fn settings(config: &Config) -> group::Config {
    group::Config {
        session_timeout_min: config.group_min_session_timeout,
        session_timeout_max: config.group_max_session_timeout,
        register_session_timeout_min: config.register_min_session_timeout,
        register_assignor: config.register_assignor.into(),
        initial_rebalance_delay: config.group_initial_rebalance_delay,
        group_size_max: config.group_max_size,
        consumer_session_timeout: config.group_consumer_session_timeout,
        consumer_heartbeat_interval: config.group_consumer_heartbeat_interval,
        consumer_assignment_interval: config.group_consumer_assignment_interval,
        consumer_assignors: config.group_consumer_assignors.all().to_vec(),
        consumer_migration: config.group_consumer_migration_policy,
        consumer_group_size_max: config.group_consumer_max_size,
        groups_max: config.group_max_per_partition,
        offset_metadata_bytes_max: config.offset_metadata_max_bytes,
        offsets_retention: Duration::from_mins(
            config.offsets_retention_minutes.unsigned_abs().into(),
        ),
        offsets_retention_check_interval: config.offsets_retention_check_interval,
        hash_seed: clock::mono().as_nanos() ^ u64::from(std::process::id()) << 32,
        ..group::Config::default()
    }
}
