//! Settings as text, and what is said of wrong ones.

use super::*;
use crate::ErrorKind;
use ottla_group::assign::Assignor;
use std::time::Duration;

#[test]
fn a_properties_file_sets_what_the_builder_sets() {
    let text = "# a comment\nbootstrap.servers=a:1, b:2\ngroup.id: g\n\
                session.timeout.ms = 6000\nisolation.level=read_committed\n\
                partition.assignment.strategy=\\\n  \
                org.apache.kafka.clients.consumer.StickyAssignor,cooperative-sticky\n";
    let config = ConsumerConfig::from_properties(text).unwrap();
    assert_eq!(config.client.bootstrap_servers, ["a:1", "b:2"]);
    assert_eq!(config.group_id, "g");
    assert_eq!(config.session_timeout, Duration::from_secs(6));
    assert_eq!(config.isolation_level, IsolationLevel::ReadCommitted);
    let wanted = [Assignor::Sticky, Assignor::CooperativeSticky];
    assert_eq!(config.partition_assignment_strategy, wanted);
    config.check().unwrap();
}

#[test]
fn an_unknown_setting_is_refused_with_the_one_that_was_meant() {
    let error = ConsumerConfig::new("a:1").set("sesion.timeout.ms", "1").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config);
    let message = "`sesion.timeout.ms` is no setting of this client; \
                   did you mean `session.timeout.ms`?";
    assert_eq!(error.to_string(), message);
    let error = AdminConfig::new("a:1").set("quux", "1").unwrap_err();
    assert_eq!(error.to_string(), "`quux` is no setting of this client");
}

#[test]
fn a_wrong_value_is_refused_with_the_right_ones() {
    let error = ProducerConfig::new("a:1").set("acks", "some").unwrap_err();
    assert_eq!(error.to_string(), "`acks` cannot be `some`: one of all, -1, 1, 0");
}

#[test]
fn settings_that_contradict_each_other_are_refused() {
    let wrong = ProducerConfig::new("a:1").acks(Acks::Leader);
    assert!(wrong.check().unwrap_err().to_string().contains("`acks=all`"));
    assert!(ProducerConfig::new("").check().is_err());
    assert!(ProducerConfig::new("no-port").check().is_err());
    let slow = ConsumerConfig::new("a:1").heartbeat_interval(Duration::from_secs(60));
    assert!(slow.check().is_err());
}

/// Kafka 4.4's own defaults, where ours are meant to be the same.
#[test]
fn defaults_are_kafkas() {
    let producer = ProducerConfig::new("a:1");
    assert_eq!((producer.batch_size, producer.buffer_memory), (16_384, 33_554_432));
    assert_eq!(producer.linger, Duration::from_millis(5));
    let consumer = ConsumerConfig::new("a:1");
    assert_eq!((consumer.fetch_max_bytes, consumer.max_poll_records), (52_428_800, 500));
    assert_eq!(consumer.auto_offset_reset, OffsetReset::Latest);
}
