//! One segment of a log: a file of batches, its two indexes, and where things are in it.
//!
//! Written by one thread, read by many: a reader sees only bytes below the published size, which
//! rises after whole batches are written. Offsets' meaning and durability are the log's.

mod index;
pub(crate) mod names;
mod read;
mod scan;

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ottla_model::{Offset, Timestamp};
use ottla_records::Header;
use parking_lot::Mutex;

pub(crate) use index::{Entry, Index, OffsetEntry, PAGE_ENTRIES, TimeEntry};
pub(crate) use read::{Found, Limits};
pub use scan::Damage;
pub(crate) use scan::{Scanner, Seen};

use crate::checkpoint::LastBatch;
use crate::fs::{File, Fs, OpenMode};
use read::Recent;

/// An open segment.
#[derive(Debug)]
pub(crate) struct Segment {
    /// The offset that its first batch had when it was begun; its files are named so.
    pub(crate) base: Offset,
    /// Its batches.
    pub(crate) file: Arc<dyn File>,
    /// Offset -> position.
    pub(crate) offsets: Index<OffsetEntry>,
    /// Timestamp -> offset.
    pub(crate) times: Index<TimeEntry>,
    size: AtomicU64,
    tail: Mutex<Tail>,
    recent: Mutex<Recent>,
}

/// What the writer keeps in mind of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tail {
    /// Bytes of log since the last index entry.
    pub(crate) since_entry: u64,
    /// The greatest timestamp so far; none if no batch has one.
    pub(crate) largest: Option<Largest>,
    /// When the first batch came.
    pub(crate) first_append: Timestamp,
    /// The newest batch.
    pub(crate) last_batch: Option<LastBatch>,
}

/// A segment's greatest timestamp, and the last offset of the first batch that has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Largest {
    pub(crate) timestamp: Timestamp,
    pub(crate) offset: Offset,
}

impl Segment {
    /// A new, empty segment. Its name is not durable until the directory is synced.
    pub(crate) fn create(fs: &Arc<dyn Fs>, dir: &Path, base: Offset) -> io::Result<Self> {
        let file = fs.open(&names::path(dir, base, names::LOG), OpenMode::Fresh)?;
        Ok(Self::of(fs, dir, base, file, 0))
    }

    /// A segment that is there, of `size` bytes, its indexes not adopted yet.
    pub(crate) fn open(fs: &Arc<dyn Fs>, dir: &Path, base: Offset, size: u64) -> io::Result<Self> {
        let file = fs.open(&names::path(dir, base, names::LOG), OpenMode::Existing)?;
        Ok(Self::of(fs, dir, base, file, size))
    }

    /// A segment over a file that is open and has another name still. Its indexes are empty.
    pub(crate) fn over(
        fs: &Arc<dyn Fs>,
        dir: &Path,
        base: Offset,
        file: Arc<dyn File>,
        size: u64,
    ) -> Self {
        Self::of(fs, dir, base, file, size)
    }

    fn of(fs: &Arc<dyn Fs>, dir: &Path, base: Offset, file: Arc<dyn File>, size: u64) -> Self {
        let at = |suffix| names::path(dir, base, suffix);
        Self {
            base,
            file,
            offsets: Index::new(fs.clone(), at(names::INDEX)),
            times: Index::new(fs.clone(), at(names::TIME_INDEX)),
            size: AtomicU64::new(size),
            tail: Mutex::new(Tail::EMPTY),
            recent: Mutex::default(),
        }
    }

    /// Bytes of whole batches that readers may see.
    pub(crate) fn size(&self) -> u64 {
        self.size.load(Ordering::Acquire)
    }

    /// Lets readers see the bytes up to `size`.
    pub(crate) fn publish(&self, size: u64) {
        self.size.store(size, Ordering::Release);
    }

    /// What the writer keeps in mind.
    pub(crate) fn tail(&self) -> Tail {
        *self.tail.lock()
    }

    /// Takes up a writer's thread where a checkpoint left it.
    pub(crate) fn resume(&self, tail: Tail) {
        *self.tail.lock() = tail;
    }

    /// The greatest timestamp; none if the segment has none.
    pub(crate) fn largest(&self) -> Option<Largest> {
        self.tail.lock().largest
    }

    /// Whether a batch that ends at `last` can be in this segment's offset index.
    pub(crate) fn spans(&self, last: Offset) -> bool {
        i32::try_from(last.0.saturating_sub(self.base.0)).is_ok()
    }

    /// Takes note of a batch at `position`: timestamps, and index entries where they are due.
    pub(crate) fn note(&self, header: Header<'_>, position: u64, interval: u64) {
        let mut tail = self.tail.lock();
        let (timestamp, offset) = (header.max_timestamp(), header.last_offset());
        let larger = |largest: Largest| timestamp > largest.timestamp;
        if timestamp.0 >= 0 && tail.largest.is_none_or(larger) {
            tail.largest = Some(Largest { timestamp, offset });
        }
        tail.last_batch = Some(LastBatch { position, crc: header.crc() });
        if tail.since_entry > interval {
            self.push_entries(header.last_offset(), position, tail.largest);
            tail.since_entry = 0;
        }
        tail.since_entry += header.size().unwrap_or(0) as u64;
    }

    /// Notes when the first batch came.
    pub(crate) fn begin(&self, now: Timestamp) {
        self.tail.lock().first_append = now;
    }

    /// Completes the indexes of a segment that gets no more batches, and writes them.
    pub(crate) fn seal(&self) -> io::Result<()> {
        if let Some(largest) = self.largest() {
            self.push_time(largest);
        }
        self.write_indexes()?;
        self.offsets.trim()?;
        self.times.trim()
    }

    /// Writes both indexes out, unsynced.
    pub(crate) fn write_indexes(&self) -> io::Result<()> {
        self.offsets.write_out()?;
        self.times.write_out()
    }

    /// Opens both index files if they are needed at all, so that their names may go.
    pub(crate) fn hold_indexes(&self) -> io::Result<()> {
        self.offsets.hold()?;
        self.times.hold()
    }

    /// Syncs both index files.
    pub(crate) fn sync_indexes(&self) -> io::Result<()> {
        self.offsets.sync()?;
        self.times.sync()
    }

    /// Has both indexes written again from their beginning: a failed sync may have lost entries.
    pub(crate) fn take_indexes_back(&self) -> io::Result<()> {
        self.offsets.take_back()?;
        self.times.take_back()
    }

    /// Writes what lies from `position` on once more, unchanged. See [`crate::synced_file`].
    pub(crate) fn rewrite(&self, mut position: u64) -> io::Result<()> {
        let size = self.size();
        while position < size {
            let mut bytes = Vec::new();
            let len = (size - position).min(1 << 20) as usize;
            self.file.read_at(position, len, &mut bytes)?;
            self.file.write_at(position, &bytes)?;
            position += bytes.len().max(1) as u64;
        }
        Ok(())
    }

    /// Adopts the index files of a sealed segment as they are; false if they cannot be true.
    pub(crate) fn adopt_sealed(&self, index_size: u64, time_size: u64) -> io::Result<bool> {
        let whole = |size: u64, len: usize| {
            let entries = size / len as u64;
            size.is_multiple_of(len as u64).then_some(entries).and_then(|it| u32::try_from(it).ok())
        };
        let (Some(offsets), Some(times)) =
            (whole(index_size, OffsetEntry::LEN), whole(time_size, TimeEntry::LEN))
        else {
            return Ok(false);
        };
        if !self.adopt(offsets, times)? {
            return Ok(false);
        }
        let largest = self.times.last().map(|last| Largest {
            timestamp: Timestamp(last.timestamp),
            offset: self.absolute(last.delta),
        });
        *self.tail.lock() = Tail { largest, ..Tail::EMPTY };
        Ok(true)
    }

    /// Adopts the first entries of the index files; false if they cannot be true.
    pub(crate) fn adopt(&self, offsets: u32, times: u32) -> io::Result<bool> {
        if !self.offsets.adopt(offsets)? || !self.times.adopt(times)? {
            return Ok(false);
        }
        let size = self.size();
        let fits = |last: OffsetEntry| {
            last.delta >= 0 && u64::try_from(last.position).is_ok_and(|at| at < size)
        };
        let sound = self.offsets.last().is_none_or(fits);
        let timed = self.times.last().is_none_or(|last| last.delta >= 0 && last.timestamp >= 0);
        Ok(sound && timed)
    }

    /// Makes the indexes anew from the batches' headers. Stops at damage, which is returned.
    pub(crate) fn reindex(&self, interval: u64) -> io::Result<Option<(u64, Damage)>> {
        let first_append = self.tail().first_append;
        self.offsets.clear();
        self.times.clear();
        self.recent.lock().clear();
        *self.tail.lock() = Tail { first_append, ..Tail::EMPTY };
        let mut scanner = Scanner::new(&*self.file, 0, self.size());
        while let Some(seen) = scanner.next()? {
            match seen {
                Ok(seen) => self.note(seen.header(), seen.position, interval),
                Err(damage) => return Ok(Some((scanner.position(), damage))),
            }
        }
        Ok(None)
    }

    /// Cuts the file at `size`, where a batch ends, and makes the indexes anew.
    pub(crate) fn cut(&self, size: u64, interval: u64) -> io::Result<()> {
        self.publish(size);
        self.file.set_len(size)?;
        self.reindex(interval).map(drop)
    }

    fn push_entries(&self, last: Offset, position: u64, largest: Option<Largest>) {
        let (Some(delta), Ok(position)) = (self.delta(last), i32::try_from(position)) else {
            return;
        };
        self.offsets.push(OffsetEntry { delta, position });
        if let Some(largest) = largest {
            self.push_time(largest);
        }
    }

    fn push_time(&self, largest: Largest) {
        if let Some(delta) = self.delta(largest.offset) {
            self.times.push(TimeEntry { timestamp: largest.timestamp.0, delta });
        }
    }

    fn delta(&self, offset: Offset) -> Option<i32> {
        i32::try_from(offset.0.checked_sub(self.base.0)?).ok()
    }

    fn absolute(&self, delta: i32) -> Offset {
        Offset(self.base.0.saturating_add(i64::from(delta)))
    }
}

impl Tail {
    /// Of a segment without a batch.
    pub(crate) const EMPTY: Self =
        Self { since_entry: 0, largest: None, first_append: Timestamp(0), last_batch: None };
}

#[cfg(test)]
impl Segment {
    /// Holds every index entry against the batches.
    pub(crate) fn check_indexes(&self) {
        let (offsets, times) = (self.offsets.all(), self.times.all());
        let mut largest = i64::MIN;
        let (mut found_offsets, mut found_times) = (0, 0);
        let mut scanner = Scanner::new(&*self.file, 0, self.size()).verifying();
        while let Some(seen) = scanner.next().unwrap() {
            let seen = seen.unwrap();
            let delta = self.delta(seen.header().last_offset()).unwrap();
            let position = i32::try_from(seen.position).unwrap();
            found_offsets += usize::from(offsets.contains(&OffsetEntry { delta, position }));
            if seen.header().max_timestamp().0 > largest {
                largest = seen.header().max_timestamp().0;
                found_times +=
                    usize::from(times.contains(&TimeEntry { timestamp: largest, delta }));
            }
        }
        assert_eq!(found_offsets, offsets.len(), "{offsets:?}");
        assert_eq!(found_times, times.len(), "{times:?}");
    }
}
