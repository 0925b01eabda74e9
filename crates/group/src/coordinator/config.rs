//! What an operator may set about a shard. Names and meanings are Kafka's where Kafka has the
//! setting; nothing here knows where settings come from.

use crate::assign::Assignor;
use crate::assign::server::ServerAssignor;
use alloc::vec::Vec;
use core::time::Duration;

/// The most one decision may append, in estimated record bytes: the bound of a batch. A decision
/// above it is refused before it is replayed; only offset expiry and group cleaning split.
pub const MAX_BATCH_BYTES: usize = 8 << 20;

/// The settings of one shard. `Default` gives the broker's defaults.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// `group.min.session.timeout.ms`: shorter session timeouts are refused.
    pub session_timeout_min: Duration,
    /// `group.max.session.timeout.ms`: longer session timeouts are refused.
    pub session_timeout_max: Duration,
    /// `register.min.session.timeout.ms`: shorter session timeouts of register groups are
    /// refused. Kafka's 6 s would refuse the document's own example (decision 20).
    pub register_session_timeout_min: Duration,
    /// `register.assignor`: how register groups that set none share out partitions; `range` or
    /// `roundrobin` (decision 10).
    pub register_assignor: Assignor,
    /// `group.initial.rebalance.delay.ms`: how long an empty group waits for more members after
    /// a join; extended while joins keep arriving, at most to the rebalance timeout. Kafka's
    /// default is 3 s, ours 100 ms.
    pub initial_rebalance_delay: Duration,
    /// How long a join may stay parked for a member that is new and so cannot heartbeat yet.
    pub new_member_join_timeout: Duration,
    /// `group.max.size`: members of one group.
    pub group_size_max: usize,
    /// `group.consumer.session.timeout.ms`: silence after which a member of the consumer protocol
    /// counts as dead.
    pub consumer_session_timeout: Duration,
    /// `group.consumer.heartbeat.interval.ms`: how often such a member is asked to come back.
    pub consumer_heartbeat_interval: Duration,
    /// `group.consumer.assignment.interval.ms`: how long after one target the next is computed at
    /// the earliest. The first change after a while is acted on at once; a burst is then acted on
    /// together.
    pub consumer_assignment_interval: Duration,
    /// `group.consumer.assignors`: the assignors members of the consumer protocol may vote for; the
    /// first is used where nobody does. One at least.
    pub consumer_assignors: Vec<ServerAssignor>,
    /// `group.consumer.migration.policy`: whether a group with members may change between the
    /// classic and the consumer protocol, and in which direction.
    pub consumer_migration: MigrationPolicy,
    /// `group.consumer.max.size`: members of one group of the consumer protocol.
    pub consumer_group_size_max: usize,
    /// `offsets.retention.minutes`: how long offsets outlive their group's last member, or their
    /// own commit where the group never had members.
    pub offsets_retention: Duration,
    /// `offsets.retention.check.interval.ms`: how often expired offsets are looked for.
    pub offsets_retention_check_interval: Duration,
    /// `offset.metadata.max.bytes`: length of the note beside a committed offset.
    pub offset_metadata_bytes_max: usize,
    /// Groups of one shard; a new one beyond is refused with `NotAvailable`.
    pub groups_max: usize,
    /// Bytes of subscriptions, ids and hosts of one group's members; a join beyond is refused
    /// with `GroupMaxSizeReached`.
    pub group_metadata_bytes_max: usize,
    /// Requests waiting for a rebalance over the whole shard; a join or sync beyond is refused
    /// with `NotAvailable`.
    pub parked_max: usize,
    /// Heartbeats whose answers are kept, over the whole shard; one beyond is answered at once.
    pub held_max: usize,
    /// Estimated bytes of one decision; see [`MAX_BATCH_BYTES`].
    pub batch_bytes_max: usize,
    /// Generations each group remembers the causes of.
    pub journal_entries_max: usize,
    /// Bytes of all journals of the shard, about; beyond, a group that writes an entry keeps its
    /// last one alone.
    pub journal_bytes_max: usize,
    /// How long before the end of its ownership a shard falls silent: what the clocks of two
    /// brokers may drift apart over one lease.
    pub ownership_margin: Duration,
    /// Seeds the hash maps, so that ids chosen by a stranger cannot make them slow. Any value is
    /// right; the same value gives the same run.
    pub hash_seed: u64,
}

/// In which direction groups that have members may change their protocol (KIP-848). One without
/// members always may.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum MigrationPolicy {
    /// In none.
    Disabled,
    /// From classic to consumer.
    Upgrade,
    /// From consumer to classic.
    Downgrade,
    /// In both.
    #[default]
    Bidirectional,
}

impl MigrationPolicy {
    /// All of them.
    pub const ALL: [Self; 4] =
        [Self::Disabled, Self::Upgrade, Self::Downgrade, Self::Bidirectional];

    /// The policy of this name, in any case, as in Kafka.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|policy| policy.name().eq_ignore_ascii_case(name))
    }

    /// Whether a classic group may become one of the consumer protocol.
    pub fn allows_upgrade(self) -> bool {
        matches!(self, Self::Upgrade | Self::Bidirectional)
    }

    /// Whether a group of the consumer protocol may become a classic one.
    pub fn allows_downgrade(self) -> bool {
        matches!(self, Self::Downgrade | Self::Bidirectional)
    }

    /// Kafka's name for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Disabled => "disabled",
            Self::Upgrade => "upgrade",
            Self::Downgrade => "downgrade",
            Self::Bidirectional => "bidirectional",
        }
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            session_timeout_min: Duration::from_secs(6),
            session_timeout_max: Duration::from_secs(30 * 60),
            register_session_timeout_min: Duration::from_millis(100),
            register_assignor: Assignor::Range,
            initial_rebalance_delay: Duration::from_millis(100),
            new_member_join_timeout: Duration::from_secs(5 * 60),
            group_size_max: 20_000,
            consumer_session_timeout: Duration::from_secs(45),
            consumer_heartbeat_interval: Duration::from_secs(5),
            consumer_assignment_interval: Duration::from_millis(100),
            consumer_assignors: ServerAssignor::ALL.into(),
            consumer_migration: MigrationPolicy::default(),
            consumer_group_size_max: 20_000,
            offsets_retention: Duration::from_secs(7 * 24 * 60 * 60),
            offsets_retention_check_interval: Duration::from_secs(10 * 60),
            offset_metadata_bytes_max: 4096,
            groups_max: 100_000,
            group_metadata_bytes_max: MAX_BATCH_BYTES / 2,
            parked_max: 100_000,
            held_max: 100_000,
            batch_bytes_max: MAX_BATCH_BYTES,
            journal_entries_max: 32,
            journal_bytes_max: 4 << 20,
            ownership_margin: Duration::from_millis(100),
            hash_seed: 0,
        }
    }
}
