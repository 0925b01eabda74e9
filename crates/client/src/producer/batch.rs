//! One batch on its way: collecting records, then sealed and sent, perhaps several times.

use super::delivery::{Delivery, Fate, Promise, Stored};
use super::queue::Identity;
use super::record::ProducerRecord;
use crate::{Error, ErrorKind, Result};
use bytes::Bytes;
use ottla_model::{Instant, Timestamp, TopicPartition};
use ottla_records::{BuildError, Builder, Compression, NewRecord, RecordHeader};
use std::sync::Arc;

/// Records for one partition that share a fate.
#[derive(Debug)]
pub(super) struct Batch {
    /// Its place among the batches of its producer: which one is older.
    pub(super) number: u64,
    pub(super) created: Instant,
    pub(super) attempts: u32,
    /// Who sends it and as which number, once it was sent.
    pub(super) sequence: Option<(Identity, i32)>,
    /// Bytes of buffer it holds.
    pub(super) held: usize,
    count: i32,
    content: Content,
    promise: Promise,
}

#[derive(Debug)]
enum Content {
    Open(Builder),
    /// In the form in which it travels.
    Sealed(Bytes),
}

impl Batch {
    pub(super) fn new(
        number: u64,
        partition: TopicPartition,
        compression: Compression,
        now: Instant,
    ) -> Self {
        Self {
            number,
            created: now,
            attempts: 0,
            sequence: None,
            held: 0,
            count: 0,
            content: Content::Open(Builder::new(compression)),
            promise: Promise(Arc::new(Fate::new(partition))),
        }
    }

    /// Whether a record of `size` bytes has room below `batch_size`; the first one always has.
    pub(super) fn has_room(&self, size: usize, batch_size: usize) -> bool {
        match &self.content {
            Content::Open(builder) => builder.is_empty() || builder.len() + size <= batch_size,
            Content::Sealed(_) => false,
        }
    }

    /// Appends a record.
    pub(super) fn append(
        &mut self,
        record: &ProducerRecord<'_>,
        timestamp: Timestamp,
        size: usize,
    ) -> Result<Delivery> {
        let headers = record.headers.iter();
        let headers: Vec<_> = headers
            .map(|(key, value)| RecordHeader { key: key.as_bytes(), value: *value })
            .collect();
        let new = NewRecord { timestamp, key: record.key, value: record.value, headers: &headers };
        match &mut self.content {
            Content::Open(builder) => builder.append(&new).map_err(|error| unbuildable(&error))?,
            Content::Sealed(_) => return Err(unbuildable(&BuildError::Full)),
        }
        let delivery = self.promise.0.delivery(self.count);
        self.count += 1;
        self.held += size;
        Ok(delivery)
    }

    /// How many records it has.
    pub(super) fn count(&self) -> i32 {
        self.count
    }

    /// Whether it takes no more records.
    pub(super) fn is_sealed(&self) -> bool {
        matches!(self.content, Content::Sealed(_))
    }

    /// Bytes it takes in a request; of an open one, at most.
    pub(super) fn len(&self) -> usize {
        match &self.content {
            Content::Open(builder) => builder.len(),
            Content::Sealed(bytes) => bytes.len(),
        }
    }

    /// In the form in which it travels, under its sequence. Compresses when it is first called.
    pub(super) fn seal(&mut self, compression: Compression) -> Result<Bytes> {
        let content = std::mem::replace(&mut self.content, Content::Sealed(Bytes::new()));
        let builder = match content {
            Content::Sealed(bytes) if self.is_written_as_numbered(&bytes) => {
                self.content = Content::Sealed(bytes.clone());
                return Ok(bytes);
            }
            Content::Sealed(bytes) => reopened(&bytes, compression)?,
            Content::Open(builder) => builder,
        };
        let builder = match self.sequence {
            Some((identity, sequence)) => builder.producer(identity.id, identity.epoch, sequence),
            None => builder,
        };
        let bytes = Bytes::from(builder.build().map_err(|error| unbuildable(&error))?);
        self.content = Content::Sealed(bytes.clone());
        Ok(bytes)
    }

    fn is_written_as_numbered(&self, bytes: &[u8]) -> bool {
        let Some(header) = ottla_records::Header::new(bytes) else { return false };
        match self.sequence {
            Some((identity, sequence)) => {
                header.producer_id() == Some(identity.id)
                    && header.producer_epoch() == identity.epoch
                    && header.base_sequence() == sequence
            }
            None => true,
        }
    }

    /// What became of it.
    pub(super) fn decide(self, outcome: Result<Stored>) {
        self.promise.0.decide(outcome);
    }

    /// For whoever waits for the whole batch.
    pub(super) fn fate(&self) -> Arc<Fate> {
        self.promise.0.clone()
    }
}

/// A batch as it was before it was sealed: it gets another number.
fn reopened(bytes: &[u8], compression: Compression) -> Result<Builder> {
    let own = |error: &dyn std::fmt::Display| {
        Error::protocol(format!("a batch of this client cannot be read back: {error}"))
    };
    let batch = ottla_records::Batch::first(bytes).map_err(|error| own(&error))?;
    let records = batch.records(usize::MAX).map_err(|error| own(&error))?;
    let mut builder = Builder::new(compression);
    for record in &records {
        let record = record.map_err(|error| own(&error))?;
        builder.append_kept(&record).map_err(|error| own(&error))?;
    }
    Ok(builder)
}

fn unbuildable(error: &BuildError) -> Error {
    Error::new(ErrorKind::Refused, format!("the record cannot be put into a batch: {error}"))
}
