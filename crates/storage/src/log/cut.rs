//! Cutting a log's end: to recover from a failed write or sync, or because its leader says so.

use std::io;
use std::sync::Arc;

use ottla_model::{LeaderEpoch, Now, Offset};

use super::open::{Cut, CutReason, Recovery, remove_segment};
use super::reader::segment_at;
use super::{Log, State};
use crate::checkpoint::{self, Checkpoint};
use crate::error::ChangeError;
use crate::fs;
use crate::offsets_file::KeptOffsets;
use crate::producers::Producers;
use crate::segment::{Scanner, Segment, names};
use crate::synced_file;

impl Log {
    /// Brings a poisoned log back: cuts it to the last successfully synced offset, syncs that,
    /// and raises the leader epoch. If this fails the log stays poisoned;
    /// trying again later is fine. Does nothing to a log that is online.
    ///
    /// # Errors
    /// [`ChangeError::SyncUnderWay`], [`ChangeError::RaiseUnderWay`], or the file system refuses
    /// still.
    pub fn recover(&mut self, now: Now) -> Result<Recovery, ChangeError> {
        let mut recovery = Recovery::default();
        if self.state != State::Online {
            self.check_at_rest()?;
            // First, for after the cut nothing would tell of it any more. And even if nothing is
            // left to cut: an attempt before this may have cut it.
            let epoch = self.raise_epoch().map_err(ChangeError::io("write the leader epoch"))?;
            recovery.epoch_raised = Some(epoch);
            recovery.cuts = self.cut_to(self.synced_offset(), now)?;
            self.state = State::Online;
        }
        (recovery.start, recovery.end) = (self.start_offset(), self.end_offset());
        Ok(recovery)
    }

    /// Cuts the log so that it ends at or before `offset`, on a batch's boundary, durably.
    /// Returns the new end.
    ///
    /// # Errors
    /// Out of range, a sync or a raise under way, or the file system refuses: then the log is
    /// poisoned if anything was changed.
    pub fn truncate_to(&mut self, offset: Offset, now: Now) -> Result<Offset, ChangeError> {
        self.check_range(offset)?;
        if offset < self.end_offset()
            && let Err(error) = self.cut_to(offset, now)
        {
            if let ChangeError::Io { what, error } = &error {
                self.poison(what, error);
            }
            return Err(error);
        }
        Ok(self.end_offset())
    }

    /// Begins another epoch where the log is about to end.
    fn raise_epoch(&mut self) -> io::Result<LeaderEpoch> {
        let newest = self.leader_epoch().map_or(0, |epoch| epoch.0);
        let epoch = LeaderEpoch(newest.saturating_add(1));
        let mut epochs = self.epochs.clone();
        epochs.cut_end(self.synced_offset());
        epochs.assign(epoch, self.synced_offset());
        self.write_epochs(&epochs)?;
        self.epochs = epochs;
        Ok(epoch)
    }

    /// Whether no job is under way that counts on the log's end.
    fn check_at_rest(&self) -> Result<(), ChangeError> {
        if self.syncing.under_way() {
            return Err(ChangeError::SyncUnderWay);
        }
        if self.raising > 0 {
            return Err(ChangeError::RaiseUnderWay);
        }
        Ok(())
    }

    fn cut_to(&mut self, offset: Offset, now: Now) -> Result<Vec<Cut>, ChangeError> {
        self.check_at_rest()?;
        if self.cleaning.is_some_and(|end| offset < end) {
            return Err(ChangeError::CleaningUnderWay);
        }
        let segments = self.shared.segments();
        let at = segment_at(&segments, offset);
        let first = self.first_unindexed(&segments[..=at]);
        let (position, end) =
            place(&segments[at], offset).map_err(ChangeError::io("find the place to cut"))?;
        let producers = self.producers_at(&segments[..=at], end, position, now);
        let producers = producers.map_err(ChangeError::io("replay the producers"))?;
        // Until the new end is on the disk a power loss may bring back what is cut off.
        synced_file::withdraw(&*self.fs, &self.dir)
            .map_err(ChangeError::io("withdraw the note of what is synced"))?;
        self.drop_checkpoint_past(end).map_err(ChangeError::io("remove the checkpoint"))?;
        // If the batch goes that holds the start, what comes in its place is readable again. And
        // a write that failed before may have left a start past the end on the disk.
        let kept = KeptOffsets { log_start: self.kept.log_start.min(end), ..self.kept };
        self.notes.set(kept).map_err(ChangeError::io("write the start offset"))?;
        self.kept = kept;
        self.shared.set_start(kept.log_start);
        let cuts = self
            .cut_files(&segments[..=at], first, position, end)
            .map_err(ChangeError::io("cut the segments"))?;
        // Without it a start does more than it has to.
        let _ = synced_file::write(&*self.fs, &self.dir, end);
        self.producers = producers;
        let mut epochs = self.epochs.clone();
        if epochs.cut_end(end) {
            // The number must not come again for other records.
            let newest = self.epochs.latest().unwrap_or_default();
            epochs.assign(newest, end);
            self.write_epochs(&epochs).map_err(ChangeError::io("write the leader epochs"))?;
            self.epochs = epochs;
        }
        // One that was not dropped will do; without any, a lost write could pass for a gap.
        let written = self.write_checkpoint_now(first);
        if self.read_checkpoint().map_err(ChangeError::io("read the checkpoint"))?.is_none() {
            written.map_err(ChangeError::io("write the checkpoint"))?;
        }
        Ok(cuts)
    }

    /// The producers as of `end`, from the newest state known before it and the headers since.
    fn producers_at(
        &self,
        segments: &[Arc<Segment>],
        end: Offset,
        position: u64,
        now: Now,
    ) -> io::Result<Producers> {
        let (mut producers, from) = self.producers_before(segments, end)?;
        let (last, earlier) = segments.split_last().expect("the segment that is cut");
        let whole = earlier.iter().map(|segment| (segment, segment.size()));
        for (segment, size) in whole.chain([(last, position)]) {
            let mut scanner = Scanner::new(&*segment.file, 0, size);
            while let Some(Ok(seen)) = scanner.next()? {
                let header = seen.header();
                if let (Some(id), true) = (header.producer_id(), header.base_offset() >= from) {
                    producers.note(id, header, now.wall);
                }
            }
        }
        Ok(producers)
    }

    fn producers_before(
        &self,
        segments: &[Arc<Segment>],
        end: Offset,
    ) -> io::Result<(Producers, Offset)> {
        if let Some(found) = self.read_checkpoint()?.filter(|found| found.recovery <= end) {
            return Ok((found.producers, found.recovery));
        }
        // A later snapshot would save reading, but it knows only the last batch of each producer.
        let first = segments[0].base;
        let path = names::path(&self.dir, first, names::SNAPSHOT);
        let bytes = fs::read_small(&*self.fs, &path, checkpoint::SIZE_MAX)?;
        let found = bytes.and_then(|bytes| Producers::from_snapshot(&bytes));
        Ok((found.unwrap_or_default(), first))
    }

    /// A checkpoint past the cut would be taken for true after a crash: without one, everything
    /// is checked. Gaps pass for compaction's then, so there must be none of a lost write.
    fn drop_checkpoint_past(&self, end: Offset) -> io::Result<()> {
        if self.read_checkpoint()?.is_none_or(|found| found.recovery <= end) {
            return Ok(());
        }
        for segment in self.shared.segments().iter() {
            segment.file.sync()?;
        }
        self.fs.sync_dir(&self.dir)?;
        self.fs.remove(&self.dir.join(checkpoint::FILE))?;
        self.fs.sync_dir(&self.dir)
    }

    fn read_checkpoint(&self) -> io::Result<Option<Checkpoint>> {
        let path = self.dir.join(checkpoint::FILE);
        let bytes = fs::read_small(&*self.fs, &path, checkpoint::SIZE_MAX)?;
        Ok(bytes.and_then(|bytes| Checkpoint::from_bytes(&bytes)))
    }

    /// The first of the segments that stay whose index files the next checkpoint has to see to.
    /// Those below are durable, or being replaced by a compaction.
    fn first_unindexed(&self, stay: &[Arc<Segment>]) -> usize {
        let vouched = self.syncing.checkpointed_in().max(self.cleaning.unwrap_or_default());
        stay.partition_point(|segment| segment.base < vouched).min(stay.len() - 1)
    }

    /// Removes later segments, cuts the last of those that stay, and syncs them.
    fn cut_files(
        &mut self,
        stay: &[Arc<Segment>],
        first: usize,
        position: u64,
        end: Offset,
    ) -> io::Result<Vec<Cut>> {
        let last = stay.last().expect("the segment that is cut").clone();
        self.shared.set_synced(self.synced_offset().min(end));
        self.shared.set_end(end);
        self.shared.set_segments(stay.to_vec());
        self.active = last.clone();
        let mut cuts = self.remove_past(last.base)?;
        let bytes = last.file.size()?.saturating_sub(position);
        if bytes > 0 {
            let why = CutReason::NotSynced;
            cuts.insert(0, Cut { segment: last.base, position, bytes, why });
        }
        last.cut(position, self.config.index_interval_bytes)?;
        for segment in stay {
            segment.file.sync()?;
        }
        self.fs.sync_dir(&self.dir)?;
        self.syncing.cut(&stay[first..]);
        self.shared.set_synced(end);
        Ok(cuts)
    }

    /// Removes every segment past `base` that the folder has, be it from an attempt before this.
    fn remove_past(&self, base: Offset) -> io::Result<Vec<Cut>> {
        let mut cuts = Vec::new();
        for file in self.fs.list(&self.dir)? {
            let later = names::segment(&file.name).filter(|it| *it > base);
            if let Some(segment) = later {
                remove_segment(&*self.fs, &self.dir, segment)?;
                if file.name.ends_with(names::SWAP) {
                    self.fs.remove(&self.dir.join(&file.name))?;
                }
                let why = CutReason::NotSynced;
                cuts.push(Cut { segment, position: 0, bytes: file.size, why });
            }
        }
        cuts.sort_unstable_by_key(|cut| cut.segment);
        cuts.dedup_by_key(|cut| cut.segment);
        Ok(cuts)
    }
}

/// Where in a segment to cut so that it ends at or before `offset`, and the end that it has then:
/// that of its last batch, for compaction may have left a gap behind it.
fn place(segment: &Segment, offset: Offset) -> io::Result<(u64, Offset)> {
    let mut end = segment.base;
    let mut scanner = Scanner::new(&*segment.file, 0, segment.size());
    while let Some(seen) = scanner.next()? {
        match seen {
            Ok(seen) if seen.header().last_offset() < offset => end = seen.header().next_offset(),
            Ok(seen) => return Ok((seen.position, end)),
            Err(damage) => {
                let at = scanner.position();
                let what = format!("segment {} is damaged at {at}: {damage}", segment.base);
                return Err(io::Error::new(io::ErrorKind::InvalidData, what));
            }
        }
    }
    Ok((segment.size(), end))
}
