//! Consumers of the consumer protocol (KIP-848). A broker without it gets classic members from the
//! same consumers, so the tests hold there, too.

use crate::groups::{Heard, poll_until, share_and_take_over};
use crate::harness::{bootstrap, fill, read, reader, topic, unique};
use ottla_client::{Consumer, ConsumerConfig, GroupProtocol, TopicFilter};
use std::time::Duration;

fn config(group: &str) -> ConsumerConfig {
    reader(&bootstrap(), group).group_protocol(GroupProtocol::Consumer)
}

/// S3, S4: members share, one owner each; the one that is left takes over from the commits.
#[tokio::test]
async fn consumer_members_share_and_the_one_left_takes_over() {
    let (name, group) = (topic("848-share", 4).await, unique("848-share"));
    share_and_take_over(&bootstrap(), &name, &config(&group)).await;
}

/// A member leaves with its commits, and another goes on there; it may come back.
#[tokio::test]
async fn a_consumer_member_leaves_and_comes_back() {
    let (name, group) = (topic("848-back", 1).await, unique("848-back"));
    let heard = Heard::default();
    let mut consumer = Consumer::new(config(&group)).unwrap();
    consumer.set_listener(heard.clone());
    for round in 0..2 {
        consumer.subscribe([&*name]).unwrap();
        fill(&bootstrap(), &name, 1, round * 10, 10).await;
        let wanted: Vec<_> = (round * 10..round * 10 + 10).collect();
        assert_eq!(read(&mut consumer, 10).await, wanted);
        consumer.unsubscribe().await.unwrap();
    }
    let heard = heard.take();
    let without_nothing: Vec<_> = heard.iter().filter(|what| !what.ends_with(" 0")).collect();
    assert_eq!(without_nothing, ["assigned 1", "revoked 1", "assigned 1", "revoked 1"]);
    consumer.close().await.unwrap();
}

/// S35-S38 with the client's own filter.
#[tokio::test]
async fn a_pattern_is_followed_by_consumer_members() {
    let base = topic("848-pattern", 1).await;
    let group = unique("848-pattern");
    let config = config(&group).metadata_max_age(Duration::from_millis(200));
    let mut consumer = Consumer::new(config).unwrap();
    consumer.subscribe_matching(TopicFilter::allow(&format!("{base}.*")).unwrap()).unwrap();
    poll_until(&mut consumer, |consumer| consumer.assignment().len() == 1).await;
    let more = ottla_client::NewTopic::new(format!("{base}-more"), 2);
    crate::harness::admin().create_topic(more).await.unwrap();
    poll_until(&mut consumer, |consumer| consumer.assignment().len() == 3).await;
    consumer.close().await.unwrap();
}
