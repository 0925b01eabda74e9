//! Reading the offsets log into a shard that begins its reign. Blocks on the disk.

use crate::partitions::{Partition, UNPACKED_BYTES_MAX};
use ottla_group::coordinator::{RecordAt, Shard};
use ottla_model::{Offset, Timestamp};
use ottla_records::{Batch, BatchError, Batches, CrcMismatch, RecordsError};
use ottla_storage::ReadError;
use ottla_wire::convert::record::{self, Decoded, RecordError};
use std::time::Duration;
use thiserror::Error;

/// What was read.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Loaded {
    /// Records replayed.
    pub(super) records: u64,
    /// Records of kinds this broker does not keep.
    pub(super) unknown: u64,
    /// Bytes of batches.
    pub(super) bytes: u64,
}

/// Why a shard could not be loaded. To go on without what cannot be read would be to lose commits.
#[derive(Debug, Error)]
pub(super) enum LoadError {
    /// The shard is no longer ours, or another load has begun.
    #[error("overtaken by another load")]
    Overtaken,
    /// The log cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// What is in it is damaged.
    #[error("the batch at offset {0} is damaged: {1}")]
    Damaged(Offset, String),
    /// A record is of a kind this broker keeps, and cannot be understood.
    #[error("the record at offset {0} cannot be understood: {1}")]
    Record(Offset, RecordError),
}

/// Replays the whole log, up to an end that is safe.
pub(super) fn load(
    shard: &mut Shard,
    partition: &Partition,
    is_current: &dyn Fn() -> bool,
) -> Result<Loaded, LoadError> {
    let mut loaded = Loaded::default();
    let mut scratch = Vec::new();
    let mut next = partition.start_offset();
    loop {
        if !is_current() {
            return Err(LoadError::Overtaken);
        }
        // Asked first: what becomes safe after this is found by the next read.
        let all_is_safe = partition.high_watermark() >= partition.end_offset();
        let bytes = partition.read(next, READ_BYTES, usize::MAX)?;
        if bytes.is_empty() {
            if all_is_safe {
                return Ok(loaded);
            }
            // Appended by a reign before this one and not safe yet, or not any more: either it
            // becomes readable soon or the log's end goes back.
            std::thread::sleep(UNSAFE_PAUSE);
            continue;
        }
        for batch in Batches::new(&bytes) {
            let batch = batch.map_err(|error: BatchError| damaged(next, &error))?;
            replay(shard, &batch, &mut scratch, &mut loaded)?;
            next = batch.header().next_offset();
        }
        loaded.bytes += bytes.len() as u64;
    }
}

fn replay(
    shard: &mut Shard,
    batch: &Batch<'_>,
    scratch: &mut Vec<u8>,
    loaded: &mut Loaded,
) -> Result<(), LoadError> {
    let base = batch.header().base_offset();
    batch.verify_crc().map_err(|error: CrcMismatch| damaged(base, &error))?;
    if batch.header().attributes().is_control() {
        return Ok(());
    }
    let unreadable = |error: RecordsError| damaged(base, &error);
    let records = batch.records_in(UNPACKED_BYTES_MAX, scratch).map_err(unreadable)?;
    for each in &records {
        let each = each.map_err(unreadable)?;
        match record::decode(each.key, each.value) {
            Ok(Decoded::Record(record)) => {
                loaded.records += 1;
                shard.replay(record, at(each.offset, each.timestamp));
            }
            Ok(Decoded::Unknown { .. }) => loaded.unknown += 1,
            Err(error) => return Err(LoadError::Record(each.offset, error)),
        }
    }
    Ok(())
}

fn at(offset: Offset, appended_at: Timestamp) -> RecordAt {
    RecordAt { offset, appended_at }
}

fn damaged(at: Offset, error: &dyn std::fmt::Display) -> LoadError {
    LoadError::Damaged(at, error.to_string())
}

/// Bytes of one read.
const READ_BYTES: usize = 1 << 20;
/// How long to wait for an end that is not safe yet.
const UNSAFE_PAUSE: Duration = Duration::from_millis(5);
