//! Retention: the start of the log rises by time, by size, or because someone says so, and
//! segments below it go.
//!
//! The new start is durable before a file is touched, so a crash in the middle leaves files
//! below the start, which the next opening removes.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use ottla_model::{Instant, Now, Offset};

use super::{Log, State};
use crate::error::ChangeError;
use crate::fs::Fs;
use crate::offsets_file::KeptOffsets;
use crate::segment::{Segment, names};

/// What retention did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Retained {
    /// Segments that went.
    pub segments: usize,
    /// Their bytes.
    pub bytes: u64,
}

/// Files to remove outside the log's lock.
#[derive(Debug)]
pub struct Removal {
    fs: Arc<dyn Fs>,
    paths: Vec<PathBuf>,
}

/// A segment's files, renamed, waiting for the last reader that was told of them.
#[derive(Debug)]
pub(super) struct Doomed {
    due: Instant,
    paths: Vec<PathBuf>,
}

impl Log {
    /// Lets go what `retention.ms` and `retention.bytes` no longer keep, and what lies below the
    /// log's start. Never a segment that reaches past `committed`, the high watermark.
    ///
    /// # Errors
    /// The file system refused; the log is whole.
    pub fn retain(&mut self, now: Now, committed: Offset) -> Result<Retained, ChangeError> {
        if self.is_cleaning() || self.state != State::Online {
            return Ok(Retained::default());
        }
        let segments = self.shared.segments();
        let mut go = self.expired(&segments, now, committed);
        if go == segments.len() {
            // The active one has to end before it can go.
            self.roll().map_err(ChangeError::io("begin a segment"))?;
        }
        // The segment that a restart begins at stays until the next checkpoint.
        let segments = self.shared.segments();
        let safe = |at: &usize| segments[*at].base < self.syncing.checkpointed_in();
        go = (0..go.min(segments.len() - 1)).take_while(safe).count();
        if go == 0 {
            return Ok(Retained::default());
        }
        self.raise_start(segments[go].base).map_err(ChangeError::io("write the start offset"))?;
        Ok(self.drop_oldest(&segments, go, now.mono))
    }

    /// Raises the log's start to `offset` (DeleteRecords, KIP-107), durably; nothing happens if
    /// it is not higher. The caller has seen to it that `offset` is at most the high watermark.
    /// Returns the start.
    ///
    /// # Errors
    /// Past the end, or the file system refused: the start is as before.
    pub fn delete_records_before(&mut self, offset: Offset) -> Result<Offset, ChangeError> {
        if offset > self.start_offset() {
            self.check_range(offset)?;
            self.raise_start(offset).map_err(ChangeError::io("write the start offset"))?;
        }
        Ok(self.start_offset())
    }

    /// Files whose `file.delete.delay.ms` has passed, to be removed outside the lock.
    pub fn due_removal(&mut self, now: Instant) -> Option<Removal> {
        let (due, waits): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.doomed).into_iter().partition(|doomed| doomed.due <= now);
        self.doomed = waits;
        let paths: Vec<PathBuf> = due.into_iter().flat_map(|doomed| doomed.paths).collect();
        (!paths.is_empty()).then(|| Removal { fs: self.fs.clone(), paths })
    }

    /// How many segments, from the oldest on, are no longer kept.
    fn expired(&self, segments: &[Arc<Segment>], now: Now, committed: Offset) -> usize {
        let end = |at: usize| segments.get(at + 1).map_or(self.end_offset(), |next| next.base);
        let policy = self.config.cleanup_policy;
        let mut surplus = match self.config.retention_bytes.filter(|_| policy.delete) {
            Some(keep) => self.size().saturating_sub(keep),
            None => 0,
        };
        let mut go = 0;
        for (at, segment) in segments.iter().enumerate() {
            let small = surplus > 0 && segment.size() <= surplus;
            let old = policy.delete && self.is_old(segment, now);
            let below = end(at) <= self.start_offset();
            let empty = segment.size() == 0 && at + 1 == segments.len();
            if empty || end(at) > committed || !(small || old || below) {
                break;
            }
            surplus = surplus.saturating_sub(segment.size());
            go += 1;
        }
        go
    }

    fn is_old(&self, segment: &Segment, now: Now) -> bool {
        let Some(keep) = self.config.retention_ms else { return false };
        segment.largest().is_some_and(|largest| largest.timestamp.plus(keep) < now.wall)
    }

    /// Moves the start, the file first.
    fn raise_start(&mut self, start: Offset) -> io::Result<()> {
        let start = start.max(self.kept.log_start);
        let kept = KeptOffsets { log_start: start, ..self.kept };
        self.write_kept(kept)?;
        self.kept = kept;
        self.shared.set_start(start);
        let mut epochs = self.epochs.clone();
        if epochs.cut_start(start) {
            // The file may say more than is needed: opening cuts it again.
            let _ = self.write_epochs(&epochs);
            self.epochs = epochs;
        }
        Ok(())
    }

    fn drop_oldest(&mut self, segments: &[Arc<Segment>], go: usize, now: Instant) -> Retained {
        let (gone, stay) = segments.split_at(go);
        self.shared.set_segments(stay.to_vec());
        self.syncing.deleted(gone);
        for segment in gone {
            self.doom(segment.base, now + self.config.file_delete_delay_ms);
        }
        let bytes = gone.iter().map(|segment| segment.size()).sum();
        Retained { segments: gone.len(), bytes }
    }

    /// Renames a segment's files and notes when to remove them.
    pub(super) fn doom(&mut self, base: Offset, due: Instant) {
        let mut paths = Vec::new();
        for suffix in names::OF_SEGMENT {
            let path = names::path(&self.dir, base, suffix);
            let dead = names::behind(&path, names::DELETED);
            // What does not exist, or cannot be renamed, the next opening sees to.
            if self.fs.rename(&path, &dead).is_ok() {
                paths.push(dead);
            }
        }
        self.doomed.push(Doomed { due, paths });
    }
}

impl Removal {
    /// Removes the files. What fails stays, renamed, for the next opening.
    ///
    /// # Errors
    /// The last one, if any file could not be removed.
    pub fn run(self) -> io::Result<()> {
        let mut done = Ok(());
        for path in &self.paths {
            if let Err(error) = self.fs.remove(path) {
                done = Err(error);
            }
        }
        done
    }
}
