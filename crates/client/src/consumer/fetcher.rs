//! The task that fetches ahead: it finds positions, keeps a session with each leader, and puts
//! what comes on the shelves, up to the bound in bytes. Whatever it knows of partitions lies in
//! [`Assignment`](super::assignment::Assignment); it decides nothing about groups.

use super::Shared;
use super::assignment::Assignment;
use super::fetch::{self, Fetched};
use super::lookups::{self, Lookup};
use super::partition::{Partition, Position, Progress, Standing};
use super::session::{Session, Wish, Wishes};
use super::share::Share;
use super::shelf::{Shelf, end_of};
use crate::cluster::{Link, Purpose, Snapshot};
use crate::config::ClientConfig;
use crate::connection::{Answer, Connection};
use crate::{Error, ErrorKind, Result, clock};
use ottla_model::{Instant, NodeId, Offset, TopicPartition};
use ottla_wire::ErrorCode;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tokio::sync::mpsc;

pub(super) struct Fetcher {
    shared: Arc<Shared>,
    brokers: HashMap<NodeId, Broker>,
    /// Bounded by what is asked: one per broker, and one lookup per partition.
    events: (mpsc::UnboundedSender<Event>, mpsc::UnboundedReceiver<Event>),
}

/// One broker as it is fetched from.
#[derive(Debug)]
struct Broker {
    link: Link,
    session: Session,
    share: Share,
    /// What the fetch under way is for, and since when.
    asked: Option<(HashMap<Arc<TopicPartition>, Asked>, Instant)>,
}

impl Broker {
    fn new(config: &ClientConfig) -> Self {
        Self {
            link: Link::new(config, Purpose::Fetch),
            session: Session::default(),
            share: Share::default(),
            asked: None,
        }
    }
}

/// What was asked of a partition.
#[derive(Debug)]
struct Asked {
    progress: Arc<Progress>,
    wish: Wish,
}

pub(super) enum Event {
    Connected(NodeId, Result<Connection>),
    Fetched(NodeId, Result<Answer>),
    LookedUp(Lookup),
}

impl Fetcher {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self { shared, brokers: HashMap::new(), events: mpsc::unbounded_channel() }
    }

    /// Fetches until its handle is dropped.
    pub(super) async fn run(mut self) {
        let mut snapshots = self.shared.cluster.subscribe();
        loop {
            let next = self.work(clock::now());
            tokio::select! {
                () = self.shared.fetch_wake.notified() => {}
                Some(event) = self.events.1.recv() => self.on_event(event),
                _ = snapshots.changed() => {}
                () = clock::sleep_until(next) => {}
            }
            while let Ok(event) = self.events.1.try_recv() {
                self.on_event(event);
            }
        }
    }

    /// Asks for whatever is missing; when to look again, if nothing happens before.
    fn work(&mut self, now: Instant) -> Option<Instant> {
        let snapshot = self.shared.cluster.snapshot();
        let shared = self.shared.clone();
        let mut assignment = shared.assignment.lock();
        assignment.note_leaders(&snapshot);
        lookups::start(&shared, &mut assignment, &snapshot, now, &self.events.0);
        let wishes = self.wishes(&mut assignment, &snapshot, now);
        let waits = assignment.iter_mut().map(|partition| partition.wait_until);
        let next = waits.filter(|until| *until > now).min();
        drop(assignment);
        for (node, wanted) in wishes {
            if self.is_free(node) {
                self.fetch(node, wanted, now);
            }
        }
        next
    }

    /// What is wanted of each broker.
    fn wishes(
        &self,
        assignment: &mut Assignment,
        snapshot: &Snapshot,
        now: Instant,
    ) -> BTreeMap<NodeId, BTreeMap<Arc<TopicPartition>, Asked>> {
        let config = &self.shared.config;
        let mut wishes = BTreeMap::<NodeId, BTreeMap<_, _>>::new();
        let is_full = assignment.held() >= config.fetch_prefetch_max_bytes;
        // Whoever takes something off wakes this task if it waits for that.
        self.shared.is_full.store(true, Ordering::Release);
        if is_full {
            return wishes;
        }
        let held_max = usize::try_from(config.max_partition_fetch_bytes).unwrap_or(0).max(1);
        let (mut has_leaderless, mut is_complete) = (false, true);
        for partition in assignment.iter_mut() {
            if !partition.is_fetchable(held_max, now) {
                is_complete = false;
                continue;
            }
            match wish(partition, snapshot, config.max_partition_fetch_bytes, now) {
                Some((node, wish)) => {
                    let progress = partition.progress().clone();
                    let asked = Asked { progress, wish };
                    wishes.entry(node).or_default().insert(partition.key.clone(), asked);
                }
                None => {
                    partition.wait_until = now + config.client.retry_backoff_max;
                    has_leaderless = true;
                }
            }
        }
        if has_leaderless {
            self.shared.cluster.ask();
        }
        self.shared.is_full.store(!is_complete, Ordering::Release);
        wishes
    }

    /// Whether a broker may be asked now; connects to it if need be.
    fn is_free(&mut self, node: NodeId) -> bool {
        let (shared, events) = (self.shared.clone(), self.events.0.clone());
        let broker = self.broker(node);
        if broker.link.is_open() {
            return broker.asked.is_none();
        }
        if broker.asked.is_none() {
            broker.link.connect(&shared.cluster, node, move |connection| {
                let _ = events.send(Event::Connected(node, connection));
            });
        }
        false
    }

    fn fetch(&mut self, node: NodeId, wanted: BTreeMap<Arc<TopicPartition>, Asked>, now: Instant) {
        let Some(broker) = self.brokers.get_mut(&node) else { return };
        let Some(connection) = broker.link.connection().cloned() else { return };
        let wishes: Wishes = wanted.iter().map(|(of, asked)| (of.clone(), asked.wish)).collect();
        let plan = broker.session.plan(&wishes);
        let config = &self.shared.config;
        // Within a session the broker lets partitions take turns; without one, those that come
        // first would leave nothing of a small share to the others.
        let bytes_max = match plan.epoch {
            0 => config.fetch_max_bytes,
            _ => broker.share.bytes(config.fetch_min_bytes, config.fetch_max_bytes),
        };
        let started = fetch::version(&connection, &plan).and_then(|version| {
            let request = fetch::request(version, &plan, config, bytes_max);
            let timeout = config.client.request_timeout + config.fetch_max_wait;
            connection.start(version, &request, timeout)
        });
        broker.asked = Some((wanted.into_iter().collect(), now));
        let events = self.events.0.clone();
        match started {
            Ok(awaited) => {
                tokio::spawn(async move {
                    let _ = events.send(Event::Fetched(node, awaited.answer().await));
                });
            }
            Err(error) => {
                let _ = events.send(Event::Fetched(node, Err(error)));
            }
        }
    }

    fn on_event(&mut self, event: Event) {
        match event {
            Event::Connected(node, connection) => {
                let shared = self.shared.clone();
                let broker = self.broker(node);
                if broker.link.connected(connection, &shared.cluster) {
                    broker.session.restart();
                }
            }
            Event::Fetched(node, answer) => {
                let Some(broker) = self.brokers.get_mut(&node) else { return };
                let Some((asked, since)) = broker.asked.take() else { return };
                let outcome = self.on_fetched(node, answer, &asked);
                let shared = self.shared.clone();
                let broker = self.broker(node);
                match outcome {
                    Ok(bytes) => {
                        broker.link.worked();
                        broker.share.answered(bytes, clock::now().since(since));
                    }
                    Err(error) => {
                        tracing::debug!(%node, %error, "a fetch failed");
                        tell_of_lack(&shared, &asked, &error);
                        broker.session.restart();
                        broker.link.failed(&shared.cluster);
                    }
                }
            }
            Event::LookedUp(lookup) => lookups::finish(&self.shared, lookup),
        }
    }

    fn broker(&mut self, node: NodeId) -> &mut Broker {
        let config = &self.shared.config.client;
        self.brokers.entry(node).or_insert_with(|| Broker::new(config))
    }

    /// Bytes of records that came.
    fn on_fetched(
        &mut self,
        node: NodeId,
        answer: Result<Answer>,
        asked: &HashMap<Arc<TopicPartition>, Asked>,
    ) -> Result<usize> {
        let fetch = fetch::read(&answer?, self.shared.config.isolation_level)?;
        if let Some(broker) = self.brokers.get_mut(&node) {
            broker.session.answered(fetch.code, fetch.session_id);
        }
        // A lost session says nothing about partitions; the next request begins another.
        if fetch.code.is_error() {
            return Err(Error::of(fetch.code, "cannot fetch"));
        }
        let mut bytes = 0;
        let mut assignment = self.shared.assignment.lock();
        for fetched in fetch.partitions {
            let named = |(of, asked): &(&Arc<TopicPartition>, &Asked)| {
                of.partition.0 == fetched.partition && fetched.topic.is(of, asked.wish.topic_id)
            };
            let Some((key, asked)) = asked.iter().find(named) else { continue };
            bytes += fetched.bytes.len();
            self.on_partition(&mut assignment, key, asked, fetched);
        }
        let has_news = assignment.has_news();
        drop(assignment);
        self.shared.counters.fetches.fetch_add(1, Ordering::Relaxed);
        self.shared.counters.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        if has_news {
            self.shared.news.notify_one();
        }
        Ok(bytes)
    }

    fn on_partition(
        &self,
        assignment: &mut Assignment,
        key: &Arc<TopicPartition>,
        asked: &Asked,
        fetched: Fetched,
    ) {
        let Some(partition) = assignment.get_mut(key) else { return };
        // Sought, revoked or paused for a seek meanwhile: it is not what is wanted any more.
        let is_wanted = Arc::ptr_eq(partition.progress(), &asked.progress)
            && partition.standing == Standing::Ready;
        if !is_wanted {
            return;
        }
        let now = clock::now();
        let config = &self.shared.config;
        partition.replica = match fetched.replica {
            Some(node) => Some((node, now + config.client.metadata_max_age)),
            None if fetched.code.is_error() => None,
            None => partition.replica,
        };
        if fetched.code.is_error() {
            return self.on_refused(assignment, key, fetched.code, Offset(asked.wish.offset), now);
        }
        partition.high_watermark = Some(fetched.high_watermark);
        if fetched.bytes.is_empty() {
            return;
        }
        match end_of(&fetched.bytes) {
            Some(last) => {
                let epoch = Some(last.leader_epoch()).filter(|epoch| epoch.0 >= 0);
                let next = Position { offset: last.next_offset(), epoch };
                let checks = config.check_crcs;
                let bytes = fetched.bytes.clone();
                let shelf = Shelf::new(key.clone(), bytes, fetched.aborted, checks);
                assignment.shelve(key, shelf, next);
            }
            None => {
                partition.fail(Error::protocol("a fetch brought no whole batch"));
                partition.wait_until = now + config.client.retry_backoff_max;
            }
        }
    }

    fn on_refused(
        &self,
        assignment: &mut Assignment,
        key: &Arc<TopicPartition>,
        code: ErrorCode,
        offset: Offset,
        now: Instant,
    ) {
        let Some(partition) = assignment.get_mut(key) else { return };
        partition.wait_until = now + self.shared.config.client.retry_backoff;
        if code == ErrorCode::OffsetOutOfRange {
            return assignment.on_out_of_range(key, offset);
        }
        if code.is_retriable() && code != ErrorCode::CorruptMessage {
            self.shared.cluster.ask();
        } else {
            partition.wait_until = now + self.shared.config.client.retry_backoff_max;
            partition.fail(Error::of(code, format!("cannot fetch {key}")));
        }
    }
}

/// A broker that has no fetches for us will have none after a pause: the application is told.
fn tell_of_lack(shared: &Shared, asked: &HashMap<Arc<TopicPartition>, Asked>, error: &Error) {
    if error.kind() != ErrorKind::Unsupported {
        return;
    }
    let mut assignment = shared.assignment.lock();
    for key in asked.keys() {
        if let Some(partition) = assignment.get_mut(key) {
            partition.wait_until = clock::now() + shared.config.client.retry_backoff_max;
            partition.fail(error.clone());
        }
    }
    drop(assignment);
    shared.news.notify_one();
}

/// Whom to ask for a partition, and for what.
fn wish(
    partition: &mut Partition,
    snapshot: &Snapshot,
    bytes_max: i32,
    now: Instant,
) -> Option<(NodeId, Wish)> {
    let key = &partition.key;
    let known = snapshot.partition(&key.topic, key.partition)?;
    let topic_id = snapshot.topic(&key.topic)?.id;
    let replica = partition
        .replica
        .filter(|(node, until)| *until > now && snapshot.brokers.contains_key(node));
    let node = replica.map(|(node, _)| node).or(known.leader)?;
    let leader_epoch = known.leader_epoch.map_or(-1, |epoch| epoch.0);
    let offset = partition.fetch_at.offset.0;
    Some((node, Wish { topic_id, offset, leader_epoch, bytes_max }))
}
