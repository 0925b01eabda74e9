//! The producer: records go into batches, batches to their partitions' leaders, each record once
//! and in order.
//!
//! [`Producer::send`] runs in the caller: it picks the partition, waits for room and appends. One
//! task ([`sender`]) does the rest. What decides on order and numbers ([`queue`]), partitions
//! ([`partitioner`]) and batches is pure.

mod accumulator;
mod batch;
mod delivery;
mod identity;
mod partitioner;
mod queue;
mod record;
mod request;
mod sender;

pub use delivery::Delivery;
pub use record::{ProducerRecord, RecordMetadata};

use crate::cluster::{Cluster, TopicInfo};
use crate::{Error, ErrorKind, ProducerConfig, Result, clock};
use accumulator::Accumulator;
use ottla_model::{PartitionId, TopicName};
use ottla_wire::ErrorCode;
use parking_lot::Mutex;
use sender::Sender;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use tokio::sync::{Notify, Semaphore};

/// Sends records. Cheap to clone; clones share everything.
///
/// Idempotent unless configured otherwise: each record is stored once, and those of one partition
/// in the order they were sent, whatever is lost on the way.
///
/// [`close`](Self::close) it in the end. If the last clone is dropped instead, what was sent is
/// still delivered in the background, for as long as the runtime runs.
///
/// ```no_run
/// use ottla_client::{Producer, ProducerConfig, ProducerRecord};
///
/// # async fn example() -> ottla_client::Result<()> {
/// let producer = Producer::new(ProducerConfig::new("localhost:9092"))?;
/// let report = producer.send(ProducerRecord::to("events").key("k").value("v")).await?;
/// println!("stored at {:?}", report.await?.offset);
/// producer.close().await
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Producer {
    handle: Arc<Handle>,
}

/// What ends the sender when the last clone goes.
#[derive(Debug)]
struct Handle {
    shared: Arc<Shared>,
    cluster: Cluster,
    config: ProducerConfig,
}

#[derive(Debug)]
struct Shared {
    accumulator: Mutex<Accumulator>,
    /// Bytes of buffer that are free.
    room: Semaphore,
    wake: Notify,
    /// How many callers want everything sent now: they flush, or wait for room.
    urgent: AtomicUsize,
    is_closing: AtomicBool,
}

impl Producer {
    /// A producer; connections are made when first needed. Within a tokio runtime only.
    ///
    /// # Errors
    /// `Config`, if the settings make no sense.
    pub fn new(config: ProducerConfig) -> Result<Self> {
        config.check()?;
        let cluster = Cluster::new(config.client.clone());
        cluster.allow_topic_creation(true);
        let (compression, batch_size) = (config.compression_type, config.batch_size);
        let shared = Arc::new(Shared {
            accumulator: Mutex::new(Accumulator::new(compression, batch_size, clock::seed())),
            room: Semaphore::new(config.buffer_memory),
            wake: Notify::new(),
            urgent: AtomicUsize::new(0),
            is_closing: AtomicBool::new(false),
        });
        tokio::spawn(Sender::new(shared.clone(), cluster.clone(), config.clone()).run());
        Ok(Self { handle: Arc::new(Handle { shared, cluster, config }) })
    }

    /// Hands a record over; returns when it is in its batch, with the report to come. Waits while
    /// the topic is unknown and while `buffer.memory` is full, for at most `max.block.ms`.
    ///
    /// Records of one partition are stored in the order of these calls. Cancel safe: a call that is
    /// dropped before it returns has sent nothing.
    ///
    /// # Errors
    /// `Refused`, if the record is larger than allowed or its partition does not exist;
    /// `Retriable`, if the topic is not known or there is no room in time; `Closed`.
    pub async fn send(&self, record: ProducerRecord<'_>) -> Result<Delivery> {
        let Handle { shared, config, .. } = &*self.handle;
        let size = record.size();
        if size > config.max_request_size || size > config.buffer_memory {
            let message = format!("a record of {size} bytes is larger than `max.request.size`");
            return Err(Error::of(ErrorCode::MessageTooLarge, message));
        }
        let topic = self.topic(record.topic).await?;
        self.handle.make_room(size).await?;
        let timestamp = record.timestamp.unwrap_or_else(clock::wall);
        let appended = {
            let mut accumulator = shared.accumulator.lock();
            let appended = self.partition(&record, &topic, size, &mut accumulator).and_then(|at| {
                if shared.is_closing.load(Ordering::Acquire) {
                    return Err(Error::closed());
                }
                let now = clock::now();
                accumulator.append(&topic.name, at, &record, (timestamp, size), now)
            });
            if appended.is_err() {
                shared.room.add_permits(size);
            }
            appended?
        };
        if appended.wakes {
            shared.wake.notify_one();
        }
        Ok(appended.delivery)
    }

    /// The partition of a record.
    fn partition(
        &self,
        record: &ProducerRecord<'_>,
        topic: &TopicInfo,
        size: usize,
        accumulator: &mut Accumulator,
    ) -> Result<PartitionId> {
        let count = topic.partitions.len();
        if let Some(partition) = record.partition {
            let exists = usize::try_from(partition).is_ok_and(|index| index < count);
            let message = || format!("topic `{}` has no partition {partition}", topic.name);
            let error = || Error::of(ErrorCode::UnknownTopicOrPartition, message());
            return exists.then_some(PartitionId(partition)).ok_or_else(error);
        }
        match record.key {
            Some(key) if !self.handle.config.partitioner_ignore_keys => {
                Ok(partitioner::of_key(key, count))
            }
            _ => {
                let has_leader = |index: usize| topic.partitions[index].leader.is_some();
                Ok(accumulator.stick(&topic.name, size, count, has_leader))
            }
        }
    }

    /// What is known of a topic, once it is.
    async fn topic(&self, name: &str) -> Result<Arc<TopicInfo>> {
        let Handle { cluster, config, .. } = &*self.handle;
        let known = |topic: &&Arc<TopicInfo>| !topic.partitions.is_empty();
        if let Some(topic) = cluster.snapshot().topic(name).filter(known) {
            return Ok(topic.clone());
        }
        let name = TopicName::from(name);
        let mut retry = cluster.retry_for(config.max_block);
        loop {
            cluster.add_interest(&name);
            let snapshot = cluster.refreshed(&retry).await?;
            if let Some(topic) = snapshot.topic(&name).filter(known) {
                return Ok(topic.clone());
            }
            let told = snapshot.topics.get(&name).and_then(|topic| topic.error);
            let code = told.unwrap_or(ErrorCode::UnknownTopicOrPartition);
            retry.pause(Error::of(code, format!("topic `{name}` is not there"))).await?;
        }
    }

    /// Waits until everything sent so far is stored or has failed. Cancel safe.
    ///
    /// # Errors
    /// The first failure among them; each is told by its own report, too.
    pub async fn flush(&self) -> Result<()> {
        let shared = &self.handle.shared;
        let _urgent = Urgent::new(shared);
        let undecided = shared.accumulator.lock().undecided();
        let mut outcome = Ok(());
        for fate in undecided {
            if let Err(error) = fate.delivery(0).await {
                outcome = outcome.and(Err(error));
            }
        }
        outcome
    }

    /// Takes no more records, waits until those sent are stored or have failed, and ends.
    ///
    /// # Errors
    /// As [`Producer::flush`].
    pub async fn close(&self) -> Result<()> {
        self.handle.shared.is_closing.store(true, Ordering::Release);
        self.handle.shared.wake.notify_one();
        self.flush().await
    }

    /// The partitions of a topic, once it is known.
    ///
    /// # Errors
    /// `Retriable`, if it is not known within `max.block.ms`.
    pub async fn partitions_for(&self, topic: &str) -> Result<TopicInfo> {
        Ok(TopicInfo::clone(&*self.topic(topic).await?))
    }
}

impl Handle {
    /// Takes `size` bytes of the buffer, when they are free.
    async fn make_room(&self, size: usize) -> Result<()> {
        let permits = u32::try_from(size).unwrap_or(u32::MAX);
        if let Ok(taken) = self.shared.room.try_acquire_many(permits) {
            taken.forget();
            return Ok(());
        }
        // Batches that linger hold what others wait for.
        let _urgent = Urgent::new(&self.shared);
        let room = self.shared.room.acquire_many(permits);
        match tokio::time::timeout(self.config.max_block, room).await {
            Ok(Ok(taken)) => {
                taken.forget();
                Ok(())
            }
            Ok(Err(_)) => Err(Error::closed()),
            Err(_) => {
                let message = "`buffer.memory` was full for `max.block.ms`";
                Err(Error::new(ErrorKind::Retriable, message))
            }
        }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.shared.is_closing.store(true, Ordering::Release);
        self.shared.wake.notify_one();
    }
}

impl Shared {
    /// Whether nothing should linger.
    fn is_urgent(&self) -> bool {
        self.urgent.load(Ordering::Acquire) > 0 || self.is_closing.load(Ordering::Acquire)
    }
}

/// Somebody wants everything sent now, until this is dropped.
struct Urgent<'a>(&'a Shared);

impl<'a> Urgent<'a> {
    fn new(shared: &'a Shared) -> Self {
        shared.urgent.fetch_add(1, Ordering::AcqRel);
        shared.wake.notify_one();
        Self(shared)
    }
}

impl Drop for Urgent<'_> {
    fn drop(&mut self) {
        self.0.urgent.fetch_sub(1, Ordering::AcqRel);
    }
}
