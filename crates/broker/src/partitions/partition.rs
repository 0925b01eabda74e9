//! One partition as this broker leads it: its log behind a lock, its watermark, its reader.

use super::syncer::SyncQueue;
use super::watermark::{Passes, Watermark};
use crate::clock;
use bytes::Bytes;
use ottla_model::{LeaderEpoch, Now, Offset, TopicId, TopicPartition};
use ottla_records::BatchMut;
use ottla_storage::fs::{Fs, is_disk_full};
use ottla_storage::{
    AppendContext, AppendError, Appended, ChangeError, Durability, Log, LogConfig, Origin,
    ReadError, Reader, Retained,
};
use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicI32, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A partition this broker leads. Everything but appends and changes of the log's extent goes
/// without its lock.
pub(crate) struct Partition {
    /// Its name.
    pub(crate) at: TopicPartition,
    /// Its topic's id.
    pub(crate) topic_id: TopicId,
    log: Mutex<Locked>,
    reader: Reader,
    leader_epoch: AtomicI32,
    watermark: Arc<Watermark>,
    /// Bytes ever appended that the watermark has passed; for fetches that wait for many bytes.
    bytes_passed: AtomicU64,
    sync_state: AtomicU8,
    syncs: SyncQueue,
}

struct Locked {
    log: Log,
    /// Appends need their bytes to themselves; requests are borrowed.
    buffer: Vec<u8>,
    bytes_appended: u64,
}

impl Partition {
    /// The partition over an open log, whose unsynced end was dealt with by opening it.
    pub(crate) fn new(
        at: TopicPartition,
        topic_id: TopicId,
        log: Log,
        epoch: LeaderEpoch,
        syncs: SyncQueue,
    ) -> Self {
        let reader = log.reader();
        Self {
            at,
            topic_id,
            leader_epoch: AtomicI32::new(epoch.0),
            watermark: Arc::new(Watermark::new(log.safe_offset())),
            reader,
            log: Mutex::new(Locked { log, buffer: Vec::new(), bytes_appended: 0 }),
            bytes_passed: AtomicU64::new(0),
            sync_state: AtomicU8::new(CLEAN),
            syncs,
        }
    }

    /// Appends whole, validated batches; what comes with the outcome completes when they are safe.
    /// `prepare` may still edit the first one.
    ///
    /// # Errors
    /// As [`Log::append`]; nothing was appended.
    pub(crate) fn append(
        self: &Arc<Self>,
        batches: &[u8],
        now: Now,
        origin: Origin,
        prepare: impl FnOnce(&mut BatchMut<'_>),
    ) -> Result<(Appended, Passes), AppendError> {
        let mut guard = self.lock();
        let locked = &mut *guard;
        locked.buffer.clear();
        locked.buffer.extend_from_slice(batches);
        if let Ok(mut first) = BatchMut::first(&mut locked.buffer) {
            prepare(&mut first);
        }
        let context = AppendContext { leader_epoch: self.leader_epoch(), now, origin };
        let appended = locked.log.append(&mut locked.buffer, context)?;
        locked.bytes_appended += batches.len() as u64;
        // Still under the lock: a sync that fails for these batches must find this waiting.
        let passes = self.watermark.passes(appended.last);
        if locked.buffer.capacity() > BUFFER_KEEP {
            locked.buffer = Vec::new();
        }
        if locked.log.config().durability == Durability::PageCache {
            self.pass(locked.log.end_offset(), locked.bytes_appended);
            drop(guard);
        } else {
            drop(guard);
            self.mark_dirty();
        }
        Ok((appended, passes))
    }

    /// Whole batches from `from` on, below the watermark.
    ///
    /// # Errors
    /// As [`Reader::read`].
    pub(crate) fn read(
        &self,
        from: Offset,
        bytes_max: usize,
        first_max: usize,
    ) -> Result<Bytes, ReadError> {
        let read = self.reader.read(from, bytes_max, self.watermark.offset(), first_max)?;
        Ok(read.bytes)
    }

    /// What the log's folder lies on, and where.
    pub(crate) fn place(&self) -> (Arc<dyn Fs>, PathBuf) {
        let locked = self.lock();
        (Arc::clone(locked.log.fs()), locked.log.dir().to_owned())
    }

    /// The high watermark: everything below may be seen.
    pub(crate) fn high_watermark(&self) -> Offset {
        self.watermark.offset()
    }

    /// The first offset there is to read.
    pub(crate) fn start_offset(&self) -> Offset {
        self.reader.start_offset()
    }

    /// Completes once the record at `offset` is safe.
    pub(crate) fn passes(&self, offset: Offset) -> Passes {
        self.watermark.passes(offset)
    }

    /// The same, for whoever appended when the log had been set back `setbacks` times.
    pub(crate) fn passes_since(&self, offset: Offset, setbacks: u64) -> Passes {
        self.watermark.passes_since(offset, setbacks)
    }

    /// How often the log's end has gone back.
    pub(crate) fn setbacks(&self) -> u64 {
        self.watermark.setbacks()
    }

    /// The offset of the next append.
    pub(crate) fn end_offset(&self) -> Offset {
        self.reader.end_offset()
    }

    /// Bytes ever appended that may be seen.
    pub(crate) fn bytes_passed(&self) -> u64 {
        self.bytes_passed.load(Ordering::Acquire)
    }

    /// The leader's reign.
    pub(crate) fn leader_epoch(&self) -> LeaderEpoch {
        LeaderEpoch(self.leader_epoch.load(Ordering::Acquire))
    }

    /// Does something with the log under its lock. Not for what takes long.
    pub(crate) fn with_log<T>(&self, act: impl FnOnce(&mut Log) -> T) -> T {
        act(&mut self.lock().log)
    }

    /// Raises the log's start (DeleteRecords); returns the start, durable. Blocks on the disk, but
    /// nobody who appends or reads.
    ///
    /// # Errors
    /// As [`Log::finish_raise`].
    pub(crate) fn delete_records_before(&self, offset: Offset) -> Result<Offset, ChangeError> {
        match self.with_log(|log| log.start_raise(offset))? {
            Some(job) => {
                let raised = job.run();
                self.with_log(|log| log.finish_raise(raised))
            }
            None => Ok(self.start_offset()),
        }
    }

    /// Lets go what the topic's settings no longer keep. Blocks like the above.
    ///
    /// # Errors
    /// As [`Log::start_retain`] and [`Log::finish_retain`].
    pub(super) fn retain(&self, now: Now) -> Result<Retained, ChangeError> {
        let committed = self.high_watermark();
        let job = self.with_log(|log| {
            log.expire_producers(now.wall);
            log.start_retain(now, committed)
        })?;
        let Some(job) = job else { return Ok(Retained::default()) };
        let raised = job.run();
        self.with_log(|log| log.finish_retain(raised, now))
    }

    /// The cluster says that the leader reigns under `epoch`; nothing happens if it is not newer.
    pub(super) fn begin_reign(&self, epoch: LeaderEpoch) {
        if epoch <= self.leader_epoch() {
            return;
        }
        // Under the lock, or an append in between would still come under the old one.
        let begun = self.with_log(|log| {
            let begun = log.begin_epoch(epoch);
            // For want of room the next append begins it, or is refused.
            if begun.as_ref().err().is_none_or(is_disk_full) {
                self.leader_epoch.fetch_max(epoch.0, Ordering::AcqRel);
            }
            begun
        });
        if let Err(error) = begun {
            tracing::error!(partition = %self.at, %error, "cannot begin a reign");
        }
    }

    /// Syncs and closes the log, at shutdown.
    pub(crate) fn close(&self) {
        if let Err(poison) = self.with_log(Log::close) {
            tracing::error!(partition = %self.at, %poison, "a log could not be closed cleanly");
        }
    }

    /// The log's size in bytes.
    pub(crate) fn size(&self) -> u64 {
        self.with_log(|log| log.size())
    }

    /// A handle for reads that the watermark does not bound.
    pub(crate) fn reader(&self) -> &Reader {
        &self.reader
    }

    /// Puts other settings in force.
    pub(super) fn set_config(&self, config: LogConfig) {
        self.lock().log.set_config(config);
    }

    /// The partition is leaving this broker: nobody must wait for it any more.
    pub(super) fn give_up(&self) {
        self.watermark.set_back(self.watermark.offset());
    }

    /// Has the log synced soon, if it is not in the queue for it already.
    pub(crate) fn mark_dirty(self: &Arc<Self>) {
        let was = self.sync_state.fetch_or(DIRTY, Ordering::AcqRel);
        if was == CLEAN {
            self.syncs.push(Arc::clone(self));
        }
    }

    /// Syncs the log; for the syncer's threads.
    pub(crate) fn sync(self: &Arc<Self>) {
        self.sync_state.store(BUSY, Ordering::Release);
        let job = {
            let mut locked = self.lock();
            let bytes = locked.bytes_appended;
            locked.log.start_sync().map(|job| (job, bytes))
        };
        if let Some((job, bytes)) = job {
            let synced = job.run();
            let finished = self.lock().log.finish_sync(synced);
            match finished {
                Ok(up_to) => self.pass(up_to, bytes),
                Err(poison) => {
                    tracing::error!(partition = %self.at, %poison, "cannot sync");
                    self.watermark.set_back(self.watermark.offset());
                }
            }
        }
        // Whoever appended meanwhile did not queue it, trusting this.
        if self.sync_state.fetch_and(!BUSY, Ordering::AcqRel) & DIRTY != 0 {
            self.syncs.push(Arc::clone(self));
        }
    }

    /// Brings a log back that refuses appends after a failure; true if it takes them now.
    pub(crate) fn recover(&self) -> bool {
        let recovered = self.with_log(|log| log.recover(clock::now()));
        match recovered {
            Ok(recovery) => {
                if let Some(epoch) = recovery.epoch_raised {
                    self.leader_epoch.fetch_max(epoch.0, Ordering::AcqRel);
                }
                // With durability = "page-cache" more was shown than was safe.
                if recovery.end < self.high_watermark() {
                    self.watermark.set_back(recovery.end);
                }
                tracing::warn!(partition = %self.at, %recovery, "takes appends again");
                true
            }
            Err(error) => {
                tracing::debug!(partition = %self.at, %error, "cannot be recovered yet");
                false
            }
        }
    }

    fn pass(&self, to: Offset, bytes: u64) {
        self.bytes_passed.fetch_max(bytes, Ordering::AcqRel);
        self.watermark.raise(to);
    }

    fn lock(&self) -> MutexGuard<'_, Locked> {
        // A panic inside the log poisons the log itself where it matters; see Log::state.
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Partition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.at, self.leader_epoch())
    }
}

/// Nothing to sync.
const CLEAN: u8 = 0;
/// Appended to since the last sync began.
const DIRTY: u8 = 1;
/// A thread syncs it.
const BUSY: u8 = 2;
/// An append buffer larger than this goes back to the allocator.
const BUFFER_KEEP: usize = 1024 * 1024;
