//! Why a coordinator refuses. The broker maps each to a Kafka error code in one exhaustive match.

use core::fmt;

/// A refusal, named for what the asker should know. Doc comments say what it should do.
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
        fmt::Debug::fmt(self, f)
    }
}

impl core::error::Error for GroupError {}
