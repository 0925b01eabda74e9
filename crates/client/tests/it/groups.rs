//! Consumers that share topics through a group, against a real broker.

use crate::harness::{TestBroker, admin, bootstrap, fill, read, reader, topic, unique};
use ottla_client::{
    Admin, AdminConfig, Assignor, Consumer, ConsumerConfig, ConsumerHandle, ErrorKind,
    GroupProtocol, NewTopic, RebalanceListener, Result, TopicFilter, TopicPartition,
};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Polls until `is_done`; the values that came meanwhile.
pub(crate) async fn poll_until(
    consumer: &mut Consumer,
    is_done: impl Fn(&Consumer) -> bool,
) -> Vec<i32> {
    let mut values = Vec::new();
    for _ in 0..400 {
        if is_done(consumer) {
            return values;
        }
        let records = consumer.poll(Duration::from_millis(50)).await.expect("records");
        let value = |value: &[u8]| std::str::from_utf8(value).ok()?.parse::<i32>().ok();
        values.extend(records.iter().filter_map(|record| value(record.value()?)));
    }
    panic!("not done after 20 s; it has {:?}", consumer.assignment());
}

/// Two consumers, polled in turn until each owns so many.
pub(crate) async fn settle(a: &mut Consumer, b: &mut Consumer, counts: (usize, usize)) {
    for _ in 0..400 {
        if (a.assignment().len(), b.assignment().len()) == counts {
            return;
        }
        a.poll(Duration::from_millis(20)).await.expect("no error");
        b.poll(Duration::from_millis(20)).await.expect("no error");
    }
    panic!("{:?} and {:?} after 16 s", a.assignment(), b.assignment());
}

/// Two members share the partitions of a topic, one owner each; the one that is left takes over
/// what the other leaves, from its commits. Whatever their protocol, they read every record once.
pub(crate) async fn share_and_take_over(bootstrap: &str, topic: &str, config: &ConsumerConfig) {
    fill(bootstrap, topic, 4, 0, 40).await;
    let mut first = Consumer::new(config.clone()).unwrap();
    first.subscribe([topic]).unwrap();
    let mut values = read(&mut first, 40).await;
    first.commit().await.unwrap();
    let mut second = Consumer::new(config.clone()).unwrap();
    second.subscribe([topic]).unwrap();
    settle(&mut first, &mut second, (2, 2)).await;
    let owned = |consumer: &Consumer| BTreeSet::from_iter(consumer.assignment());
    assert!(owned(&first).is_disjoint(&owned(&second)));

    fill(bootstrap, topic, 4, 40, 40).await;
    values.extend(read(&mut first, 20).await);
    values.extend(read(&mut second, 20).await);
    first.commit().await.unwrap();
    second.commit().await.unwrap();
    second.close().await.unwrap();
    poll_until(&mut first, |consumer| consumer.assignment().len() == 4).await;
    fill(bootstrap, topic, 4, 80, 40).await;
    values.extend(read(&mut first, 40).await);
    values.sort_unstable();
    assert_eq!(values, (0..120).collect::<Vec<_>>(), "{config:?}");
    first.close().await.unwrap();
}

/// S3, S4 with our own member, with every assignor.
#[tokio::test]
async fn two_members_share_and_the_one_left_takes_over() {
    for assignor in
        [Assignor::Range, Assignor::RoundRobin, Assignor::Sticky, Assignor::CooperativeSticky]
    {
        let (name, group) = (topic("group-share", 4).await, unique("share"));
        let config = reader(&bootstrap(), &group).partition_assignment_strategy(vec![assignor]);
        share_and_take_over(&bootstrap(), &name, &config).await;
    }
}

/// What a listener heard, and what it could do then.
#[derive(Clone, Default)]
pub(crate) struct Heard(Arc<Mutex<Vec<String>>>);

impl Heard {
    fn note(&self, what: &str, partitions: &[TopicPartition]) {
        self.0.lock().expect("no panic").push(format!("{what} {}", partitions.len()));
    }

    pub(crate) fn peek(&self) -> Vec<String> {
        self.0.lock().expect("no panic").clone()
    }

    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().expect("no panic"))
    }
}

impl RebalanceListener for Heard {
    async fn revoked(&mut self, consumer: &ConsumerHandle, gone: &[TopicPartition]) -> Result<()> {
        // Ownership has not ended: what was handed out can be committed.
        consumer.commit().await?;
        self.note("revoked", gone);
        Ok(())
    }

    async fn assigned(&mut self, consumer: &ConsumerHandle, new: &[TopicPartition]) -> Result<()> {
        assert!(new.iter().all(|partition| consumer.assignment().contains(partition)));
        self.note("assigned", new);
        Ok(())
    }

    async fn lost(&mut self, _: &ConsumerHandle, gone: &[TopicPartition]) -> Result<()> {
        self.note("lost", gone);
        Ok(())
    }
}

#[tokio::test]
async fn a_listener_hears_of_partitions_before_they_go_and_after_they_came() {
    let (name, group) = (topic("group-listener", 2).await, unique("listener"));
    fill(&bootstrap(), &name, 2, 0, 20).await;
    let strategy = vec![Assignor::Range];
    let config = || reader(&bootstrap(), &group).partition_assignment_strategy(strategy.clone());
    let heard = Heard::default();
    let mut first = Consumer::new(config()).unwrap();
    first.set_listener(heard.clone());
    first.subscribe([&*name]).unwrap();
    read(&mut first, 20).await;
    assert_eq!(heard.take(), ["assigned 2"]);
    let mut second = Consumer::new(config()).unwrap();
    second.subscribe([&*name]).unwrap();
    settle(&mut first, &mut second, (1, 1)).await;
    assert_eq!(heard.take(), ["revoked 2", "assigned 1"]);
    first.close().await.unwrap();
    assert_eq!(heard.take(), ["revoked 1"]);
    // The second begins where the first one's listener committed.
    poll_until(&mut second, |consumer| consumer.assignment().len() == 2).await;
    let all: Vec<_> = (0..2).map(|index| TopicPartition::new(&*name, index)).collect();
    for (_, committed) in second.committed(&all).await.unwrap() {
        assert_eq!(committed.unwrap().offset.0, 10);
    }
    second.close().await.unwrap();
}

/// Automatic commits: a member that goes commits what is done, and the next one goes on there.
#[tokio::test]
async fn automatic_commits_hand_over_without_repeating() {
    let (name, group) = (topic("group-auto", 2).await, unique("auto"));
    fill(&bootstrap(), &name, 2, 0, 50).await;
    let config = || {
        reader(&bootstrap(), &group)
            .enable_auto_commit(true)
            .auto_commit_interval(Duration::from_millis(50))
    };
    let mut first = Consumer::new(config()).unwrap();
    first.subscribe([&*name]).unwrap();
    let mut values = read(&mut first, 50).await;
    first.close().await.unwrap();
    fill(&bootstrap(), &name, 2, 50, 50).await;
    let mut second = Consumer::new(config()).unwrap();
    second.subscribe([&*name]).unwrap();
    values.extend(read(&mut second, 50).await);
    values.sort_unstable();
    assert_eq!(values, (0..100).collect::<Vec<_>>());
    second.close().await.unwrap();
}

/// KIP-345: a static member that comes back in time finds its partitions, and nobody rebalances.
#[tokio::test]
async fn a_static_member_comes_back_to_what_it_had() {
    let (name, group) = (topic("group-static", 2).await, unique("static"));
    let config = |instance: &str| reader(&bootstrap(), &group).group_instance_id(instance);
    let heard = Heard::default();
    let mut stays = Consumer::new(config("stays")).unwrap();
    stays.set_listener(heard.clone());
    let mut leaves = Consumer::new(config("leaves")).unwrap();
    stays.subscribe([&*name]).unwrap();
    leaves.subscribe([&*name]).unwrap();
    settle(&mut stays, &mut leaves, (1, 1)).await;
    let had = leaves.assignment();
    leaves.close().await.unwrap();
    heard.take();
    let mut back = Consumer::new(config("leaves")).unwrap();
    back.subscribe([&*name]).unwrap();
    settle(&mut stays, &mut back, (1, 1)).await;
    assert_eq!(back.assignment(), had);
    assert_eq!(heard.take(), Vec::<String>::new());
    stays.close().await.unwrap();
    back.close().await.unwrap();
}

/// `max.poll.interval.ms`: a consumer that is stuck leaves; it hears so, and may come back.
#[tokio::test]
async fn a_consumer_that_is_not_polled_leaves_and_comes_back() {
    let (name, group) = (topic("group-late", 1).await, unique("late"));
    let config = reader(&bootstrap(), &group).max_poll_interval(Duration::from_millis(500));
    let heard = Heard::default();
    let mut consumer = Consumer::new(config).unwrap();
    consumer.set_listener(heard.clone());
    consumer.subscribe([&*name]).unwrap();
    poll_until(&mut consumer, |consumer| consumer.assignment().len() == 1).await;
    while !consumer.assignment().is_empty() {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let mut members = 1;
    while members > 0 {
        members = admin().describe_group(&group).await.unwrap().members.len();
    }
    poll_until(&mut consumer, |consumer| consumer.assignment().len() == 1).await;
    assert_eq!(heard.take(), ["assigned 1", "lost 1", "assigned 1"]);
    consumer.close().await.unwrap();
}

/// A consumer that is dropped leaves its group soon, and not only at the end of its session.
#[tokio::test]
async fn a_dropped_consumer_leaves() {
    let (name, group) = (topic("group-drop", 1).await, unique("drop"));
    let config = reader(&bootstrap(), &group).session_timeout(Duration::from_secs(300));
    let mut consumer = Consumer::new(config).unwrap();
    consumer.subscribe([&*name]).unwrap();
    poll_until(&mut consumer, |consumer| consumer.assignment().len() == 1).await;
    drop(consumer);
    let mut members = 1;
    while members > 0 {
        members = admin().describe_group(&group).await.unwrap().members.len();
    }
}

/// S35-S38: the topics a pattern means are found again, and another list is joined with.
#[tokio::test]
async fn s35_a_pattern_follows_the_topics_it_means() {
    let (base, group) = (unique("pattern"), unique("pattern"));
    let admin = admin();
    for suffix in ["a", "test"] {
        admin.create_topic(NewTopic::new(format!("{base}-{suffix}"), 1)).await.unwrap();
    }
    let config = reader(&bootstrap(), &group).metadata_max_age(Duration::from_millis(200));
    let mut consumer = Consumer::new(config).unwrap();
    let filter = TopicFilter::allow(&format!("{base}-.*")).unwrap().deny(".*-test").unwrap();
    consumer.subscribe_matching(filter).unwrap();
    let has = |names: &[&str]| {
        let names: Vec<_> =
            names.iter().map(|name| TopicPartition::new(format!("{base}-{name}"), 0)).collect();
        move |consumer: &Consumer| consumer.assignment() == names
    };
    poll_until(&mut consumer, has(&["a"])).await;
    admin.create_topic(NewTopic::new(format!("{base}-b"), 1)).await.unwrap();
    poll_until(&mut consumer, has(&["a", "b"])).await;
    admin.delete_topic(format!("{base}-a")).await.unwrap();
    poll_until(&mut consumer, has(&["b"])).await;
    consumer.close().await.unwrap();
}

/// S6 on the member's side: more partitions are noticed and shared out.
#[tokio::test]
async fn s6_new_partitions_of_a_topic_are_assigned() {
    let (name, group) = (topic("group-grow", 1).await, unique("grow"));
    let config = reader(&bootstrap(), &group).metadata_max_age(Duration::from_millis(200));
    let mut consumer = Consumer::new(config).unwrap();
    consumer.subscribe([&*name]).unwrap();
    poll_until(&mut consumer, |consumer| consumer.assignment().len() == 1).await;
    admin().create_partitions(&name, 3).await.unwrap();
    poll_until(&mut consumer, |consumer| consumer.assignment().len() == 3).await;
    consumer.close().await.unwrap();
}

/// S22-S25: a coordinator that goes away and comes back finds its members as they were.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s22_a_restart_of_the_broker_interrupts_and_loses_nothing() {
    let broker = TestBroker::start();
    let address = broker.address();
    let admin = Admin::new(AdminConfig::new(&address)).unwrap();
    let (name, group) = (unique("group-restart"), unique("restart"));
    admin.create_topic(NewTopic::new(&name, 2)).await.unwrap();
    let heard = Heard::default();
    let mut consumer = Consumer::new(reader(&address, &group)).unwrap();
    consumer.set_listener(heard.clone());
    consumer.subscribe([&*name]).unwrap();
    fill(&address, &name, 2, 0, 20).await;
    let mut values = read(&mut consumer, 20).await;
    consumer.commit().await.unwrap();
    for round in 1..3 {
        broker.stop();
        broker.boot();
        fill(&address, &name, 2, round * 20, 20).await;
        values.extend(read(&mut consumer, 20).await);
        consumer.commit().await.unwrap();
    }
    values.sort_unstable();
    assert_eq!(values, (0..60).collect::<Vec<_>>());
    assert_eq!(heard.take(), ["assigned 2"], "nobody rebalanced");
    consumer.close().await.unwrap();
}

/// Errors that nothing mends are told, and name the setting.
#[tokio::test]
async fn a_group_that_refuses_tells_so() {
    let group = unique("refuses");
    let config = ConsumerConfig::new(bootstrap())
        .group_id(group)
        .group_protocol(GroupProtocol::Classic)
        .heartbeat_interval(Duration::from_millis(1))
        .session_timeout(Duration::from_millis(2));
    let mut consumer = Consumer::new(config).unwrap();
    consumer.subscribe(["t"]).unwrap();
    let error = consumer.poll(Duration::from_secs(10)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config);
    consumer.close().await.unwrap();
}
