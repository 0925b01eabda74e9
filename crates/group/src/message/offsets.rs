//! Committing, reading and forgetting offsets, for every protocol and for no membership at all.
//!
//! Topics are named here; the edge has already turned topic ids into names and refused unknown
//! ones, per partition, before the core is asked.

use super::GroupError;
use alloc::sync::Arc;
use alloc::vec::Vec;
use ottla_model::{Generation, LeaderEpoch, Offset, PartitionId, Timestamp, TopicId, TopicName};

/// A value for each partition, by topic.
pub type PerPartition<T> = Vec<(TopicName, Vec<(PartitionId, T)>)>;

/// Partitions of several topics, as a request names them.
pub type PartitionsOf<'a> = Vec<(&'a str, Vec<PartitionId>)>;

/// Store offsets of some partitions, all or none.
#[derive(Clone, Debug)]
pub struct Commit<'a> {
    /// The group.
    pub group: &'a str,
    /// The committing member's generation or epoch; negative where it claims no membership.
    pub generation: Generation,
    /// The committing member; empty where it claims no membership.
    pub member: &'a str,
    /// Its `group.instance.id`, if static.
    pub instance: Option<&'a str>,
    /// How long to keep these offsets, where the request says (OffsetCommit v2-v4).
    pub retention: Option<core::time::Duration>,
    /// Whether the request is one that can tell of member epochs (OffsetCommit v9+); a member of
    /// the consumer protocol must use one.
    pub knows_epochs: bool,
    /// What to store.
    pub topics: Vec<CommitTopic<'a>>,
}

/// Offsets of one topic.
#[derive(Clone, Debug)]
pub struct CommitTopic<'a> {
    /// The topic.
    pub topic: &'a str,
    /// Its id at the time of the request; a recreated topic inherits nothing.
    pub id: TopicId,
    /// Its partitions.
    pub partitions: Vec<CommitPartition<'a>>,
}

/// One partition's offset.
#[derive(Clone, Copy, Debug)]
pub struct CommitPartition<'a> {
    /// The partition.
    pub partition: PartitionId,
    /// The next offset to read.
    pub offset: Offset,
    /// The leader epoch of the last record read, where known (KIP-320).
    pub leader_epoch: Option<LeaderEpoch>,
    /// The application's own note.
    pub metadata: &'a str,
}

/// The outcome per partition, in the request's order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Committed {
    /// Topic, then partition and outcome.
    pub topics: PerPartition<Result<(), GroupError>>,
}

/// Read offsets of one group.
#[derive(Clone, Debug)]
pub struct Fetch<'a> {
    /// The group.
    pub group: &'a str,
    /// The reader's membership, where it claims one (OffsetFetch v9+).
    pub member: Option<(&'a str, Generation)>,
    /// Which partitions; `None` for all that have an offset.
    pub topics: Option<PartitionsOf<'a>>,
}

/// The offsets asked for; a partition without one is absent from the answer's meaning, not its
/// shape: it stands there with `None`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fetched {
    /// Topic, then partition and what is committed there.
    pub topics: PerPartition<Option<CommittedOffset>>,
}

/// One committed offset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommittedOffset {
    /// The next offset to read.
    pub offset: Offset,
    /// The leader epoch committed beside it.
    pub leader_epoch: Option<LeaderEpoch>,
    /// The application's own note.
    pub metadata: Arc<str>,
    /// When it was committed.
    pub committed_at: Timestamp,
    /// When it expires by the committer's own wish (OffsetCommit v2-v4), else never by itself.
    pub expires_at: Option<Timestamp>,
    /// The topic's id when it was committed, where known.
    pub topic_id: TopicId,
}

/// Forget offsets (KIP-496).
#[derive(Clone, Debug)]
pub struct Delete<'a> {
    /// The group.
    pub group: &'a str,
    /// Which partitions.
    pub topics: PartitionsOf<'a>,
}

/// The outcome per partition, in the request's order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deleted {
    /// Topic, then partition and outcome.
    pub topics: PerPartition<Result<(), GroupError>>,
}
