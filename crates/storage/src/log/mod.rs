//! A log: its segments, its ends, its state. The parts that change it are in the files beside.
//!
//! One owner writes, under whatever lock it keeps; [`Reader`]s read without that lock. Whatever
//! takes long (fsync, deleting files, compaction) is a job that runs outside the lock, between a
//! short `start_*` and a short `finish_*`.

mod append;
mod compact;
mod cut;
mod lookup;
mod notes;
mod open;
mod reader;
mod retain;
mod sync;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ottla_model::{LeaderEpoch, Offset, ProducerId, Timestamp};

use crate::config::{Durability, LogConfig};
use crate::epochs::Epochs;
use crate::error::{ChangeError, Poison};
use crate::fs::{self, Fs};
use crate::offsets_file::KeptOffsets;
use crate::producers::{Producer, Producers};
use crate::segment::{Segment, names};

pub use append::{AppendContext, Appended, Origin};
pub use compact::{CleanJob, CleanReport, Cleaned};
pub use lookup::TimedOffset;
pub use open::{Cut, CutReason, Recovery};
pub use reader::{Read, Reader};
pub use retain::{RaiseJob, Raised, Removal, Retained};
pub use sync::{SyncJob, Synced};

use notes::Notes;
use reader::Shared;
use retain::Doomed;
use sync::Syncing;

/// One partition's log. See the crate's documentation for how its methods work together.
pub struct Log {
    fs: Arc<dyn Fs>,
    dir: PathBuf,
    config: LogConfig,
    shared: Arc<Shared>,
    active: Arc<Segment>,
    producers: Producers,
    epochs: Epochs,
    /// Rises with every change to `epochs` that is written under the lock.
    epochs_version: u64,
    kept: KeptOffsets,
    notes: Arc<Notes>,
    state: State,
    syncing: Syncing,
    doomed: Vec<Doomed>,
    /// Where the segments end that a running compaction works on: they stay as they are.
    cleaning: Option<Offset>,
    /// How many jobs are raising the start: the end stays above it, and segments stay as they are.
    raising: usize,
    /// Whether a file says that the log was closed, which an append would make a lie.
    closed: bool,
}

/// Whether a log takes appends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// It does.
    Online,
    /// A write or sync failed: appends are refused until [`Log::recover`] succeeds. Reads below
    /// the synced offset go on.
    Poisoned(Poison),
}

impl Log {
    /// Whether the log takes appends.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// What the log's folder lies on.
    pub fn fs(&self) -> &Arc<dyn Fs> {
        &self.fs
    }

    /// The log's folder.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The settings in force.
    pub fn config(&self) -> &LogConfig {
        &self.config
    }

    /// Puts other settings in force, from the next operation on.
    pub fn set_config(&mut self, config: LogConfig) {
        self.config = config;
    }

    /// A handle that reads without the log's lock.
    pub fn reader(&self) -> Reader {
        Reader(self.shared.clone())
    }

    /// The first offset there is to read.
    pub fn start_offset(&self) -> Offset {
        self.shared.start()
    }

    /// The offset of the next append: the log's end.
    pub fn end_offset(&self) -> Offset {
        self.shared.end()
    }

    /// Everything below is on the disk. By default the high watermark must not pass it; with
    /// [`Durability::PageCache`] see [`Log::safe_offset`].
    pub fn synced_offset(&self) -> Offset {
        self.shared.synced()
    }

    /// How far the durability that was asked for reaches: the synced offset, or the end.
    pub fn safe_offset(&self) -> Offset {
        match self.config.durability {
            Durability::Fsync => self.synced_offset(),
            Durability::PageCache => self.end_offset(),
        }
    }

    /// Bytes of all segments.
    pub fn size(&self) -> u64 {
        self.shared.segments().iter().map(|segment| segment.size()).sum()
    }

    /// How many segments there are; never zero.
    pub fn segment_count(&self) -> usize {
        self.shared.segments().len()
    }

    /// The newest leader epoch the log knows.
    pub fn leader_epoch(&self) -> Option<LeaderEpoch> {
        self.epochs.latest()
    }

    /// OffsetForLeaderEpoch (KIP-101, KIP-320): the largest epoch known up to `asked`, and the
    /// offset where it ended. None if `asked` is newer than every epoch here.
    pub fn epoch_end(&self, asked: LeaderEpoch) -> Option<(LeaderEpoch, Offset)> {
        self.epochs.end_of(asked, self.end_offset())
    }

    /// The leader epoch of the record at `offset`.
    pub fn epoch_of(&self, offset: Offset) -> Option<LeaderEpoch> {
        self.epochs.of_offset(offset)
    }

    /// Begins a leader epoch at the log's end, durably; nothing happens if it is not newer. The
    /// broker calls it when it becomes leader; an append by a newer epoch does it too.
    ///
    /// # Errors
    /// The epoch could not be written down: the log is as before.
    pub fn begin_epoch(&mut self, epoch: LeaderEpoch) -> io::Result<()> {
        let mut epochs = self.epochs.clone();
        if epochs.assign(epoch, self.end_offset()) {
            self.write_epochs(&epochs)?;
            self.epochs = epochs;
        }
        Ok(())
    }

    /// The producers whose batches the log remembers, in no order (DescribeProducers, KIP-664).
    pub fn producers(&self) -> impl Iterator<Item = (ProducerId, &Producer)> {
        self.producers.iter()
    }

    /// One producer.
    pub fn producer(&self, id: ProducerId) -> Option<&Producer> {
        self.producers.by_id(id)
    }

    /// Forgets producers silent for `producer.id.expiration.ms`. Returns how many.
    pub fn expire_producers(&mut self, now: Timestamp) -> usize {
        self.producers.expire(now, self.config.producer_expiration_ms)
    }

    /// Ends the active segment and begins the next one, unless it is empty.
    fn roll(&mut self) -> io::Result<()> {
        if self.active.size() == 0 {
            return Ok(());
        }
        self.active.seal()?;
        let base = self.end_offset();
        let next = Arc::new(Segment::create(&self.fs, &self.dir, base)?);
        let mut segments = Vec::clone(&self.shared.segments());
        segments.push(next.clone());
        self.shared.set_segments(segments);
        let sealed = std::mem::replace(&mut self.active, next);
        self.syncing.rolled(sealed);
        // For Kafka's tools, and for a start without our checkpoint: its loss loses nothing.
        let _ = self.write_snapshot(base);
        Ok(())
    }

    fn write_snapshot(&self, at: Offset) -> io::Result<()> {
        let path = names::path(&self.dir, at, names::SNAPSHOT);
        let file = self.fs.open(&path, fs::OpenMode::Fresh)?;
        file.write_at(0, &self.producers.to_snapshot())
    }

    fn write_epochs(&mut self, epochs: &Epochs) -> io::Result<()> {
        self.epochs_version += 1;
        self.notes.write_epochs(epochs, self.epochs_version)
    }

    fn poison(&mut self, what: &'static str, error: &io::Error) -> Poison {
        let poison = Poison::new(what, error);
        self.state = State::Poisoned(poison.clone());
        poison
    }

    fn check_range(&self, offset: Offset) -> Result<(), ChangeError> {
        let (start, end) = (self.start_offset(), self.end_offset());
        if offset < start || offset > end {
            return Err(ChangeError::OutOfRange { offset, start, end });
        }
        Ok(())
    }
}

impl fmt::Debug for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Log")
            .field("dir", &self.dir)
            .field("start", &self.start_offset())
            .field("synced", &self.synced_offset())
            .field("end", &self.end_offset())
            .field("segments", &self.segment_count())
            .field("producers", &self.producers.len())
            .field("state", &self.state)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
impl Log {
    /// Holds every index entry of every segment against the batches.
    pub(crate) fn check_indexes(&self) {
        for segment in self.shared.segments().iter() {
            segment.check_indexes();
        }
    }
}
