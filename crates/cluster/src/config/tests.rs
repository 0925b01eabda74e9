//! Settings against what a running Kafka said of the same values.

use super::*;
use crate::config::resolve::check_topic;
use proptest::prelude::*;

/// Each answer is what a Kafka 4.4 broker said to the same change.
#[test]
fn values_are_refused_in_kafkas_words() {
    let refused = [
        ("segment.bytes", "100", "Value must be at least 1048576"),
        ("segment.bytes", "3000000000", "Not a number of type INT"),
        ("retention.ms", "-5", "Value must be at least -1"),
        ("retention.ms", "x", "Not a number of type LONG"),
        ("retention.ms", "99999999999999999999", "Not a number of type LONG"),
        ("cleanup.policy", "foo", "String must be one of: compact, delete"),
        ("min.cleanable.dirty.ratio", "x", "Not a number of type DOUBLE"),
        (
            "compression.type",
            "foo",
            "String must be one of: uncompressed, zstd, lz4, snappy, gzip, producer",
        ),
        ("message.timestamp.type", "x", "String must be one of: CreateTime, LogAppendTime"),
        ("preallocate", "maybe", "Expected value to be either true or false"),
        ("min.compaction.lag.ms", "-1", "Value must be at least 0"),
        ("segment.index.bytes", "1", "Value must be at least 4"),
        ("segment.ms", "0", "Value must be at least 1"),
        ("max.compaction.lag.ms", "0", "Value must be at least 1"),
        ("message.timestamp.after.max.ms", "-1", "Value must be at least 0"),
    ];
    for (name, value, why) in refused {
        let expected = format!("Invalid value {value} for configuration {name}: {why}");
        assert_eq!(check(&[(name, value)]), Err(expected));
    }
    let ratio = check(&[("min.cleanable.dirty.ratio", "2")]).unwrap_err();
    let kafka = "Invalid value 2.0 for configuration min.cleanable.dirty.ratio: Value must be no \
                 more than 1";
    assert_eq!(ratio, kafka);
    assert_eq!(check(&[("nosuch", "1")]), Err("Unknown topic config name: nosuch".into()));
}

#[test]
fn values_kafka_accepts_are_accepted() {
    for (name, value) in [
        ("retention.bytes", "-7"),
        ("cleanup.policy", ""),
        ("cleanup.policy", "compact, delete"),
        ("cleanup.policy", "delete,delete"),
        ("retention.ms", " 5 "),
        ("segment.bytes", "1048576"),
        ("preallocate", "False"),
    ] {
        assert!(check(&[(name, value)]).is_ok(), "{name}={value}");
    }
}

/// Issue 3: every setting listed takes effect or is refused.
#[test]
fn what_could_not_take_effect_is_refused_by_name() {
    for (name, value) in [
        ("unclean.leader.election.enable", "true"),
        ("remote.storage.enable", "true"),
        ("preallocate", "true"),
        ("min.insync.replicas", "2"),
        ("flush.messages", "1"),
        ("flush.ms", "1000"),
        ("segment.jitter.ms", "5"),
    ] {
        let refused = check(&[(name, value)]).unwrap_err();
        assert!(refused.contains(name) && refused.contains("alone: "), "{refused}");
    }
    for name in ["leader.replication.throttled.replicas", "local.retention.ms"] {
        assert_eq!(check(&[(name, "1")]), Err(format!("Unknown topic config name: {name}")));
    }
}

#[test]
fn settings_that_contradict_each_other_are_refused() {
    let both = [("min.compaction.lag.ms", "20"), ("max.compaction.lag.ms", "10")];
    let kafka = "conflict topic config setting min.compaction.lag.ms (20) > \
                 max.compaction.lag.ms (10)";
    assert_eq!(check(&both), Err(kafka.into()));
}

#[test]
fn typed_settings_are_what_the_texts_say() {
    let given = overrides(&[
        ("cleanup.policy", "compact,delete"),
        ("retention.ms", "-1"),
        ("retention.bytes", "1000"),
        ("segment.bytes", "2097152"),
        ("segment.ms", "3000"),
        ("min.cleanable.dirty.ratio", "0.25"),
        ("message.timestamp.type", "LogAppendTime"),
        ("max.message.bytes", "77"),
        ("compression.type", "zstd"),
    ]);
    let settings = check_topic(&given, &Layers::default()).unwrap();
    assert_eq!(settings.cleanup_policy, CleanupPolicy { delete: true, compact: true });
    assert_eq!((settings.retention, settings.retention_bytes), (None, Some(1000)));
    assert_eq!(settings.compression, Some(CompressionType::Zstd));
    assert_eq!(settings.segment_bytes, 2_097_152);
    assert_eq!(settings.segment_age_max.as_secs(), 3);
    assert_eq!(settings.min_cleanable_dirty_ratio.to_bits(), 0.25_f64.to_bits());
    assert_eq!(settings.timestamp_type, TimestampType::LogAppendTime);
    assert_eq!((settings.max_message_bytes, settings.index_interval_bytes), (77, 4096));
}

/// Topic, broker, all brokers, file, default: the order in which DescribeConfigs lists them.
#[test]
fn the_strongest_layer_counts_and_all_are_told() {
    let registry = Registry::new(&[], &[], Overrides::new()).unwrap();
    let layers = Layers {
        broker: overrides(&[("log.segment.bytes", "3")]).into(),
        every_broker: overrides(&[("log.segment.bytes", "4")]).into(),
        statics: overrides(&[("log.segment.bytes", "5")]).into(),
    };
    let setting = registry.topic("segment.bytes").unwrap();
    let resolved = layers.topic(setting, &overrides(&[("segment.bytes", "2")]), &registry);
    let told: Vec<_> = resolved.synonyms.iter().map(|s| (s.name, &*s.value, s.source)).collect();
    assert_eq!((resolved.value.as_deref(), resolved.source), (Some("2"), Source::Topic));
    let name = "log.segment.bytes";
    let expected = [
        ("segment.bytes", "2", Source::Topic),
        (name, "3", Source::Broker),
        (name, "4", Source::EveryBroker),
        (name, "5", Source::Static),
        (name, "1073741824", Source::Default),
    ];
    assert_eq!(told, expected);
}

/// Units differ between a topic's setting and its broker-wide synonyms.
#[test]
fn hours_and_minutes_become_milliseconds() {
    let registry = Registry::new(&[], &[], Overrides::new()).unwrap();
    let setting = registry.topic("retention.ms").unwrap();
    let value = |statics: &[(&str, &str)]| {
        let layers = Layers { statics: overrides(statics).into(), ..Layers::default() };
        let resolved = layers.topic(setting, &Overrides::new(), &registry);
        let typed = layers.topic_settings(&Overrides::new()).retention;
        (resolved.value.unwrap(), typed.map(|span| span.as_millis()))
    };
    assert_eq!(value(&[]), ("604800000".into(), Some(604_800_000)));
    assert_eq!(value(&[("log.retention.hours", "2")]), ("7200000".into(), Some(7_200_000)));
    assert_eq!(value(&[("log.retention.hours", "-1")]), ("-1".into(), None));
    let both = [("log.retention.hours", "2"), ("log.retention.minutes", "3")];
    assert_eq!(value(&both), ("180000".into(), Some(180_000)));
}

#[test]
fn a_configuration_file_is_checked_whole() {
    let wrong = |name, value| Registry::new(&[], &[], overrides(&[(name, value)])).unwrap_err();
    assert_eq!(wrong("log.segmnt.bytes", "1"), "Unknown broker config name: log.segmnt.bytes");
    assert!(wrong("num.partitions", "0").contains("must be at least 1"));
}

/// A table that is searched by halves must be in order, and every default must be acceptable.
#[test]
fn the_tables_hold_what_they_promise() {
    let registry = Registry::new(&[], &[], Overrides::new()).unwrap();
    for setting in registry.topic_settings().chain(registry.broker_settings()) {
        if let Some(default) = setting.default {
            assert!(setting.parse(default).is_ok(), "{}={default}", setting.name);
        }
        assert!(setting.doc.ends_with('.'), "{}", setting.name);
    }
    let names: Vec<_> = registry.topic_settings().map(|setting| setting.name).collect();
    assert!(names.is_sorted());
    for (name, _) in registry.topic_settings().flat_map(|setting| setting.synonyms) {
        let exists = registry.broker(name).is_some();
        let fixed = registry
            .topic_settings()
            .any(|s| matches!(s.check, Check::Only(..)) && s.synonyms.iter().any(|o| o.0 == *name));
        assert!(exists || fixed, "{name} is named as a default but cannot be set");
    }
}

fn check(given: &[(&str, &str)]) -> Result<(), String> {
    check_topic(&overrides(given), &Layers::default()).map(drop)
}

fn overrides(given: &[(&str, &str)]) -> Overrides {
    given.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

proptest! {
    /// Whatever is accepted has a typed form without panic, and stays accepted.
    #[test]
    fn any_value_is_judged(
        index in 0..24_usize,
        value in "-?[0-9]{1,20}|[a-zA-Z,. ]{0,20}|.{0,12}",
    ) {
        let Some(setting) = topic::SETTINGS.get(index) else { return Ok(()) };
        let given = Overrides::from([(setting.name.to_owned(), value)]);
        if let Ok(settings) = check_topic(&given, &Layers::default()) {
            prop_assert_eq!(Layers::default().topic_settings(&given), settings);
        }
    }
}
