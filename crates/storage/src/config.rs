//! A log's settings, by Kafka's names where Kafka has them. Values only: where they come from
//! (file, topic, default) is the caller's.

use std::time::Duration;

use ottla_records::TimestampType;

/// The settings of one log. Each field names the Kafka topic setting it stands for; the defaults
/// are Kafka's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogConfig {
    /// `segment.bytes`: a segment is rolled before it grows past this.
    pub segment_bytes: u64,
    /// `segment.ms`: a segment is rolled at the first append this long after its first one. Our
    /// clock is the broker's: record timestamps do not decide when files roll.
    pub segment_ms: Duration,
    /// `segment.jitter.ms`: each segment rolls earlier by a part of this, so that the partitions
    /// of a topic do not all roll at once.
    pub segment_jitter_ms: Duration,
    /// `index.interval.bytes`: bytes of log between two index entries.
    pub index_interval_bytes: u64,
    /// `segment.index.bytes`: a segment is rolled when an index would grow past this.
    pub index_bytes_max: u64,
    /// `retention.ms`; none keeps for ever.
    pub retention_ms: Option<Duration>,
    /// `retention.bytes`; none is unlimited.
    pub retention_bytes: Option<u64>,
    /// `file.delete.delay.ms`: how long a deleted segment's files stay, renamed.
    pub file_delete_delay_ms: Duration,
    /// `cleanup.policy`.
    pub cleanup_policy: CleanupPolicy,
    /// `min.cleanable.dirty.ratio`, in thousandths.
    pub dirty_ratio_min_permille: u32,
    /// `delete.retention.ms`: how long a tombstone stays readable.
    pub delete_retention_ms: Duration,
    /// `min.compaction.lag.ms`: younger records are not compacted.
    pub compaction_lag_min_ms: Duration,
    /// `max.compaction.lag.ms`: records older than this are compacted whatever the ratio is;
    /// none leaves it to the ratio.
    pub compaction_lag_max_ms: Option<Duration>,
    /// `message.timestamp.type`.
    pub timestamp_type: TimestampType,
    /// `producer.id.expiration.ms`: a producer that was silent for this long is forgotten.
    pub producer_expiration_ms: Duration,
    /// Producers remembered at once, ours; past it the ones longest silent are forgotten.
    pub producers_max: usize,
    /// Bytes of memory that the key map of one compaction may take:
    /// `log.cleaner.dedupe.buffer.size` of one cleaner. Keys that do not fit wait for the next
    /// pass.
    pub compaction_memory_bytes_max: usize,
    /// The most bytes that one batch may unpack to when compaction or a lookup by time reads it.
    pub batch_unpacked_bytes_max: usize,
    /// Bytes synced since the last checkpoint that make a sync write the next one, ours: what a
    /// restart must read and check again is at most about this much.
    pub checkpoint_bytes: u64,
    /// Decision 4.
    pub durability: Durability,
}

/// What happens to old segments: `cleanup.policy`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CleanupPolicy {
    /// By age and size.
    pub delete: bool,
    /// The last record of each key stays.
    pub compact: bool,
}

/// When an append counts as safe (decision 4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// When fdatasync has returned.
    #[default]
    Fsync,
    /// When the kernel has it, as in Kafka. A power loss may take it back without a trace, so
    /// each opening of the log raises the leader epoch.
    PageCache,
}

impl CleanupPolicy {
    /// `delete`, Kafka's default.
    pub const DELETE: Self = Self { delete: true, compact: false };
    /// `compact`.
    pub const COMPACT: Self = Self { delete: false, compact: true };
    /// `compact,delete`.
    pub const COMPACT_DELETE: Self = Self { delete: true, compact: true };
}

impl Default for LogConfig {
    fn default() -> Self {
        Self {
            segment_bytes: 1 << 30,
            segment_ms: WEEK,
            segment_jitter_ms: Duration::ZERO,
            index_interval_bytes: 4096,
            index_bytes_max: 10 << 20,
            retention_ms: Some(WEEK),
            retention_bytes: None,
            file_delete_delay_ms: Duration::from_secs(60),
            cleanup_policy: CleanupPolicy::DELETE,
            dirty_ratio_min_permille: 500,
            delete_retention_ms: DAY,
            compaction_lag_min_ms: Duration::ZERO,
            compaction_lag_max_ms: None,
            timestamp_type: TimestampType::Create,
            producer_expiration_ms: DAY,
            producers_max: 100_000,
            compaction_memory_bytes_max: 128 << 20,
            batch_unpacked_bytes_max: 256 << 20,
            checkpoint_bytes: 16 << 20,
            durability: Durability::Fsync,
        }
    }
}

const DAY: Duration = Duration::from_secs(24 * 60 * 60);
const WEEK: Duration = Duration::from_secs(7 * 24 * 60 * 60);
