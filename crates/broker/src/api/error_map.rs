//! The one map from our errors to Kafka's codes, exhaustive so that a new error cannot be
//! forgotten here.

use ottla_group::message::GroupError;
use ottla_wire::ErrorCode;

/// The code a refusal by a coordinator goes out with.
pub(crate) fn group_error(error: GroupError) -> ErrorCode {
    match error {
        GroupError::NotCoordinator => ErrorCode::NotCoordinator,
        GroupError::LoadInProgress => ErrorCode::CoordinatorLoadInProgress,
        GroupError::NotAvailable => ErrorCode::CoordinatorNotAvailable,
        GroupError::InvalidGroupId => ErrorCode::InvalidGroupId,
        GroupError::InvalidSessionTimeout => ErrorCode::InvalidSessionTimeout,
        GroupError::InvalidRequest => ErrorCode::InvalidRequest,
        GroupError::InconsistentGroupProtocol => ErrorCode::InconsistentGroupProtocol,
        GroupError::UnknownMemberId => ErrorCode::UnknownMemberId,
        GroupError::IllegalGeneration => ErrorCode::IllegalGeneration,
        GroupError::RebalanceInProgress => ErrorCode::RebalanceInProgress,
        GroupError::MemberIdRequired => ErrorCode::MemberIdRequired,
        GroupError::FencedInstanceId => ErrorCode::FencedInstanceId,
        GroupError::GroupMaxSizeReached => ErrorCode::GroupMaxSizeReached,
        GroupError::NonEmptyGroup => ErrorCode::NonEmptyGroup,
        GroupError::GroupIdNotFound => ErrorCode::GroupIdNotFound,
        GroupError::GroupSubscribedToTopic => ErrorCode::GroupSubscribedToTopic,
        GroupError::OffsetMetadataTooLarge => ErrorCode::OffsetMetadataTooLarge,
        GroupError::RecordTooLarge => ErrorCode::RecordListTooLarge,
        GroupError::UnknownTopicOrPartition => ErrorCode::UnknownTopicOrPartition,
        GroupError::StorageError => ErrorCode::KafkaStorageError,
    }
}
