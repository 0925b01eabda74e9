//! Finding offsets by time (ListOffsets), beside the writer.

use std::io;

use ottla_model::{LeaderEpoch, Offset, Timestamp};
use ottla_records::{Batch, Records};

use super::reader::Reader;
use crate::error::ReadError;
use crate::segment::{Damage, Scanner, Seen, Segment};

/// A record found by time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimedOffset {
    /// The record's timestamp.
    pub timestamp: Timestamp,
    /// Its offset.
    pub offset: Offset,
    /// The leader epoch that it was written in.
    pub leader_epoch: LeaderEpoch,
}

impl Reader {
    /// The first record whose timestamp is at least `time` (KIP-79); none if there is none.
    /// `unpacked_bytes_max` bounds what a compressed batch may unpack to.
    ///
    /// # Errors
    /// The files cannot be read, or what is in them is damaged.
    pub fn find_by_time(
        &self,
        time: Timestamp,
        unpacked_bytes_max: usize,
    ) -> Result<Option<TimedOffset>, ReadError> {
        let start = self.start_offset();
        for segment in self.0.segments().iter() {
            if segment.largest().is_none_or(|largest| largest.timestamp < time) {
                continue;
            }
            let mut wanted = |offset, timestamp| offset >= start && timestamp >= time;
            if let Some(found) = search(segment, time, unpacked_bytes_max, &mut wanted)? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// The first record that has the greatest timestamp of the log (KIP-734); none if the log is
    /// empty.
    ///
    /// # Errors
    /// As [`Reader::find_by_time`].
    pub fn find_latest_time(
        &self,
        unpacked_bytes_max: usize,
    ) -> Result<Option<TimedOffset>, ReadError> {
        let (start, mut largest) = (self.start_offset(), None);
        for segment in self.0.segments().iter() {
            largest = largest.max(latest_from(segment, start, unpacked_bytes_max)?);
        }
        match largest {
            Some(largest) => self.find_by_time(largest, unpacked_bytes_max),
            None => Ok(None),
        }
    }
}

/// The greatest timestamp of the segment's records from `start` on. Mostly it is the segment's
/// own, unless that record lies below the start, or compaction left only its batch's header.
fn latest_from(
    segment: &Segment,
    start: Offset,
    unpacked_bytes_max: usize,
) -> Result<Option<Timestamp>, ReadError> {
    let Some(largest) = segment.largest() else { return Ok(None) };
    let found = segment.seek(largest.offset.max(start))?.map_err(|at| damaged(segment, at))?;
    let Some(found) = found else { return Ok(None) };
    let header = found.header();
    let readable = header.base_offset() >= start && header.record_count() > 0;
    if readable && largest.offset >= start {
        return Ok(Some(largest.timestamp));
    }
    let found = segment.seek(start)?.map_err(|at| damaged(segment, at))?;
    let mut scanner =
        Scanner::new(&*segment.file, found.map_or(0, |it| it.position), segment.size());
    let mut latest = None;
    while let Some(seen) = scanner.next()? {
        let seen = seen.map_err(|damage| damaged(segment, (scanner.position(), damage)))?;
        if seen.header().record_count() == 0 {
            continue;
        }
        if seen.header().base_offset() >= start {
            latest = latest.max(Some(seen.header().max_timestamp()));
            continue;
        }
        search_batch(segment, &seen, unpacked_bytes_max, &mut |offset, timestamp| {
            latest = latest.max((offset >= start).then_some(timestamp));
            false
        })?;
    }
    Ok(latest)
}

/// The first record of a segment that is wanted, looking from where time may have reached `time`.
fn search(
    segment: &Segment,
    time: Timestamp,
    unpacked_bytes_max: usize,
    wanted: &mut dyn FnMut(Offset, Timestamp) -> bool,
) -> Result<Option<TimedOffset>, ReadError> {
    // Up to this entry every timestamp is below the one looked for.
    let before = segment.times.floor(time.0.saturating_sub(1))?;
    let from = match before {
        Some(entry) => {
            let offset = Offset(segment.base.0.saturating_add(i64::from(entry.delta)));
            segment
                .seek(offset)?
                .map_err(|at| damaged(segment, at))?
                .map_or(0, |seen| seen.position)
        }
        None => 0,
    };
    let mut scanner = Scanner::new(&*segment.file, from, segment.size());
    while let Some(seen) = scanner.next()? {
        let seen = seen.map_err(|damage| damaged(segment, (scanner.position(), damage)))?;
        if seen.header().max_timestamp() < time {
            continue;
        }
        if let Some(found) = search_batch(segment, &seen, unpacked_bytes_max, wanted)? {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

fn search_batch(
    segment: &Segment,
    seen: &Seen,
    unpacked_bytes_max: usize,
    wanted: &mut dyn FnMut(Offset, Timestamp) -> bool,
) -> Result<Option<TimedOffset>, ReadError> {
    let bad = |reason: String| ReadError::Records {
        segment: segment.base,
        offset: seen.header().base_offset(),
        reason,
    };
    let bytes = whole_batch(segment, seen)?;
    let batch = Batch::first(&bytes).map_err(|error| bad(error.to_string()))?;
    let records: Records<'_> =
        batch.records(unpacked_bytes_max).map_err(|error| bad(error.to_string()))?;
    for record in &records {
        let record = record.map_err(|error| bad(error.to_string()))?;
        if wanted(record.offset, record.timestamp) {
            return Ok(Some(TimedOffset {
                timestamp: record.timestamp,
                offset: record.offset,
                leader_epoch: seen.header().leader_epoch(),
            }));
        }
    }
    Ok(None)
}

fn damaged(segment: &Segment, (position, damage): (u64, Damage)) -> ReadError {
    ReadError::Damaged { segment: segment.base, position, damage }
}

fn whole_batch(segment: &Segment, seen: &Seen) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    // Its length was held against the file's when its header was read.
    segment.file.read_at(seen.position, seen.size as usize, &mut bytes)?;
    Ok(bytes)
}
