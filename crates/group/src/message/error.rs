//! Why a coordinator refuses. The broker maps each to a Kafka error code in one exhaustive match.

use core::fmt;

/// A refusal, named for what the asker should know. Doc comments say what it should do; its
/// text says that to people.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum GroupError {
    /// This broker does not own the group's shard (any more): find the coordinator again.
    NotCoordinator,
    /// The shard is being loaded: ask the same broker again shortly.
    LoadInProgress,
    /// The coordinator cannot answer now (storage failed): find it again, with back-off.
    NotAvailable,
    /// The group id is empty or otherwise unusable: fix the configuration.
    InvalidGroupId,
    /// The session timeout lies outside the broker's limits: fix the configuration.
    InvalidSessionTimeout,
    /// A field's value makes no sense: fix the client.
    InvalidRequest,
    /// No assignor is common to all members, or the group speaks another protocol.
    InconsistentGroupProtocol,
    /// The member id is not (or no longer) part of the group: join as a new member.
    UnknownMemberId,
    /// The generation is not the current one: rejoin.
    IllegalGeneration,
    /// A rebalance is under way: rejoin.
    RebalanceInProgress,
    /// First join without an id: join again with the id given beside this (KIP-394).
    MemberIdRequired,
    /// Another member took over this `group.instance.id`: stop (KIP-345).
    FencedInstanceId,
    /// Another member holds this `group.instance.id` and has not left: try again later (KIP-848).
    UnreleasedInstanceId,
    /// The member's epoch is not one it can have: give up all partitions and join again (KIP-848).
    FencedMemberEpoch,
    /// The member's epoch is not the current one: ask again with the one of the next heartbeat
    /// (KIP-848).
    StaleMemberEpoch,
    /// There is no server-side assignor of this name: fix the configuration (KIP-848).
    UnsupportedAssignor,
    /// The subscription's pattern cannot be understood: fix the subscription (KIP-848).
    InvalidRegularExpression,
    /// The group's protocol does not allow this version of the request: use a newer one.
    UnsupportedVersion,
    /// The group has as many members as it may have.
    GroupMaxSizeReached,
    /// The group still has members.
    NonEmptyGroup,
    /// There is no such group.
    GroupIdNotFound,
    /// Members are subscribed to the topic whose offsets should go.
    GroupSubscribedToTopic,
    /// The committed metadata string is longer than allowed.
    OffsetMetadataTooLarge,
    /// What would have to be written is larger than one batch may be.
    RecordTooLarge,
    /// There is no such topic or partition.
    UnknownTopicOrPartition,
    /// The disk is full or failing for now: retry.
    StorageError,
}

impl fmt::Display for GroupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotCoordinator => {
                "this broker does not coordinate the group: find the one that does"
            }
            Self::LoadInProgress => "the group is being loaded: ask again shortly",
            Self::NotAvailable => "the coordinator cannot answer now: find it again in a while",
            Self::InvalidGroupId => "the group id cannot be used: configure another",
            Self::InvalidSessionTimeout => {
                "the session timeout is outside the broker's limits: configure another"
            }
            Self::InvalidRequest => {
                "the client sent a value that makes no sense: this is its fault"
            }
            Self::InconsistentGroupProtocol => {
                "the group has no assignor in common with the member, or speaks another protocol: \
                 configure all members alike"
            }
            Self::UnknownMemberId => "the group does not know the member any more: join anew",
            Self::IllegalGeneration => "the group has another generation by now: join again",
            Self::RebalanceInProgress => "the group rebalances: join again",
            Self::MemberIdRequired => "the group has given the member an id: join again with it",
            Self::FencedInstanceId => {
                "another member took over the instance id: stop, and give each member its own"
            }
            Self::UnreleasedInstanceId => {
                "another member holds the instance id: wait until it has left, or give each its own"
            }
            Self::FencedMemberEpoch => {
                "the member's epoch is not one it can have: give up all partitions and join again"
            }
            Self::StaleMemberEpoch => {
                "the member's epoch is over: try again with that of the next heartbeat"
            }
            Self::UnsupportedAssignor => {
                "the broker has no assignor of this name: configure one that it has"
            }
            Self::InvalidRegularExpression => {
                "the subscription's pattern cannot be understood: correct it (RE2 syntax)"
            }
            Self::UnsupportedVersion => {
                "the group's protocol needs a newer version of the request: update the client"
            }
            Self::GroupMaxSizeReached => {
                "the group is full: run fewer members, or have the broker allow more"
            }
            Self::NonEmptyGroup => "the group still has members: stop them first",
            Self::GroupIdNotFound => "there is no such group: look at its name",
            Self::GroupSubscribedToTopic => {
                "members are subscribed to the topic: stop them, or have them unsubscribe, first"
            }
            Self::OffsetMetadataTooLarge => {
                "the metadata of the commit is too long: shorten it, or have the broker allow more"
            }
            Self::RecordTooLarge => {
                "what would be written is larger than a batch may be: ask for less at a time"
            }
            Self::UnknownTopicOrPartition => {
                "there is no such topic or partition: look at its name"
            }
            Self::StorageError => "the broker's disk is full or failing: try again later",
        })
    }
}

impl core::error::Error for GroupError {}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    /// Whoever prints an error shows it to people: what is the matter, then what to do.
    #[test]
    fn an_error_is_told_in_words() {
        for error in [GroupError::UnknownMemberId, GroupError::StorageError] {
            let text = error.to_string();
            assert!(text.split_once(": ").is_some_and(|(_, what)| what.contains(' ')), "{text}");
        }
    }
}
