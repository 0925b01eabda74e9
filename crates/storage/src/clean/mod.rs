//! Key compaction: of each key the last record stays. Knows batches, keys and files; when to
//! clean, and what the log does meanwhile, is the log's.
//!
//! A pass reads the keys of the segments it has not seen (as many as its memory holds), then
//! writes every segment up to there anew, group by group, each group swapped in before the next.

mod keys;
mod rewrite;
mod swap;

use std::collections::HashSet;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use ottla_model::{Offset, Timestamp};
use ottla_records::{Batch, Record};

use crate::fs::{Fs, OpenMode};
use crate::segment::{Scanner, Seen, Segment, names};
use keys::Keys;
use rewrite::{Rewritten, Writer, damaged, last_batch, read_batch};

pub(crate) use swap::sweep;

/// Why a pass stopped. What it had swapped in by then stays; the log is whole.
#[derive(Debug, thiserror::Error)]
pub enum CleanError {
    /// A segment does not hold what was once written.
    #[error("segment {segment} is damaged at byte {position}: {reason}")]
    Damaged {
        /// Base offset of the segment.
        segment: Offset,
        /// Where.
        position: u64,
        /// What is wrong.
        reason: String,
    },
    /// The file system refused.
    #[error("cannot clean: {0}")]
    Io(#[from] io::Error),
}

/// What a pass is to do. It holds the segments, so that it runs beside readers and appends.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) fs: Arc<dyn Fs>,
    pub(crate) dir: PathBuf,
    /// The log's segments from the first to the last that may be cleaned.
    pub(crate) segments: Vec<Arc<Segment>>,
    /// Keys of records from here on are not known yet.
    pub(crate) first_dirty: Offset,
    /// The offset after the last segment.
    pub(crate) end: Offset,
    pub(crate) segment_bytes: u64,
    pub(crate) index_interval_bytes: u64,
    pub(crate) memory_bytes_max: usize,
    pub(crate) rules: Rules,
}

/// By what records and batches are judged.
#[derive(Debug)]
pub(crate) struct Rules {
    pub(crate) now: Timestamp,
    /// When a tombstone that is met for the first time may go (KIP-534).
    pub(crate) horizon: Timestamp,
    pub(crate) unpacked_bytes_max: usize,
    /// The last offset of every producer that the log remembers.
    pub(crate) producers: HashSet<Offset>,
}

/// A group of segments and what took their place.
#[derive(Debug)]
pub(crate) struct Swapped {
    pub(crate) originals: Vec<Arc<Segment>>,
    pub(crate) cleaned: Arc<Segment>,
}

/// How a pass went.
#[derive(Debug, Default)]
pub(crate) struct Passed {
    pub(crate) swapped: Vec<Swapped>,
    /// Up to here keys are known and every segment is clean; none if the pass did not get through.
    pub(crate) clean_to: Option<Offset>,
    pub(crate) counts: Rewritten,
    pub(crate) error: Option<CleanError>,
}

impl Plan {
    /// Runs the pass. Takes long.
    pub(crate) fn run(&self) -> Passed {
        let mut passed = Passed::default();
        match self.pass(&mut passed) {
            Ok(clean_to) => passed.clean_to = Some(clean_to),
            Err(error) => passed.error = Some(error),
        }
        passed
    }

    fn pass(&self, passed: &mut Passed) -> Result<Offset, CleanError> {
        let (keys, clean_to) = self.read_keys()?;
        let reached = self.segments.partition_point(|segment| segment.base < clean_to);
        for group in self.groups(&self.segments[..reached]) {
            if let Some(swapped) = self.clean(group, &keys, &mut passed.counts)? {
                passed.swapped.push(swapped);
            }
        }
        Ok(clean_to)
    }

    /// The last offset of each key from the first dirty offset on, and how far memory reached.
    fn read_keys(&self) -> Result<(Keys, Offset), CleanError> {
        let mut keys = Keys::new(self.memory_bytes_max);
        for segment in &self.segments {
            let mut scanner = Scanner::new(&*segment.file, 0, segment.size());
            while let Some(seen) = scanner.next()? {
                let seen = seen.map_err(|damage| damaged(segment, scanner.position(), &damage))?;
                if seen.header().last_offset() < self.first_dirty {
                    continue;
                }
                if keys.is_full() {
                    return Ok((keys, seen.header().base_offset()));
                }
                self.note_keys(segment, &seen, &mut keys)
                    .map_err(|reason| damaged(segment, seen.position, &reason))?;
            }
        }
        Ok((keys, self.end))
    }

    fn note_keys(&self, segment: &Segment, seen: &Seen, keys: &mut Keys) -> Result<(), String> {
        if seen.header().attributes().is_control() {
            return Ok(());
        }
        let bytes = read_batch(segment, seen).map_err(|error| error.to_string())?;
        let batch = Batch::first(&bytes).map_err(|error| error.to_string())?;
        let bytes_max = self.rules.unpacked_bytes_max;
        for record in &batch.records(bytes_max).map_err(|error| error.to_string())? {
            let Record { offset, key, .. } = record.map_err(|error| error.to_string())?;
            if let Some(key) = key {
                keys.note(key, offset);
            }
        }
        Ok(())
    }

    /// Neighbours that fit one segment together, at least one each.
    fn groups<'a>(&self, segments: &'a [Arc<Segment>]) -> Vec<&'a [Arc<Segment>]> {
        let end = |at: usize| segments.get(at + 1).map_or(self.end, |next| next.base);
        let (mut groups, mut from, mut bytes) = (Vec::new(), 0, 0);
        for (at, segment) in segments.iter().enumerate() {
            let fits = bytes + segment.size() <= self.segment_bytes
                && segments[from].spans(Offset(end(at).0 - 1));
            if at > from && !fits {
                groups.push(&segments[from..at]);
                (from, bytes) = (at, 0);
            }
            bytes += segment.size();
        }
        if from < segments.len() {
            groups.push(&segments[from..]);
        }
        groups
    }

    /// Writes a group anew and swaps it in. None if it has no batch, or nothing would change.
    fn clean(
        &self,
        group: &[Arc<Segment>],
        keys: &Keys,
        counts: &mut Rewritten,
    ) -> Result<Option<Swapped>, CleanError> {
        let mut last = None;
        for segment in group {
            if let Some((position, _)) = last_batch(segment)? {
                last = Some((segment.base, position));
            }
        }
        let Some((last_in, last_at)) = last else { return Ok(None) };
        let base = group[0].base;
        let path = names::behind(&names::path(&self.dir, base, names::LOG), names::CLEANED);
        let file = self.fs.open(&path, OpenMode::Fresh)?;
        let mut writer = Writer::new(&*file);
        for segment in group {
            let last = (segment.base == last_in).then_some(last_at);
            if let Err(error) =
                rewrite::rewrite(segment, last, keys, &self.rules, &mut writer, counts)
            {
                // The next opening would remove it too.
                let _ = self.fs.remove(&path);
                return Err(error);
            }
        }
        let size = writer.finish()?;
        let cleaned = Segment::over(&self.fs, &self.dir, base, file, size);
        if let Some((position, damage)) = cleaned.reindex(self.index_interval_bytes)? {
            return Err(damaged(&cleaned, position, &damage));
        }
        swap::swap_in(&*self.fs, &self.dir, group, &cleaned)?;
        Ok(Some(Swapped { originals: group.to_vec(), cleaned: Arc::new(cleaned) }))
    }
}

impl Rules {
    /// Whether the batch is the last of some producer: it stays, if only for its sequence.
    fn is_a_last(&self, seen: &Seen) -> bool {
        let header = seen.header();
        header.producer_id().is_some() && self.producers.contains(&header.last_offset())
    }
}
