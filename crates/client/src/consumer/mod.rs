//! The consumer: subscribed topics or assigned partitions, polled in batches or record by record.
//!
//! Two tasks work for it: one fetches ahead ([`fetcher`]), one takes part in the group ([`group`]).
//! What they find lies in [`assignment`]; the application takes it out in [`Consumer::poll`], and
//! there, and nowhere else, it hears of rebalances. No rule of a group protocol is here.

mod aborted;
mod assignment;
mod auto_commit;
mod event;
mod fetch;
mod fetcher;
mod group;
mod handle;
mod listener;
mod lookups;
mod partition;
mod pattern;
mod rebalance;
mod record;
mod session;
mod share;
mod shared;
mod shelf;
mod stream;

pub use handle::{ConsumerHandle, ConsumerMetrics, PendingCommit};
pub use listener::RebalanceListener;
pub use pattern::TopicFilter;
pub use record::{ConsumerRecord, Record, Records};
pub use stream::RecordStream;

use crate::cluster::{Cluster, EndWithMe, Interest};
use crate::{ConsumerConfig, Error, ErrorKind, GroupProtocol, Result, clock};
use auto_commit::AutoCommit;
use event::RebalanceEvent;
use fetcher::Fetcher;
use group::{Command, Driver};
use listener::AnyListener;
use ottla_model::{Offset, TopicName, TopicPartition};
use partition::{Progress, Standing};
use record::Slice;
use shared::{Polling, Shared};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::sync::mpsc;

/// Reads records, alone or sharing topics with the other members of its group.
///
/// [`poll`](Self::poll) hands out batches whose records are views of what was received;
/// [`next`](Self::next) and [`stream`](Self::stream) hand out one record at a time. Everything else
/// (seeks, commits, pauses, lookups) is in [`ConsumerHandle`], which a consumer dereferences to.
///
/// With `enable.auto.commit` (the default), what was handed out is committed once the application
/// has come back for more: everything of earlier polls, or every record before the one last
/// yielded. So a record is delivered at least once, whenever the application dies.
///
/// [`close`](Self::close) it in the end: that commits (if automatic) and leaves the group, so that
/// others take over at once. A consumer that is dropped asks its tasks to leave, as far as the
/// runtime still runs.
///
/// ```no_run
/// use ottla_client::{Consumer, ConsumerConfig};
///
/// # async fn example() -> ottla_client::Result<()> {
/// let mut consumer = Consumer::new(ConsumerConfig::new("localhost:9092").group_id("readers"))?;
/// consumer.subscribe(["events"])?;
/// loop {
///     let record = consumer.next().await?;
///     println!("{}: {:?}", record.offset, record.value);
/// }
/// # }
/// ```
#[derive(Debug)]
pub struct Consumer {
    handle: ConsumerHandle,
    /// Keeps the group's task at work.
    commands: Option<mpsc::UnboundedSender<Command>>,
    _fetcher: EndWithMe,
    subscription: Subscription,
    listener: Listener,
    /// Being acted on; kept until that is done, so that a dropped poll forgets nothing.
    event: Option<RebalanceEvent>,
    current: Option<(Slice, Arc<Progress>)>,
    /// What the record last yielded was of.
    yielded: Option<Arc<Progress>>,
    auto_commit: AutoCommit,
}

/// What a consumer reads by.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Subscription {
    Nothing,
    Group,
    Partitions,
}

struct Listener(Box<dyn AnyListener>);

impl std::fmt::Debug for Listener {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Listener")
    }
}

impl Deref for Consumer {
    type Target = ConsumerHandle;

    fn deref(&self) -> &ConsumerHandle {
        &self.handle
    }
}

impl Consumer {
    /// A consumer that reads nothing yet; connections are made when first needed. Within a tokio
    /// runtime only.
    ///
    /// # Errors
    /// `Config`, if the settings make no sense.
    pub fn new(config: ConsumerConfig) -> Result<Self> {
        config.check()?;
        let cluster = Cluster::new(config.client.clone());
        cluster.allow_topic_creation(config.allow_auto_create_topics);
        cluster.chase_missing_topics();
        let has_group = !config.group_id.is_empty();
        let (commands, from_consumer) = mpsc::unbounded_channel();
        let commands = has_group.then_some(commands);
        let weak = commands.as_ref().map(mpsc::UnboundedSender::downgrade);
        let due = clock::now() + config.auto_commit_interval;
        let shared = Arc::new(Shared::new(config, cluster, weak));
        let fetcher = tokio::spawn(Fetcher::new(shared.clone()).run()).abort_handle();
        if has_group {
            tokio::spawn(Driver::new(shared.clone(), from_consumer).run());
        }
        Ok(Self {
            handle: ConsumerHandle { shared },
            commands,
            _fetcher: EndWithMe(fetcher),
            subscription: Subscription::Nothing,
            listener: Listener(Box::new(())),
            event: None,
            current: None,
            yielded: None,
            auto_commit: AutoCommit { due, under_way: None, last: BTreeMap::new() },
        })
    }

    /// A handle to everything but polling and subscribing.
    pub fn handle(&self) -> ConsumerHandle {
        self.handle.clone()
    }

    /// Hears of rebalances through `listener` from now on.
    pub fn set_listener(&mut self, listener: impl RebalanceListener + 'static) {
        self.listener = Listener(Box::new(listener));
    }

    /// Shares these topics, and no others, with the group from now on. Returns at once; partitions
    /// come while the consumer is polled. No topics at all: it leaves the group.
    ///
    /// # Errors
    /// `Config` without a group; `State`, if partitions are assigned by hand.
    pub fn subscribe(
        &mut self,
        topics: impl IntoIterator<Item = impl Into<TopicName>>,
    ) -> Result<()> {
        self.begin(Subscription::Group)?;
        let topics = topics.into_iter().map(Into::into).collect();
        self.shared.command(Command::Subscribe(topics))
    }

    /// Shares the topics that the filter means with the group. They are found again whenever the
    /// cluster is looked at (`metadata.max.age.ms`), and other ones are another subscription. While
    /// it means none, the consumer is a member without partitions.
    ///
    /// # Errors
    /// `Config` without a group; `State`, if partitions are assigned by hand.
    pub fn subscribe_matching(&mut self, filter: TopicFilter) -> Result<()> {
        self.begin(Subscription::Group)?;
        self.shared.command(Command::SubscribeMatching(Arc::new(filter)))
    }

    /// Shares the topics whose whole name matches a pattern with the group, as the coordinator
    /// matches it (RE2's syntax, KIP-848): it hears of new topics by itself, and all members with
    /// one pattern mean the same topics. [`Self::subscribe_matching`] matches here instead, in
    /// every protocol.
    ///
    /// # Errors
    /// `Config` without a group, without a pattern, or where `group.protocol` is not `consumer`;
    /// `State`, if partitions are assigned by hand. Polling fails with `Config`, if the coordinator
    /// does not understand the pattern, and with `Unsupported`, if it matches none.
    pub fn subscribe_regex(&mut self, pattern: &str) -> Result<()> {
        if self.shared.config.group_protocol != GroupProtocol::Consumer || pattern.is_empty() {
            let message = "a pattern for the coordinator needs `group.protocol=consumer`, and text";
            return Err(Error::new(ErrorKind::Config, message));
        }
        self.begin(Subscription::Group)?;
        self.shared.command(Command::SubscribeRegex(pattern.to_owned()))
    }

    /// Reads exactly these partitions, whoever else does. With a group, from its committed
    /// offsets; the group does not know.
    ///
    /// # Errors
    /// `State`, if topics are subscribed to.
    pub fn assign(&mut self, partitions: impl IntoIterator<Item = TopicPartition>) -> Result<()> {
        self.begin(Subscription::Partitions)?;
        let wanted: BTreeSet<TopicPartition> = partitions.into_iter().collect();
        let topics: BTreeSet<_> = wanted.iter().map(|one| one.topic.clone()).collect();
        {
            let mut assignment = self.shared.assignment.lock();
            assignment.retain(|partition| wanted.contains(partition));
            assignment.add(wanted.iter().cloned(), Standing::New);
            assignment.begin(Standing::Committed);
            if self.commands.is_none() {
                wanted.iter().for_each(|partition| assignment.on_committed(partition, None));
            }
        }
        if self.commands.is_some() {
            self.shared.command(Command::Assign(topics))?;
        } else {
            self.shared.cluster.set_interest(Interest::Topics(topics));
        }
        self.shared.fetch_wake.notify_one();
        Ok(())
    }

    fn begin(&mut self, subscription: Subscription) -> Result<()> {
        if self.subscription != Subscription::Nothing && self.subscription != subscription {
            let message = "topics are subscribed to, or partitions assigned: not both; \
                           `unsubscribe` comes in between";
            return Err(Error::new(ErrorKind::State, message));
        }
        if subscription == Subscription::Group && self.commands.is_none() {
            let message = "a subscription needs a `group.id`";
            return Err(Error::new(ErrorKind::Config, message));
        }
        self.subscription = subscription;
        Ok(())
    }

    /// Reads nothing any more: gives up what it has (through the listener) and leaves the group,
    /// or forgets the partitions that were assigned by hand.
    ///
    /// # Errors
    /// The listener's.
    pub async fn unsubscribe(&mut self) -> Result<()> {
        let before = std::mem::replace(&mut self.subscription, Subscription::Nothing);
        match before {
            Subscription::Nothing => {}
            Subscription::Partitions => self.shared.assignment.lock().retain(|_| false),
            Subscription::Group => {
                self.shared.command(Command::Unsubscribe)?;
                loop {
                    self.act().await?;
                    if self.assignment().is_empty() {
                        break;
                    }
                    self.shared.news.notified().await;
                }
            }
        }
        Ok(())
    }

    /// The records that are there, at most `max.poll.records`; waits up to `timeout` for some. All
    /// records of earlier polls count as done. Rebalances are acted on here.
    ///
    /// Cancel safe: records are taken in the moment they are returned.
    ///
    /// # Errors
    /// `NoOffset`, if a partition has no position and `auto.offset.reset` is `none`; `Protocol`, if
    /// a stored batch is damaged (seek past it); the listener's own; whatever the group's
    /// coordinator or a leader refuses for good. Polling may go on after each.
    pub async fn poll(&mut self, timeout: Duration) -> Result<Records> {
        let polling = Polling::new(&self.shared);
        let deadline = clock::now() + timeout;
        self.come_back();
        if self.current.is_none() {
            self.shared.assignment.lock().finish_all();
        }
        loop {
            self.act().await?;
            let records = self.take()?;
            if !records.is_empty() || clock::now() >= deadline {
                drop(polling);
                return Ok(records);
            }
            let until = self.auto_commit_at().map_or(deadline, |at| at.min(deadline));
            tokio::select! {
                () = self.handle.shared.news.notified() => {}
                () = clock::sleep_until(Some(until)) => {}
            }
        }
    }

    fn take(&mut self) -> Result<Records> {
        let max = self.shared.config.max_poll_records;
        let mut records = match self.current.take() {
            // What a stream had taken and not yielded yet.
            Some((slice, progress)) if !progress.is_over() && slice.len() > 0 => {
                progress.advance(slice.next, slice.leader_epoch());
                let mut records = Records::default();
                records.push(slice);
                records
            }
            _ => Records::default(),
        };
        let left = max.saturating_sub(records.len());
        match self.shared.assignment.lock().take(left) {
            Ok(more) => more.into_slices().into_iter().for_each(|slice| records.push(slice)),
            Err(error) if records.is_empty() => return Err(error),
            Err(error) => tracing::warn!(%error, "polling stopped short"),
        }
        self.shared.took(records.len());
        Ok(records)
    }

    /// The next record, however long it takes. Every record before the one last yielded counts as
    /// done. Rebalances are acted on here.
    ///
    /// Cancel safe: a record is taken in the moment it is returned.
    ///
    /// # Errors
    /// As [`Self::poll`].
    pub async fn next(&mut self) -> Result<ConsumerRecord> {
        if let Some(record) = self.at_hand() {
            return Ok(record);
        }
        let _polling = Polling::new(&self.shared);
        self.come_back();
        loop {
            self.act().await?;
            if let Some(record) = self.pop() {
                return Ok(record);
            }
            let max = self.shared.config.max_poll_records;
            let taken = self.shared.assignment.lock().take_slice(max)?;
            if let Some((slice, progress)) = taken {
                self.shared.took(slice.len());
                self.current = Some((slice, progress));
                continue;
            }
            let until = self.auto_commit_at();
            tokio::select! {
                () = self.handle.shared.news.notified() => {}
                () = clock::sleep_until(until) => {}
            }
        }
    }

    /// The next record, if it is at hand and nothing else is due before it.
    fn at_hand(&mut self) -> Option<ConsumerRecord> {
        let now = clock::now();
        self.shared.polled(now);
        let is_quiet = !self.shared.has_events.load(Ordering::Acquire)
            && self.event.is_none()
            && self.auto_commit_at().is_none_or(|at| now < at);
        if is_quiet { self.pop() } else { None }
    }

    /// The next record of the slice in hand.
    fn pop(&mut self) -> Option<ConsumerRecord> {
        let (slice, progress) = self.current.as_mut()?;
        let record = if progress.is_over() { None } else { slice.pop() };
        let Some(record) = record else {
            self.current = None;
            return None;
        };
        let next = if slice.len() == 0 { slice.next } else { Offset(record.offset.0 + 1) };
        progress.finish(record.offset);
        progress.advance(next, record.leader_epoch);
        match &self.yielded {
            Some(before) if Arc::ptr_eq(before, progress) => {}
            before => {
                if let Some(before) = before {
                    before.finish_handed_out();
                }
                self.yielded = Some(progress.clone());
            }
        }
        Some(record)
    }

    /// The records as a stream, without end; see [`Self::next`]. While it lives, what else there
    /// is to do goes through a [`ConsumerHandle`].
    pub fn stream(&mut self) -> RecordStream<'_> {
        RecordStream::new(self)
    }

    /// The application is here again; perhaps the group went on without it.
    fn come_back(&self) {
        if self.subscription == Subscription::Group
            && self.shared.is_late.swap(false, Ordering::AcqRel)
        {
            let _ = self.shared.command(Command::Return);
        }
    }

    /// Gives up its partitions (through the listener), commits if that is automatic, leaves the
    /// group and ends; waits for at most `default.api.timeout.ms`. A static member stays known to
    /// its group until its session ends, so that it may come back.
    ///
    /// # Errors
    /// The listener's; `TimedOut`, if the coordinator did not answer in time.
    pub async fn close(self) -> Result<()> {
        let limit = self.shared.config.client.default_api_timeout;
        self.close_within(limit).await
    }

    /// As [`Self::close`], waiting for at most `limit`.
    ///
    /// # Errors
    /// As [`Self::close`].
    pub async fn close_within(mut self, limit: Duration) -> Result<()> {
        if self.commands.is_none() {
            return Ok(());
        }
        let closed = tokio::time::timeout(limit, self.leave()).await;
        closed.unwrap_or_else(|_| {
            let message = "the group's coordinator did not answer the leave in time";
            Err(Error::new(ErrorKind::TimedOut, message))
        })
    }
}
