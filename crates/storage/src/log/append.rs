//! Appending: offsets assigned in place, one write, then the indexes' and producers' notes.

use ottla_model::{LeaderEpoch, Now, Offset, Timestamp};
use ottla_records::{Batch, BatchesMut, Header, TimestampType};

use super::{Log, State};
use crate::closed_file;
use crate::error::{AppendError, Malformed};
use crate::fs::is_disk_full;
use crate::producers::{ProducerBatch, Verdict};
use crate::segment::Entry;
use crate::segment::{OffsetEntry, PAGE_ENTRIES, TimeEntry};

/// Who appends, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AppendContext {
    /// The leader epoch of the writer: an older one than the log's is fenced, a newer one begins.
    pub leader_epoch: LeaderEpoch,
    /// Both clocks' now.
    pub now: Now,
    /// Whose batches they are.
    pub origin: Origin,
}

/// Whose batches are appended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A producer's: its sequence numbers are checked.
    Client,
    /// A group coordinator's own records: they have no producer.
    Coordinator,
}

/// Where an append went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Appended {
    /// Offset of the first record.
    pub first: Offset,
    /// Offset of the last record. The append is safe once the synced offset is past it.
    pub last: Offset,
    /// The time that all records were given, with `message.timestamp.type=LogAppendTime`.
    pub log_append_time: Option<Timestamp>,
    /// Whether the log had the batch already: the offsets are then the original ones.
    pub duplicate: bool,
}

/// What a first look at the bytes tells.
struct Survey {
    batches: usize,
    records: i64,
    producers: bool,
}

impl Log {
    /// Appends whole batches of magic 2 (one or more), assigning offsets and leader epoch in
    /// place; neither is under the checksum. The caller has validated a client's batches
    /// (`records::validate_produced`): here only framing, offsets and sequences are looked at.
    ///
    /// The batches are readable at once below a bound that the caller chooses, and safe when a
    /// sync has passed them. One write, however many batches.
    ///
    /// # Errors
    /// Nothing was appended, and there is no gap. [`AppendError::DiskFull`] passes;
    /// [`AppendError::Poisoned`] stays until [`Log::recover`].
    pub fn append(
        &mut self,
        batches: &mut [u8],
        context: AppendContext,
    ) -> Result<Appended, AppendError> {
        if let State::Poisoned(poison) = &self.state {
            return Err(AppendError::Poisoned(poison.clone()));
        }
        let survey = survey(batches)?;
        let segment_bytes = self.segment_bytes_max();
        if batches.len() as u64 > segment_bytes {
            return Err(AppendError::TooLarge { bytes: batches.len(), segment_bytes });
        }
        self.check_epoch(context.leader_epoch)?;
        if context.origin == Origin::Client
            && survey.producers
            && let Some(original) = self.check_sequence(batches, &survey)?
        {
            return Ok(duplicate(original));
        }
        self.withdraw_closed()?;
        self.begin_append_epoch(context.leader_epoch)?;
        let first = self.end_offset();
        let next = first.0.checked_add(survey.records).filter(|next| *next < i64::MAX);
        let next = Offset(next.ok_or(AppendError::OffsetsUsedUp { end: first })?);
        let last = Offset(next.0 - 1);
        self.roll_if_due(batches.len() as u64, last, context.now)?;
        let log_append_time = self.prepare(batches, first, context);
        self.write(batches)?;
        self.note_batches(batches, context.now);
        self.shared.set_end(next);
        Ok(Appended { first, last, log_append_time, duplicate: false })
    }

    /// Whether the log would refuse this writer.
    fn check_epoch(&self, given: LeaderEpoch) -> Result<(), AppendError> {
        match self.epochs.latest() {
            Some(current) if given < current => Err(AppendError::Fenced { given, current }),
            _ => Ok(()),
        }
    }

    fn begin_append_epoch(&mut self, epoch: LeaderEpoch) -> Result<(), AppendError> {
        if self.epochs.latest() == Some(epoch) {
            return Ok(());
        }
        self.begin_epoch(epoch).map_err(|error| self.refuse("write the leader epoch", error))
    }

    /// A log that is used on after it was closed is not closed.
    fn withdraw_closed(&mut self) -> Result<(), AppendError> {
        if self.closed {
            let taken = closed_file::take(&*self.fs, &self.dir);
            taken.map_err(|error| self.refuse("open the log again", error))?;
            self.closed = false;
        }
        Ok(())
    }

    /// The original of a duplicate, or none for what is new.
    fn check_sequence(
        &self,
        batches: &[u8],
        survey: &Survey,
    ) -> Result<Option<ProducerBatch>, AppendError> {
        if survey.batches > 1 {
            return Err(Malformed::ManyIdempotent.into());
        }
        let header = Header::new(batches).ok_or(Malformed::Empty)?;
        let Some(id) = header.producer_id() else { return Ok(None) };
        match self.producers.check(id, header)? {
            Verdict::New => Ok(None),
            Verdict::Duplicate(original) => Ok(Some(original)),
        }
    }

    fn segment_bytes_max(&self) -> u64 {
        // An index entry's position is a positive i32.
        self.config.segment_bytes.min(i32::MAX as u64)
    }

    fn roll_if_due(&mut self, bytes: u64, last: Offset, now: Now) -> Result<(), AppendError> {
        let size = self.active.size();
        if size == 0 {
            self.active.begin(now.wall);
            // The base is where the segment begins, so a single append always fits.
            return Ok(());
        }
        let old = self.active.tail().first_append.plus(self.segment_ms()) <= now.wall;
        let full = size + bytes > self.segment_bytes_max();
        if old || full || !self.active.spans(last) || self.index_full() {
            self.roll().map_err(|error| self.refuse("begin a segment", error))?;
            self.active.begin(now.wall);
        }
        Ok(())
    }

    fn segment_ms(&self) -> std::time::Duration {
        let jitter = self.config.segment_jitter_ms.as_millis().max(1);
        // Spread by what differs between partitions and segments and is the same after a restart.
        let seed = crc32c::crc32c(self.dir.as_os_str().as_encoded_bytes()) as u64;
        let part = (seed ^ self.active.base.0 as u64) as u128 % jitter;
        // Of a compacted log no record may wait in the active segment for longer than it may lie.
        let lag = self.config.compaction_lag_max_ms.filter(|_| self.config.cleanup_policy.compact);
        let ms = lag.map_or(self.config.segment_ms, |lag| lag.min(self.config.segment_ms));
        ms.saturating_sub(std::time::Duration::from_millis(part as u64))
    }

    fn index_full(&self) -> bool {
        let entries_max = |len: usize| self.config.index_bytes_max / len as u64;
        let full = |entries: u32, len| u64::from(entries) + 1 >= entries_max(len).max(2);
        full(self.active.offsets.entries(), OffsetEntry::LEN)
            || full(self.active.times.entries(), TimeEntry::LEN)
    }

    /// Assigns what the leader assigns. Framing was checked by the survey.
    fn prepare(
        &self,
        batches: &mut [u8],
        first: Offset,
        context: AppendContext,
    ) -> Option<Timestamp> {
        let stamp = self.config.timestamp_type == TimestampType::LogAppend;
        let mut next = first;
        for mut batch in BatchesMut::new(batches).flatten() {
            batch.set_base_offset(next);
            batch.set_leader_epoch(context.leader_epoch);
            if stamp {
                batch.set_log_append_time(context.now.wall);
            }
            next = batch.header().next_offset();
        }
        stamp.then_some(context.now.wall)
    }

    fn write(&mut self, batches: &[u8]) -> Result<(), AppendError> {
        let size = self.active.size();
        let Err(error) = self.active.file.write_at(size, batches) else {
            return Ok(());
        };
        // Whatever part was written must not come to life at the next start.
        let undone = self.active.file.set_len(size).is_ok();
        if is_disk_full(&error) && undone {
            return Err(AppendError::DiskFull(error));
        }
        Err(AppendError::Poisoned(self.poison("write to the segment", &error)))
    }

    /// Publishes what was written, and lets indexes and producers take note of it.
    fn note_batches(&mut self, batches: &[u8], now: Now) {
        let mut position = self.active.size();
        for batch in ottla_records::Batches::new(batches).flatten() {
            let header = batch.header();
            self.active.note(header, position, self.config.index_interval_bytes);
            position += batch.bytes().len() as u64;
            if let Some(id) = header.producer_id() {
                self.producers.note(id, header, now.wall);
                self.producers.bound(self.config.producers_max);
            }
        }
        self.active.publish(position);
        self.syncing.appended(batches.len() as u64);
        self.write_index_page();
    }

    /// Hands the index file whole pages. Failing is no harm: the entries stay in memory, and
    /// sealing the segment will say so.
    fn write_index_page(&self) {
        if self.active.offsets.unwritten() >= PAGE_ENTRIES {
            let _ = self.active.write_indexes();
        }
    }

    /// The error of a step before the write: for want of room the log is as it was.
    fn refuse(&mut self, what: &'static str, error: std::io::Error) -> AppendError {
        if is_disk_full(&error) {
            return AppendError::DiskFull(error);
        }
        AppendError::Poisoned(self.poison(what, &error))
    }
}

/// Checks the framing of `batches` and counts what is in them, by their headers alone.
fn survey(batches: &[u8]) -> Result<Survey, Malformed> {
    let mut survey = Survey { batches: 0, records: 0, producers: false };
    let mut rest = batches;
    while !rest.is_empty() {
        let batch = Batch::first(rest)?;
        rest = &rest[batch.bytes().len()..];
        let header = batch.header();
        let delta = header.last_offset_delta();
        if delta < 0 {
            return Err(Malformed::OffsetDelta(delta));
        }
        survey.batches += 1;
        // Fewer batches fit into memory than would overflow this.
        survey.records += i64::from(delta) + 1;
        survey.producers |= header.producer_id().is_some();
    }
    if survey.batches == 0 { Err(Malformed::Empty) } else { Ok(survey) }
}

fn duplicate(original: ProducerBatch) -> Appended {
    Appended {
        first: original.first_offset(),
        last: original.last_offset,
        log_append_time: None,
        duplicate: true,
    }
}
