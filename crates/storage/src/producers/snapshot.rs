//! The bytes of producer state: Kafka's `.snapshot` file, and the fuller list in our checkpoint.
//!
//! Kafka's file keeps only the last batch of each producer. It is written for Kafka's tools and
//! for a way back to Kafka; what we restart from is the checkpoint, which keeps all five.
//!
//! ```text
//! version i16 = 1 | crc32c u32 of what follows | count i32 | entries
//! entry: producer id i64 | epoch i16 | last sequence i32 | last offset i64 | offset delta i32
//!        | timestamp i64 | coordinator epoch i32 | first offset of its transaction i64
//! ```

use std::collections::VecDeque;

use ottla_model::{Offset, ProducerEpoch, ProducerId, Timestamp};

use super::{BATCHES_MAX, Producer, ProducerBatch, Producers};
use crate::bytes_in::{take_i16, take_i32, take_i64, take_u32};

impl Producers {
    /// The bytes of Kafka's snapshot file.
    pub(crate) fn to_snapshot(&self) -> Vec<u8> {
        let mut entries = Vec::with_capacity(4 + self.by_id.len() * SNAPSHOT_ENTRY_LEN);
        entries.extend_from_slice(&(self.by_id.len() as i32).to_be_bytes());
        for (id, producer) in self.sorted() {
            write_entry(&mut entries, id, producer);
        }
        let mut bytes = SNAPSHOT_VERSION.to_be_bytes().to_vec();
        bytes.extend_from_slice(&crc32c::crc32c(&entries).to_be_bytes());
        bytes.append(&mut entries);
        bytes
    }

    /// Reads a snapshot file; none if it is damaged or of another version.
    pub(crate) fn from_snapshot(mut bytes: &[u8]) -> Option<Self> {
        let version = take_i16(&mut bytes)?;
        let crc = take_u32(&mut bytes)?;
        if version != SNAPSHOT_VERSION || crc != crc32c::crc32c(bytes) {
            return None;
        }
        let count = usize::try_from(take_i32(&mut bytes)?).ok()?;
        if bytes.len() != count.checked_mul(SNAPSHOT_ENTRY_LEN)? {
            return None;
        }
        let mut producers = Self::default();
        for _ in 0..count {
            let (id, producer) = take_entry(&mut bytes)?;
            producers.by_id.insert(id, producer);
        }
        Some(producers)
    }

    /// Appends the checkpoint's form: count, then id, epoch, time seen, count of batches and
    /// batches of each.
    pub(crate) fn write(&self, into: &mut Vec<u8>) {
        into.extend_from_slice(&(self.by_id.len() as u32).to_be_bytes());
        for (id, producer) in self.sorted() {
            into.extend_from_slice(&id.0.to_be_bytes());
            into.extend_from_slice(&producer.epoch.0.to_be_bytes());
            into.extend_from_slice(&producer.seen.0.to_be_bytes());
            into.push(producer.batches.len() as u8);
            for batch in &producer.batches {
                write_batch(into, batch);
            }
        }
    }

    /// Takes what [`Producers::write`] wrote off `bytes`.
    pub(crate) fn read(bytes: &mut &[u8]) -> Option<Self> {
        let count = take_u32(bytes)?;
        let mut producers = Self::default();
        for _ in 0..count {
            let id = ProducerId(take_i64(bytes)?);
            let epoch = ProducerEpoch(take_i16(bytes)?);
            let seen = Timestamp(take_i64(bytes)?);
            let (&batches_count, rest) = bytes.split_first()?;
            *bytes = rest;
            if usize::from(batches_count) > BATCHES_MAX {
                return None;
            }
            let batches =
                (0..batches_count).map(|_| take_batch(bytes)).collect::<Option<VecDeque<_>>>()?;
            producers.by_id.insert(id, Producer { epoch, batches, seen });
        }
        Some(producers)
    }

    /// By id, so that the same state has the same bytes.
    fn sorted(&self) -> Vec<(ProducerId, &Producer)> {
        let mut all: Vec<_> = self.iter().collect();
        all.sort_unstable_by_key(|(id, _)| *id);
        all
    }
}

fn write_entry(into: &mut Vec<u8>, id: ProducerId, producer: &Producer) {
    let none = ProducerBatch {
        last_sequence: -1,
        last_offset: Offset(-1),
        offset_delta: 0,
        timestamp: producer.seen,
    };
    let last = producer.batches.back().copied().unwrap_or(none);
    into.extend_from_slice(&id.0.to_be_bytes());
    into.extend_from_slice(&producer.epoch.0.to_be_bytes());
    // Kafka expires by this time; a record's own timestamp may lie years back.
    write_batch(into, &ProducerBatch { timestamp: producer.seen, ..last });
    into.extend_from_slice(&NO_COORDINATOR_EPOCH.to_be_bytes());
    into.extend_from_slice(&NO_TRANSACTION.to_be_bytes());
}

fn take_entry(bytes: &mut &[u8]) -> Option<(ProducerId, Producer)> {
    let id = ProducerId(take_i64(bytes)?);
    let epoch = ProducerEpoch(take_i16(bytes)?);
    let batch = take_batch(bytes)?;
    let _coordinator_epoch = take_i32(bytes)?;
    let _transaction_first = take_i64(bytes)?;
    let batches = if batch.last_sequence < 0 { VecDeque::new() } else { VecDeque::from([batch]) };
    Some((id, Producer { epoch, batches, seen: batch.timestamp }))
}

fn write_batch(into: &mut Vec<u8>, batch: &ProducerBatch) {
    into.extend_from_slice(&batch.last_sequence.to_be_bytes());
    into.extend_from_slice(&batch.last_offset.0.to_be_bytes());
    into.extend_from_slice(&batch.offset_delta.to_be_bytes());
    into.extend_from_slice(&batch.timestamp.0.to_be_bytes());
}

fn take_batch(bytes: &mut &[u8]) -> Option<ProducerBatch> {
    Some(ProducerBatch {
        last_sequence: take_i32(bytes)?,
        last_offset: Offset(take_i64(bytes)?),
        offset_delta: take_i32(bytes)?,
        timestamp: Timestamp(take_i64(bytes)?),
    })
}

const SNAPSHOT_VERSION: i16 = 1;
const SNAPSHOT_ENTRY_LEN: usize = 46;
const NO_COORDINATOR_EPOCH: i32 = -1;
const NO_TRANSACTION: i64 = -1;
