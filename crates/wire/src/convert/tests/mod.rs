//! Every conversion in every version, through the bytes: what a version can carry arrives, what it
//! cannot has that version's default, and each quirk has a test that names it.

mod admin;
mod classic;
mod consumer;
mod offsets;
mod register;

use ottla_group::message::GroupError;

use super::{Foreign, code, group_error};
use crate::ErrorCode;

/// `message`, encoded and decoded in `version`.
macro_rules! through {
    ($bytes:ident, $message:expr, $version:expr) => {{
        $bytes = crate::Message::to_vec(&$message, $version).expect("a message for this version");
        crate::Message::decode_all(&$bytes, $version).expect("what was just written")
    }};
}
use through;

/// The requests are compared as text: they have no equality of their own.
fn assert_same(left: &impl std::fmt::Debug, right: &impl std::fmt::Debug, version: i16) {
    assert_eq!(format!("{left:?}"), format!("{right:?}"), "version {version}");
}

const ERRORS: [GroupError; 26] = [
    GroupError::NotCoordinator,
    GroupError::LoadInProgress,
    GroupError::NotAvailable,
    GroupError::InvalidGroupId,
    GroupError::InvalidSessionTimeout,
    GroupError::InvalidRequest,
    GroupError::InconsistentGroupProtocol,
    GroupError::UnknownMemberId,
    GroupError::IllegalGeneration,
    GroupError::RebalanceInProgress,
    GroupError::MemberIdRequired,
    GroupError::FencedInstanceId,
    GroupError::UnreleasedInstanceId,
    GroupError::FencedMemberEpoch,
    GroupError::StaleMemberEpoch,
    GroupError::UnsupportedAssignor,
    GroupError::InvalidRegularExpression,
    GroupError::UnsupportedVersion,
    GroupError::GroupMaxSizeReached,
    GroupError::NonEmptyGroup,
    GroupError::GroupIdNotFound,
    GroupError::GroupSubscribedToTopic,
    GroupError::OffsetMetadataTooLarge,
    GroupError::RecordTooLarge,
    GroupError::UnknownTopicOrPartition,
    GroupError::StorageError,
];

#[test]
fn a_client_is_told_the_refusal_that_the_coordinator_meant() {
    for error in ERRORS {
        let told = match error {
            // Clients only know what to do about the latter.
            GroupError::StorageError => GroupError::NotAvailable,
            other => other,
        };
        assert_eq!(group_error(code(error).number()), Ok(Some(told)));
    }
    assert_eq!(group_error(0), Ok(None));
}

#[test]
fn a_code_that_no_coordinator_sends_is_handed_on() {
    let authorization = ErrorCode::GroupAuthorizationFailed.number();
    assert_eq!(group_error(authorization), Err(Foreign(authorization)));
    assert_eq!(group_error(9_999), Err(Foreign(9_999)));
}
