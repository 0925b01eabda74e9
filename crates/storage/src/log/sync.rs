//! Group commit: one fsync, run outside the log's lock, for everything appended before it.
//!
//! Now and then a sync also writes the checkpoint that keeps restarts short. Data first, then
//! names, then the checkpoint that relies on both.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use ottla_model::Offset;
use parking_lot::Mutex;

use super::{Log, State};
use crate::checkpoint::{self, Checkpoint};
use crate::closed_file;
use crate::config::Durability;
use crate::error::Poison;
use crate::fs::{self, Fs};
use crate::segment::Segment;
use crate::synced_file;

/// What is written but not synced.
#[derive(Debug, Default)]
pub(super) struct Syncing {
    under_way: bool,
    /// Sealed segments, oldest first, that no sync has covered since their last batch.
    sealed: Vec<Arc<Segment>>,
    /// Sealed segments whose indexes no checkpoint has covered.
    unindexed: Vec<Arc<Segment>>,
    /// Whether the directory has names that are not durable.
    names: bool,
    bytes_since_checkpoint: u64,
    checkpoint_due: bool,
    /// Up to here a restart trusts the log.
    checkpointed: Offset,
    /// Base offset of the segment that the checkpoint ends in.
    checkpointed_in: Offset,
    /// Held by whoever writes the checkpoint's file: closing may overtake a sync.
    gate: Arc<Mutex<()>>,
}

/// A sync to run: fdatasync, and what belongs to it. It holds what it needs; the log may be
/// appended to meanwhile.
#[derive(Debug)]
pub struct SyncJob {
    fs: Arc<dyn Fs>,
    dir: PathBuf,
    sealed: Vec<Arc<Segment>>,
    active: Arc<Segment>,
    names: bool,
    up_to: Offset,
    checkpoint: Option<CheckpointJob>,
}

#[derive(Debug)]
struct CheckpointJob {
    gate: Arc<Mutex<()>>,
    recovery: Offset,
    segment: Offset,
    bytes: Vec<u8>,
    unindexed: Vec<Arc<Segment>>,
}

/// How a sync went. Give it back to [`Log::finish_sync`], whatever it says.
#[derive(Debug)]
#[must_use = "the log waits for it"]
pub struct Synced {
    sealed: Vec<Arc<Segment>>,
    names: bool,
    up_to: Offset,
    data: io::Result<()>,
    checkpoint: Option<Checkpointed>,
}

#[derive(Debug)]
struct Checkpointed {
    recovery: Offset,
    segment: Offset,
    unindexed: Vec<Arc<Segment>>,
    written: io::Result<()>,
}

impl Log {
    /// Whether there is anything that a sync would make safe.
    pub fn needs_sync(&self) -> bool {
        let due = self.syncing.checkpoint_due;
        due || self.syncing.names || self.synced_offset() < self.end_offset()
    }

    /// Has the next sync write a checkpoint, if a restart would have anything to look at: for logs
    /// that grow too slowly to come to one by [`LogConfig::checkpoint_bytes`]. True if so.
    ///
    /// [`LogConfig::checkpoint_bytes`]: crate::LogConfig::checkpoint_bytes
    pub fn checkpoint_soon(&mut self) -> bool {
        let due = self.syncing.checkpointed < self.end_offset();
        self.syncing.checkpoint_due |= due;
        due
    }

    /// The sync of everything appended so far; none if there is nothing to sync, if one is under
    /// way, or if the log is poisoned. Run it outside the lock and hand the outcome to
    /// [`Log::finish_sync`].
    pub fn start_sync(&mut self) -> Option<SyncJob> {
        if self.syncing.under_way || self.state != State::Online || !self.needs_sync() {
            return None;
        }
        Some(self.sync_job())
    }

    /// Takes the outcome of a sync. On success the synced offset has risen to what was appended
    /// when the sync began.
    ///
    /// # Errors
    /// The sync failed: the log is poisoned, and nothing past the synced offset is safe.
    pub fn finish_sync(&mut self, synced: Synced) -> Result<Offset, Poison> {
        self.syncing.under_way = false;
        if let Err(error) = synced.data {
            self.syncing.names |= synced.names;
            return Err(self.poison("sync the segment", &error));
        }
        forget(&mut self.syncing.sealed, &synced.sealed);
        // A log that is being closed may have overtaken this.
        self.shared.set_synced(synced.up_to.max(self.synced_offset()));
        match synced.checkpoint {
            Some(Checkpointed { recovery, segment, unindexed, written: Ok(()) }) => {
                forget(&mut self.syncing.unindexed, &unindexed);
                (self.syncing.checkpointed, self.syncing.checkpointed_in) = (recovery, segment);
            }
            Some(_) => self.take_indexes_back(),
            None => {}
        }
        Ok(synced.up_to)
    }

    /// What a checkpoint has not vouched for is written again by the next one.
    fn take_indexes_back(&self) {
        for segment in self.syncing.unindexed.iter().chain([&self.active]) {
            // If they cannot be read they are not believed either, when a restart checks them.
            let _ = segment.take_indexes_back();
        }
    }

    /// Syncs everything and writes the checkpoint, for a restart that has nothing to look at.
    /// Also leaves Kafka's snapshot file. The log can be dropped then, or used on.
    ///
    /// # Errors
    /// The data is not all safe: the log is poisoned, as after a failed sync.
    pub fn close(&mut self) -> Result<(), Poison> {
        if let State::Poisoned(poison) = &self.state {
            return Err(poison.clone());
        }
        self.syncing.checkpoint_due = true;
        let synced = self.sync_job().run();
        self.finish_sync(synced)?;
        let _ = self.active.offsets.trim();
        let _ = self.active.times.trim();
        let _ = self.write_snapshot(self.end_offset());
        // Where every append is synced nobody asks for it.
        if self.config.durability == Durability::PageCache {
            self.closed = true;
            let _ = closed_file::set(&*self.fs, &self.dir);
        }
        Ok(())
    }

    /// Writes the checkpoint of a log that is synced already, its indexes from the segment
    /// `first` on included.
    pub(super) fn write_checkpoint_now(&mut self, first: usize) -> io::Result<()> {
        for segment in &self.shared.segments()[first..] {
            match Arc::ptr_eq(segment, &self.active) {
                true => segment.write_indexes()?,
                // There may have been no room to seal it when its end was found.
                false => segment.seal()?,
            }
            segment.sync_indexes()?;
        }
        let checkpoint = self.checkpoint();
        let path = self.dir.join(checkpoint::FILE);
        fs::replace(&*self.fs, &path, &checkpoint.to_bytes())?;
        self.syncing = Syncing::clean(checkpoint.recovery, checkpoint.segment);
        Ok(())
    }

    fn sync_job(&mut self) -> SyncJob {
        self.syncing.under_way = true;
        let checkpoint = self.checkpoint_job();
        SyncJob {
            fs: self.fs.clone(),
            dir: self.dir.clone(),
            sealed: self.syncing.sealed.clone(),
            active: self.active.clone(),
            names: std::mem::take(&mut self.syncing.names),
            up_to: self.end_offset(),
            checkpoint,
        }
    }

    fn checkpoint_job(&mut self) -> Option<CheckpointJob> {
        let due = self.syncing.bytes_since_checkpoint >= self.config.checkpoint_bytes;
        if !due && !self.syncing.checkpoint_due {
            return None;
        }
        // Whether or not it can be written: trying again at once would help nobody.
        self.syncing.bytes_since_checkpoint = 0;
        self.syncing.checkpoint_due = false;
        for segment in &self.syncing.unindexed {
            segment.write_indexes().ok()?;
        }
        self.active.write_indexes().ok()?;
        let checkpoint = self.checkpoint();
        Some(CheckpointJob {
            gate: self.syncing.gate.clone(),
            recovery: checkpoint.recovery,
            segment: checkpoint.segment,
            bytes: checkpoint.to_bytes(),
            unindexed: self.syncing.unindexed.clone(),
        })
    }

    /// The checkpoint of the log's end as it is. It may be written once all of that is synced,
    /// the active segment's indexes included.
    pub(super) fn checkpoint(&self) -> Checkpoint {
        let tail = self.active.tail();
        Checkpoint {
            recovery: self.end_offset(),
            segment: self.active.base,
            position: self.active.size(),
            offset_entries: self.active.offsets.entries(),
            time_entries: self.active.times.entries(),
            since_entry: tail.since_entry,
            largest: tail.largest,
            first_append: tail.first_append,
            last_batch: tail.last_batch,
            producers: self.producers.clone(),
        }
    }
}

impl Syncing {
    /// Nothing is unsynced, and a restart would trust everything up to `checkpointed`, which
    /// lies in the segment that begins at `checkpointed_in`.
    pub(super) fn clean(checkpointed: Offset, checkpointed_in: Offset) -> Self {
        Self { checkpointed, checkpointed_in, ..Self::default() }
    }

    pub(super) fn under_way(&self) -> bool {
        self.under_way
    }

    /// Nothing is unsynced; no index is vouched for of the segments that stayed from one on.
    pub(super) fn cut(&mut self, stayed: &[Arc<Segment>]) {
        let unindexed = stayed.split_last().map(|(_, sealed)| sealed.to_vec()).unwrap_or_default();
        *self = Self { unindexed, checkpoint_due: true, ..Self::default() };
    }

    /// Segments that were deleted need no sync.
    pub(super) fn deleted(&mut self, segments: &[Arc<Segment>]) {
        forget(&mut self.sealed, segments);
        forget(&mut self.unindexed, segments);
    }

    /// Segments below this one a restart takes as they are.
    pub(super) fn checkpointed_in(&self) -> Offset {
        self.checkpointed_in
    }

    pub(super) fn appended(&mut self, bytes: u64) {
        self.bytes_since_checkpoint += bytes;
    }

    pub(super) fn rolled(&mut self, sealed: Arc<Segment>) {
        self.sealed.push(sealed.clone());
        self.unindexed.push(sealed);
        self.names = true;
        self.checkpoint_due = true;
    }
}

impl SyncJob {
    /// Everything below is safe if the job succeeds.
    pub fn up_to(&self) -> Offset {
        self.up_to
    }

    /// Runs the sync. Blocks on the disk.
    pub fn run(self) -> Synced {
        let data = self.sync_data();
        let checkpoint = match (&data, &self.checkpoint) {
            (Ok(()), Some(job)) => Some(self.write_checkpoint(job)),
            _ => None,
        };
        let Self { sealed, names, up_to, .. } = self;
        Synced { sealed, names, up_to, data, checkpoint }
    }

    fn sync_data(&self) -> io::Result<()> {
        for segment in self.sealed.iter().chain([&self.active]) {
            segment.file.sync()?;
        }
        if self.names {
            self.fs.sync_dir(&self.dir)?;
        }
        // If it cannot be noted a start writes again what is safe already: that harms nothing.
        let _ = synced_file::write(&*self.fs, &self.dir, self.up_to);
        Ok(())
    }

    fn write_checkpoint(&self, job: &CheckpointJob) -> Checkpointed {
        let mut indexes = job.unindexed.iter().chain([&self.active]);
        let written = indexes.try_for_each(|segment| segment.sync_indexes());
        let path = self.dir.join(checkpoint::FILE);
        let _held = job.gate.lock();
        let written = written.and_then(|()| fs::replace(&*self.fs, &path, &job.bytes));
        let CheckpointJob { recovery, segment, ref unindexed, .. } = *job;
        Checkpointed { recovery, segment, unindexed: unindexed.clone(), written }
    }
}

impl Synced {
    /// Why the data is not safe, if it is not.
    pub fn data_error(&self) -> Option<&io::Error> {
        self.data.as_ref().err()
    }

    /// Why the checkpoint, if this sync was to write one, was not written. That costs time at
    /// the next restart, nothing else.
    pub fn checkpoint_error(&self) -> Option<&io::Error> {
        self.checkpoint.as_ref().and_then(|done| done.written.as_ref().err())
    }
}

/// Takes `done` off a list of what is left to do. What was deleted meanwhile is not on it.
fn forget(left: &mut Vec<Arc<Segment>>, done: &[Arc<Segment>]) {
    left.retain(|segment| !done.iter().any(|done| Arc::ptr_eq(segment, done)));
}
