//! What a consumer, its handles and its two tasks share.

use super::assignment::Assignment;
use super::event::RebalanceEvent;
use super::group::{Command, CommittedOffsets};
use crate::cluster::Cluster;
use crate::{ConsumerConfig, Error, ErrorKind, Result, clock};
use ottla_group::member::{PartitionOffset, TopicOffsets};
use ottla_model::{Instant, LeaderEpoch, Offset, TopicId, TopicPartition};
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use tokio::sync::{Notify, mpsc, oneshot};

#[derive(Debug)]
pub(super) struct Shared {
    pub(super) config: ConsumerConfig,
    pub(super) cluster: Cluster,
    pub(super) assignment: Mutex<Assignment>,
    /// Something can be handed out or told.
    pub(super) news: Notify,
    /// Something can be fetched or asked.
    pub(super) fetch_wake: Notify,
    /// Whether the fetcher waits for something to be handed out.
    pub(super) is_full: AtomicBool,
    /// To the group's task, if there is a group; the consumer alone keeps it open.
    commands: Option<mpsc::WeakUnboundedSender<Command>>,
    events: Mutex<VecDeque<RebalanceEvent>>,
    pub(super) has_events: AtomicBool,
    /// The group went on without the application, which did not poll in time.
    pub(super) is_late: AtomicBool,
    /// When the application last polled; [`POLLING`] while it does.
    last_poll: AtomicU64,
    pub(super) counters: Counters,
}

/// What happened so far.
#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) records: AtomicU64,
    pub(super) bytes: AtomicU64,
    pub(super) fetches: AtomicU64,
    pub(super) rebalances: AtomicU64,
}

/// An offset to be committed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct ToCommit {
    pub(super) partition: TopicPartition,
    pub(super) offset: Offset,
    pub(super) epoch: Option<LeaderEpoch>,
    pub(super) metadata: String,
}

impl Shared {
    pub(super) fn new(
        config: ConsumerConfig,
        cluster: Cluster,
        commands: Option<mpsc::WeakUnboundedSender<Command>>,
    ) -> Self {
        Self {
            assignment: Mutex::new(Assignment::new(config.auto_offset_reset)),
            config,
            cluster,
            news: Notify::new(),
            fetch_wake: Notify::new(),
            is_full: AtomicBool::new(false),
            commands,
            events: Mutex::new(VecDeque::new()),
            has_events: AtomicBool::new(false),
            is_late: AtomicBool::new(false),
            last_poll: AtomicU64::new(POLLING),
            counters: Counters::default(),
        }
    }

    /// Tells the consumer; it acts in its next poll.
    pub(super) fn tell(&self, event: RebalanceEvent) {
        self.events.lock().push_back(event);
        self.has_events.store(true, Ordering::Release);
        self.news.notify_one();
    }

    /// The next thing to act on.
    pub(super) fn next_event(&self) -> Option<RebalanceEvent> {
        let mut events = self.events.lock();
        let next = events.pop_front();
        self.has_events.store(!events.is_empty(), Ordering::Release);
        next
    }

    /// Whether a partition will be told to be lost: then there is nothing to give up.
    pub(super) fn is_lost(&self, partition: &TopicPartition) -> bool {
        let events = self.events.lock();
        events.iter().any(|event| match event {
            RebalanceEvent::Lost(lost) => lost.contains(partition),
            _ => false,
        })
    }

    /// When the application last polled; none while it does, or before the first time.
    pub(super) fn last_poll(&self) -> Option<Instant> {
        match self.last_poll.load(Ordering::Acquire) {
            POLLING => None,
            nanos => Some(Instant::from_nanos(nanos)),
        }
    }

    /// The application polls now, as one step.
    pub(super) fn polled(&self, now: Instant) {
        self.last_poll.store(now.as_nanos(), Ordering::Release);
    }

    /// Sends a command to the group's task.
    ///
    /// # Errors
    /// `Config` without a group; `Closed`.
    pub(super) fn command(&self, command: Command) -> Result<()> {
        let commands = self.commands.as_ref().ok_or_else(no_group)?;
        let commands = commands.upgrade().ok_or_else(Error::closed)?;
        commands.send(command).map_err(|_| Error::closed())
    }

    /// Starts a commit; its outcome comes later.
    pub(super) fn start_commit(
        &self,
        offsets: &[ToCommit],
    ) -> Result<oneshot::Receiver<Result<()>>> {
        let (reply, outcome) = oneshot::channel();
        self.commands.as_ref().ok_or_else(no_group)?;
        if offsets.is_empty() {
            let _ = reply.send(Ok(()));
            return Ok(outcome);
        }
        self.command(Command::Commit(self.by_topic(offsets), reply))?;
        Ok(outcome)
    }

    fn by_topic(&self, offsets: &[ToCommit]) -> Vec<TopicOffsets> {
        let snapshot = self.cluster.snapshot();
        let mut topics: Vec<TopicOffsets> = Vec::new();
        for item in offsets {
            let offset = PartitionOffset {
                partition: item.partition.partition,
                offset: item.offset,
                leader_epoch: item.epoch,
                metadata: item.metadata.clone(),
            };
            let name = &item.partition.topic;
            match topics.iter_mut().find(|topic| topic.topic == *name) {
                Some(topic) => topic.partitions.push(offset),
                None => {
                    let id = snapshot.topic(name).map_or(TopicId::ZERO, |topic| topic.id);
                    topics.push(TopicOffsets { topic: name.clone(), id, partitions: vec![offset] });
                }
            }
        }
        topics
    }

    /// Asks the coordinator for committed offsets.
    pub(super) async fn fetch_committed(
        &self,
        partitions: Vec<TopicPartition>,
    ) -> Result<CommittedOffsets> {
        let (reply, outcome) = oneshot::channel();
        self.command(Command::Fetch(partitions.into_iter().collect(), reply))?;
        outcome.await.map_err(|_| Error::closed())?
    }

    /// Something was taken off the shelves.
    pub(super) fn took(&self, records: usize) {
        self.counters.records.fetch_add(records as u64, Ordering::Relaxed);
        if self.is_full.load(Ordering::Acquire) {
            self.fetch_wake.notify_one();
        }
    }
}

fn no_group() -> Error {
    Error::new(ErrorKind::Config, "this consumer has no `group.id`")
}

/// The application is inside a poll for as long as this lives.
pub(super) struct Polling(Arc<Shared>);

impl Polling {
    pub(super) fn new(shared: &Arc<Shared>) -> Self {
        shared.last_poll.store(POLLING, Ordering::Release);
        Self(shared.clone())
    }
}

impl Drop for Polling {
    fn drop(&mut self) {
        self.0.polled(clock::now());
    }
}

const POLLING: u64 = u64::MAX;
