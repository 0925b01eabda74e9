//! What a refusal asks of a member: one table, a reason for every row.

use crate::message::GroupError;

/// Which request was refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// JoinGroup.
    Join,
    /// SyncGroup.
    Sync,
    /// Heartbeat.
    Heartbeat,
    /// ConsumerGroupHeartbeat.
    Beat,
    /// LeaveGroup, or ConsumerGroupHeartbeat with the epoch that says so.
    Leave,
    /// OffsetCommit.
    Commit,
    /// OffsetFetch.
    Fetch,
}

/// What to do about it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Verdict {
    /// Ask the same coordinator again after a pause.
    RetrySame,
    /// Find the coordinator, then ask it again.
    Rediscover,
    /// Join the rebalance; id, generation and (cooperative) partitions stay valid until then.
    Rejoin,
    /// The generation went on without this member: what it owned is lost, its id is not.
    LoseGeneration,
    /// The coordinator knows no such member: what it owned is lost, and so is its id.
    LoseIdentity,
    /// Join again with the id that came beside the error.
    AdoptId,
    /// Nothing a retry could change.
    Fail,
}

/// The verdict on `error` in answer to a request of `kind`.
pub(super) fn on(kind: Kind, error: GroupError) -> Verdict {
    use GroupError as E;
    match error {
        // The shard is being read from its log: it will answer soon, and nobody else can.
        E::LoadInProgress => Verdict::RetrySame,
        // The disk has trouble; the coordinator is the right one.
        E::StorageError => Verdict::RetrySame,
        // Ownership of the shard moved, or its storage failed and it is about to.
        E::NotCoordinator | E::NotAvailable => Verdict::Rediscover,
        // A join that meets another rebalance is simply early.
        E::RebalanceInProgress if kind == Kind::Join => Verdict::RetrySame,
        E::RebalanceInProgress => Verdict::Rejoin,
        // A rebalance was completed without this member: others may own what it had.
        E::IllegalGeneration => Verdict::LoseGeneration,
        // Expired, removed, or never known to this coordinator.
        E::UnknownMemberId => Verdict::LoseIdentity,
        E::MemberIdRequired => Verdict::AdoptId,
        // Another process runs under this instance id: two would take turns for ever.
        E::FencedInstanceId => Verdict::Fail,
        // The process that had this instance id did not say that it goes: its session has to end.
        E::UnreleasedInstanceId => Verdict::RetrySame,
        // The coordinator has this member elsewhere: it gives up everything and joins again.
        E::FencedMemberEpoch => Verdict::LoseGeneration,
        // The next heartbeat tells the epoch that this one needs.
        E::StaleMemberEpoch => Verdict::RetrySame,
        // Configuration of the consumer protocol.
        E::UnsupportedAssignor | E::InvalidRegularExpression | E::UnsupportedVersion => {
            Verdict::Fail
        }
        // Configuration that the broker or the group refuses; only a person can change it.
        E::InvalidGroupId
        | E::InvalidSessionTimeout
        | E::InvalidRequest
        | E::InconsistentGroupProtocol
        | E::GroupMaxSizeReached => Verdict::Fail,
        // Too large stays too large.
        E::OffsetMetadataTooLarge | E::RecordTooLarge => Verdict::Fail,
        // Answers to administration, or per partition; none of them is about membership.
        E::NonEmptyGroup
        | E::GroupIdNotFound
        | E::GroupSubscribedToTopic
        | E::UnknownTopicOrPartition => Verdict::Fail,
    }
}
