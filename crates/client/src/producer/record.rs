//! What is sent, and what is told of it.

use ottla_model::{Offset, Timestamp, TopicPartition};

/// A record to be sent. It borrows: its bytes are copied once, into its batch.
///
/// ```
/// use ottla_client::ProducerRecord;
///
/// let record = ProducerRecord::to("orders").key("customer-7").value(b"\x01\x02").header("v", "1");
/// let tombstone = ProducerRecord::to("orders").key("customer-7");
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProducerRecord<'a> {
    pub(super) topic: &'a str,
    pub(super) partition: Option<i32>,
    pub(super) key: Option<&'a [u8]>,
    pub(super) value: Option<&'a [u8]>,
    pub(super) headers: Vec<(&'a str, Option<&'a [u8]>)>,
    pub(super) timestamp: Option<Timestamp>,
}

impl<'a> ProducerRecord<'a> {
    /// A record for this topic, without key, value and headers.
    pub fn to(topic: &'a str) -> Self {
        Self {
            topic,
            partition: None,
            key: None,
            value: None,
            headers: Vec::new(),
            timestamp: None,
        }
    }

    /// With this key, which decides on its partition.
    #[must_use]
    pub fn key(mut self, key: &'a (impl AsRef<[u8]> + ?Sized)) -> Self {
        self.key = Some(key.as_ref());
        self
    }

    /// With this value; without one it is a tombstone.
    #[must_use]
    pub fn value(mut self, value: &'a (impl AsRef<[u8]> + ?Sized)) -> Self {
        self.value = Some(value.as_ref());
        self
    }

    /// With one more header (KIP-82).
    #[must_use]
    pub fn header(mut self, key: &'a str, value: &'a (impl AsRef<[u8]> + ?Sized)) -> Self {
        self.headers.push((key, Some(value.as_ref())));
        self
    }

    /// To this partition, whatever the key.
    #[must_use]
    pub fn partition(mut self, partition: i32) -> Self {
        self.partition = Some(partition);
        self
    }

    /// Made at this time, and not now.
    #[must_use]
    pub fn timestamp(mut self, timestamp: Timestamp) -> Self {
        self.timestamp = Some(timestamp);
        self
    }

    /// At most so many bytes it takes in a batch.
    pub(super) fn size(&self) -> usize {
        let text = |bytes: Option<&[u8]>| bytes.map_or(0, <[u8]>::len) + FIELD_MAX;
        let headers = self.headers.iter();
        let headers: usize = headers.map(|(key, value)| key.len() + FIELD_MAX + text(*value)).sum();
        FIXED_MAX + text(self.key) + text(self.value) + headers
    }
}

/// Where a record was stored.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RecordMetadata {
    /// Its partition.
    pub partition: TopicPartition,
    /// Its offset; none if nobody was asked (`acks=0`), or if the broker had it already and does
    /// not remember where.
    pub offset: Option<Offset>,
    /// The broker's time, if the topic has its records carry that; else none: it is the record's.
    pub append_time: Option<Timestamp>,
}

/// The longest length in front of a field.
const FIELD_MAX: usize = 5;
/// The longest that a record's own length, attributes, time, offset and header count can be.
const FIXED_MAX: usize = 5 + 1 + 10 + 5 + 5;
