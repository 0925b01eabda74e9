//! Writing a group of segments anew without the records that compaction drops.
//!
//! Batches that lose nothing are copied as they are. Offsets never change; a batch that is left
//! without records goes, unless it is some producer's last (its sequence lives in it) or the
//! last of the group (the group's end is read from it).

use std::io;

use ottla_model::{Offset, Timestamp};
use ottla_records::{Batch, Builder, Compression, Record, Records};

use super::{CleanError, Rules, keys::Keys};
use crate::fs::File;
use crate::segment::{Scanner, Seen, Segment};

/// Counts of a pass, for its report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rewritten {
    /// Records that stayed.
    pub(crate) kept: u64,
    /// Records that went.
    pub(crate) dropped: u64,
}

/// Writes batches one after another, in large pieces.
pub(crate) struct Writer<'a> {
    file: &'a dyn File,
    position: u64,
    buffer: Vec<u8>,
}

/// What becomes of a batch.
enum Fate {
    /// It stays as it is.
    Copied,
    /// It goes.
    Dropped,
    /// These bytes take its place.
    Replaced(Vec<u8>),
}

/// Writes what is kept of `segment`. `last` is where the group's last batch begins, if here.
pub(crate) fn rewrite(
    segment: &Segment,
    last: Option<u64>,
    keys: &Keys,
    rules: &Rules,
    into: &mut Writer<'_>,
    counts: &mut Rewritten,
) -> Result<(), CleanError> {
    let mut scanner = Scanner::new(&*segment.file, 0, segment.size());
    while let Some(seen) = scanner.next()? {
        let seen = seen.map_err(|damage| damaged(segment, scanner.position(), &damage))?;
        let bytes = read_batch(segment, &seen)?;
        let must_stay = last == Some(seen.position) || rules.is_a_last(&seen);
        let fate = judge(&bytes, must_stay, keys, rules, counts);
        match fate.map_err(|reason| damaged(segment, seen.position, &reason))? {
            Fate::Copied => into.write(&bytes)?,
            Fate::Dropped => {}
            Fate::Replaced(bytes) => into.write(&bytes)?,
        }
    }
    Ok(())
}

/// Reads one whole batch.
pub(crate) fn read_batch(segment: &Segment, seen: &Seen) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    // Its length was held against the file's when its header was read.
    segment.file.read_at(seen.position, seen.size as usize, &mut bytes)?;
    Ok(bytes)
}

/// The error of a segment whose bytes are not what was once written.
pub(crate) fn damaged(
    segment: &Segment,
    position: u64,
    reason: &dyn std::fmt::Display,
) -> CleanError {
    CleanError::Damaged { segment: segment.base, position, reason: reason.to_string() }
}

fn judge(
    bytes: &[u8],
    must_stay: bool,
    keys: &Keys,
    rules: &Rules,
    counts: &mut Rewritten,
) -> Result<Fate, String> {
    let batch = Batch::first(bytes).map_err(|error| error.to_string())?;
    let header = batch.header();
    if header.attributes().is_control() {
        return Ok(Fate::Copied);
    }
    let records = batch.records(rules.unpacked_bytes_max).map_err(|error| error.to_string())?;
    let sifted = sift(&records, header.delete_horizon(), keys, rules)?;
    counts.kept += sifted.kept.len() as u64;
    counts.dropped += records.len() as u64 - sifted.kept.len() as u64;
    if sifted.kept.is_empty() {
        return empty(&batch, must_stay);
    }
    let fix_horizon = sifted.tombstones && header.delete_horizon().is_none();
    if sifted.kept.len() == records.len() && !fix_horizon {
        return Ok(Fate::Copied);
    }
    let compression = header.attributes().compression().map_err(|error| error.to_string())?;
    let mut builder = Builder::like(header, compression);
    if fix_horizon {
        builder = builder.delete_horizon(rules.horizon);
    }
    for record in &sifted.kept {
        builder.append_kept(record).map_err(|error| error.to_string())?;
    }
    builder.build().map(Fate::Replaced).map_err(|error| error.to_string())
}

struct Sifted<'a> {
    kept: Vec<Record<'a>>,
    /// Whether any of those is a tombstone.
    tombstones: bool,
}

/// The records of a batch that stay: each the last of its key, as far as the keys are known, and
/// no tombstone that has been readable for long enough.
fn sift<'a>(
    records: &'a Records<'a>,
    horizon: Option<Timestamp>,
    keys: &Keys,
    rules: &Rules,
) -> Result<Sifted<'a>, String> {
    let mut sifted = Sifted { kept: Vec::new(), tombstones: false };
    let expired = horizon.is_some_and(|horizon| horizon <= rules.now);
    for record in records {
        let record = record.map_err(|error| error.to_string())?;
        let tombstone = record.value.is_none();
        let stays = match record.key {
            Some(key) => !(keys.supersedes(key, record.offset) || tombstone && expired),
            // Nothing without a key is ever superseded or asked for; Kafka drops it too.
            None => false,
        };
        if stays {
            sifted.tombstones |= tombstone;
            sifted.kept.push(record);
        }
    }
    Ok(sifted)
}

fn empty(batch: &Batch<'_>, must_stay: bool) -> Result<Fate, String> {
    if !must_stay {
        return Ok(Fate::Dropped);
    }
    if batch.header().record_count() == 0 {
        return Ok(Fate::Copied);
    }
    let built = Builder::like(batch.header(), Compression::None).build();
    built.map(Fate::Replaced).map_err(|error| error.to_string())
}

impl<'a> Writer<'a> {
    /// Writes to `file`, which is empty.
    pub(crate) fn new(file: &'a dyn File) -> Self {
        Self { file, position: 0, buffer: Vec::new() }
    }

    /// Writes what is left and syncs it all. Returns the file's size.
    pub(crate) fn finish(mut self) -> io::Result<u64> {
        self.flush()?;
        self.file.sync()?;
        Ok(self.position)
    }

    fn write(&mut self, batch: &[u8]) -> io::Result<()> {
        self.buffer.extend_from_slice(batch);
        if self.buffer.len() >= PIECE { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.write_at(self.position, &self.buffer)?;
        self.position += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }
}

/// The offsets of a segment's last batch, and where it begins; none if it has no batch.
pub(crate) fn last_batch(segment: &Segment) -> Result<Option<(u64, Offset)>, CleanError> {
    let mut last = None;
    let mut scanner = Scanner::new(&*segment.file, 0, segment.size());
    while let Some(seen) = scanner.next()? {
        let seen = seen.map_err(|damage| damaged(segment, scanner.position(), &damage))?;
        last = Some((seen.position, seen.header().last_offset()));
    }
    Ok(last)
}

/// Bytes written at once.
const PIECE: usize = 1 << 20;
