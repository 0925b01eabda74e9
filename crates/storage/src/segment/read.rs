//! Finding and reading batches in a segment, beside its writer.
//!
//! The index says where to begin, what lies there decides: an index that is wrong costs a scan,
//! never a wrong answer. A consumer goes on where it stopped, so the last stops are remembered.

use std::io;

use bytes::Bytes;
use ottla_model::Offset;
use ottla_records::{HEADER_LEN, Header, MAGIC};

use super::{Damage, Scanner, Seen, Segment};

/// How much to read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Bytes of batches at most.
    pub(crate) bytes_max: usize,
    /// Bytes the first batch may have where that is more.
    pub(crate) first_max: usize,
    /// Batches that reach this offset or past it are left out.
    pub(crate) up_to: Offset,
}

/// Whole batches of one segment.
#[derive(Clone, Debug)]
pub(crate) enum Found {
    /// At least one, up to this offset (exclusive).
    Batches(Bytes, Offset),
    /// The next one exceeds the limits.
    Beyond,
    /// The segment has nothing from that offset on.
    End,
    /// What lies there is not a batch.
    Damaged(u64, Damage),
}

/// Where the last reads stopped.
#[derive(Debug, Default)]
pub(crate) struct Recent {
    stops: [(i64, u64); STOPS],
    next: usize,
}

impl Segment {
    /// Whole batches from the one that holds `from` on.
    pub(crate) fn read(&self, from: Offset, limits: Limits) -> io::Result<Found> {
        let size = self.size();
        let stop = self.recent.lock().find(from);
        let position = match stop {
            Some(position) => position,
            None => match self.seek(from)? {
                Ok(Some(seen)) => seen.position,
                Ok(None) => return Ok(Found::End),
                Err((position, damage)) => return Ok(Found::Damaged(position, damage)),
            },
        };
        if position >= size {
            return Ok(Found::End);
        }
        self.read_from(position, size, limits)
    }

    /// The first batch that reaches `target`; none if the segment ends before it.
    pub(crate) fn seek(&self, target: Offset) -> io::Result<Result<Option<Seen>, (u64, Damage)>> {
        let hint = self.hint(target)?;
        let mut scanner = Scanner::new(&*self.file, hint, self.size());
        while let Some(seen) = scanner.next()? {
            match seen {
                Ok(seen) if seen.header().last_offset() >= target => return Ok(Ok(Some(seen))),
                Ok(_) => {}
                Err(damage) => return Ok(Err((scanner.position(), damage))),
            }
        }
        Ok(Ok(None))
    }

    /// A position at or before the first batch that reaches `target`, as near as the index tells.
    fn hint(&self, target: Offset) -> io::Result<u64> {
        let key = target.0.saturating_sub(self.base.0);
        let Some(entry) = self.offsets.floor(key)? else { return Ok(0) };
        let Ok(position) = u64::try_from(entry.position) else { return Ok(0) };
        let there = Scanner::new(&*self.file, position, self.size()).next()?;
        let holds = |seen: &Seen| seen.header().last_offset() == self.absolute(entry.delta);
        match there {
            Some(Ok(seen)) if holds(&seen) && seen.header().last_offset() >= target => Ok(position),
            // The entry's batch lies wholly before the target: go on behind it.
            Some(Ok(seen)) if holds(&seen) => Ok(seen.end()),
            _ => Ok(0),
        }
    }

    fn read_from(&self, position: u64, size: u64, limits: Limits) -> io::Result<Found> {
        let left = usize::try_from(size - position).unwrap_or(usize::MAX);
        let mut bytes = Vec::new();
        self.file.read_at(position, left.min(limits.bytes_max.max(HEADER_LEN)), &mut bytes)?;
        let Some(header) = Header::new(&bytes) else {
            return Ok(Found::Damaged(position, Damage::Torn));
        };
        let Some(first) = header.size().filter(|&first| first <= left) else {
            return Ok(Found::Damaged(position, Damage::NotABatch));
        };
        let fits = first <= limits.first_max.max(limits.bytes_max);
        if !fits || header.last_offset() >= limits.up_to {
            return Ok(Found::Beyond);
        }
        if first > bytes.len() {
            let at = position + bytes.len() as u64;
            self.file.read_at(at, first - bytes.len(), &mut bytes)?;
        }
        let (len, next) = whole(&bytes, limits.up_to);
        if len == 0 {
            return Ok(Found::Damaged(position, Damage::NotABatch));
        }
        self.recent.lock().note(next, position + len as u64);
        let bytes = Bytes::from(bytes);
        Ok(Found::Batches(if len == bytes.len() { bytes } else { bytes.slice(..len) }, next))
    }
}

impl Recent {
    fn find(&self, offset: Offset) -> Option<u64> {
        let stop = self.stops.iter().find(|stop| stop.0 == offset.0 && stop.1 != 0);
        stop.map(|stop| stop.1)
    }

    fn note(&mut self, offset: Offset, position: u64) {
        if self.find(offset).is_none() {
            self.stops[self.next] = (offset.0, position);
            self.next = (self.next + 1) % STOPS;
        }
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}

/// Bytes of the whole batches that `bytes` begins with and that end before `up_to`, and the
/// offset after them.
fn whole(bytes: &[u8], up_to: Offset) -> (usize, Offset) {
    let (mut at, mut next) = (0, Offset(0));
    while let Some(header) = Header::new(&bytes[at..]) {
        let Some(size) = header.size().filter(|size| *size <= bytes.len() - at) else { break };
        // Below the checkpoint nobody has looked at the bytes since they were written.
        let sound = header.magic() == MAGIC && header.last_offset_delta() >= 0;
        let forward = header.base_offset() >= next;
        if !sound || !forward || header.last_offset() >= up_to {
            break;
        }
        (at, next) = (at + size, header.next_offset());
    }
    (at, next)
}

/// How many stops a segment remembers: consumers that follow it at different places.
const STOPS: usize = 8;
