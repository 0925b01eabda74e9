//! What a log remembers of idempotent producers (KIP-98): enough to tell a retry from a gap.
//!
//! Per producer its epoch and its last five batches, as many as a client has in flight. Pure:
//! time and headers come in, verdicts go out; files are [`snapshot`]'s and the checkpoint's.
//! Transactions will add their first offset per producer here.

mod snapshot;

use std::collections::{HashMap, HashSet, VecDeque};
use std::time::Duration;

use ottla_model::{Offset, ProducerEpoch, ProducerId, Timestamp};
use ottla_records::Header;

/// The producers of one log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Producers {
    by_id: HashMap<ProducerId, Producer>,
}

/// One producer, as DescribeProducers shows it (KIP-664).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Producer {
    /// Its epoch; older instances of it are fenced.
    pub epoch: ProducerEpoch,
    /// Its last batches, oldest first, at most five; none after its epoch was raised by other
    /// means than a batch.
    pub batches: VecDeque<ProducerBatch>,
    /// When the log last heard from it, by the broker's clock.
    pub seen: Timestamp,
}

/// One remembered batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProducerBatch {
    /// Sequence of its last record.
    pub last_sequence: i32,
    /// Offset of its last record.
    pub last_offset: Offset,
    /// Its records less one.
    pub offset_delta: i32,
    /// Its greatest timestamp.
    pub timestamp: Timestamp,
}

/// What a batch is to the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// To be appended.
    New,
    /// A retry of this one.
    Duplicate(ProducerBatch),
}

/// Why a producer's batch is refused. The producer is at fault, or an older instance of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SequenceError {
    /// Batches are missing before this one: the client sends them first, or starts a new epoch.
    #[error("producer {id} sent sequence {found} where {expected} should follow")]
    OutOfOrder {
        /// The producer.
        id: ProducerId,
        /// The sequence that should come.
        expected: i32,
        /// The sequence that came.
        found: i32,
    },
    /// A newer instance of the producer has written: this one must stop.
    #[error("producer {id} is fenced: epoch {found}, the log has seen {current}")]
    Fenced {
        /// The producer.
        id: ProducerId,
        /// The epoch that the log knows.
        current: ProducerEpoch,
        /// The batch's epoch.
        found: ProducerEpoch,
    },
}

impl Producers {
    /// Judges a batch of a producer, its offsets not assigned yet.
    pub(crate) fn check(
        &self,
        id: ProducerId,
        header: Header<'_>,
    ) -> Result<Verdict, SequenceError> {
        let (epoch, found) = (header.producer_epoch(), header.base_sequence());
        let gap = |expected| SequenceError::OutOfOrder { id, expected, found };
        let known = self.by_id.get(&id);
        if found < 0 {
            return Err(gap(known.and_then(Producer::sequence_next).unwrap_or(0)));
        }
        // A producer that we forgot, or never knew, goes on wherever it is (KIP-360).
        let Some(known) = known else { return Ok(Verdict::New) };
        if epoch < known.epoch {
            return Err(SequenceError::Fenced { id, current: known.epoch, found: epoch });
        }
        if epoch > known.epoch {
            return if found == 0 { Ok(Verdict::New) } else { Err(gap(0)) };
        }
        if let Some(batch) = known.find(found, header.last_sequence()) {
            return Ok(Verdict::Duplicate(batch));
        }
        match known.sequence_next() {
            Some(next) if next != found => Err(gap(next)),
            _ => Ok(Verdict::New),
        }
    }

    /// Remembers a batch that the log now has, its offsets assigned.
    pub(crate) fn note(&mut self, id: ProducerId, header: Header<'_>, now: Timestamp) {
        let epoch = header.producer_epoch();
        let new = || Producer { epoch, batches: VecDeque::new(), seen: now };
        let producer = self.by_id.entry(id).or_insert_with(new);
        if producer.epoch != epoch {
            (producer.epoch, producer.batches) = (epoch, VecDeque::new());
        }
        producer.seen = producer.seen.max(now);
        if header.base_sequence() < 0 {
            return;
        }
        if producer.batches.len() == BATCHES_MAX {
            producer.batches.pop_front();
        }
        producer.batches.push_back(ProducerBatch {
            last_sequence: header.last_sequence(),
            last_offset: header.last_offset(),
            offset_delta: header.last_offset_delta(),
            timestamp: header.max_timestamp(),
        });
    }

    /// Forgets producers silent for `silence_max`. Returns how many.
    pub(crate) fn expire(&mut self, now: Timestamp, silence_max: Duration) -> usize {
        let before = self.by_id.len();
        self.by_id.retain(|_, producer| producer.seen.plus(silence_max) > now);
        before - self.by_id.len()
    }

    /// Keeps the bound: past it the longest silent tenth goes, so that the price of finding them
    /// is paid once in many appends.
    pub(crate) fn bound(&mut self, producers_max: usize) {
        if self.by_id.len() <= producers_max {
            return;
        }
        let mut seen: Vec<_> = self.by_id.iter().map(|(id, one)| (one.seen, *id)).collect();
        let surplus = self.by_id.len() - producers_max + producers_max / 10;
        let surplus = surplus.min(seen.len());
        if surplus < seen.len() {
            seen.select_nth_unstable(surplus);
        }
        for (_, id) in &seen[..surplus] {
            self.by_id.remove(id);
        }
    }

    /// Every producer, in no order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (ProducerId, &Producer)> {
        self.by_id.iter().map(|(id, producer)| (*id, producer))
    }

    /// One producer.
    pub(crate) fn by_id(&self, id: ProducerId) -> Option<&Producer> {
        self.by_id.get(&id)
    }

    /// The offset of each producer's last record.
    pub(crate) fn last_offsets(&self) -> HashSet<Offset> {
        let last = |producer: &Producer| Some(producer.batches.back()?.last_offset);
        self.by_id.values().filter_map(last).collect()
    }

    /// How many producers are remembered.
    pub(crate) fn len(&self) -> usize {
        self.by_id.len()
    }
}

impl Producer {
    /// The sequence that should come next; none if any may.
    pub fn sequence_next(&self) -> Option<i32> {
        self.batches.back().map(|batch| batch.last_sequence.wrapping_add(1) & i32::MAX)
    }

    fn find(&self, first: i32, last: i32) -> Option<ProducerBatch> {
        let same =
            |batch: &&ProducerBatch| batch.last_sequence == last && batch.first_sequence() == first;
        self.batches.iter().find(same).copied()
    }
}

impl ProducerBatch {
    /// Sequence of its first record.
    pub fn first_sequence(&self) -> i32 {
        self.last_sequence.wrapping_sub(self.offset_delta) & i32::MAX
    }

    /// Offset of its first record.
    pub fn first_offset(&self) -> Offset {
        Offset(self.last_offset.0.saturating_sub(i64::from(self.offset_delta)))
    }
}

/// Batches remembered per producer: `max.in.flight.requests.per.connection` may be five at most
/// for an idempotent producer.
pub(crate) const BATCHES_MAX: usize = 5;
