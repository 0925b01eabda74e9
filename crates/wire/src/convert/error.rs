//! The one map between the coordinator's refusals and Kafka's error codes, there and back.

use ottla_group::message::GroupError;
use thiserror::Error;

use crate::ErrorCode;

/// A code in a response to a group call that is none of the coordinator's refusals: the broker's
/// own (authorization, say), or one that this Kafka does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the broker answers with error code {0}")]
pub struct Foreign(pub i16);

/// The code that tells a client of this refusal.
pub fn code(error: GroupError) -> ErrorCode {
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
        GroupError::UnreleasedInstanceId => ErrorCode::UnreleasedInstanceId,
        GroupError::FencedMemberEpoch => ErrorCode::FencedMemberEpoch,
        GroupError::StaleMemberEpoch => ErrorCode::StaleMemberEpoch,
        GroupError::UnsupportedAssignor => ErrorCode::UnsupportedAssignor,
        GroupError::InvalidRegularExpression => ErrorCode::InvalidRegularExpression,
        GroupError::UnsupportedVersion => ErrorCode::UnsupportedVersion,
        GroupError::GroupMaxSizeReached => ErrorCode::GroupMaxSizeReached,
        GroupError::NonEmptyGroup => ErrorCode::NonEmptyGroup,
        GroupError::GroupIdNotFound => ErrorCode::GroupIdNotFound,
        GroupError::GroupSubscribedToTopic => ErrorCode::GroupSubscribedToTopic,
        GroupError::OffsetMetadataTooLarge => ErrorCode::OffsetMetadataTooLarge,
        GroupError::RecordTooLarge => ErrorCode::MessageTooLarge,
        GroupError::UnknownTopicOrPartition => ErrorCode::UnknownTopicOrPartition,
        // Clients know KAFKA_STORAGE_ERROR of partitions only, and give up if a coordinator sends
        // it; this one has them look for the coordinator again and retry.
        GroupError::StorageError => ErrorCode::CoordinatorNotAvailable,
    }
}

/// The refusal that this code of a response stands for; none for success.
///
/// # Errors
/// The code, if no coordinator of ours would send it.
pub fn group_error(number: i16) -> Result<Option<GroupError>, Foreign> {
    Ok(Some(match ErrorCode::from_number(number).ok_or(Foreign(number))? {
        ErrorCode::None => return Ok(None),
        ErrorCode::NotCoordinator => GroupError::NotCoordinator,
        ErrorCode::CoordinatorLoadInProgress => GroupError::LoadInProgress,
        ErrorCode::CoordinatorNotAvailable => GroupError::NotAvailable,
        ErrorCode::InvalidGroupId => GroupError::InvalidGroupId,
        ErrorCode::InvalidSessionTimeout => GroupError::InvalidSessionTimeout,
        ErrorCode::InvalidRequest => GroupError::InvalidRequest,
        ErrorCode::InconsistentGroupProtocol => GroupError::InconsistentGroupProtocol,
        ErrorCode::UnknownMemberId => GroupError::UnknownMemberId,
        ErrorCode::IllegalGeneration => GroupError::IllegalGeneration,
        ErrorCode::RebalanceInProgress => GroupError::RebalanceInProgress,
        ErrorCode::MemberIdRequired => GroupError::MemberIdRequired,
        ErrorCode::FencedInstanceId => GroupError::FencedInstanceId,
        ErrorCode::UnreleasedInstanceId => GroupError::UnreleasedInstanceId,
        ErrorCode::FencedMemberEpoch => GroupError::FencedMemberEpoch,
        ErrorCode::StaleMemberEpoch => GroupError::StaleMemberEpoch,
        ErrorCode::UnsupportedAssignor => GroupError::UnsupportedAssignor,
        ErrorCode::InvalidRegularExpression => GroupError::InvalidRegularExpression,
        ErrorCode::UnsupportedVersion => GroupError::UnsupportedVersion,
        ErrorCode::GroupMaxSizeReached => GroupError::GroupMaxSizeReached,
        ErrorCode::NonEmptyGroup => GroupError::NonEmptyGroup,
        ErrorCode::GroupIdNotFound => GroupError::GroupIdNotFound,
        ErrorCode::GroupSubscribedToTopic => GroupError::GroupSubscribedToTopic,
        ErrorCode::OffsetMetadataTooLarge => GroupError::OffsetMetadataTooLarge,
        ErrorCode::MessageTooLarge => GroupError::RecordTooLarge,
        ErrorCode::UnknownTopicOrPartition => GroupError::UnknownTopicOrPartition,
        ErrorCode::KafkaStorageError => GroupError::StorageError,
        _ => return Err(Foreign(number)),
    }))
}

/// What to do about a refusal that retrying does not mend, for the log of a client that gives up.
pub(super) fn advice(error: GroupError) -> Option<&'static str> {
    Some(match error {
        GroupError::InvalidRequest => "The request contradicts itself or lacks what a join needs.",
        GroupError::InvalidGroupId => "The group id is not usable: it must not be empty.",
        GroupError::GroupMaxSizeReached => {
            "The group is full: raise consumer.group.max.size or start fewer members."
        }
        GroupError::UnsupportedAssignor => {
            "There is no server-side assignor of this name: there are uniform and range."
        }
        GroupError::InvalidRegularExpression => {
            "The subscription's pattern is no valid RE2 regular expression."
        }
        GroupError::UnreleasedInstanceId => {
            "Another member holds this group.instance.id and has not left."
        }
        GroupError::FencedInstanceId => "Another member has taken over this group.instance.id.",
        GroupError::GroupIdNotFound => "The group speaks another protocol while it has members.",
        _ => return None,
    })
}

/// The result that a response's error field and, if there is no error, its other fields are.
pub(super) fn result<T>(
    number: i16,
    answer: impl FnOnce() -> T,
) -> Result<Result<T, GroupError>, Foreign> {
    Ok(match group_error(number)? {
        None => Ok(answer()),
        Some(error) => Err(error),
    })
}
