//! Retention: the start of the log rises by time, by size, or because someone says so, and
//! segments below it go.
//!
//! The new start is durable before a file is touched, so a crash in the middle leaves files
//! below the start, which the next opening removes.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use ottla_model::{Instant, Now, Offset};

use super::notes::Notes;
use super::{Log, State};
use crate::epochs::Epochs;
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

/// The start of a log, to be raised outside the log's lock: the disk is waited for.
#[derive(Debug)]
pub struct RaiseJob {
    notes: Arc<Notes>,
    start: Offset,
    /// The epochs above it, if that changes them, and which change under the lock they come after.
    epochs: Option<Epochs>,
    epochs_version: u64,
}

/// How that went. Give it back to [`Log::finish_raise`] or [`Log::finish_retain`].
#[derive(Debug)]
#[must_use = "the log waits for it"]
pub struct Raised {
    start: Offset,
    done: io::Result<()>,
}

/// Files to rename and to remove outside the log's lock.
#[derive(Debug)]
pub struct Removal {
    fs: Arc<dyn Fs>,
    dir: PathBuf,
    rename: Vec<Offset>,
    remove: Vec<Offset>,
}

/// A segment whose files wait for the last reader that was told of them.
#[derive(Debug)]
pub(super) struct Doomed {
    base: Offset,
    due: Instant,
    is_renamed: bool,
}

impl Log {
    /// Finds what `retention.ms` and `retention.bytes` no longer keep, and what lies below the
    /// log's start: never a segment that reaches past `committed`, the high watermark. None if
    /// there is nothing; else it goes once the job is run and [`Log::finish_retain`] told.
    ///
    /// # Errors
    /// The file system refused; the log is whole.
    pub fn start_retain(
        &mut self,
        now: Now,
        committed: Offset,
    ) -> Result<Option<RaiseJob>, ChangeError> {
        if self.is_cleaning() || self.state != State::Online {
            return Ok(None);
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
        Ok((go > 0).then(|| self.raise_job(segments[go].base)))
    }

    /// Takes the outcome of a job of [`Log::start_retain`]: the segments below the new start go,
    /// and [`Log::due_removal`] sees to their files.
    ///
    /// # Errors
    /// The file system refused; the log is whole.
    pub fn finish_retain(&mut self, raised: Raised, now: Now) -> Result<Retained, ChangeError> {
        let below = raised.start;
        self.finish_raise(raised)?;
        let segments = self.shared.segments();
        let go = segments.partition_point(|segment| segment.base < below);
        // Another may have been faster, and the last one stays.
        Ok(self.drop_oldest(&segments, go.min(segments.len() - 1), now.mono))
    }

    /// Raises the log's start to `offset` (DeleteRecords, KIP-107); none if it is not higher. The
    /// caller has seen to it that `offset` is at most the high watermark. Run it and tell
    /// [`Log::finish_raise`].
    ///
    /// # Errors
    /// Past the end.
    pub fn start_raise(&mut self, offset: Offset) -> Result<Option<RaiseJob>, ChangeError> {
        if offset <= self.start_offset() {
            return Ok(None);
        }
        self.check_range(offset)?;
        Ok(Some(self.raise_job(offset)))
    }

    /// Takes the outcome of a raise: the start is then durable, and what is below is not read any
    /// more. Returns the start.
    ///
    /// # Errors
    /// The file system refused: the start is as before.
    pub fn finish_raise(&mut self, raised: Raised) -> Result<Offset, ChangeError> {
        self.raising -= 1;
        raised.done.map_err(ChangeError::io("write the start offset"))?;
        // Another raise may have overtaken this one.
        let start = raised.start.max(self.kept.log_start);
        self.kept.log_start = start;
        self.shared.set_start(start);
        self.epochs.cut_start(start);
        Ok(start)
    }

    /// What there is to do for the files of segments that went, outside the lock: they are renamed
    /// at once, and removed when `file.delete.delay.ms` has passed.
    pub fn due_removal(&mut self, now: Instant) -> Option<Removal> {
        let (due, waits): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.doomed).into_iter().partition(|doomed| doomed.due <= now);
        self.doomed = waits;
        let fresh = self.doomed.iter_mut().filter(|doomed| !doomed.is_renamed);
        let rename = fresh.map(|doomed| {
            doomed.is_renamed = true;
            doomed.base
        });
        let rename: Vec<Offset> = rename.collect();
        let remove: Vec<Offset> = due.into_iter().map(|doomed| doomed.base).collect();
        let (fs, dir) = (self.fs.clone(), self.dir.clone());
        let is_some = !rename.is_empty() || !remove.is_empty();
        is_some.then_some(Removal { fs, dir, rename, remove })
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

    fn raise_job(&mut self, start: Offset) -> RaiseJob {
        self.raising += 1;
        let mut epochs = self.epochs.clone();
        let epochs = epochs.cut_start(start).then_some(epochs);
        let (notes, epochs_version) = (self.notes.clone(), self.epochs_version);
        RaiseJob { notes, start, epochs, epochs_version }
    }

    fn drop_oldest(&mut self, segments: &[Arc<Segment>], go: usize, now: Instant) -> Retained {
        let (gone, stay) = segments.split_at(go);
        self.shared.set_segments(stay.to_vec());
        self.syncing.deleted(gone);
        let due = now + self.config.file_delete_delay_ms;
        let doom = |gone: &Arc<Segment>| Doomed { base: gone.base, due, is_renamed: false };
        self.doomed.extend(gone.iter().map(doom));
        let bytes = gone.iter().map(|segment| segment.size()).sum();
        Retained { segments: gone.len(), bytes }
    }
}

impl RaiseJob {
    /// Makes the new start durable. Blocks on the disk.
    pub fn run(self) -> Raised {
        let to = KeptOffsets { log_start: self.start, ..KeptOffsets::default() };
        let done = self.notes.raise(to);
        if let (Ok(()), Some(epochs)) = (&done, &self.epochs) {
            // The file may say more than is needed: opening cuts it again.
            let _ = self.notes.write_epochs(epochs, self.epochs_version);
        }
        Raised { start: self.start, done }
    }
}

impl Removal {
    /// Renames and removes the files. What fails stays for the next opening.
    ///
    /// # Errors
    /// The last one, if any file could not be removed.
    pub fn run(self) -> io::Result<()> {
        for path in self.paths(&self.rename) {
            // What does not exist, or cannot be renamed, is removed under its old name.
            let _ = self.fs.rename(&path, &names::behind(&path, names::DELETED));
        }
        let mut done = Ok(());
        for path in self.paths(&self.remove) {
            for path in [names::behind(&path, names::DELETED), path] {
                match self.fs.remove(&path) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => done = Err(error),
                    _ => {}
                }
            }
        }
        done
    }

    fn paths(&self, bases: &[Offset]) -> impl Iterator<Item = PathBuf> {
        let of =
            |base: &Offset| names::OF_SEGMENT.map(|suffix| names::path(&self.dir, *base, suffix));
        bases.iter().flat_map(of)
    }
}
