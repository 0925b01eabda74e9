//! What a consumer hands out: records as views of the bytes that were received.
//!
//! [`Records`] is what one poll found; iterating it by reference costs no allocation and no
//! reference count per record. [`ConsumerRecord`] is one record by itself, sharing those bytes.

use bytes::Bytes;
use ottla_model::{LeaderEpoch, Offset, Timestamp, TopicPartition};
use ottla_records::{Header, Iter, TimestampType};
use std::sync::Arc;

/// The records of one poll, partition by partition, in the order of their offsets.
#[derive(Clone, Debug, Default)]
pub struct Records {
    slices: Vec<Slice>,
}

/// Consecutive records of one batch.
#[derive(Clone, Debug)]
pub(crate) struct Slice {
    pub(super) partition: Arc<TopicPartition>,
    /// The batch's header.
    pub(super) header: Bytes,
    /// The records, unpacked; every one of them was read once and found whole.
    pub(super) body: Bytes,
    /// The place of the first of them in its batch.
    pub(super) first: i32,
    pub(super) count: i32,
    /// Where reading goes on behind them.
    pub(super) next: Offset,
}

/// One record, borrowed from its [`Records`].
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    slice: &'a Slice,
    inner: ottla_records::Record<'a>,
}

/// One record that shares the bytes it was received in; cheap to clone and to send.
///
/// Holding one keeps the whole batch (as it was received, or as it was unpacked) in memory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ConsumerRecord {
    /// Its partition.
    pub partition: Arc<TopicPartition>,
    /// Its offset.
    pub offset: Offset,
    /// The producer's time or the broker's, whichever the topic keeps.
    pub timestamp: Timestamp,
    /// Its key.
    pub key: Option<Bytes>,
    /// Its value; none is a tombstone.
    pub value: Option<Bytes>,
    /// Its headers, in order.
    pub headers: Vec<(Bytes, Option<Bytes>)>,
    /// The leader epoch it was stored in, if the broker tells (KIP-320).
    pub leader_epoch: Option<LeaderEpoch>,
}

impl Records {
    pub(super) fn push(&mut self, slice: Slice) {
        self.slices.push(slice);
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.slices.iter().map(Slice::len).sum()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.slices.is_empty()
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = Record<'_>> {
        self.slices.iter().flat_map(Slice::iter)
    }

    /// Runs of records of one partition each: where it is, where reading goes on behind it, and
    /// its records. A partition may have several.
    pub fn runs(
        &self,
    ) -> impl Iterator<Item = (&TopicPartition, Offset, impl Iterator<Item = Record<'_>>)> {
        self.slices.iter().map(|slice| (&*slice.partition, slice.next, slice.iter()))
    }

    /// Where reading goes on behind all of them, by partition: what to commit once all are done.
    pub fn next_offsets(&self) -> Vec<(TopicPartition, Offset)> {
        let mut next: Vec<(TopicPartition, Offset)> = Vec::new();
        for slice in &self.slices {
            match next.iter_mut().find(|(partition, _)| *partition == *slice.partition) {
                Some((_, offset)) => *offset = slice.next,
                None => next.push((TopicPartition::clone(&slice.partition), slice.next)),
            }
        }
        next
    }

    pub(super) fn into_slices(self) -> Vec<Slice> {
        self.slices
    }
}

impl Slice {
    pub(super) fn len(&self) -> usize {
        usize::try_from(self.count).unwrap_or(0)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = Record<'_>> {
        let header = Header::new(&self.header);
        let records = header.map(|header| Iter::part(header, &self.body, self.first, self.count));
        // They were all read before; none can fail now.
        let records = records.into_iter().flatten().filter_map(Result::ok);
        records.map(|inner| Record { slice: self, inner })
    }

    /// Takes the first record off.
    pub(super) fn pop(&mut self) -> Option<ConsumerRecord> {
        if self.count <= 0 {
            return None;
        }
        let header = Header::new(&self.header)?;
        let mut records = Iter::part(header, &self.body, self.first, self.count);
        let inner = records.next()?.ok()?;
        let left = records.rest().len();
        let record = Record { slice: self, inner }.to_owned();
        self.body = self.body.slice(self.body.len() - left..);
        (self.first, self.count) = (self.first + 1, self.count - 1);
        Some(record)
    }

    pub(super) fn leader_epoch(&self) -> Option<LeaderEpoch> {
        let epoch = Header::new(&self.header)?.leader_epoch();
        (epoch.0 >= 0).then_some(epoch)
    }
}

impl<'a> Record<'a> {
    /// Its partition.
    pub fn partition(&self) -> &'a TopicPartition {
        &self.slice.partition
    }

    /// Its topic's name.
    pub fn topic(&self) -> &'a str {
        &self.slice.partition.topic
    }

    /// Its offset.
    pub fn offset(&self) -> Offset {
        self.inner.offset
    }

    /// The producer's time or the broker's: see [`Record::timestamp_type`].
    pub fn timestamp(&self) -> Timestamp {
        self.inner.timestamp
    }

    /// Whose time it is.
    pub fn timestamp_type(&self) -> TimestampType {
        let header = Header::new(&self.slice.header);
        header.map_or(TimestampType::Create, |header| header.attributes().timestamp_type())
    }

    /// Its key.
    pub fn key(&self) -> Option<&'a [u8]> {
        self.inner.key
    }

    /// Its value; none is a tombstone.
    pub fn value(&self) -> Option<&'a [u8]> {
        self.inner.value
    }

    /// Its headers, in order: key (UTF-8 by convention) and value.
    pub fn headers(&self) -> impl Iterator<Item = (&'a [u8], Option<&'a [u8]>)> {
        self.inner.headers().map(|header| (header.key, header.value))
    }

    /// The leader epoch it was stored in, if the broker tells.
    pub fn leader_epoch(&self) -> Option<LeaderEpoch> {
        self.slice.leader_epoch()
    }

    /// The record by itself; its bytes are shared, not copied.
    pub fn to_owned(&self) -> ConsumerRecord {
        let share = |bytes: &[u8]| match bytes {
            [] => Bytes::new(),
            _ => self.slice.body.slice_ref(bytes),
        };
        ConsumerRecord {
            partition: self.slice.partition.clone(),
            offset: self.offset(),
            timestamp: self.timestamp(),
            key: self.key().map(share),
            value: self.value().map(share),
            headers: self.headers().map(|(key, value)| (share(key), value.map(share))).collect(),
            leader_epoch: self.leader_epoch(),
        }
    }
}

impl ConsumerRecord {
    /// Its topic's name.
    pub fn topic(&self) -> &str {
        &self.partition.topic
    }

    /// Its key; empty if it has none.
    pub fn key_bytes(&self) -> &[u8] {
        self.key.as_deref().unwrap_or_default()
    }

    /// Its value; empty if it is a tombstone.
    pub fn value_bytes(&self) -> &[u8] {
        self.value.as_deref().unwrap_or_default()
    }
}
