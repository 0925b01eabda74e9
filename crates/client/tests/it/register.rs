//! Consumers of the register protocol (`docs/register-protocol.md`). Ottla alone has it.

use crate::groups::{Heard, poll_until, share_and_take_over};
use crate::harness::{ottla, reader, unique};
use ottla_client::{
    Admin, AdminConfig, Consumer, ConsumerConfig, ErrorKind, GroupProtocol, NewTopic, TopicFilter,
    TopicPartition,
};
use std::time::Duration;

/// The document's example: a second, three heartbeats in it, three of which may fail.
pub(crate) fn registered(bootstrap: &str, group: &str) -> ConsumerConfig {
    reader(bootstrap, group)
        .group_protocol(GroupProtocol::Register)
        .session_timeout(Duration::from_secs(1))
}

fn admin() -> Admin {
    Admin::new(AdminConfig::new(ottla())).unwrap()
}

async fn topic(what: &str, partitions: i32) -> String {
    let name = unique(what);
    admin().create_topic(NewTopic::new(&name, partitions)).await.unwrap();
    name
}

/// S1, S3, S4, S7: members share the partitions, one owner each; one that leaves hands over.
#[tokio::test]
async fn s3_s4_register_members_share_and_hand_over() {
    let (name, group) = (topic("register-share", 4).await, unique("register-share"));
    share_and_take_over(&ottla(), &name, &registered(&ottla(), &group)).await;
}

/// S9, S10, S12, S14, S15: it beats for as long as it is needed; many sessions pass without a
/// rebalance, also while nobody polls.
#[tokio::test]
async fn s9_s15_heartbeats_keep_a_member_alive() {
    let (name, group) = (topic("register-beat", 1).await, unique("register-beat"));
    let config = registered(&ottla(), &group).session_timeout(Duration::from_millis(300));
    let heard = Heard::default();
    let mut consumer = Consumer::new(config).unwrap();
    consumer.set_listener(heard.clone());
    consumer.subscribe([&*name]).unwrap();
    poll_until(&mut consumer, |consumer| consumer.assignment().len() == 1).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    consumer.poll(Duration::from_millis(100)).await.unwrap();
    assert_eq!(heard.take(), ["assigned 1"]);
    assert_eq!(admin().describe_group(&group).await.unwrap().members.len(), 1);
    consumer.close().await.unwrap();
}

/// S35: the pattern is matched with all topics there are (S36: the request that names none), by
/// the consumer (S37), and another list is another registration (S38).
#[tokio::test]
async fn s35_s36_s37_s38_a_pattern_is_the_consumers_own_to_match() {
    let (base, group) = (unique("register-pattern"), unique("register-pattern"));
    let admin = admin();
    for suffix in ["a", "test"] {
        admin.create_topic(NewTopic::new(format!("{base}-{suffix}"), 1)).await.unwrap();
    }
    let config = registered(&ottla(), &group).metadata_max_age(Duration::from_millis(200));
    let heard = Heard::default();
    let mut consumer = Consumer::new(config).unwrap();
    consumer.set_listener(heard.clone());
    let filter = TopicFilter::allow(&format!("{base}-.*")).unwrap().deny(".*-test").unwrap();
    consumer.subscribe_matching(filter).unwrap();
    let has = |names: &[&str]| {
        let names: Vec<_> =
            names.iter().map(|name| TopicPartition::new(format!("{base}-{name}"), 0)).collect();
        move |consumer: &Consumer| consumer.assignment() == names
    };
    poll_until(&mut consumer, has(&["a"])).await;
    // Matched by the black-list: no other list, and nobody registers again.
    admin.create_topic(NewTopic::new(format!("{base}-b-test"), 1)).await.unwrap();
    admin.create_topic(NewTopic::new(format!("{base}-b"), 1)).await.unwrap();
    poll_until(&mut consumer, has(&["a", "b"])).await;
    assert_eq!(heard.take(), ["assigned 1", "revoked 1", "assigned 2"]);
    consumer.close().await.unwrap();
}

/// S6: topics that grow reach a register member without its asking.
#[tokio::test]
async fn s6_more_partitions_are_told() {
    let (name, group) = (topic("register-grow", 1).await, unique("register-grow"));
    let mut consumer = Consumer::new(registered(&ottla(), &group)).unwrap();
    consumer.subscribe([&*name]).unwrap();
    poll_until(&mut consumer, |consumer| consumer.assignment().len() == 1).await;
    admin().create_partitions(&name, 3).await.unwrap();
    poll_until(&mut consumer, |consumer| consumer.assignment().len() == 3).await;
    consumer.close().await.unwrap();
}

/// S8: terms that make no sense are refused before anything is sent.
#[tokio::test]
async fn s8_terms_are_checked_by_the_client_first() {
    for (frequency, threshold) in [(0, 3), (3, 0)] {
        let config = registered("127.0.0.1:1", "g")
            .heartbeat_frequency(frequency)
            .failed_heartbeat_threshold(threshold);
        assert_eq!(Consumer::new(config).unwrap_err().kind(), ErrorKind::Config);
    }
    let config = registered("127.0.0.1:1", "g").group_instance_id("static");
    assert_eq!(Consumer::new(config).unwrap_err().kind(), ErrorKind::Config);
}
