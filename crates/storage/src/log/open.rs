//! Opening a log, which after a crash means recovering it: what lies past the checkpoint is
//! checked batch by batch, the first thing that is not whole is cut off with all that follows,
//! and everything accepted is synced before a byte of it is readable.

mod check;
mod folder;
mod recovery;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ottla_model::{LeaderEpoch, Now, Offset, TopicId};

pub use recovery::{Cut, CutReason, Recovery};

use folder::{Files, check_topic, enter};

use super::notes::Notes;
use super::reader::Shared;
use super::sync::Syncing;
use super::{Log, State};
use crate::checkpoint::{self, Checkpoint};
use crate::clean;
use crate::closed_file;
use crate::config::{Durability, LogConfig};
use crate::epochs::{self, Epochs};
use crate::error::{OpenError, Poison};
use crate::fs::{self, Fs, Listed};
use crate::offsets_file::{self, KeptOffsets};
use crate::producers::Producers;
use crate::segment::{Damage, Scanner, Seen, Segment, Tail, names};
use crate::synced_file::{self, Note};

impl Log {
    /// Opens the log in `dir`, creating what is missing, recovering what a crash left.
    ///
    /// # Errors
    /// The folder is another topic's, or the file system refused. A damaged or torn log is no
    /// error: the [`Recovery`] says what was cut and why.
    pub fn open(
        fs: Arc<dyn Fs>,
        dir: &Path,
        topic: TopicId,
        config: LogConfig,
        now: Now,
    ) -> Result<(Self, Recovery), OpenError> {
        let failed = |what| {
            let dir = dir.to_owned();
            move |error| OpenError::Io { what, dir, error }
        };
        let listed = enter(&*fs, dir).map_err(failed("list files"))?;
        check_topic(&*fs, dir, topic)?;
        // Most have none, and asking for it costs more than looking at the list.
        let closed = listed.iter().any(|file| file.name == closed_file::FILE);
        let closed = closed && closed_file::take(&*fs, dir).map_err(failed("open the log"))?;
        let mut loading = Loading { closed, ..Loading::new(fs, dir, config, now) };
        loading.load(&listed).map_err(failed("load segments"))?;
        loading.settle().map_err(failed("make the recovered log durable"))?;
        loading.into_log().map_err(failed("write the first checkpoint"))
    }
}

/// A log on its way from files to memory.
struct Loading {
    fs: Arc<dyn Fs>,
    dir: PathBuf,
    config: LogConfig,
    now: Now,
    segments: Vec<Arc<Segment>>,
    /// From this one on, segments were looked at: they are to be synced, and a new checkpoint
    /// is to cover them.
    first_checked: usize,
    /// Whether anything differs from what the last checkpoint covers.
    changed: bool,
    /// Whether the last process to have this log closed it in order.
    closed: bool,
    /// How far the last process to have this log knew it to be on the disk,
    synced: Note,
    /// and the first batch past that: its segment's place in the list, its position in there.
    unsafe_from: Option<(usize, u64)>,
    /// The recovery offset and segment of the checkpoint that was found.
    checkpointed: (Offset, Offset),
    next: Offset,
    /// Without a checkpoint of ours the log may be a compacted one of Kafka's, with gaps.
    gaps_allowed: bool,
    producers: Producers,
    epochs: Epochs,
    epochs_changed: bool,
    kept: KeptOffsets,
    /// What is to be cut, once a raised epoch is safe: the end of one segment,
    cut_at: Option<(Arc<Segment>, u64)>,
    /// and later ones.
    cut_off: Vec<Offset>,
    /// Why the log must not be appended to as it is.
    poison: Option<Poison>,
    recovery: Recovery,
}

impl Loading {
    fn new(fs: Arc<dyn Fs>, dir: &Path, config: LogConfig, now: Now) -> Self {
        Self {
            fs,
            dir: dir.to_owned(),
            config,
            now,
            segments: Vec::new(),
            first_checked: 0,
            changed: false,
            closed: false,
            synced: Note::Absent,
            unsafe_from: None,
            checkpointed: (Offset(0), Offset(0)),
            next: Offset(0),
            gaps_allowed: false,
            producers: Producers::default(),
            epochs: Epochs::default(),
            epochs_changed: false,
            kept: KeptOffsets::default(),
            cut_at: None,
            cut_off: Vec::new(),
            poison: None,
            recovery: Recovery::default(),
        }
    }

    fn load(&mut self, listed: &[Listed]) -> io::Result<()> {
        let swept = clean::sweep(&*self.fs, &self.dir, listed)?;
        let listed = if swept { self.fs.list(&self.dir)? } else { listed.to_vec() };
        self.read_kept()?;
        self.synced = synced_file::read(&*self.fs, &self.dir)?;
        let epochs_known = self.read_epochs()?;
        let files = Files(&listed);
        let checkpoint = self.read_checkpoint(&files)?;
        let bases = self.drop_below_start(files.bases(), checkpoint.as_ref())?;
        match checkpoint {
            Some(checkpoint) => self.load_from(checkpoint, &bases, &files)?,
            None => self.load_all(&bases, &files)?,
        }
        self.mend_start()?;
        if epochs_known || self.next == self.kept.log_start {
            Ok(())
        } else {
            self.rebuild_epochs()
        }
    }

    fn read_kept(&mut self) -> io::Result<()> {
        let path = self.dir.join(offsets_file::FILE);
        let Some(text) = fs::read_small(&*self.fs, &path, SMALL)? else { return Ok(()) };
        match KeptOffsets::from_text(&text) {
            Some(kept) => self.kept = kept,
            None => self.recovery.notes.push(format!("{} is unreadable", offsets_file::FILE)),
        }
        Ok(())
    }

    /// Removes segments that end at or below the log's start: a deletion that a crash cut short.
    /// The checkpoint's segment stays, from which the rest is told.
    fn drop_below_start(
        &mut self,
        mut bases: Vec<Offset>,
        checkpoint: Option<&Checkpoint>,
    ) -> io::Result<Vec<Offset>> {
        let start = self.kept.log_start;
        let start = checkpoint.map_or(start, |found| start.min(found.segment));
        let keep_from = bases.partition_point(|base| *base <= start);
        for base in bases.drain(..keep_from.saturating_sub(1)) {
            remove_segment(&*self.fs, &self.dir, base)?;
        }
        Ok(bases)
    }

    /// The checkpoint, if the files are those that it was taken of.
    fn read_checkpoint(&mut self, files: &Files<'_>) -> io::Result<Option<Checkpoint>> {
        let path = self.dir.join(checkpoint::FILE);
        let Some(bytes) = fs::read_small(&*self.fs, &path, checkpoint::SIZE_MAX)? else {
            if !files.bases().is_empty() {
                self.recovery.notes.push("there is no checkpoint: all segments are checked".into());
            }
            return Ok(None);
        };
        let found = Checkpoint::from_bytes(&bytes);
        if let Some(found) = found
            && self.is_of_these_files(&found, files)?
        {
            return Ok(Some(found));
        }
        self.recovery.notes.push("the checkpoint does not fit: all segments are checked".into());
        Ok(None)
    }

    fn is_of_these_files(&self, found: &Checkpoint, files: &Files<'_>) -> io::Result<bool> {
        let Some(size) = files.size(found.segment, names::LOG) else { return Ok(false) };
        if size < found.position {
            return Ok(false);
        }
        let Some(last) = found.last_batch else { return Ok(found.position == 0) };
        let path = names::path(&self.dir, found.segment, names::LOG);
        let file = self.fs.open(&path, fs::OpenMode::Existing)?;
        let seen = Scanner::new(&*file, last.position, size).next()?;
        let same = |seen: &Seen| {
            seen.end() == found.position
                && seen.header().crc() == last.crc
                && seen.header().next_offset() == found.recovery
        };
        Ok(matches!(seen, Some(Ok(seen)) if same(&seen)))
    }

    /// Trusts what the checkpoint covers and checks what follows.
    fn load_from(
        &mut self,
        checkpoint: Checkpoint,
        bases: &[Offset],
        files: &Files<'_>,
    ) -> io::Result<()> {
        let at = bases.partition_point(|base| *base < checkpoint.segment);
        for base in &bases[..at] {
            let segment = self.open_sealed(*base, files)?;
            self.segments.push(Arc::new(segment));
        }
        self.first_checked = at;
        self.checkpointed = (checkpoint.recovery, checkpoint.segment);
        let size = files.size(checkpoint.segment, names::LOG).unwrap_or(0);
        let segment = self.open_checkpointed(&checkpoint)?;
        self.next = checkpoint.recovery;
        self.producers = checkpoint.producers;
        self.check_from(segment, checkpoint.position, size, &bases[at + 1..], files)
    }

    fn open_sealed(&mut self, base: Offset, files: &Files<'_>) -> io::Result<Segment> {
        let size = files.size(base, names::LOG).unwrap_or(0);
        let segment = Segment::open(&self.fs, &self.dir, base, size)?;
        let sizes = (files.size(base, names::INDEX), files.size(base, names::TIME_INDEX));
        if let (Some(offsets), Some(times)) = sizes
            && segment.adopt_sealed(offsets, times)?
        {
            return Ok(segment);
        }
        self.recovery.notes.push(format!("indexes of segment {base} rebuilt"));
        if let Some((position, damage)) = segment.reindex(self.config.index_interval_bytes)? {
            // Synced data went bad on the disk. Cutting it would lose what follows as well.
            let note = format!("segment {base} is damaged at byte {position}: {damage}");
            self.recovery.notes.push(note);
        }
        // If there is no room for the files, the entries serve from memory.
        let _ = segment.seal();
        Ok(segment)
    }

    fn open_checkpointed(&mut self, checkpoint: &Checkpoint) -> io::Result<Arc<Segment>> {
        let position = checkpoint.position;
        let segment = Segment::open(&self.fs, &self.dir, checkpoint.segment, position)?;
        if !segment.adopt(checkpoint.offset_entries, checkpoint.time_entries)? {
            self.recovery.notes.push(format!("indexes of segment {} rebuilt", segment.base));
            segment.reindex(self.config.index_interval_bytes)?;
            self.changed = true;
        }
        segment.resume(Tail {
            since_entry: checkpoint.since_entry,
            largest: checkpoint.largest,
            first_append: checkpoint.first_append,
            last_batch: checkpoint.last_batch,
        });
        Ok(Arc::new(segment))
    }

    /// Without a checkpoint: checks everything, from the first segment on.
    fn load_all(&mut self, bases: &[Offset], files: &Files<'_>) -> io::Result<()> {
        (self.changed, self.gaps_allowed) = (true, true);
        let Some((&first, later)) = bases.split_first() else {
            return self.create_first(self.kept.log_start);
        };
        self.next = first;
        self.producers = self.read_snapshot(first)?.unwrap_or_default();
        let segment = Arc::new(Segment::open(&self.fs, &self.dir, first, 0)?);
        let size = files.size(first, names::LOG).unwrap_or(0);
        self.check_from(segment, 0, size, later, files)
    }

    fn create_first(&mut self, base: Offset) -> io::Result<()> {
        let segment = Segment::create(&self.fs, &self.dir, base)?;
        self.segments.push(Arc::new(segment));
        self.next = base;
        Ok(())
    }

    /// Lets go segments that cannot follow what was accepted.
    fn drop_segments(&mut self, bases: &[Offset], files: &Files<'_>, mut first: bool) {
        self.changed = true;
        for &base in bases {
            let damage = Damage::Offsets { expected: self.next, found: base };
            let why = if first { CutReason::Damage(damage) } else { CutReason::Follows };
            first = false;
            let bytes = files.size(base, names::LOG).unwrap_or(0);
            self.recovery.cuts.push(Cut { segment: base, position: 0, bytes, why });
            self.cut_off.push(base);
        }
    }

    /// The start lies in the log, whatever was lost.
    fn mend_start(&mut self) -> io::Result<()> {
        if self.next < self.kept.log_start {
            let start = self.kept.log_start;
            self.recovery.notes.push(format!("all was lost up to the log's start {start}"));
            for segment in std::mem::take(&mut self.segments) {
                remove_segment(&*self.fs, &self.dir, segment.base)?;
            }
            (self.first_checked, self.unsafe_from) = (0, None);
            self.changed = true;
            self.create_first(start)?;
        }
        self.kept.log_start = self.kept.log_start.max(self.segments[0].base);
        Ok(())
    }

    fn read_snapshot(&self, at: Offset) -> io::Result<Option<Producers>> {
        let path = names::path(&self.dir, at, names::SNAPSHOT);
        let bytes = fs::read_small(&*self.fs, &path, checkpoint::SIZE_MAX)?;
        Ok(bytes.and_then(|bytes| Producers::from_snapshot(&bytes)))
    }

    /// Reads the epoch file. False if it is missing or damaged.
    fn read_epochs(&mut self) -> io::Result<bool> {
        let path = self.dir.join(epochs::FILE);
        let text = fs::read_small(&*self.fs, &path, EPOCHS_SIZE_MAX)?;
        let known = text.as_deref().and_then(Epochs::from_text);
        let found = known.is_some();
        self.epochs = known.unwrap_or_default();
        Ok(found)
    }

    /// Gathers the epochs anew from every batch there is.
    fn rebuild_epochs(&mut self) -> io::Result<()> {
        self.recovery.notes.push(format!("{} rebuilt from the batches", epochs::FILE));
        self.epochs_changed = true;
        self.epochs = Epochs::default();
        for segment in &self.segments {
            let mut scanner = Scanner::new(&*segment.file, 0, segment.size());
            while let Some(Ok(seen)) = scanner.next()? {
                note_epoch(&mut self.epochs, &seen);
            }
        }
        Ok(())
    }

    /// Makes durable what was accepted, and raises the epoch if anything was lost.
    fn settle(&mut self) -> io::Result<()> {
        let newest = self.epochs.latest();
        let traces_lost = self.epochs.cut_end(self.next);
        self.epochs_changed |= traces_lost;
        self.epochs_changed |= self.epochs.cut_start(self.kept.log_start);
        let unsynced = self.config.durability == Durability::PageCache && !self.closed;
        let untraced = unsynced && newest.is_some();
        let epochs = self.epochs.clone();
        if traces_lost || untraced || !self.recovery.cuts.is_empty() {
            let epoch = LeaderEpoch(newest.map_or(0, |epoch| epoch.0).saturating_add(1));
            self.epochs.assign(epoch, self.next);
            self.recovery.epoch_raised = Some(epoch);
        }
        self.write_epochs(epochs);
        if self.poison.is_none() {
            self.cut()?;
        }
        self.sync_accepted()?;
        (self.recovery.start, self.recovery.end) = (self.kept.log_start, self.next);
        Ok(())
    }

    /// Writes the epochs, before the cut that would be forgotten without a raised one. If that
    /// fails the log is readable, but for [`Log::recover`] to cut.
    fn write_epochs(&mut self, without_raise: Epochs) {
        if !self.epochs_changed && self.recovery.epoch_raised.is_none() {
            return;
        }
        let path = self.dir.join(epochs::FILE);
        let Err(error) = fs::replace(&*self.fs, &path, self.epochs.to_text().as_bytes()) else {
            return;
        };
        if self.recovery.epoch_raised.take().is_some() {
            self.epochs = without_raise;
            self.poison = Some(Poison::new("raise the leader epoch", &error));
        }
        self.recovery.notes.push(format!("cannot write the leader epochs: {error}"));
    }

    fn cut(&mut self) -> io::Result<()> {
        if let Some((segment, position)) = self.cut_at.take() {
            segment.file.set_len(position)?;
        }
        for base in std::mem::take(&mut self.cut_off) {
            remove_segment(&*self.fs, &self.dir, base)?;
        }
        Ok(())
    }

    fn sync_accepted(&mut self) -> io::Result<()> {
        if let Some((first, mut from)) = self.unsafe_from {
            for segment in &self.segments[first..] {
                segment.rewrite(std::mem::take(&mut from))?;
            }
        }
        if self.changed || !self.synced.is_of_end(self.next) {
            for segment in &self.segments[self.first_checked..] {
                segment.file.sync()?;
            }
            self.fs.sync_dir(&self.dir)?;
        }
        self.note_synced();
        Ok(())
    }

    /// Without the note a failed sync would go unnoticed if the process were killed upon it: then
    /// the log is readable, but [`Log::recover`] must write it before anything is appended.
    fn note_synced(&mut self) {
        if self.synced == Note::Synced(self.next) {
            return;
        }
        if let Err(error) = synced_file::write(&*self.fs, &self.dir, self.next) {
            let poison = Poison::new("note how far the log is synced", &error);
            self.poison.get_or_insert(poison);
        }
    }

    fn into_log(self) -> io::Result<(Log, Recovery)> {
        let active = self.segments.last().expect("a log has a segment").clone();
        let shared = Shared::new(self.segments, self.kept.log_start, self.next);
        let checked = if self.changed { self.first_checked } else { usize::MAX };
        let (checkpointed, gaps_allowed) = (self.checkpointed, self.gaps_allowed);
        let state = self.poison.map_or(State::Online, State::Poisoned);
        let notes = Notes::new(self.fs.clone(), self.dir.clone(), self.kept);
        let mut log = Log {
            fs: self.fs,
            dir: self.dir,
            config: self.config,
            shared: Arc::new(shared),
            active,
            producers: self.producers,
            epochs: self.epochs,
            epochs_version: 0,
            kept: self.kept,
            notes: Arc::new(notes),
            state,
            syncing: Syncing::clean(checkpointed.0, checkpointed.1),
            doomed: Vec::new(),
            cleaning: None,
            raising: 0,
            closed: false,
        };
        let mut recovery = self.recovery;
        // The old checkpoint will do as well: a full disk must not keep the log from being read.
        // But without any checkpoint a lost write could pass for a gap, so nothing is appended
        // until [`Log::recover`] has written one.
        if checked != usize::MAX
            && let Err(error) = log.write_checkpoint_now(checked)
        {
            if gaps_allowed {
                let poison = log.poison("write the first checkpoint", &error);
                if !poison.disk_full {
                    return Err(error);
                }
            }
            recovery.notes.push(format!("cannot write the checkpoint: {error}"));
        }
        Ok((log, recovery))
    }
}

/// Removes every file of a segment, its snapshot too. What is not there is fine.
pub(super) fn remove_segment(fs: &dyn Fs, dir: &Path, base: Offset) -> io::Result<()> {
    for suffix in names::OF_SEGMENT {
        match fs.remove(&names::path(dir, base, suffix)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

fn note_epoch(epochs: &mut Epochs, seen: &Seen) -> bool {
    let epoch = seen.header().leader_epoch();
    epoch.0 >= 0 && epochs.assign(epoch, seen.header().base_offset())
}

fn pass_disk_full(error: io::Error) -> io::Result<()> {
    if fs::is_disk_full(&error) { Ok(()) } else { Err(error) }
}

/// The most bytes of the text files that a log reads whole.
const SMALL: u64 = 4096;
const EPOCHS_SIZE_MAX: u64 = 16 << 20;
