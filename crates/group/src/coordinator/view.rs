//! What may be looked at from outside without asking as a client: metrics and the HTTP side.
//!
//! Every look is an [`Observed`]: it may include what is not durable yet, and says which index
//! must be durable before it is shown to anyone.

use super::config::MigrationPolicy;
use super::output::Index;
use crate::message::admin::{GroupKind, GroupState};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;
use ottla_model::{
    Generation, GroupId, InstanceId, Instant, MemberId, Offset, PartitionId, Timestamp, TopicName,
};

/// A value and the decision that must be durable before anyone may see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observed<T> {
    /// What was seen.
    pub value: T,
    /// Show it only once this index is durable; `None` when nothing is awaited.
    pub after: Option<Index>,
}

/// Groups by state.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct StateCounts {
    /// See [`GroupState::Empty`].
    pub empty: usize,
    /// See [`GroupState::PreparingRebalance`].
    pub preparing_rebalance: usize,
    /// See [`GroupState::CompletingRebalance`].
    pub completing_rebalance: usize,
    /// See [`GroupState::Assigning`].
    pub assigning: usize,
    /// See [`GroupState::Reconciling`].
    pub reconciling: usize,
    /// See [`GroupState::Stable`].
    pub stable: usize,
}

impl StateCounts {
    pub(super) fn count(&mut self, state: GroupState) {
        match state {
            GroupState::Empty => self.empty += 1,
            GroupState::PreparingRebalance => self.preparing_rebalance += 1,
            GroupState::CompletingRebalance => self.completing_rebalance += 1,
            GroupState::Assigning => self.assigning += 1,
            GroupState::Reconciling => self.reconciling += 1,
            GroupState::Stable => self.stable += 1,
            // A dead group is not kept.
            GroupState::Dead => {}
        }
    }
}

/// One group, its recent past and who holds it up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupView {
    /// The group.
    pub group: GroupId,
    /// Which protocol its members speak.
    pub kind: GroupKind,
    /// Its state.
    pub state: GroupState,
    /// The generation in force or being prepared for.
    pub generation: Generation,
    /// How many members it has.
    pub members: usize,
    /// Members the group waits for right now, longest first.
    pub blocking: Vec<Blocker>,
    /// Where it would go, and what is in the way; `None` where that does not arise.
    pub migration: Option<Migration>,
    /// Its last generations and why they came to be, oldest first.
    pub journal: Vec<JournalEntry>,
}

/// Where a group with members would go, if others of another protocol came or the last one of its
/// own went (KIP-848, "Online Migration").
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Migration {
    /// The protocol it would go to.
    pub to: GroupKind,
    /// What is in the way; nothing, if it is empty.
    pub obstacles: Vec<Obstacle>,
}

/// What is in the way of a migration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Obstacle {
    /// The broker's policy.
    Policy(MigrationPolicy),
    /// The members are not consumers: Connect workers, for example.
    ProtocolType(Arc<str>),
    /// There are more members than the other protocol may have.
    TooManyMembers {
        /// So many.
        members: usize,
        /// So many may be.
        max: usize,
    },
    /// A member's subscription cannot be read.
    Subscription(MemberId),
    /// A member's assignment cannot be read.
    Assignment(MemberId),
    /// The assignor gives members data of its own, which the coordinator would not.
    Assignor {
        /// Who has such data.
        member: MemberId,
        /// Whose data it is.
        assignor: Arc<str>,
    },
    /// No assignor is common to all classic members.
    NoCommonAssignor,
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Policy(policy) => {
                write!(f, "group.consumer.migration.policy is {}", policy.name())
            }
            Self::ProtocolType(name) => write!(f, "its members are no consumers but `{name}`"),
            Self::TooManyMembers { members, max } => {
                write!(f, "it has {members} members and may have {max}")
            }
            Self::Subscription(member) => {
                write!(f, "member {member}: its subscription cannot be read")
            }
            Self::Assignment(member) => write!(f, "member {member}: its assignment cannot be read"),
            Self::Assignor { member, assignor } => write!(
                f,
                "member {member}: assignor {assignor} is not known to the server, and the data it \
                 gave the member would be lost"
            ),
            Self::NoCommonAssignor => f.write_str("no assignor is common to its classic members"),
        }
    }
}

/// A group that waits for members.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// The group.
    pub group: GroupId,
    /// Its state.
    pub state: GroupState,
    /// Whom it waits for, longest first; never empty.
    pub blocking: Vec<Blocker>,
}

/// A member the group waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blocker {
    /// Who.
    pub who: Who,
    /// What it owes.
    pub owes: BlockedOn,
    /// Since when.
    pub since: Instant,
}

/// What a member owes its group.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum BlockedOn {
    /// To rejoin, or to come back with the id it was given.
    Join,
    /// To hand in the assignment (the leader) or to fetch its part.
    Sync,
    /// To give up partitions (consumer protocol).
    Revoke,
    /// To come back: it has not heard yet what it is to give up or is given (consumer protocol).
    Heartbeat,
}

impl BlockedOn {
    /// In one word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Join => "Join",
            Self::Sync => "Sync",
            Self::Revoke => "Revoke",
            Self::Heartbeat => "Heartbeat",
        }
    }
}

/// A member as the journal remembers it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Who {
    /// Its id.
    pub member: MemberId,
    /// Its `group.instance.id`, if static.
    pub instance: Option<InstanceId>,
    /// The client id it sent.
    pub client_id: Arc<str>,
    /// The address it came from.
    pub client_host: Arc<str>,
}

/// Who called an API about somebody else: an administrator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// The client id it sent.
    pub client_id: Arc<str>,
    /// The address it came from.
    pub client_host: Arc<str>,
}

/// One reason for a rebalance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trigger {
    /// What happened.
    pub cause: Cause,
    /// To whom, or by whom; `None` where no member had a part in it.
    pub who: Option<Who>,
    /// The member whose place `who` took, which is fenced (static membership).
    pub replaced: Option<MemberId>,
    /// Who called for it, where that was not the member itself.
    pub by: Option<Caller>,
    /// The topic it is about, where it is about one.
    pub topic: Option<TopicName>,
    /// The setting that was changed, where one was.
    pub setting: Option<Arc<str>>,
    /// Why, in the client's own words (KIP-800); cut to a bound.
    pub reason: Option<Arc<str>>,
}

impl Trigger {
    /// It happened; nothing more is known of it.
    pub fn new(cause: Cause) -> Self {
        Self {
            cause,
            who: None,
            replaced: None,
            by: None,
            topic: None,
            setting: None,
            reason: None,
        }
    }

    /// It happened to this member, or this member did it.
    pub(super) fn of(cause: Cause, who: Who) -> Self {
        Self { who: Some(who), ..Self::new(cause) }
    }

    /// It is about this topic.
    pub(super) fn about(cause: Cause, topic: TopicName) -> Self {
        Self { topic: Some(topic), ..Self::new(cause) }
    }
}

/// Why a generation ended.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Cause {
    /// A new member joined.
    Joined,
    /// A member said goodbye.
    Left,
    /// An administrator removed a member.
    Removed,
    /// A member was silent for its session timeout.
    SessionExpired,
    /// A member did not rejoin within the rebalance timeout.
    JoinExpired,
    /// A member did not fetch its assignment within the rebalance timeout.
    SyncExpired,
    /// A static member came back while the group could not take it in silently.
    StaticRejoined,
    /// A member rejoined with other subscriptions or assignors.
    MetadataChanged,
    /// A member rejoined with the same subscriptions, but not the same metadata: it tells what it
    /// owns. The second step of a cooperative rebalance (KIP-429) looks like this.
    OwnershipChanged,
    /// The leader asked for a new assignment.
    LeaderRejoined,
    /// A topic that members subscribe to was created.
    TopicCreated,
    /// A topic that members subscribe to has more partitions.
    PartitionsAdded,
    /// A topic that members subscribe to was deleted.
    TopicDeleted,
    /// A topic that members subscribe to differs otherwise: it was deleted and created again, its
    /// racks are others, or it changed while no coordinator watched.
    TopicChanged,
    /// Another assignor was chosen: by an administrator, or by the members' votes.
    AssignorChanged,
    /// A member did not give up partitions within its rebalance timeout.
    RevocationExpired,
    /// The group of classic members became one of the consumer protocol, because a member of that
    /// protocol joined.
    Upgraded,
    /// The group of the consumer protocol became a classic one, because only classic members are
    /// left.
    Downgraded,
    /// The assignment was too large to be written.
    AssignmentTooLarge,
    /// The group came from the log with more members than are now allowed.
    TooManyMembers,
    /// Not known: the broker ended between the group's record and the journal's entry, or the
    /// group is older than its journal.
    LostInCrash,
}

/// How far a rebalance came.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Outcome {
    /// Members are on their way.
    Running,
    /// Every member has, or can have, what it was assigned.
    Assigned,
    /// Nobody is left.
    Emptied,
    /// The next rebalance began before everyone had arrived.
    Overtaken,
    /// Not known, see [`Cause::LostInCrash`].
    Lost,
}

/// One generation and how it came to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JournalEntry {
    /// Where the record of the group begins that made it true; `None` until that is appended. A
    /// load drops entries whose record is absent.
    pub record: Option<Offset>,
    /// How far it came.
    pub outcome: Outcome,
    /// The generation that began.
    pub generation: Generation,
    /// Why, in the order it happened; the first one started the rebalance, the others were
    /// absorbed. Bounded, see [`absorbed`](Self::absorbed).
    pub triggers: Vec<Trigger>,
    /// How many more triggers there were than are kept.
    pub absorbed: u32,
    /// When the rebalance began.
    pub began_at: Timestamp,
    /// From its begin until every member had joined or was given up, in the consumer protocol until
    /// the assignment was computed.
    pub join_took: Duration,
    /// From then until the assignment was decided, in the consumer protocol until every member had
    /// all of it; `None` where it never came to that: for a generation without members, or one that
    /// the next rebalance overtook.
    pub sync_took: Option<Duration>,
    /// How many members the generation has.
    pub members: usize,
    /// The slowest members, slowest first; bounded.
    pub slowest: Vec<MemberTimes>,
    /// How many partitions changed hands, where the assignments could be read.
    pub moved: Option<u32>,
    /// The first of them, by topic and partition; bounded.
    pub moves: Vec<Move>,
}

impl JournalEntry {
    /// From the rebalance's begin until its end, as far as it came.
    pub fn took(&self) -> Duration {
        self.join_took + self.sync_took.unwrap_or_default()
    }

    /// Whether nothing more will happen to it.
    pub fn is_over(&self) -> bool {
        self.outcome != Outcome::Running
    }
}

/// What there is to keep of a group's journal, beside its records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// The group.
    pub group: GroupId,
    /// What to keep.
    pub what: Noted,
}

/// See [`Note`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Noted {
    /// An entry, which stands for an earlier one of the same generation. Its record is appended.
    Entry(JournalEntry),
    /// The group is gone: everything noted of it before means another group of the same id.
    Ended,
}

/// A partition that changed hands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Move {
    /// The topic.
    pub topic: TopicName,
    /// The partition.
    pub partition: PartitionId,
    /// Who had it in the last generation that was written down; `None` where nobody had.
    pub from: Option<MemberId>,
    /// Who has it now; `None` where nobody has.
    pub to: Option<MemberId>,
}

/// How long one member kept a rebalance waiting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberTimes {
    /// Who.
    pub who: Who,
    /// From the rebalance's begin until it joined; in the consumer protocol, where nobody waits for
    /// a join, until the assignment was computed.
    pub join_took: Duration,
    /// From the end of the join until it synced, in the consumer protocol until it had all it was
    /// to have; `None` if it had not yet.
    pub sync_took: Option<Duration>,
}

/// One committed offset, for lag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommittedView<'a> {
    /// The group.
    pub group: &'a GroupId,
    /// The topic.
    pub topic: &'a TopicName,
    /// The partition.
    pub partition: PartitionId,
    /// The next offset to read.
    pub offset: Offset,
}
