//! Patterns: matched by the consumer in every protocol, or by the coordinator in the consumer
//! protocol (KIP-848).

use crate::groups::poll_until;
use crate::harness::{TestBroker, admin, bootstrap, fill, ottla, read, reader, topic, unique};
use ottla_client::{
    Admin, AdminConfig, Consumer, ConsumerConfig, ErrorKind, GroupProtocol, NewTopic, TopicFilter,
};
use std::time::Duration;

fn config(group: &str) -> ConsumerConfig {
    reader(&bootstrap(), group).group_protocol(GroupProtocol::Consumer)
}

/// KIP-848: the coordinator matches the pattern, and hears of new topics by itself; another
/// pattern, and names in its place, are other subscriptions.
#[tokio::test]
async fn a_pattern_is_matched_by_the_coordinator() {
    let base = topic("848-regex", 1).await;
    let other = topic("848-other", 3).await;
    let mut consumer = Consumer::new(config(&unique("848-regex"))).unwrap();
    consumer.subscribe_regex(&format!("{base}.*")).unwrap();
    poll_until(&mut consumer, |consumer| consumer.assignment().len() == 1).await;
    let more = NewTopic::new(format!("{base}-more"), 2);
    admin().create_topic(more).await.unwrap();
    fill(&bootstrap(), &base, 1, 0, 10).await;
    assert_eq!(read(&mut consumer, 10).await, (0..10).collect::<Vec<_>>());

    consumer.subscribe_regex(&other).unwrap();
    let has = |consumer: &Consumer, topic: &str, count| {
        let all = consumer.assignment();
        all.len() == count && all.iter().all(|one| *one.topic == *topic)
    };
    poll_until(&mut consumer, |consumer| has(consumer, &other, 3)).await;
    consumer.subscribe([&*base]).unwrap();
    poll_until(&mut consumer, |consumer| has(consumer, &base, 1)).await;
    consumer.close().await.unwrap();

    let mut wrong = Consumer::new(config(&unique("848-regex"))).unwrap();
    wrong.subscribe_regex("(").unwrap();
    let error = loop {
        if let Err(error) = wrong.poll(Duration::from_millis(50)).await {
            break error;
        }
    };
    assert_eq!(error.kind(), ErrorKind::Config);
}

/// Only the consumer protocol has such patterns.
#[tokio::test]
async fn a_pattern_for_the_coordinator_needs_the_consumer_protocol() {
    let config = config("unused").group_protocol(GroupProtocol::Classic);
    let mut consumer = Consumer::new(config).unwrap();
    assert_eq!(consumer.subscribe_regex("t.*").unwrap_err().kind(), ErrorKind::Config);
}

/// S35, S38: a pattern that means no topic makes a member as well, which gets the first one that
/// comes and stays when the last one goes.
async fn follows_from_nothing(bootstrap: &str, group: &str, base: &str, mut consumer: Consumer) {
    let admin = Admin::new(AdminConfig::new(bootstrap)).unwrap();
    let is_member = async || {
        let described = admin.describe_group(group).await;
        described.is_ok_and(|described| described.members.len() == 1)
    };
    while !is_member().await {
        assert!(consumer.poll(Duration::from_millis(50)).await.unwrap().is_empty());
    }
    assert_eq!(consumer.assignment(), []);
    admin.create_topic(NewTopic::new(base, 2)).await.unwrap();
    poll_until(&mut consumer, |consumer| consumer.assignment().len() == 2).await;
    admin.delete_topic(base).await.unwrap();
    poll_until(&mut consumer, |consumer| consumer.assignment().is_empty()).await;
    assert!(is_member().await);
    consumer.close().await.unwrap();
}

#[tokio::test]
async fn a_pattern_of_no_topic_yet_is_joined_with() {
    for protocol in [GroupProtocol::Consumer, GroupProtocol::Classic] {
        let (base, group) = (unique("pattern-none"), unique("pattern-none"));
        let config = config(&group).group_protocol(protocol);
        let mut consumer =
            Consumer::new(config.metadata_max_age(Duration::from_millis(200))).unwrap();
        consumer.subscribe_matching(TopicFilter::allow(&base).unwrap()).unwrap();
        follows_from_nothing(&bootstrap(), &group, &base, consumer).await;
    }
}

#[tokio::test]
async fn a_pattern_of_no_topic_yet_is_joined_with_for_the_coordinator_to_match() {
    let (base, group) = (unique("regex-none"), unique("regex-none"));
    let mut consumer = Consumer::new(config(&group)).unwrap();
    consumer.subscribe_regex(&base).unwrap();
    follows_from_nothing(&bootstrap(), &group, &base, consumer).await;
}

#[tokio::test]
async fn a_pattern_of_no_topic_yet_is_registered() {
    let (base, group) = (unique("register-none"), unique("register-none"));
    let config = reader(&ottla(), &group).group_protocol(GroupProtocol::Register);
    let mut consumer = Consumer::new(config.metadata_max_age(Duration::from_millis(200))).unwrap();
    consumer.subscribe_matching(TopicFilter::allow(&base).unwrap()).unwrap();
    follows_from_nothing(&ottla(), &group, &base, consumer).await;
}

/// A cluster in which there is no topic at all, and with every kind of pattern.
#[tokio::test]
async fn a_pattern_finds_the_first_topic_of_a_cluster() {
    let broker = TestBroker::start();
    let address = broker.address();
    let (base, group) = (unique("first"), unique("first"));
    let mut consumer =
        Consumer::new(reader(&address, &group).group_protocol(GroupProtocol::Consumer)).unwrap();
    consumer.subscribe_regex(&base).unwrap();
    follows_from_nothing(&address, &group, &base, consumer).await;
    let mut consumer =
        Consumer::new(reader(&address, &group).metadata_max_age(Duration::from_millis(200)))
            .unwrap();
    consumer.subscribe_matching(TopicFilter::allow(&base).unwrap()).unwrap();
    follows_from_nothing(&address, &group, &base, consumer).await;
}
