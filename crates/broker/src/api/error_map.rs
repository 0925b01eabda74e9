//! The map from our errors to Kafka's codes, each match exhaustive so that a new error cannot be
//! forgotten here. What a coordinator refuses has its map beside its inverse, in
//! [`ottla_wire::convert`].

use ottla_cluster::ChangeError;
use ottla_cluster::command::RefusalKind;
use ottla_records::{ProduceError, RecordFaultReason};
use ottla_storage::{AppendError, ReadError, SequenceError};
use ottla_wire::ErrorCode;

/// Why batches were not appended.
pub(crate) fn append_error(error: &AppendError) -> ErrorCode {
    match error {
        AppendError::Malformed(_) => ErrorCode::InvalidRecord,
        AppendError::TooLarge { .. } => ErrorCode::RecordListTooLarge,
        AppendError::Sequence(SequenceError::OutOfOrder { .. }) => {
            ErrorCode::OutOfOrderSequenceNumber
        }
        AppendError::Sequence(SequenceError::Fenced { .. }) => ErrorCode::InvalidProducerEpoch,
        AppendError::Fenced { .. } => ErrorCode::NotLeaderOrFollower,
        AppendError::OffsetsUsedUp { .. } => ErrorCode::UnknownServerError,
        AppendError::DiskFull(_) | AppendError::Poisoned(_) => ErrorCode::KafkaStorageError,
    }
}

/// Why a produced batch is refused.
pub(crate) fn produce_error(error: &ProduceError) -> ErrorCode {
    match error {
        ProduceError::Crc(_) => ErrorCode::CorruptMessage,
        ProduceError::TooLarge { .. } | ProduceError::UnpacksTooLarge { .. } => {
            ErrorCode::MessageTooLarge
        }
        ProduceError::ZstdNotAllowed | ProduceError::UnknownCompression(_) => {
            ErrorCode::UnsupportedCompressionType
        }
        ProduceError::Batch(_) => ErrorCode::InvalidRecord,
        ProduceError::Transactional => ErrorCode::InvalidTxnState,
        ProduceError::TimestampType => ErrorCode::InvalidTimestamp,
        ProduceError::Records(faults) => {
            let timely = |reason| matches!(reason, RecordFaultReason::Timestamp { .. });
            if faults.iter().any(|fault| timely(fault.reason)) {
                ErrorCode::InvalidTimestamp
            } else {
                ErrorCode::InvalidRecord
            }
        }
    }
}

/// Why a read has no answer.
pub(crate) fn read_error(error: &ReadError) -> ErrorCode {
    match error {
        ReadError::OutOfRange { .. } => ErrorCode::OffsetOutOfRange,
        ReadError::Damaged { .. } | ReadError::Records { .. } | ReadError::Io(_) => {
            ErrorCode::KafkaStorageError
        }
    }
}

/// Why a change of the cluster was refused.
pub(crate) fn refusal(kind: RefusalKind) -> ErrorCode {
    match kind {
        RefusalKind::InvalidTopic => ErrorCode::InvalidTopicException,
        RefusalKind::TopicAlreadyExists => ErrorCode::TopicAlreadyExists,
        RefusalKind::UnknownTopicOrPartition => ErrorCode::UnknownTopicOrPartition,
        RefusalKind::UnknownTopicId => ErrorCode::UnknownTopicId,
        RefusalKind::InvalidPartitions => ErrorCode::InvalidPartitions,
        RefusalKind::InvalidReplicationFactor => ErrorCode::InvalidReplicationFactor,
        RefusalKind::InvalidReplicaAssignment => ErrorCode::InvalidReplicaAssignment,
        RefusalKind::InvalidConfig => ErrorCode::InvalidConfig,
        RefusalKind::InvalidRequest => ErrorCode::InvalidRequest,
        RefusalKind::PolicyViolation => ErrorCode::PolicyViolation,
        RefusalKind::InvalidUpdateVersion => ErrorCode::InvalidUpdateVersion,
        RefusalKind::NotInCharge => ErrorCode::NotLeaderOrFollower,
    }
}

/// Why a change of the cluster did not happen, or is not known to have.
pub(crate) fn change_error(error: &ChangeError) -> ErrorCode {
    match error {
        // Retriable for every client, and retrying is right: whoever tries again finds out.
        ChangeError::Busy
        | ChangeError::Contended
        | ChangeError::Unavailable(_)
        | ChangeError::OutcomeUnknown(_)
        | ChangeError::SessionEnded(_)
        | ChangeError::Stopped => ErrorCode::RequestTimedOut,
        ChangeError::Refused(_) => ErrorCode::InvalidRequest,
    }
}
