//! Where records wait to be sent: a queue of batches per partition, and who waits for them all.
//!
//! Pure but for the reports inside the batches. It does not know brokers; bounding what it holds
//! is done in front of it, by bytes.

use super::batch::Batch;
use super::delivery::{Delivery, Fate};
use super::partitioner::Sticky;
use super::queue::{Pace, Queue};
use super::record::ProducerRecord;
use crate::Result;
use ottla_model::{Instant, PartitionId, Timestamp, TopicName, TopicPartition};
use ottla_records::Compression;
use std::collections::HashMap;
use std::sync::Arc;

/// Every partition's queue.
#[derive(Debug)]
pub(super) struct Accumulator {
    topics: HashMap<TopicName, Queues>,
    compression: Compression,
    batch_size: usize,
    next_number: u64,
    /// What was appended and has no fate yet, by batch number.
    undecided: HashMap<u64, Arc<Fate>>,
    seed: u64,
}

/// The queues of one topic.
#[derive(Debug)]
struct Queues {
    by_partition: Vec<Queue>,
    sticky: Sticky,
}

/// What appending did.
#[derive(Debug)]
pub(super) struct Appended {
    pub(super) delivery: Delivery,
    /// Whether there is something new to look at for whoever sends.
    pub(super) wakes: bool,
}

impl Accumulator {
    pub(super) fn new(compression: Compression, batch_size: usize, seed: u64) -> Self {
        let (topics, undecided) = (HashMap::new(), HashMap::new());
        Self { topics, compression, batch_size, next_number: 0, undecided, seed }
    }

    /// Picks a partition for a record that does not care.
    pub(super) fn stick(
        &mut self,
        topic: &TopicName,
        size: usize,
        partitions: usize,
        is_available: impl Fn(usize) -> bool,
    ) -> PartitionId {
        let batch_size = self.batch_size;
        self.queues(topic).sticky.next(size, batch_size, partitions, is_available)
    }

    /// Appends a record to the youngest batch of its partition, or to a new one.
    pub(super) fn append(
        &mut self,
        topic: &TopicName,
        partition: PartitionId,
        record: &ProducerRecord<'_>,
        (timestamp, size): (Timestamp, usize),
        now: Instant,
    ) -> Result<Appended> {
        let (compression, batch_size, number) =
            (self.compression, self.batch_size, self.next_number);
        let queue = self.queue(topic, partition);
        let youngest = queue.waiting.back_mut();
        if let Some(batch) = youngest.filter(|batch| batch.has_room(size, batch_size)) {
            let delivery = batch.append(record, timestamp, size)?;
            let is_full = batch.len() >= batch_size;
            return Ok(Appended { delivery, wakes: is_full && queue.waiting.len() == 1 });
        }
        let of = TopicPartition { topic: topic.clone(), partition };
        let mut batch = Batch::new(number, of, compression, now);
        let delivery = batch.append(record, timestamp, size)?;
        let fate = batch.fate();
        queue.waiting.push_back(batch);
        self.next_number += 1;
        self.undecided.insert(number, fate);
        Ok(Appended { delivery, wakes: true })
    }

    /// Every queue with something in it.
    pub(super) fn queues_mut(
        &mut self,
    ) -> impl Iterator<Item = (&TopicName, PartitionId, &mut Queue)> {
        self.topics.iter_mut().flat_map(|(topic, queues)| {
            let numbered = (0..).zip(&mut queues.by_partition);
            let busy = numbered.filter(|(_, queue)| !queue.is_idle());
            busy.map(move |(index, queue)| (topic, PartitionId(index), queue))
        })
    }

    /// The queue of one partition.
    pub(super) fn queue(&mut self, topic: &TopicName, partition: PartitionId) -> &mut Queue {
        let index = usize::try_from(partition.0).unwrap_or(0);
        let queues = self.queues(topic);
        if queues.by_partition.len() <= index {
            queues.by_partition.resize_with(index + 1, Queue::default);
        }
        &mut queues.by_partition[index]
    }

    fn queues(&mut self, topic: &TopicName) -> &mut Queues {
        if !self.topics.contains_key(topic) {
            self.seed = self.seed.wrapping_add(1);
            let queues = Queues { by_partition: Vec::new(), sticky: Sticky::new(self.seed) };
            self.topics.insert(topic.clone(), queues);
        }
        self.topics.get_mut(topic).expect("it was put in if it was not there")
    }

    /// A batch has its fate.
    pub(super) fn decided(&mut self, number: u64) {
        self.undecided.remove(&number);
    }

    /// What has no fate yet.
    pub(super) fn undecided(&self) -> Vec<Arc<Fate>> {
        self.undecided.values().cloned().collect()
    }

    /// Whether everything has its fate.
    pub(super) fn is_empty(&self) -> bool {
        self.undecided.is_empty()
    }

    /// When time alone makes the next batch ready.
    pub(super) fn ready_at(&mut self, pace: Pace) -> Option<Instant> {
        self.queues_mut().filter_map(|(_, _, queue)| queue.ready_at(pace)).min()
    }

    /// When the oldest batch that waits was made.
    pub(super) fn oldest(&mut self) -> Option<Instant> {
        let oldest = |queue: &mut Queue| queue.waiting.iter().map(|batch| batch.created).min();
        self.queues_mut().filter_map(|(_, _, queue)| oldest(queue)).min()
    }
}
