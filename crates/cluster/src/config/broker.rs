//! The broker settings that topics and their creation depend on. The broker's own (listeners,
//! threads, groups, quotas) are its business; it hands them to [`super::Registry::new`].

use super::Kind::{Boolean, Double, Int, List, Long, String as Text};
use super::{Check, Scope, Setting};

const fn setting(
    name: &'static str,
    kind: super::Kind,
    default: Option<&'static str>,
    check: Check,
    scope: Scope,
    doc: &'static str,
) -> Setting {
    Setting { name, kind, default, check, scope, doc, synonyms: &[] }
}

/// A default of topics: may change at any time, as in Kafka also for one broker alone.
const fn of_topics(
    name: &'static str,
    kind: super::Kind,
    default: Option<&'static str>,
    check: Check,
    topic: &'static str,
) -> Setting {
    setting(name, kind, default, check, Scope::PerBroker, topic)
}

/// Creation of topics: the same on every broker, from the file.
const fn fixed(
    name: &'static str,
    kind: super::Kind,
    default: &'static str,
    check: Check,
    doc: &'static str,
) -> Setting {
    setting(name, kind, Some(default), check, Scope::ReadOnly, doc)
}

/// Every broker setting of this crate.
pub(crate) static SETTINGS: &[Setting] = &[
    fixed(
        "auto.create.topics.enable",
        Boolean,
        "true",
        Check::Any,
        "Whether a topic that a client asks for is created.",
    ),
    of_topics(
        "compression.type",
        Text,
        Some("producer"),
        Check::OneOf(&["uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"]),
        "The default of topics' compression.type.",
    ),
    fixed(
        "default.replication.factor",
        Int,
        "1",
        Check::AtLeast(1),
        "Replicas of a partition where its creation does not say.",
    ),
    fixed("delete.topic.enable", Boolean, "true", Check::Any, "Whether topics can be deleted."),
    of_topics(
        "log.cleaner.delete.retention.ms",
        Long,
        Some("86400000"),
        Check::AtLeast(0),
        "The default of topics' delete.retention.ms.",
    ),
    of_topics(
        "log.cleaner.max.compaction.lag.ms",
        Long,
        Some("9223372036854775807"),
        Check::AtLeast(1),
        "The default of topics' max.compaction.lag.ms.",
    ),
    of_topics(
        "log.cleaner.min.cleanable.ratio",
        Double,
        Some("0.5"),
        Check::Ratio,
        "The default of topics' min.cleanable.dirty.ratio.",
    ),
    of_topics(
        "log.cleaner.min.compaction.lag.ms",
        Long,
        Some("0"),
        Check::AtLeast(0),
        "The default of topics' min.compaction.lag.ms.",
    ),
    of_topics(
        "log.cleanup.policy",
        List,
        Some("delete"),
        Check::OneOf(&["compact", "delete"]),
        "The default of topics' cleanup.policy.",
    ),
    of_topics(
        "log.index.interval.bytes",
        Int,
        Some("4096"),
        Check::AtLeast(0),
        "The default of topics' index.interval.bytes.",
    ),
    of_topics(
        "log.index.size.max.bytes",
        Int,
        Some("10485760"),
        Check::AtLeast(4),
        "The default of topics' segment.index.bytes.",
    ),
    of_topics(
        "log.message.timestamp.after.max.ms",
        Long,
        Some("3600000"),
        Check::AtLeast(0),
        "The default of topics' message.timestamp.after.max.ms.",
    ),
    of_topics(
        "log.message.timestamp.before.max.ms",
        Long,
        Some("9223372036854775807"),
        Check::AtLeast(0),
        "The default of topics' message.timestamp.before.max.ms.",
    ),
    of_topics(
        "log.message.timestamp.type",
        Text,
        Some("CreateTime"),
        Check::OneOf(&["CreateTime", "LogAppendTime"]),
        "The default of topics' message.timestamp.type.",
    ),
    of_topics(
        "log.retention.bytes",
        Long,
        Some("-1"),
        Check::Any,
        "The default of topics' retention.bytes.",
    ),
    of_topics(
        "log.retention.hours",
        Int,
        Some("168"),
        Check::AtLeast(-1),
        "The default of topics' retention.ms, in hours.",
    ),
    of_topics(
        "log.retention.minutes",
        Int,
        None,
        Check::AtLeast(-1),
        "The default of topics' retention.ms, in minutes; stronger than the hours.",
    ),
    of_topics(
        "log.retention.ms",
        Long,
        None,
        Check::AtLeast(-1),
        "The default of topics' retention.ms; stronger than the minutes.",
    ),
    of_topics(
        "log.roll.hours",
        Int,
        Some("168"),
        Check::AtLeast(1),
        "The default of topics' segment.ms, in hours.",
    ),
    of_topics(
        "log.roll.ms",
        Long,
        None,
        Check::AtLeast(1),
        "The default of topics' segment.ms; stronger than the hours.",
    ),
    of_topics(
        "log.segment.bytes",
        Int,
        Some("1073741824"),
        Check::AtLeast(1024 * 1024),
        "The default of topics' segment.bytes.",
    ),
    of_topics(
        "log.segment.delete.delay.ms",
        Long,
        Some("60000"),
        Check::AtLeast(0),
        "The default of topics' file.delete.delay.ms.",
    ),
    of_topics(
        "message.max.bytes",
        Int,
        Some("1048588"),
        Check::AtLeast(0),
        "The default of topics' max.message.bytes.",
    ),
    fixed(
        "num.partitions",
        Int,
        "1",
        Check::AtLeast(1),
        "Partitions of a topic where its creation does not say.",
    ),
    fixed(
        "offsets.topic.num.partitions",
        Int,
        "50",
        Check::Between(1, 1000),
        "Partitions of the offsets topic, each a coordinator; fixed once it exists.",
    ),
    fixed(
        "offsets.topic.replication.factor",
        Int,
        "1",
        Check::AtLeast(1),
        "Replicas of the offsets topic. Kafka's default of 3 would need three brokers.",
    ),
    fixed(
        "offsets.topic.segment.bytes",
        Int,
        "104857600",
        Check::AtLeast(1024 * 1024),
        "The offsets topic's segment.bytes: small, so that compaction reaches most of it.",
    ),
];
