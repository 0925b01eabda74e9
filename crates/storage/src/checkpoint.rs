//! The log's own checkpoint: from where on a restart must look, and the state up to there.
//!
//! Everything below the recovery offset was synced, data and indexes, before the checkpoint was
//! written; a restart trusts it and reads only what follows. Losing the file costs time, never
//! data. Kafka ignores it.
//!
//! ```text
//! magic "OTTLALOG" | version u16 = 1 | crc32c u32 of what follows
//! recovery offset i64 | segment base i64 | position in it u64
//! offset index entries u32 | time index entries u32 | bytes since the last entry u64
//! greatest timestamp of the segment i64 | last offset of its batch i64
//! first append to the segment, wall clock i64
//! last batch before the position: where it begins u64, its crc u32 (both 0 if there is none)
//! producers: see producers/snapshot.rs
//! ```

use ottla_model::{Offset, Timestamp};

use crate::bytes_in::{take, take_i64, take_u32, take_u64};
use crate::producers::Producers;
use crate::segment::Largest;

/// What stands in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Checkpoint {
    /// The first offset that is not covered.
    pub(crate) recovery: Offset,
    /// Base offset of the segment that it lies in.
    pub(crate) segment: Offset,
    /// Where in the segment's file.
    pub(crate) position: u64,
    /// Entries of the segment's offset index up to there.
    pub(crate) offset_entries: u32,
    /// Entries of its time index up to there.
    pub(crate) time_entries: u32,
    /// Bytes of log since the last index entry.
    pub(crate) since_entry: u64,
    /// The segment's greatest timestamp up to there.
    pub(crate) largest: Option<Largest>,
    /// When the segment got its first batch.
    pub(crate) first_append: Timestamp,
    /// The last batch of the segment up to there, by which the file is recognised.
    pub(crate) last_batch: Option<LastBatch>,
    /// The producers as of the recovery offset.
    pub(crate) producers: Producers,
}

/// Where a segment's last batch begins, and its checksum field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LastBatch {
    pub(crate) position: u64,
    pub(crate) crc: u32,
}

impl Checkpoint {
    /// The file's bytes.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut body = Vec::with_capacity(128);
        body.extend_from_slice(&self.recovery.0.to_be_bytes());
        body.extend_from_slice(&self.segment.0.to_be_bytes());
        body.extend_from_slice(&self.position.to_be_bytes());
        body.extend_from_slice(&self.offset_entries.to_be_bytes());
        body.extend_from_slice(&self.time_entries.to_be_bytes());
        body.extend_from_slice(&self.since_entry.to_be_bytes());
        let none = Largest { timestamp: Timestamp(i64::MIN), offset: Offset(-1) };
        let largest = self.largest.unwrap_or(none);
        body.extend_from_slice(&largest.timestamp.0.to_be_bytes());
        body.extend_from_slice(&largest.offset.0.to_be_bytes());
        body.extend_from_slice(&self.first_append.0.to_be_bytes());
        let last = self.last_batch.unwrap_or(LastBatch { position: 0, crc: 0 });
        body.extend_from_slice(&last.position.to_be_bytes());
        body.extend_from_slice(&last.crc.to_be_bytes());
        self.producers.write(&mut body);
        let mut bytes = MAGIC.to_vec();
        bytes.extend_from_slice(&VERSION.to_be_bytes());
        bytes.extend_from_slice(&crc32c::crc32c(&body).to_be_bytes());
        bytes.append(&mut body);
        bytes
    }

    /// Reads the file; none if it is damaged or of another version.
    pub(crate) fn from_bytes(mut bytes: &[u8]) -> Option<Self> {
        let from = &mut bytes;
        let known = take::<8>(from)? == *MAGIC && take::<2>(from)? == VERSION.to_be_bytes();
        let crc = take_u32(from)?;
        if !known || crc != crc32c::crc32c(from) {
            return None;
        }
        let recovery = Offset(take_i64(from)?);
        let segment = Offset(take_i64(from)?);
        let position = take_u64(from)?;
        let (offset_entries, time_entries) = (take_u32(from)?, take_u32(from)?);
        let since_entry = take_u64(from)?;
        let timestamp = Timestamp(take_i64(from)?);
        let largest = Largest { timestamp, offset: Offset(take_i64(from)?) };
        let first_append = Timestamp(take_i64(from)?);
        let last = LastBatch { position: take_u64(from)?, crc: take_u32(from)? };
        let producers = Producers::read(from)?;
        from.is_empty().then_some(Self {
            recovery,
            segment,
            position,
            offset_entries,
            time_entries,
            since_entry,
            largest: (largest.offset.0 >= 0).then_some(largest),
            first_append,
            last_batch: (position > 0).then_some(last),
            producers,
        })
    }
}

/// The file's name in the log's folder.
pub(crate) const FILE: &str = "recovery-checkpoint";
/// The most bytes the file may have to be read.
pub(crate) const SIZE_MAX: u64 = 1 << 30;
const MAGIC: &[u8; 8] = b"OTTLALOG";
const VERSION: u16 = 1;
