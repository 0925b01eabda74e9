//! The task that sends: it looks at what waits, fills requests to each leader, and carries out
//! what answers ask for. When a batch may be sent, [`queue`](super::queue) says.

use super::accumulator::Accumulator;
use super::batch::Batch;
use super::delivery::Stored;
use super::queue::{Fate, Identity, Pace};
use super::request::{self, Shipped, Told};
use super::{Shared, identity};
use crate::cluster::{Cluster, Link, Purpose, Snapshot};
use crate::config::{Acks, ProducerConfig};
use crate::connection::{Answer, Connection};
use crate::{Error, ErrorKind, Result, clock};
use ottla_model::{Instant, NodeId, PartitionId, TopicName};
use ottla_wire::ErrorCode;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tokio::sync::mpsc;

pub(super) struct Sender {
    shared: Arc<Shared>,
    cluster: Cluster,
    config: ProducerConfig,
    brokers: HashMap<NodeId, Broker>,
    under_way: HashMap<u64, (NodeId, Vec<Shipped>)>,
    last_request: u64,
    identity: Identified,
    events: (mpsc::UnboundedSender<Event>, mpsc::UnboundedReceiver<Event>),
    /// Not before this the cluster is asked about again.
    asks_at: Instant,
}

/// One broker as it is sent to.
#[derive(Debug)]
struct Broker {
    link: Link,
    /// How many are under way.
    requests: usize,
}

/// Who the producer is to brokers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Identified {
    /// Not idempotent: nobody.
    NotNeeded,
    /// Nobody yet, or no longer.
    Unknown(Option<Identity>),
    /// Being asked for.
    Asked(Option<Identity>),
    Known(Identity),
}

/// What the tasks that wait tell. Each of them is bounded: one per broker, one per request under
/// way, one for the identity.
enum Event {
    Connected(NodeId, Result<Connection>),
    Answered(u64, Result<Answer>),
    Identified(Result<Identity>),
}

impl Sender {
    pub(super) fn new(shared: Arc<Shared>, cluster: Cluster, config: ProducerConfig) -> Self {
        let identity = match config.enable_idempotence {
            true => Identified::Unknown(None),
            false => Identified::NotNeeded,
        };
        Self {
            shared,
            cluster,
            config,
            brokers: HashMap::new(),
            under_way: HashMap::new(),
            last_request: 0,
            identity,
            events: mpsc::unbounded_channel(),
            asks_at: Instant::ZERO,
        }
    }

    /// Sends until the producer is closed and everything has its fate.
    pub(super) async fn run(mut self) {
        let mut snapshots = self.cluster.subscribe();
        loop {
            let now = clock::now();
            self.expire(now);
            let next = self.dispatch(now);
            let is_closing = self.shared.is_closing.load(Ordering::Acquire);
            if is_closing && self.shared.accumulator.lock().is_empty() {
                return;
            }
            tokio::select! {
                () = self.shared.wake.notified() => {}
                Some(event) = self.events.1.recv() => self.on_event(event),
                _ = snapshots.changed() => {}
                () = clock::sleep_until(next) => {}
            }
            while let Ok(event) = self.events.1.try_recv() {
                self.on_event(event);
            }
        }
    }

    fn pace(&self) -> Pace {
        Pace {
            linger: self.config.linger,
            flying_max: self.config.max_in_flight_requests_per_connection,
            is_urgent: self.shared.is_urgent(),
        }
    }

    /// Batches that wait longer than `delivery.timeout.ms` have failed.
    fn expire(&mut self, now: Instant) {
        let born = now - self.config.delivery_timeout;
        let mut accumulator = self.shared.accumulator.lock();
        let mut expired = Vec::new();
        for (_, _, queue) in accumulator.queues_mut() {
            expired.extend(queue.expire(born));
        }
        for batch in expired {
            let message = "the record could not be delivered within `delivery.timeout.ms`";
            let error = Error::new(ErrorKind::TimedOut, message);
            settle(&self.shared, &mut accumulator, batch, Err(error));
        }
    }

    /// Sends what can be sent; when to look again, if nothing happens before.
    fn dispatch(&mut self, now: Instant) -> Option<Instant> {
        let snapshot = self.cluster.snapshot();
        while self.identify() {
            let (ready, is_leaderless) = self.ready(&snapshot, now);
            if is_leaderless && self.asks_at <= now {
                self.asks_at = now + self.config.client.retry_backoff;
                self.cluster.ask();
            }
            if ready.is_empty() {
                break;
            }
            for (node, partitions) in ready {
                self.send(node, &partitions, &snapshot);
            }
        }
        let pace = self.pace();
        let mut accumulator = self.shared.accumulator.lock();
        let ready = accumulator.ready_at(pace).filter(|at| *at > now);
        let expires = accumulator.oldest().map(|born| born + self.config.delivery_timeout);
        let asks = (self.asks_at > now).then_some(self.asks_at);
        [ready, expires, asks].into_iter().flatten().min()
    }

    /// Whether batches may be numbered; if not, sees to it.
    fn identify(&mut self) -> bool {
        let worn_out = {
            let mut accumulator = self.shared.accumulator.lock();
            let mut queues = accumulator.queues_mut();
            match self.identity {
                Identified::Known(identity) => queues
                    .filter_map(|(_, _, queue)| {
                        queue.renumber(identity);
                        queue.worn_out()
                    })
                    .next(),
                Identified::Unknown(_) => {
                    // Nobody is asked before there is something to send.
                    if queues.next().is_none() {
                        return false;
                    }
                    None
                }
                _ => None,
            }
        };
        match self.identity {
            Identified::NotNeeded => return true,
            Identified::Known(_) if worn_out.is_none() => return true,
            Identified::Asked(_) => return false,
            Identified::Known(old) => self.identity = Identified::Asked(Some(old)),
            Identified::Unknown(old) => self.identity = Identified::Asked(old),
        }
        let Identified::Asked(old) = self.identity else { return false };
        let (cluster, events) = (self.cluster.clone(), self.events.0.clone());
        tokio::spawn(async move {
            let _ = events.send(Event::Identified(identity::obtain(&cluster, old).await));
        });
        false
    }

    /// The partitions with something to send now to a broker with room for a request; whether
    /// there are others without a leader.
    fn ready(
        &mut self,
        snapshot: &Snapshot,
        now: Instant,
    ) -> (BTreeMap<NodeId, Vec<(TopicName, PartitionId)>>, bool) {
        let pace = self.pace();
        let (mut by_leader, mut is_leaderless) = (BTreeMap::<_, Vec<_>>::new(), false);
        let mut accumulator = self.shared.accumulator.lock();
        for (topic, partition, queue) in accumulator.queues_mut() {
            if !queue.is_ready(pace, now) {
                continue;
            }
            match snapshot.partition(topic, partition).and_then(|known| known.leader) {
                Some(leader) => {
                    by_leader.entry(leader).or_default().push((topic.clone(), partition))
                }
                None => is_leaderless = true,
            }
        }
        drop(accumulator);
        by_leader.retain(|node, _| self.has_room(*node));
        (by_leader, is_leaderless)
    }

    /// Whether one more request may go to this broker; connects to it if need be.
    fn has_room(&mut self, node: NodeId) -> bool {
        let requests_max = self.config.max_in_flight_requests_per_connection;
        let (cluster, events) = (self.cluster.clone(), self.events.0.clone());
        let broker = self.broker(node);
        if broker.link.is_open() {
            return broker.requests < requests_max;
        }
        broker.link.connect(&cluster, node, move |connection| {
            let _ = events.send(Event::Connected(node, connection));
        });
        false
    }

    fn broker(&mut self, node: NodeId) -> &mut Broker {
        let config = &self.config.client;
        let fresh = || Broker { link: Link::new(config, Purpose::Produce), requests: 0 };
        self.brokers.entry(node).or_insert_with(fresh)
    }

    /// One request to one broker: a batch of each of these partitions, as far as they fit.
    fn send(&mut self, node: NodeId, partitions: &[(TopicName, PartitionId)], snapshot: &Snapshot) {
        let identity = match self.identity {
            Identified::Known(identity) => Some(identity),
            _ => None,
        };
        let (mut shipped, mut size) = (Vec::new(), 0);
        // Another topic's turn first, next time.
        let from = self.last_request as usize % partitions.len().max(1);
        let turns = partitions[from..].iter().chain(&partitions[..from]);
        for (topic, partition) in turns {
            let mut accumulator = self.shared.accumulator.lock();
            let queue = accumulator.queue(topic, *partition);
            let next = queue.waiting.front().map_or(0, Batch::len);
            if size > 0 && size + next > self.config.max_request_size {
                continue;
            }
            let Some(mut batch) = queue.take(identity) else { continue };
            drop(accumulator);
            size += next;
            // Packing takes its time, and does not keep anybody from appending.
            let (topic, partition) = (topic.clone(), *partition);
            match batch.seal(self.config.compression_type) {
                Ok(bytes) => shipped.push(Shipped { topic, partition, batch, bytes }),
                Err(error) => self.fail(&topic, partition, batch, error),
            }
        }
        shipped.sort_by(|a, b| (&a.topic, a.partition).cmp(&(&b.topic, b.partition)));
        if !shipped.is_empty() {
            self.start(node, shipped, snapshot);
        }
    }

    fn start(&mut self, node: NodeId, shipped: Vec<Shipped>, snapshot: &Snapshot) {
        self.last_request += 1;
        let number = self.last_request;
        let started = self.try_start(node, &shipped, snapshot);
        self.under_way.insert(number, (node, shipped));
        self.broker(node).requests += 1;
        let events = self.events.0.clone();
        match started {
            Ok(Some(awaited)) => {
                tokio::spawn(async move {
                    let _ = events.send(Event::Answered(number, awaited.answer().await));
                });
            }
            Ok(None) => self.on_unanswered(number),
            Err(error) => {
                let _ = events.send(Event::Answered(number, Err(error)));
            }
        }
    }

    fn try_start(
        &self,
        node: NodeId,
        shipped: &[Shipped],
        snapshot: &Snapshot,
    ) -> Result<Option<crate::connection::Awaited>> {
        let connection = self.brokers.get(&node).and_then(|broker| broker.link.connection());
        let connection = connection.ok_or_else(Error::closed)?;
        let version = request::version(connection, snapshot, shipped)?;
        let timeout = self.config.client.request_timeout;
        let timeout_ms = i32::try_from(timeout.as_millis()).unwrap_or(i32::MAX);
        let acks = self.config.acks;
        let request = request::request(version, snapshot, shipped, acks.number(), timeout_ms);
        if acks == Acks::None {
            connection.post(version, &request)?;
            return Ok(None);
        }
        // The broker waits that long for its replicas; the answer then is still on its way.
        connection.start(version, &request, timeout + ANSWER_GRACE).map(Some)
    }

    fn on_event(&mut self, event: Event) {
        match event {
            Event::Connected(node, connection) => {
                let cluster = self.cluster.clone();
                let link = &mut self.broker(node).link;
                // What was sent and not stored is put back, each batch with a pause of its own.
                if link.connected(connection, &cluster) {
                    link.worked();
                }
            }
            Event::Answered(number, answer) => self.on_answered(number, answer),
            Event::Identified(Ok(identity)) => self.identity = Identified::Known(identity),
            Event::Identified(Err(error)) => {
                let old = match self.identity {
                    Identified::Asked(old) => old,
                    _ => None,
                };
                self.identity = Identified::Unknown(old);
                if !error.is_retriable() {
                    self.fail_all(&error);
                }
            }
        }
    }

    /// `acks=0`: it was sent, and that is all that will ever be known.
    fn on_unanswered(&mut self, number: u64) {
        let Some(shipped) = self.landed(number) else { return };
        let mut accumulator = self.shared.accumulator.lock();
        for Shipped { topic, partition, batch, .. } in shipped {
            accumulator.queue(&topic, partition).answered(batch.number, Some(ErrorCode::None));
            let stored = Stored { base_offset: None, append_time: None };
            settle(&self.shared, &mut accumulator, batch, Ok(stored));
        }
    }

    fn landed(&mut self, number: u64) -> Option<Vec<Shipped>> {
        let (node, shipped) = self.under_way.remove(&number)?;
        if let Some(broker) = self.brokers.get_mut(&node) {
            broker.requests -= 1;
        }
        Some(shipped)
    }

    fn on_answered(&mut self, number: u64, answer: Result<Answer>) {
        let Some(shipped) = self.landed(number) else { return };
        let snapshot = self.cluster.snapshot();
        let told = answer.and_then(|answer| request::told(&answer, &snapshot, &shipped));
        match told {
            Ok(told) => {
                for (shipped, told) in shipped.into_iter().zip(told) {
                    self.on_told(shipped, told);
                }
            }
            Err(error) => {
                self.cluster.ask();
                for shipped in shipped {
                    self.on_lost(shipped, &error);
                }
            }
        }
    }

    fn on_told(&mut self, shipped: Shipped, told: Told) {
        let Shipped { topic, partition, batch, .. } = shipped;
        let Told { code, message, stored } = told;
        let fate = self
            .shared
            .accumulator
            .lock()
            .queue(&topic, partition)
            .answered(batch.number, Some(code));
        match fate {
            Fate::Stored => {
                let mut accumulator = self.shared.accumulator.lock();
                settle(&self.shared, &mut accumulator, batch, Ok(stored));
            }
            Fate::Again => {
                if code.is_retriable() {
                    self.cluster.ask();
                }
                let error = refused(&topic, partition, code, message);
                self.put_back(&topic, partition, batch, error);
            }
            Fate::Failed => {
                let error = refused(&topic, partition, code, message);
                self.give_up(batch, error);
            }
        }
    }

    /// No answer came: whether the batch is stored, the next try will show.
    fn on_lost(&mut self, shipped: Shipped, error: &Error) {
        let Shipped { topic, partition, batch, .. } = shipped;
        self.shared.accumulator.lock().queue(&topic, partition).answered(batch.number, None);
        match error.kind() {
            ErrorKind::Unsupported | ErrorKind::Config => self.give_up(batch, error.clone()),
            _ => self.put_back(&topic, partition, batch, error.clone()),
        }
    }

    fn put_back(&mut self, topic: &TopicName, partition: PartitionId, batch: Batch, error: Error) {
        let now = clock::now();
        let is_late = batch.created + self.config.delivery_timeout <= now;
        if is_late || batch.attempts > self.config.retries {
            return self.give_up(batch, error);
        }
        let config = &self.config.client;
        let pause = config.retry_backoff.saturating_mul(1 << batch.attempts.min(20) >> 1);
        let retry_at = now + pause.min(config.retry_backoff_max);
        tracing::debug!(%topic, %partition, %error, "a batch is sent again");
        self.shared.accumulator.lock().queue(topic, partition).put_back(batch, retry_at);
    }

    fn fail(&mut self, topic: &TopicName, partition: PartitionId, batch: Batch, error: Error) {
        let mut accumulator = self.shared.accumulator.lock();
        accumulator.queue(topic, partition).answered(batch.number, Some(ErrorCode::InvalidRecord));
        settle(&self.shared, &mut accumulator, batch, Err(error));
    }

    fn give_up(&mut self, batch: Batch, error: Error) {
        let mut accumulator = self.shared.accumulator.lock();
        settle(&self.shared, &mut accumulator, batch, Err(error));
    }

    /// Nothing that waits can ever be sent.
    fn fail_all(&mut self, error: &Error) {
        let mut accumulator = self.shared.accumulator.lock();
        let far = Instant::from_nanos(u64::MAX);
        let queues = accumulator.queues_mut();
        let waiting: Vec<Batch> = queues.flat_map(|(_, _, queue)| queue.expire(far)).collect();
        for batch in waiting {
            settle(&self.shared, &mut accumulator, batch, Err(error.clone()));
        }
    }
}

/// A batch has its fate: its room is free again.
fn settle(shared: &Shared, accumulator: &mut Accumulator, batch: Batch, outcome: Result<Stored>) {
    accumulator.decided(batch.number);
    shared.room.add_permits(batch.held);
    batch.decide(outcome);
}

fn refused(
    topic: &TopicName,
    partition: PartitionId,
    code: ErrorCode,
    message: Option<String>,
) -> Error {
    let words = message.map(|message| format!(": {message}")).unwrap_or_default();
    Error::of(code, format!("cannot store records in {topic}-{partition}{words}"))
}

/// How much later than the broker's own time limit its answer may come.
const ANSWER_GRACE: std::time::Duration = std::time::Duration::from_secs(1);
