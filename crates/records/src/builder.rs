//! Building batches: a producer's, the coordinator's, a compaction's. Knows no limit of any topic
//! and sends nothing; who builds a batch asks [`Builder::len`] when it is full.

use ottla_model::{LeaderEpoch, Offset, ProducerEpoch, ProducerId, Timestamp};

use crate::header::{CRC_FROM, at};
use crate::{
    Attributes, Compression, HEADER_LEN, Header, LOG_OVERHEAD, MAGIC, Record, RecordHeader,
    TimestampType, compression, varint,
};

/// Collects records and makes one batch of them.
///
/// ```
/// use ottla_model::Timestamp;
/// use ottla_records::{Batch, Builder, Compression, NewRecord};
///
/// let mut builder = Builder::new(Compression::Zstd);
/// builder.append(&NewRecord::new(Timestamp(7), Some(b"key"), Some(b"value")))?;
/// let bytes = builder.build()?;
/// assert!(Batch::first(&bytes)?.verify_crc().is_ok());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Builder {
    /// Room for the header, then the records, not packed.
    bytes: Vec<u8>,
    compression: Compression,
    attributes: Attributes,
    base_offset: Offset,
    leader_epoch: LeaderEpoch,
    producer: Producer,
    times: Times,
    count: i32,
    /// The last record's offset less the base offset; `-1` while there is none.
    last_delta: i32,
    /// What the header shall say instead, if more.
    last_delta_min: i32,
}

/// A record to append, at the offset after the last one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewRecord<'a> {
    /// When it was made.
    pub timestamp: Timestamp,
    /// Its key.
    pub key: Option<&'a [u8]>,
    /// Its value; none is a tombstone.
    pub value: Option<&'a [u8]>,
    /// Its headers, in order.
    pub headers: &'a [RecordHeader<'a>],
}

/// Why a batch cannot be built. The caller is at fault, except for the codec's own failure.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// The format's own bounds: 2 GiB of records, and offsets within 2^31 of the base offset.
    #[error("the batch is full: the format holds no more records")]
    Full,
    /// Records come in the order of their offsets, each with its own.
    #[error("offset {offset} does not follow the batch's last one")]
    Order {
        /// The offset refused.
        offset: Offset,
    },
    /// The codec failed.
    #[error("the batch cannot be packed")]
    Pack(#[from] std::io::Error),
}

impl<'a> NewRecord<'a> {
    /// A record without headers.
    pub fn new(timestamp: Timestamp, key: Option<&'a [u8]>, value: Option<&'a [u8]>) -> Self {
        Self { timestamp, key, value, headers: &[] }
    }
}

impl Builder {
    /// An empty batch from offset 0, of no producer, with the records' own timestamps.
    pub fn new(compression: Compression) -> Self {
        Self {
            bytes: vec![0; HEADER_LEN],
            compression,
            attributes: Attributes::default(),
            base_offset: Offset(0),
            leader_epoch: LeaderEpoch(-1),
            producer: Producer::NONE,
            times: Times::NONE,
            count: 0,
            last_delta: -1,
            last_delta_min: -1,
        }
    }

    /// Makes room for so many bytes of records, so that it need not grow.
    pub fn reserve(&mut self, bytes: usize) {
        self.bytes.reserve(bytes);
    }

    /// An empty batch that stands for `header`'s: its offsets, producer, flags and clock, whatever
    /// records it is then given. Compaction builds these; an emptied one keeps the producer's last
    /// sequence alive. The records' timestamps are kept too, and the delete horizon if it has one.
    pub fn like(header: Header<'_>, compression: Compression) -> Self {
        let attributes = header.attributes();
        let kept = attributes.has_delete_horizon();
        let appended = attributes.timestamp_type() == TimestampType::LogAppend;
        Self {
            attributes,
            base_offset: header.base_offset(),
            leader_epoch: header.leader_epoch(),
            producer: Producer {
                id: header.producer_id().unwrap_or(ProducerId(-1)),
                epoch: header.producer_epoch(),
                base_sequence: header.base_sequence(),
            },
            times: Times {
                base: kept.then(|| header.base_timestamp()),
                max: if appended { header.max_timestamp() } else { Timestamp::NONE },
                max_if_empty: header.max_timestamp(),
            },
            last_delta_min: header.last_offset_delta(),
            ..Self::new(compression)
        }
    }

    /// Sets the offset of the first record. Before the first one is appended.
    #[must_use]
    pub fn base_offset(mut self, offset: Offset) -> Self {
        self.base_offset = offset;
        self
    }

    /// Sets the epoch of the leader that appends the batch.
    #[must_use]
    pub fn leader_epoch(mut self, epoch: LeaderEpoch) -> Self {
        self.leader_epoch = epoch;
        self
    }

    /// Sets the idempotent producer and the sequence number of the first record.
    #[must_use]
    pub fn producer(mut self, id: ProducerId, epoch: ProducerEpoch, base_sequence: i32) -> Self {
        self.producer = Producer { id, epoch, base_sequence };
        self
    }

    /// Makes the batch part of the producer's transaction.
    #[must_use]
    pub fn transactional(mut self) -> Self {
        self.attributes = self.attributes.with_transactional(true);
        self
    }

    /// Makes it a control batch: its one record is a marker ([`crate::ControlRecord`]).
    #[must_use]
    pub fn control(mut self) -> Self {
        self.attributes = self.attributes.with_control(true);
        self
    }

    /// Gives every record the broker's time `now` for a timestamp.
    #[must_use]
    pub fn log_append_time(mut self, now: Timestamp) -> Self {
        self.attributes = self.attributes.with_timestamp_type(TimestampType::LogAppend);
        self.times.max = now;
        self
    }

    /// Fixes when compaction may drop the batch's tombstones (KIP-534). Before the first record.
    #[must_use]
    pub fn delete_horizon(mut self, horizon: Timestamp) -> Self {
        self.attributes = self.attributes.with_delete_horizon(true);
        self.times.base = Some(horizon);
        self
    }

    /// Appends `record` at the offset after the last one.
    pub fn append(&mut self, record: &NewRecord<'_>) -> Result<(), BuildError> {
        let delta = self.last_delta.checked_add(1).ok_or(BuildError::Full)?;
        let mut headers = Vec::new();
        for header in record.headers {
            put_bytes(&mut headers, Some(header.key));
            put_bytes(&mut headers, header.value);
        }
        let fields = (record.key, record.value);
        self.put(delta, record.timestamp, fields, (record.headers.len(), &headers))
    }

    /// Appends `record` as it is, offset, timestamp and all.
    pub fn append_kept(&mut self, record: &Record<'_>) -> Result<(), BuildError> {
        let order = || BuildError::Order { offset: record.offset };
        let delta = record.offset.0.checked_sub(self.base_offset.0).ok_or_else(order)?;
        let delta = i32::try_from(delta).map_err(|_| BuildError::Full)?;
        if delta <= self.last_delta {
            return Err(order());
        }
        let headers = record.headers();
        let fields = (record.key, record.value);
        self.put(delta, record.timestamp, fields, (headers.count_left(), headers.bytes()))
    }

    /// How many records it has.
    pub fn record_count(&self) -> usize {
        usize::try_from(self.count).unwrap_or(0)
    }

    /// Whether it has no record.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Bytes of the batch so far, header included, before packing.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// The batch.
    pub fn build(mut self) -> Result<Vec<u8>, BuildError> {
        if self.compression != Compression::None && self.count > 0 {
            let mut packed = vec![0; HEADER_LEN];
            compression::pack(self.compression, &self.bytes[HEADER_LEN..], &mut packed)?;
            self.bytes = packed;
        }
        let length = i32::try_from(self.bytes.len() - LOG_OVERHEAD);
        self.write_header(length.map_err(|_| BuildError::Full)?);
        Ok(self.bytes)
    }

    fn put(
        &mut self,
        delta: i32,
        timestamp: Timestamp,
        (key, value): (Option<&[u8]>, Option<&[u8]>),
        (header_count, headers): (usize, &[u8]),
    ) -> Result<(), BuildError> {
        let base = *self.times.base.get_or_insert(timestamp);
        let since_base = timestamp.0.wrapping_sub(base.0);
        let header_count = i32::try_from(header_count).map_err(|_| BuildError::Full)?;
        let length = ATTRIBUTES_LEN
            + varint::len_i64(since_base)
            + varint::len_i32(delta)
            + len_bytes(key)
            + len_bytes(value)
            + varint::len_i32(header_count)
            + headers.len();
        if length > BODY_LEN_MAX.saturating_sub(self.bytes.len()) {
            return Err(BuildError::Full);
        }
        let out = &mut self.bytes;
        varint::put_i32(out, length as i32);
        out.push(0);
        varint::put_i64(out, since_base);
        varint::put_i32(out, delta);
        put_bytes(out, key);
        put_bytes(out, value);
        varint::put_i32(out, header_count);
        out.extend_from_slice(headers);
        if self.attributes.timestamp_type() == TimestampType::Create {
            self.times.max = self.times.max.max(timestamp);
        }
        self.count += 1;
        self.last_delta = delta;
        Ok(())
    }

    fn write_header(&mut self, length: i32) {
        let (codec, max) = match self.count {
            0 => (Compression::None, self.times.max.max(self.times.max_if_empty)),
            _ => (self.compression, self.times.max),
        };
        let attributes = self.attributes.with_compression(codec);
        let last_delta = self.last_delta.max(self.last_delta_min);
        let base_timestamp = self.times.base.unwrap_or(max);
        let out = &mut self.bytes;
        write(out, at::BASE_OFFSET, self.base_offset.0.to_be_bytes());
        write(out, at::BATCH_LENGTH, length.to_be_bytes());
        write(out, at::LEADER_EPOCH, self.leader_epoch.0.to_be_bytes());
        write(out, at::MAGIC, MAGIC.to_be_bytes());
        write(out, at::ATTRIBUTES, attributes.bits().to_be_bytes());
        write(out, at::LAST_OFFSET_DELTA, last_delta.to_be_bytes());
        write(out, at::BASE_TIMESTAMP, base_timestamp.0.to_be_bytes());
        write(out, at::MAX_TIMESTAMP, max.0.to_be_bytes());
        write(out, at::PRODUCER_ID, self.producer.id.0.to_be_bytes());
        write(out, at::PRODUCER_EPOCH, self.producer.epoch.0.to_be_bytes());
        write(out, at::BASE_SEQUENCE, self.producer.base_sequence.to_be_bytes());
        write(out, at::RECORD_COUNT, self.count.to_be_bytes());
        let crc = crc32c::crc32c(&out[CRC_FROM..]);
        write(out, at::CRC, crc.to_be_bytes());
    }
}

#[derive(Clone, Copy, Debug)]
struct Producer {
    id: ProducerId,
    epoch: ProducerEpoch,
    base_sequence: i32,
}

impl Producer {
    const NONE: Self = Self { id: ProducerId(-1), epoch: ProducerEpoch(-1), base_sequence: -1 };
}

#[derive(Clone, Copy, Debug)]
struct Times {
    /// What records count from; the first record's own time unless fixed before.
    base: Option<Timestamp>,
    /// The latest record's, or the broker's.
    max: Timestamp,
    max_if_empty: Timestamp,
}

impl Times {
    const NONE: Self = Self { base: None, max: Timestamp::NONE, max_if_empty: Timestamp::NONE };
}

fn write<const N: usize>(out: &mut [u8], from: usize, value: [u8; N]) {
    out[from..from + N].copy_from_slice(&value);
}

/// Appends bytes with their length in front. Lengths past the format's were refused before, by
/// the record's own.
fn put_bytes(out: &mut Vec<u8>, bytes: Option<&[u8]>) {
    let Some(bytes) = bytes else { return varint::put_i32(out, -1) };
    varint::put_i64(out, bytes.len() as i64);
    out.extend_from_slice(bytes);
}

/// Bytes that [`put_bytes`] appends.
fn len_bytes(bytes: Option<&[u8]>) -> usize {
    bytes.map_or(1, |bytes| varint::len_i64(bytes.len() as i64) + bytes.len())
}

const ATTRIBUTES_LEN: usize = 1;
/// The batch length is an `i32`; the longest varint stands before each record.
const BODY_LEN_MAX: usize = i32::MAX as usize - 5;
