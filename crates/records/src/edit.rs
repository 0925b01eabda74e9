//! The edits a log makes to batches before it writes them, in place.
//!
//! Base offset and leader epoch lie outside the checksum, so a leader assigns both without
//! reading the batch (decision 2); the other edits compute the checksum anew.

use ottla_model::{LeaderEpoch, Offset, Timestamp};

use crate::header::{CRC_FROM, at};
use crate::{Batch, BatchError, Header, TimestampType};

/// Iterates the batches of a run of bytes to edit them. Ends after the first error.
#[derive(Debug)]
pub struct BatchesMut<'a> {
    rest: &'a mut [u8],
    position: usize,
}

impl<'a> BatchesMut<'a> {
    /// The batches of `bytes`, which begins with one.
    pub fn new(bytes: &'a mut [u8]) -> Self {
        Self { rest: bytes, position: 0 }
    }
}

impl<'a> Iterator for BatchesMut<'a> {
    type Item = Result<BatchMut<'a>, BatchError>;

    fn next(&mut self) -> Option<Self::Item> {
        let bytes = std::mem::take(&mut self.rest);
        if bytes.is_empty() {
            return None;
        }
        let len = match Batch::first(bytes) {
            Ok(batch) => batch.bytes().len(),
            Err(error) => return Some(Err(error.after(self.position))),
        };
        let (batch, rest) = bytes.split_at_mut(len);
        self.rest = rest;
        self.position += len;
        Some(Ok(BatchMut(batch)))
    }
}

/// One whole batch of magic 2, open for edits.
#[derive(Debug)]
pub struct BatchMut<'a>(&'a mut [u8]);

impl<'a> BatchMut<'a> {
    /// The batch that `bytes` begins with.
    pub fn first(bytes: &'a mut [u8]) -> Result<Self, BatchError> {
        let len = Batch::first(bytes)?.bytes().len();
        Ok(Self(&mut bytes[..len]))
    }

    /// The fixed fields as they are now.
    pub fn header(&self) -> Header<'_> {
        Header::new(self.0).expect("a batch is at least a header long")
    }

    /// Moves the batch to `offset`; its records move along, theirs being relative.
    pub fn set_base_offset(&mut self, offset: Offset) {
        self.write(at::BASE_OFFSET, offset.0.to_be_bytes());
    }

    /// Notes the epoch of the leader that appends the batch.
    pub fn set_leader_epoch(&mut self, epoch: LeaderEpoch) {
        self.write(at::LEADER_EPOCH, epoch.0.to_be_bytes());
    }

    /// Makes every record's timestamp `now`, as `message.timestamp.type=LogAppendTime` asks.
    pub fn set_log_append_time(&mut self, now: Timestamp) {
        self.set_times(TimestampType::LogAppend, now);
    }

    /// Corrects a producer's max timestamp, its records keeping their own timestamps.
    pub fn set_max_create_time(&mut self, max: Timestamp) {
        self.set_times(TimestampType::Create, max);
    }

    /// Computes the checksum anew, for whoever changed the bytes it covers.
    pub fn seal(&mut self) {
        let crc = crc32c::crc32c(&self.0[CRC_FROM..]);
        self.write(at::CRC, crc.to_be_bytes());
    }

    fn set_times(&mut self, of: TimestampType, max: Timestamp) {
        let attributes = self.header().attributes().with_timestamp_type(of);
        // Most producers tell the truth, and the checksum need not be computed for those.
        if attributes == self.header().attributes() && max == self.header().max_timestamp() {
            return;
        }
        self.write(at::ATTRIBUTES, attributes.bits().to_be_bytes());
        self.write(at::MAX_TIMESTAMP, max.0.to_be_bytes());
        self.seal();
    }

    fn write<const N: usize>(&mut self, from: usize, value: [u8; N]) {
        self.0[from..from + N].copy_from_slice(&value);
    }
}
