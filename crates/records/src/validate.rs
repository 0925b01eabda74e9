//! What a broker checks of a batch before it takes a producer's word for it.
//!
//! One pure function, Kafka's `LogValidator` and its neighbours in one place. It knows a topic's
//! rules as plain values, and neither Kafka's error codes (the broker maps them) nor producer
//! state: whether a sequence number follows the last one is the log's to say.

use ottla_model::{Offset, Timestamp};

use crate::{
    Batch, BatchError, Batches, Compression, CrcMismatch, Header, Record, RecordsError,
    TimestampType, UnknownCompression,
};

/// The settings and circumstances that a produced batch is judged by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProduceRules {
    /// `max.message.bytes`: the most a batch may measure as it was sent, header included.
    pub batch_bytes_max: usize,
    /// The most its records may measure unpacked. Ours, not Kafka's, which has no bound.
    pub unpacked_bytes_max: usize,
    /// Whether the topic's `cleanup.policy` has `compact`: then every record needs a key.
    pub compacted: bool,
    /// `message.timestamp.type`.
    pub timestamp_type: TimestampType,
    /// `message.timestamp.before.max.ms`: how far behind `now` a producer's time may be.
    pub timestamp_before_max_ms: i64,
    /// `message.timestamp.after.max.ms`: how far ahead of `now` it may be.
    pub timestamp_after_max_ms: i64,
    /// The broker's time.
    pub now: Timestamp,
    /// Whether the request may carry zstd: since Produce version 7 (KIP-110).
    pub zstd_allowed: bool,
    /// Whether a batch may be part of a transaction. A log that takes one and has no coordinator to
    /// end it holds up every reader of committed records.
    pub transactional_allowed: bool,
}

/// A produced batch that keeps the rules.
#[derive(Clone, Copy, Debug)]
pub struct Produced<'a> {
    /// The batch, as it was sent.
    pub batch: Batch<'a>,
    /// The latest timestamp among its records, which the header may tell wrongly: see
    /// [`crate::BatchMut::set_max_create_time`].
    pub max_timestamp: Timestamp,
}

/// Why a batch is refused. The producer is at fault, save for [`ProduceError::Crc`], where the
/// network may be: that one alone is worth sending again.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProduceError {
    /// The bytes changed on their way (Kafka: CORRUPT_MESSAGE).
    #[error(transparent)]
    Crc(#[from] CrcMismatch),
    /// The batch is too long (MESSAGE_TOO_LARGE; producers then split it).
    #[error("the batch has {size} bytes, the topic's max.message.bytes allows {bytes_max}")]
    TooLarge {
        /// Bytes of the batch as sent.
        size: usize,
        /// The topic's bound.
        bytes_max: usize,
    },
    /// The batch is too long once unpacked (MESSAGE_TOO_LARGE).
    #[error("the batch unpacks to more than the {bytes_max} bytes the broker allows")]
    UnpacksTooLarge {
        /// The broker's bound.
        bytes_max: usize,
    },
    /// The batch's codec is not one this request may use (UNSUPPORTED_COMPRESSION_TYPE).
    #[error("zstd needs Produce version 7 or later")]
    ZstdNotAllowed,
    /// The batch's codec is not one there is (UNSUPPORTED_COMPRESSION_TYPE).
    #[error(transparent)]
    UnknownCompression(#[from] UnknownCompression),
    /// The batch is part of a transaction, and there are none here (INVALID_TXN_STATE).
    #[error("transactional batches are not taken")]
    Transactional,
    /// The batch as a whole is wrong (INVALID_RECORD).
    #[error(transparent)]
    Batch(#[from] InvalidBatch),
    /// A producer claims the broker's clock (INVALID_TIMESTAMP).
    #[error("a producer's batch may not have the timestamp type LogAppendTime")]
    TimestampType,
    /// Some records are wrong (INVALID_TIMESTAMP if any is for its timestamp, else
    /// INVALID_RECORD). Never empty; the first [`RECORD_FAULTS_MAX`] of them, in order.
    #[error("{} of the batch's records are refused; the first, {}", .0.len(), .0[0])]
    Records(Vec<RecordFault>),
}

/// What is wrong with a batch as a whole.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidBatch {
    /// There is none.
    #[error("no record batch was sent")]
    Missing,
    /// There are several, or something else behind the first one.
    #[error("more than the one record batch was sent that a partition may be sent")]
    Several,
    /// It is cut off, of an old format, or not a batch at all.
    #[error(transparent)]
    Framing(BatchError),
    /// It wants an offset of its own choosing.
    #[error("a producer's batch must have base offset 0, not {0}")]
    BaseOffset(Offset),
    /// Its count is not that of its offsets, or there is nothing in it.
    #[error("{count} records cannot have {last_offset_delta} as their last offset")]
    Count {
        /// The record count as it stands.
        count: i32,
        /// The last offset delta as it stands.
        last_offset_delta: i32,
    },
    /// It is a control batch.
    #[error("producers may not write control records")]
    Control,
    /// It has a producer id but no sequence number.
    #[error("a batch of an idempotent producer cannot have sequence number {0}")]
    Sequence(i32),
    /// Its records cannot be read.
    #[error(transparent)]
    Records(RecordsError),
    /// Its records are not numbered from 0, one by one.
    #[error("record {index} of the batch says it is at offset {offset}")]
    Offset {
        /// Which record, from 0.
        index: i32,
        /// The offset it claims within the batch.
        offset: Offset,
    },
}

/// One record that breaks a rule of its topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("record {index}: {reason}")]
pub struct RecordFault {
    /// Which record of the batch, from 0 (`batch_index` of the Produce response).
    pub index: i32,
    /// The rule.
    pub reason: RecordFaultReason,
}

/// The rule that a record breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordFaultReason {
    /// It has no key and the topic is compacted by key.
    #[error("a compacted topic takes no record without a key")]
    KeyMissing,
    /// Its time is too far from the broker's.
    #[error("its timestamp {} is not between {} and {}", timestamp.0, earliest.0, latest.0)]
    Timestamp {
        /// The record's time.
        timestamp: Timestamp,
        /// The earliest that the topic takes now.
        earliest: Timestamp,
        /// The latest that the topic takes now.
        latest: Timestamp,
    },
}

/// The most refused records that one refusal tells apart.
pub const RECORD_FAULTS_MAX: usize = 100;

/// Judges `bytes`, what a Produce request holds for one partition, by `rules`.
///
/// Every record is walked, so that what is stored can be read: an uncompressed batch where it
/// lies, a compressed one unpacked into `scratch`. Of what Kafka also refuses, only the order of a
/// producer's sequence numbers is left to check. Stricter than Kafka in one point: records
/// misnumbered within the batch are refused, where Kafka renumbers some and stores others.
pub fn validate_produced<'a>(
    bytes: &'a [u8],
    rules: &ProduceRules,
    scratch: &mut Vec<u8>,
) -> Result<Produced<'a>, ProduceError> {
    let batch = only_batch(bytes)?;
    if batch.bytes().len() > rules.batch_bytes_max {
        let (size, bytes_max) = (batch.bytes().len(), rules.batch_bytes_max);
        return Err(ProduceError::TooLarge { size, bytes_max });
    }
    batch.verify_crc()?;
    check_header(batch.header(), rules)?;
    let max_timestamp = check_records(&batch, rules, scratch)?;
    Ok(Produced { batch, max_timestamp })
}

fn only_batch(bytes: &[u8]) -> Result<Batch<'_>, InvalidBatch> {
    let mut batches = Batches::new(bytes);
    let batch = batches.next().ok_or(InvalidBatch::Missing)?.map_err(InvalidBatch::Framing)?;
    if batches.position() == bytes.len() { Ok(batch) } else { Err(InvalidBatch::Several) }
}

fn check_header(header: Header<'_>, rules: &ProduceRules) -> Result<(), ProduceError> {
    let attributes = header.attributes();
    if attributes.compression()? == Compression::Zstd && !rules.zstd_allowed {
        return Err(ProduceError::ZstdNotAllowed);
    }
    if attributes.timestamp_type() == TimestampType::LogAppend {
        return Err(ProduceError::TimestampType);
    }
    if attributes.is_transactional() && !rules.transactional_allowed {
        return Err(ProduceError::Transactional);
    }
    let (count, last_offset_delta) = (header.record_count(), header.last_offset_delta());
    if header.base_offset() != Offset(0) {
        return Err(InvalidBatch::BaseOffset(header.base_offset()).into());
    }
    if count <= 0 || last_offset_delta != count - 1 {
        return Err(InvalidBatch::Count { count, last_offset_delta }.into());
    }
    if attributes.is_control() {
        return Err(InvalidBatch::Control.into());
    }
    if header.producer_id().is_some() && header.base_sequence() < 0 {
        return Err(InvalidBatch::Sequence(header.base_sequence()).into());
    }
    Ok(())
}

/// Walks the records and finds their latest timestamp.
fn check_records(
    batch: &Batch<'_>,
    rules: &ProduceRules,
    scratch: &mut Vec<u8>,
) -> Result<Timestamp, ProduceError> {
    let records = batch.records_in(rules.unpacked_bytes_max, scratch).map_err(unreadable)?;
    let mut max = Timestamp::NONE;
    let mut faults = Vec::new();
    for (index, record) in (0..).zip(&records) {
        let record = record.map_err(unreadable)?;
        if record.offset != Offset(i64::from(index)) {
            return Err(InvalidBatch::Offset { index, offset: record.offset }.into());
        }
        max = max.max(record.timestamp);
        if let Some(reason) = fault_of(&record, rules)
            && faults.len() < RECORD_FAULTS_MAX
        {
            faults.push(RecordFault { index, reason });
        }
    }
    if faults.is_empty() { Ok(max) } else { Err(ProduceError::Records(faults)) }
}

fn unreadable(error: RecordsError) -> ProduceError {
    match error {
        RecordsError::TooLarge { bytes_max } => ProduceError::UnpacksTooLarge { bytes_max },
        error => InvalidBatch::Records(error).into(),
    }
}

fn fault_of(record: &Record<'_>, rules: &ProduceRules) -> Option<RecordFaultReason> {
    if rules.compacted && record.key.is_none() {
        return Some(RecordFaultReason::KeyMissing);
    }
    let timestamp = record.timestamp;
    if rules.timestamp_type == TimestampType::LogAppend || timestamp == Timestamp::NONE {
        return None;
    }
    let earliest = Timestamp(rules.now.0.saturating_sub(rules.timestamp_before_max_ms));
    let latest = Timestamp(rules.now.0.saturating_add(rules.timestamp_after_max_ms));
    let fits = (earliest..=latest).contains(&timestamp);
    (!fits).then_some(RecordFaultReason::Timestamp { timestamp, earliest, latest })
}
