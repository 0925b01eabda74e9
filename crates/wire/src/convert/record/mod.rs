//! The coordinator's records to and from the bytes of `__consumer_offsets`, one file per kind.
//!
//! A record's key begins with its kind, its value with the version of its layout; both are Kafka's
//! own, and Kafka, its tools and ours read each other's. Every version that Kafka 4.4 reads is
//! read; written is the version that Kafka 4.4 writes. Knows nothing of batches or of the log.

mod consumer_group_current_member_assignment;
mod consumer_group_member_metadata;
mod consumer_group_metadata;
mod consumer_group_partition_metadata;
mod consumer_group_regular_expression;
mod consumer_group_target_assignment_member;
mod consumer_group_target_assignment_metadata;
mod group_metadata;
mod offset_commit;

use ottla_group::coordinator::record::Record;
use thiserror::Error;

use crate::{DecodeError, EncodeError, Message, Output};

/// A record's key and value as they stand in the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Encoded {
    /// The key.
    pub key: Vec<u8>,
    /// The value; none is a tombstone.
    pub value: Option<Vec<u8>>,
}

/// What a key and value of the log are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decoded {
    /// One of our records.
    Record(Record),
    /// Of a kind that we do not keep (yet): a share group's, say, or a later Kafka's. To be
    /// counted and left alone.
    Unknown {
        /// Its number in Kafka.
        kind: i16,
    },
}

/// Why a record of a kind that we keep cannot be read. To go on without it would be to lose what
/// it says, so a shard that finds one does not load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum RecordError {
    /// No key, or one of a single byte.
    #[error("the record has no key, and so no kind")]
    NoKind,
    /// A value of no byte or one.
    #[error("the value of a record of kind {kind} is cut off")]
    NoVersion {
        /// The record's kind.
        kind: i16,
    },
    /// The bytes are not such a record's; or, a version too high, a later Kafka's.
    #[error("a record of kind {kind} cannot be read")]
    Malformed {
        /// The record's kind.
        kind: i16,
        /// What is wrong with its bytes.
        source: DecodeError,
    },
}

/// Reads a record of the log. Bytes behind what its layout has are ignored, as Kafka does.
///
/// # Errors
/// If it is of a kind that we keep and cannot be read.
pub fn decode(key: Option<&[u8]>, value: Option<&[u8]>) -> Result<Decoded, RecordError> {
    let (kind, key) = key.and_then(take_number).ok_or(RecordError::NoKind)?;
    let malformed = |source| RecordError::Malformed { kind, source };
    let value = value.map(|value| take_number(value).ok_or(RecordError::NoVersion { kind }));
    Ok(Decoded::Record(match kind {
        offset_commit::LEGACY_KIND | offset_commit::KIND => {
            let value = value.transpose()?;
            Record::OffsetCommit(offset_commit::decode(key, value).map_err(malformed)?)
        }
        group_metadata::KIND => {
            let value = value.transpose()?;
            Record::GroupMetadata(group_metadata::decode(key, value).map_err(malformed)?)
        }
        consumer_group_metadata::KIND => {
            let value = value.transpose()?;
            Record::ConsumerGroupMetadata(
                consumer_group_metadata::decode(key, value).map_err(malformed)?,
            )
        }
        consumer_group_partition_metadata::KIND => {
            let value = value.transpose()?;
            Record::ConsumerGroupPartitionMetadata(
                consumer_group_partition_metadata::decode(key, value).map_err(malformed)?,
            )
        }
        consumer_group_member_metadata::KIND => {
            let value = value.transpose()?;
            Record::ConsumerGroupMemberMetadata(
                consumer_group_member_metadata::decode(key, value).map_err(malformed)?,
            )
        }
        consumer_group_target_assignment_metadata::KIND => {
            let value = value.transpose()?;
            Record::ConsumerGroupTargetAssignmentMetadata(
                consumer_group_target_assignment_metadata::decode(key, value).map_err(malformed)?,
            )
        }
        consumer_group_target_assignment_member::KIND => {
            let value = value.transpose()?;
            Record::ConsumerGroupTargetAssignmentMember(
                consumer_group_target_assignment_member::decode(key, value).map_err(malformed)?,
            )
        }
        consumer_group_current_member_assignment::KIND => {
            let value = value.transpose()?;
            Record::ConsumerGroupCurrentMemberAssignment(
                consumer_group_current_member_assignment::decode(key, value).map_err(malformed)?,
            )
        }
        consumer_group_regular_expression::KIND => {
            let value = value.transpose()?;
            Record::ConsumerGroupRegularExpression(
                consumer_group_regular_expression::decode(key, value).map_err(malformed)?,
            )
        }
        kind => return Ok(Decoded::Unknown { kind }),
    }))
}

/// Writes a record as the log has it.
///
/// # Errors
/// If a name in it is longer than the 32,767 bytes that its field holds.
pub fn encode(record: &Record) -> Result<Encoded, EncodeError> {
    match record {
        Record::OffsetCommit(record) => offset_commit::encode(record),
        Record::GroupMetadata(record) => group_metadata::encode(record),
        Record::ConsumerGroupMetadata(record) => consumer_group_metadata::encode(record),
        Record::ConsumerGroupPartitionMetadata(record) => {
            consumer_group_partition_metadata::encode(record)
        }
        Record::ConsumerGroupMemberMetadata(record) => {
            consumer_group_member_metadata::encode(record)
        }
        Record::ConsumerGroupTargetAssignmentMetadata(record) => {
            consumer_group_target_assignment_metadata::encode(record)
        }
        Record::ConsumerGroupTargetAssignmentMember(record) => {
            consumer_group_target_assignment_member::encode(record)
        }
        Record::ConsumerGroupCurrentMemberAssignment(record) => {
            consumer_group_current_member_assignment::encode(record)
        }
        Record::ConsumerGroupRegularExpression(record) => {
            consumer_group_regular_expression::encode(record)
        }
    }
}

/// Takes the number that every key and value begin with.
fn take_number(bytes: &[u8]) -> Option<(i16, &[u8])> {
    let (number, rest) = bytes.split_first_chunk()?;
    Some((i16::from_be_bytes(*number), rest))
}

/// A number, then the message in the layout of `version`.
fn numbered<'a>(
    number: i16,
    message: &impl Message<'a>,
    version: i16,
) -> Result<Vec<u8>, EncodeError> {
    let len = size_of::<i16>() + message.size(version);
    let mut out = Output::reusing(Vec::with_capacity(len));
    out.i16(number);
    message.encode(version, &mut out)?;
    Ok(out.into_vec())
}

#[cfg(test)]
mod tests;
