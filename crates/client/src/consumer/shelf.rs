//! What one fetch brought of one partition, taken off batch by batch and record by record.
//!
//! Pure. A batch is unpacked when its first record is asked for, and every record is read once
//! before it is handed out, so that damage is an error here and never a surprise later.

use super::aborted::Aborted;
use super::record::Slice;
use crate::{Error, Result};
use bytes::Bytes;
use ottla_model::{Offset, TopicPartition};
use ottla_records::{Batch, BatchError, HEADER_LEN, Header, Iter};
use std::borrow::Cow;
use std::sync::Arc;

/// The rest of what one fetch brought.
#[derive(Debug)]
pub(super) struct Shelf {
    partition: Arc<TopicPartition>,
    bytes: Bytes,
    open: Option<Open>,
    /// For `read_committed`: whose records do not count.
    aborted: Option<Aborted>,
    checks_crcs: bool,
    /// Bytes it counts for, until it is empty.
    pub(super) held: usize,
}

/// A batch that is being read.
#[derive(Debug)]
struct Open {
    header: Bytes,
    /// The records not taken yet, unpacked.
    rest: Bytes,
    done: i32,
}

/// What was taken.
#[derive(Debug)]
pub(super) struct Taken {
    /// The records; none if only marks and the like were there.
    pub(super) slice: Option<Slice>,
    /// Where reading goes on.
    pub(super) next: Offset,
}

impl Shelf {
    /// What was received.
    pub(super) fn new(
        partition: Arc<TopicPartition>,
        bytes: Bytes,
        aborted: Option<Aborted>,
        checks_crcs: bool,
    ) -> Self {
        let held = bytes.len();
        Self { partition, bytes, open: None, aborted, checks_crcs, held }
    }

    /// Up to `max` records from `position` on; `None` at the end.
    ///
    /// # Errors
    /// `Protocol`, if a batch is damaged. Nothing behind it can be read.
    pub(super) fn take(&mut self, position: Offset, max: usize) -> Result<Option<Taken>> {
        loop {
            if let Some(open) = &mut self.open {
                let taken = open.take(&self.partition, position, max);
                let taken = taken.map_err(|what| self.damaged(&what))?;
                if self.open.as_ref().is_some_and(|open| open.rest.is_empty()) {
                    self.open = None;
                }
                match taken {
                    Some(taken) => return Ok(Some(taken)),
                    None => continue,
                }
            }
            let Some(batch) = self.next_batch()? else { return Ok(None) };
            let header = Header::new(&batch).ok_or_else(|| self.damaged(&"no header"))?;
            let next = header.next_offset();
            if header.last_offset() < position {
                continue;
            }
            if self.aborted.as_mut().is_some_and(|aborted| !aborted.counts(&batch))
                || header.attributes().is_control()
                || header.record_count() == 0
            {
                return Ok(Some(Taken { slice: None, next }));
            }
            self.open = Some(self.unpack(&batch)?);
        }
    }

    fn next_batch(&mut self) -> Result<Option<Bytes>> {
        let size = match Batch::first(&self.bytes) {
            Ok(batch) => batch.bytes().len(),
            // The last batch of a fetch may be cut off.
            Err(BatchError::Torn { .. }) => return Ok(None),
            Err(error) => return Err(self.damaged(&error)),
        };
        Ok(Some(self.bytes.split_to(size)))
    }

    fn unpack(&self, bytes: &Bytes) -> Result<Open> {
        let batch = Batch::first(bytes).map_err(|error| self.damaged(&error))?;
        if self.checks_crcs {
            batch.verify_crc().map_err(|error| self.damaged(&error))?;
        }
        let records = batch.records(UNPACKED_MAX).map_err(|error| self.damaged(&error))?;
        let rest = match records.into_body() {
            Cow::Borrowed([]) => Bytes::new(),
            Cow::Borrowed(body) => bytes.slice_ref(body),
            Cow::Owned(body) => body.into(),
        };
        Ok(Open { header: bytes.slice(..HEADER_LEN), rest, done: 0 })
    }

    fn damaged(&self, what: &dyn std::fmt::Display) -> Error {
        let message = format!("a batch of {} is damaged: {what}", self.partition);
        Error::protocol(message).about(vec![TopicPartition::clone(&self.partition)])
    }
}

impl Open {
    /// Up to `max` records from `position` on; `None` if all of them stand before it.
    fn take(
        &mut self,
        partition: &Arc<TopicPartition>,
        position: Offset,
        max: usize,
    ) -> Result<Option<Taken>, String> {
        let rest = self.rest.clone();
        let header = Header::new(&self.header).ok_or("no header")?;
        let left = header.record_count() - self.done;
        let mut records = Iter::part(header, &rest, self.done, left);
        let (mut from, mut first, mut count, mut last) = (0, self.done, 0, position);
        while count < max {
            let before = rest.len() - records.rest().len();
            let Some(record) = records.next() else { break };
            let record = record.map_err(|error| error.to_string())?;
            self.done += 1;
            if record.offset < position {
                (from, first) = (rest.len() - records.rest().len(), self.done);
                continue;
            }
            if count == 0 {
                (from, first) = (before, self.done - 1);
            }
            count += 1;
            last = record.offset;
        }
        let to = rest.len() - records.rest().len();
        self.rest = rest.slice(to..);
        let is_whole = self.done >= header.record_count();
        if is_whole && !self.rest.is_empty() {
            return Err(format!("{} bytes follow its last record", self.rest.len()));
        }
        // Compaction may have taken the last records of a batch, but not their offsets.
        let next = if is_whole { header.next_offset() } else { Offset(last.0.saturating_add(1)) };
        let slice = Slice {
            partition: partition.clone(),
            header: self.header.clone(),
            body: rest.slice(from..to),
            first,
            count: i32::try_from(count).unwrap_or(i32::MAX),
            next,
        };
        Ok((count > 0 || is_whole).then(|| Taken { slice: (count > 0).then_some(slice), next }))
    }
}

/// Where a fetch goes on behind these bytes: the end of the last whole batch in them, and its
/// leader epoch; `None` if there is no whole batch.
pub(super) fn end_of(bytes: &[u8]) -> Option<Header<'_>> {
    let mut last = None;
    for batch in ottla_records::Batches::new(bytes) {
        let Ok(batch) = batch else { break };
        last = Some(batch.header());
    }
    last
}

/// What a batch may unpack to, at most: a thousand times `message.max.bytes`' default.
const UNPACKED_MAX: usize = 1 << 30;
