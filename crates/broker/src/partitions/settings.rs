//! From a topic's settings to its logs' and to the rules a producer's batches must keep.

use crate::config::{self, Config};
use ottla_cluster::config::{CompressionType, TimestampType, TopicSettings};
use ottla_model::Timestamp;
use ottla_records as records;
use ottla_records::ProduceRules;
use ottla_storage::{CleanupPolicy, Durability, LogConfig};
use std::time::Duration;

/// A log's settings: the topic's, and the broker's where those are for all topics alike.
pub(super) fn log_config(topic: &TopicSettings, broker: &Config) -> LogConfig {
    let TopicSettings { cleanup_policy, .. } = *topic;
    LogConfig {
        segment_bytes: topic.segment_bytes.into(),
        segment_ms: topic.segment_age_max,
        index_interval_bytes: topic.index_interval_bytes.into(),
        index_bytes_max: topic.segment_index_bytes.into(),
        retention_ms: topic.retention,
        retention_bytes: topic.retention_bytes,
        file_delete_delay_ms: topic.file_delete_delay,
        cleanup_policy: CleanupPolicy {
            delete: cleanup_policy.delete,
            compact: cleanup_policy.compact,
        },
        // Between 0 and 1, so a thousandth of it fits.
        dirty_ratio_min_permille: (topic.min_cleanable_dirty_ratio * 1000.0) as u32,
        delete_retention_ms: topic.delete_retention,
        compaction_lag_min_ms: topic.min_compaction_lag,
        compaction_lag_max_ms: (topic.max_compaction_lag < FOR_EVER)
            .then_some(topic.max_compaction_lag),
        timestamp_type: timestamp_type(topic),
        producer_expiration_ms: broker.producer_id_expiration,
        durability: match broker.durability {
            config::Durability::Fsync => Durability::Fsync,
            config::Durability::PageCache => Durability::PageCache,
        },
        ..LogConfig::default()
    }
}

/// What a produced batch is judged by now.
pub(crate) fn produce_rules(
    topic: &TopicSettings,
    now: Timestamp,
    zstd_allowed: bool,
) -> ProduceRules {
    ProduceRules {
        batch_bytes_max: topic.max_message_bytes as usize,
        unpacked_bytes_max: UNPACKED_BYTES_MAX,
        compacted: topic.cleanup_policy.compact,
        timestamp_type: timestamp_type(topic),
        timestamp_before_max_ms: millis(topic.timestamp_before_max),
        timestamp_after_max_ms: millis(topic.timestamp_after_max),
        now,
        zstd_allowed,
        transactional_allowed: false,
    }
}

/// What the topic's batches are packed with when they are stored; `None` for as they come.
pub(crate) fn codec(topic: &TopicSettings) -> Option<records::Compression> {
    topic.compression.map(|compression| match compression {
        CompressionType::Uncompressed => records::Compression::None,
        CompressionType::Gzip => records::Compression::Gzip,
        CompressionType::Snappy => records::Compression::Snappy,
        CompressionType::Lz4 => records::Compression::Lz4,
        CompressionType::Zstd => records::Compression::Zstd,
    })
}

fn timestamp_type(topic: &TopicSettings) -> records::TimestampType {
    match topic.timestamp_type {
        TimestampType::CreateTime => records::TimestampType::Create,
        TimestampType::LogAppendTime => records::TimestampType::LogAppend,
    }
}

fn millis(span: Duration) -> i64 {
    i64::try_from(span.as_millis()).unwrap_or(i64::MAX)
}

/// The most one batch may unpack to while it is validated or searched.
pub(crate) const UNPACKED_BYTES_MAX: usize = 256 << 20;
/// Kafka's way of saying "no limit" is 292 million years; from a thousand on we take it as that.
const FOR_EVER: Duration = Duration::from_secs(1_000 * 365 * 24 * 60 * 60);
