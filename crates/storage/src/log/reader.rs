//! Reading a log beside its writer: a handle that shares the segments but not the log's lock.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use bytes::Bytes;
use ottla_model::Offset;
use parking_lot::RwLock;

use crate::error::ReadError;
use crate::segment::{Found, Limits, Segment};

/// Reads a log. Cheap to clone; every method may be called while the log is appended to, synced,
/// cleaned or cut.
#[derive(Clone, Debug)]
pub struct Reader(pub(super) Arc<Shared>);

/// What a read found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Read {
    /// Whole batches, the first of which holds the offset asked for (or is the first one after
    /// it, where compaction left a gap). Empty if there is nothing below the bound.
    pub bytes: Bytes,
    /// Where to go on: the offset after the last batch returned.
    pub next: Offset,
}

/// What the log and its readers share.
#[derive(Debug)]
pub(super) struct Shared {
    segments: RwLock<Arc<Vec<Arc<Segment>>>>,
    start: AtomicI64,
    end: AtomicI64,
    synced: AtomicI64,
}

impl Reader {
    /// The first offset there is to read.
    pub fn start_offset(&self) -> Offset {
        self.0.start()
    }

    /// The offset of the next append.
    pub fn end_offset(&self) -> Offset {
        self.0.end()
    }

    /// Everything below is on the disk.
    pub fn synced_offset(&self) -> Offset {
        self.0.synced()
    }

    /// Whole batches from the one that holds `from` on: at most `bytes_max` bytes, of one segment,
    /// and only batches that lie wholly below `up_to`, which the caller sets to the high watermark
    /// (never past the synced offset, unless what may be lost may be seen). The first
    /// batch may be larger than that, up to `first_max` (`usize::MAX`: whatever its size, KIP-74).
    ///
    /// # Errors
    /// [`ReadError::OutOfRange`] if `from` is below the start or past the end of the log.
    pub fn read(
        &self,
        from: Offset,
        bytes_max: usize,
        up_to: Offset,
        first_max: usize,
    ) -> Result<Read, ReadError> {
        let limits = Limits { bytes_max, first_max, up_to };
        let mut next = from;
        self.0.check_range(from)?;
        let segments = self.0.segments();
        let first = segment_at(&segments, from);
        for segment in &segments[first..] {
            next = next.max(segment.base);
            if next >= up_to {
                break;
            }
            match segment.read(next, limits)? {
                Found::Batches(bytes, next) => return Ok(Read { bytes, next }),
                Found::Beyond => break,
                Found::End => {}
                Found::Damaged(position, damage) => {
                    return Err(ReadError::Damaged { segment: segment.base, position, damage });
                }
            }
        }
        Ok(Read { bytes: Bytes::new(), next: from })
    }
}

impl Shared {
    pub(super) fn new(segments: Vec<Arc<Segment>>, start: Offset, end: Offset) -> Self {
        Self {
            segments: RwLock::new(Arc::new(segments)),
            start: AtomicI64::new(start.0),
            end: AtomicI64::new(end.0),
            synced: AtomicI64::new(end.0),
        }
    }

    /// The segments as of now, oldest first; never none.
    pub(super) fn segments(&self) -> Arc<Vec<Arc<Segment>>> {
        self.segments.read().clone()
    }

    pub(super) fn set_segments(&self, segments: Vec<Arc<Segment>>) {
        *self.segments.write() = Arc::new(segments);
    }

    pub(super) fn start(&self) -> Offset {
        Offset(self.start.load(Ordering::Acquire))
    }

    pub(super) fn set_start(&self, start: Offset) {
        self.start.store(start.0, Ordering::Release);
    }

    pub(super) fn end(&self) -> Offset {
        Offset(self.end.load(Ordering::Acquire))
    }

    pub(super) fn set_end(&self, end: Offset) {
        self.end.store(end.0, Ordering::Release);
    }

    pub(super) fn synced(&self) -> Offset {
        Offset(self.synced.load(Ordering::Acquire))
    }

    pub(super) fn set_synced(&self, synced: Offset) {
        self.synced.store(synced.0, Ordering::Release);
    }

    pub(super) fn check_range(&self, offset: Offset) -> Result<(), ReadError> {
        let (start, end) = (self.start(), self.end());
        if offset < start || offset > end {
            return Err(ReadError::OutOfRange { offset, start, end });
        }
        Ok(())
    }
}

/// The index of the segment that may hold `offset`.
pub(super) fn segment_at(segments: &[Arc<Segment>], offset: Offset) -> usize {
    segments.partition_point(|segment| segment.base <= offset).saturating_sub(1)
}
