//! The settings of a topic that take effect here, in one table, and their typed form.
//!
//! Kafka settings outside the table are refused by name. A setting whose other values could not
//! be honoured accepts the one that is ([`Check::Only`]), because provisioning tools write down
//! defaults.

use super::Kind::{Boolean, Double, Int, List, Long, String as Text};
use super::setting::Value;
use super::{Check, Scope, Setting};
use std::time::Duration;

/// A topic's settings as they count, in the units their names say.
#[derive(Clone, Debug, PartialEq)]
pub struct TopicSettings {
    /// `cleanup.policy`.
    pub cleanup_policy: CleanupPolicy,
    /// `retention.ms`; `None` keeps for ever.
    pub retention: Option<Duration>,
    /// `retention.bytes` per partition; `None` keeps all.
    pub retention_bytes: Option<u64>,
    /// `segment.bytes`.
    pub segment_bytes: u32,
    /// `segment.ms`.
    pub segment_age_max: Duration,
    /// `segment.index.bytes`, for each of the offset and the time index.
    pub segment_index_bytes: u32,
    /// `index.interval.bytes`.
    pub index_interval_bytes: u32,
    /// `file.delete.delay.ms`.
    pub file_delete_delay: Duration,
    /// `min.cleanable.dirty.ratio`, from 0 to 1.
    pub min_cleanable_dirty_ratio: f64,
    /// `delete.retention.ms`: how long a tombstone stays after it was cleaned.
    pub delete_retention: Duration,
    /// `min.compaction.lag.ms`.
    pub min_compaction_lag: Duration,
    /// `max.compaction.lag.ms`; Kafka's default is 292 million years.
    pub max_compaction_lag: Duration,
    /// `max.message.bytes`: the largest batch accepted, as it arrives.
    pub max_message_bytes: u32,
    /// `compression.type`; `None` keeps each batch as its producer packed it.
    pub compression: Option<CompressionType>,
    /// `message.timestamp.type`.
    pub timestamp_type: TimestampType,
    /// `message.timestamp.before.max.ms`.
    pub timestamp_before_max: Duration,
    /// `message.timestamp.after.max.ms`.
    pub timestamp_after_max: Duration,
}

/// What becomes of old records. Neither: everything stays (KIP-1148).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CleanupPolicy {
    /// Old segments go, by time and size.
    pub delete: bool,
    /// Of each key the last record stays.
    pub compact: bool,
}

/// What batches are packed with when they are stored.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CompressionType {
    /// Nothing.
    Uncompressed,
    /// gzip.
    Gzip,
    /// Snappy.
    Snappy,
    /// LZ4.
    Lz4,
    /// Zstandard.
    Zstd,
}

/// Who stamps a record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TimestampType {
    /// The producer.
    CreateTime,
    /// The broker, when it appends.
    LogAppendTime,
}

impl TopicSettings {
    /// The typed form of what `value` says of each setting; it must already have been accepted.
    pub(super) fn from_values(value: impl Fn(&'static Setting) -> String) -> Self {
        let get = |name: &str| Typed::of(name, &value);
        Self {
            cleanup_policy: get("cleanup.policy").policy(),
            retention: get("retention.ms").limit().map(Duration::from_millis),
            retention_bytes: get("retention.bytes").limit(),
            segment_bytes: get("segment.bytes").size(),
            segment_age_max: get("segment.ms").span(),
            segment_index_bytes: get("segment.index.bytes").size(),
            index_interval_bytes: get("index.interval.bytes").size(),
            file_delete_delay: get("file.delete.delay.ms").span(),
            min_cleanable_dirty_ratio: get("min.cleanable.dirty.ratio").fraction(),
            delete_retention: get("delete.retention.ms").span(),
            min_compaction_lag: get("min.compaction.lag.ms").span(),
            max_compaction_lag: get("max.compaction.lag.ms").span(),
            max_message_bytes: get("max.message.bytes").size(),
            compression: get("compression.type").compression(),
            timestamp_type: get("message.timestamp.type").timestamp_type(),
            timestamp_before_max: get("message.timestamp.before.max.ms").span(),
            timestamp_after_max: get("message.timestamp.after.max.ms").span(),
        }
    }
}

/// Rules that bind several settings together. `number` yields a setting's effective value.
///
/// # Errors
/// Kafka's text of the conflict.
pub(super) fn check_together(settings: &TopicSettings) -> Result<(), String> {
    let (min, max) = (settings.min_compaction_lag, settings.max_compaction_lag);
    if min > max {
        return Err(format!(
            "conflict topic config setting min.compaction.lag.ms ({}) > max.compaction.lag.ms ({})",
            min.as_millis(),
            max.as_millis()
        ));
    }
    Ok(())
}

/// A value on its way into [`TopicSettings`]. A value that is not of its setting's type cannot
/// get here; were it to, the setting's default counts.
struct Typed(Option<Value>);

impl Typed {
    fn of(name: &str, value: &impl Fn(&'static Setting) -> String) -> Self {
        let setting = SETTINGS.iter().find(|setting| setting.name == name);
        let accepted = |setting: &'static Setting| {
            let given = setting.parse(&value(setting)).ok();
            given.or_else(|| setting.parse(setting.default.unwrap_or_default()).ok())
        };
        Self(setting.and_then(accepted))
    }

    fn number(self) -> i64 {
        if let Some(Value::Number(number)) = self.0 { number } else { 0 }
    }

    fn size(self) -> u32 {
        u32::try_from(self.number()).unwrap_or_default()
    }

    fn limit(self) -> Option<u64> {
        u64::try_from(self.number()).ok()
    }

    fn span(self) -> Duration {
        Duration::from_millis(self.limit().unwrap_or_default())
    }

    fn fraction(self) -> f64 {
        if let Some(Value::Fraction(fraction)) = self.0 { fraction } else { 0.0 }
    }

    fn policy(self) -> CleanupPolicy {
        let items = if let Some(Value::List(items)) = self.0 { items } else { Vec::new() };
        let has = |name: &str| items.iter().any(|item| item == name);
        CleanupPolicy { delete: has("delete"), compact: has("compact") }
    }

    fn compression(self) -> Option<CompressionType> {
        let Some(Value::Text(name)) = self.0 else { return None };
        Some(match &*name {
            "uncompressed" => CompressionType::Uncompressed,
            "gzip" => CompressionType::Gzip,
            "snappy" => CompressionType::Snappy,
            "lz4" => CompressionType::Lz4,
            "zstd" => CompressionType::Zstd,
            _ => return None,
        })
    }

    fn timestamp_type(self) -> TimestampType {
        match self.0 {
            Some(Value::Text(text)) if text == "LogAppendTime" => TimestampType::LogAppendTime,
            _ => TimestampType::CreateTime,
        }
    }
}

const fn topic(
    name: &'static str,
    kind: super::Kind,
    default: &'static str,
    check: Check,
    synonyms: &'static [(&'static str, i64)],
    doc: &'static str,
) -> Setting {
    Setting { name, kind, default: Some(default), check, scope: Scope::ClusterWide, doc, synonyms }
}

const NEVER: &str = "9223372036854775807";
const MS_PER_MINUTE: i64 = 60_000;
const MS_PER_HOUR: i64 = 3_600_000;

/// Every topic setting, by name.
pub(crate) static SETTINGS: &[Setting] = &[
    topic(
        "cleanup.policy",
        List,
        "delete",
        Check::OneOf(&["compact", "delete"]),
        &[("log.cleanup.policy", 1)],
        "What becomes of old records: 'delete' drops old segments by time and size, 'compact' \
         keeps the last record of each key, both do both, an empty list keeps everything.",
    ),
    topic(
        "compression.type",
        Text,
        "producer",
        Check::OneOf(&["uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"]),
        &[("compression.type", 1)],
        "The codec batches are stored in; 'producer' keeps each as it came.",
    ),
    topic(
        "delete.retention.ms",
        Long,
        "86400000",
        Check::AtLeast(0),
        &[("log.cleaner.delete.retention.ms", 1)],
        "How long a compacted topic keeps a tombstone after cleaning first met it.",
    ),
    topic(
        "file.delete.delay.ms",
        Long,
        "60000",
        Check::AtLeast(0),
        &[("log.segment.delete.delay.ms", 1)],
        "How long a dropped segment's file stays on disk.",
    ),
    topic(
        "flush.messages",
        Long,
        NEVER,
        Check::Only(NEVER, "an acknowledged write is already on disk"),
        &[("log.flush.interval.messages", 1)],
        "Records after which a log is synced, where acknowledgement does not already wait for it.",
    ),
    topic(
        "flush.ms",
        Long,
        NEVER,
        Check::Only(NEVER, "an acknowledged write is already on disk"),
        &[("log.flush.interval.ms", 1)],
        "Time after which a log is synced, where acknowledgement does not already wait for it.",
    ),
    topic(
        "index.interval.bytes",
        Int,
        "4096",
        Check::AtLeast(0),
        &[("log.index.interval.bytes", 1)],
        "Bytes of log between two entries of its offset index.",
    ),
    topic(
        "max.compaction.lag.ms",
        Long,
        NEVER,
        Check::AtLeast(1),
        &[("log.cleaner.max.compaction.lag.ms", 1)],
        "The longest a record may stay outside compaction.",
    ),
    topic(
        "max.message.bytes",
        Int,
        "1048588",
        Check::AtLeast(0),
        &[("message.max.bytes", 1)],
        "The largest batch accepted, as it arrives, compressed or not.",
    ),
    topic(
        "message.timestamp.after.max.ms",
        Long,
        "3600000",
        Check::AtLeast(0),
        &[("log.message.timestamp.after.max.ms", 1)],
        "How far a record's own timestamp may lie in the future.",
    ),
    topic(
        "message.timestamp.before.max.ms",
        Long,
        NEVER,
        Check::AtLeast(0),
        &[("log.message.timestamp.before.max.ms", 1)],
        "How far a record's own timestamp may lie in the past.",
    ),
    topic(
        "message.timestamp.type",
        Text,
        "CreateTime",
        Check::OneOf(&["CreateTime", "LogAppendTime"]),
        &[("log.message.timestamp.type", 1)],
        "Who stamps a record: its producer, or the broker when it appends.",
    ),
    topic(
        "min.cleanable.dirty.ratio",
        Double,
        "0.5",
        Check::Ratio,
        &[("log.cleaner.min.cleanable.ratio", 1)],
        "The share of uncleaned bytes from which a log is compacted.",
    ),
    topic(
        "min.compaction.lag.ms",
        Long,
        "0",
        Check::AtLeast(0),
        &[("log.cleaner.min.compaction.lag.ms", 1)],
        "How long a record stays outside compaction at least.",
    ),
    topic(
        "min.insync.replicas",
        Int,
        "1",
        Check::Only("1", "a partition has one replica, and it is always in sync"),
        &[("min.insync.replicas", 1)],
        "In-sync replicas below which acks=all is refused.",
    ),
    topic(
        "preallocate",
        Boolean,
        "false",
        Check::Only("false", "segments grow as they are written"),
        &[("log.preallocate", 1)],
        "Whether a segment's file is made in its full size.",
    ),
    topic(
        "remote.storage.enable",
        Boolean,
        "false",
        Check::Only("false", "there is no tiered storage"),
        &[],
        "Whether old segments move to remote storage.",
    ),
    topic(
        "retention.bytes",
        Long,
        "-1",
        Check::Any,
        &[("log.retention.bytes", 1)],
        "Bytes a partition keeps at most under 'delete'; -1 for no bound.",
    ),
    topic(
        "retention.ms",
        Long,
        "604800000",
        Check::AtLeast(-1),
        &[
            ("log.retention.ms", 1),
            ("log.retention.minutes", MS_PER_MINUTE),
            ("log.retention.hours", MS_PER_HOUR),
        ],
        "How long a partition keeps a segment under 'delete'; -1 for ever.",
    ),
    topic(
        "segment.bytes",
        Int,
        "1073741824",
        Check::AtLeast(1024 * 1024),
        &[("log.segment.bytes", 1)],
        "Bytes after which a log begins its next segment.",
    ),
    topic(
        "segment.index.bytes",
        Int,
        "10485760",
        Check::AtLeast(4),
        &[("log.index.size.max.bytes", 1)],
        "Bytes of an index after which a log begins its next segment.",
    ),
    topic(
        "segment.jitter.ms",
        Long,
        "0",
        Check::Only("0", "segments of many partitions need not begin together here"),
        &[("log.roll.jitter.ms", 1), ("log.roll.jitter.hours", MS_PER_HOUR)],
        "Random time taken off segment.ms.",
    ),
    topic(
        "segment.ms",
        Long,
        "604800000",
        Check::AtLeast(1),
        &[("log.roll.ms", 1), ("log.roll.hours", MS_PER_HOUR)],
        "Time after which a log begins its next segment even if it is not full.",
    ),
    topic(
        "unclean.leader.election.enable",
        Boolean,
        "false",
        Check::Only("false", "a replica that may lack records never leads"),
        &[("unclean.leader.election.enable", 1)],
        "Whether a replica that is not in sync may lead.",
    ),
];
