//! A broker that lacks the consumer protocol, because it is old or has it switched off: the
//! default of `group.protocol` gets by with a classic member, and says so.

use crate::groups::{settle, share_and_take_over};
use crate::harness::{TestBroker, fill, read, unique};
use ottla_client::admin::GroupFilter;
use ottla_client::{
    Admin, AdminConfig, Consumer, ConsumerConfig, ErrorKind, GroupProtocol, NewTopic, OffsetReset,
    Producer, ProducerConfig, ProducerRecord, TopicPartition,
};
use std::fmt::Debug;
use std::sync::{Mutex, Once};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

/// Collects the warnings of the whole process. Those of one thread alone would not do: what
/// another thread warns of first, while it has no collector, is never offered to any.
struct Warnings;

/// The warnings so far, each with its fields in a line.
static WARNINGS: Mutex<Vec<String>> = Mutex::new(Vec::new());

impl Warnings {
    fn collect() {
        static ONCE: Once = Once::new();
        ONCE.call_once(|| tracing::subscriber::set_global_default(Self).unwrap());
    }

    fn of(group: &str) -> Vec<String> {
        let warnings = WARNINGS.lock().unwrap();
        let named = format!("{group:?}");
        warnings.iter().filter(|line| line.contains(&named)).cloned().collect()
    }
}

struct Line<'a>(&'a mut String);

impl Visit for Line<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.push_str(&format!("{field}={value:?} "));
    }
}

impl Subscriber for Warnings {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() == Level::WARN && metadata.is_event()
    }

    fn event(&self, event: &Event<'_>) {
        let mut line = String::new();
        event.record(&mut Line(&mut line));
        WARNINGS.lock().unwrap().push(line);
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

/// Nothing but the defaults, and reading from the beginning.
fn defaults(bootstrap: &str, group: &str) -> ConsumerConfig {
    ConsumerConfig::new(bootstrap)
        .group_id(group)
        .auto_offset_reset(OffsetReset::Earliest)
        .enable_auto_commit(false)
}

/// Members with the defaults share a topic of this broker as classic ones, and warn of it.
async fn falls_back(bootstrap: &str) {
    Warnings::collect();
    let (topic, group) = (unique("fallback"), unique("fallback"));
    let admin = Admin::new(AdminConfig::new(bootstrap)).unwrap();
    admin.create_topic(NewTopic::new(&topic, 4)).await.unwrap();
    share_and_take_over(bootstrap, &topic, &defaults(bootstrap, &group)).await;
    let warnings = Warnings::of(&group);
    let told = warnings.iter().filter(|line| line.contains("falls back to `classic`")).count();
    assert_eq!(told, 2, "one for each member: {warnings:?}");
}

/// A pattern for the coordinator to match is not silently matched otherwise.
async fn matches_no_patterns(bootstrap: &str) {
    let mut consumer = Consumer::new(defaults(bootstrap, &unique("fallback"))).unwrap();
    consumer.subscribe_regex("fallback.*").unwrap();
    let polled = consumer.poll(std::time::Duration::from_secs(30)).await;
    assert_eq!(polled.unwrap_err().kind(), ErrorKind::Unsupported);
    consumer.close().await.unwrap();
}

/// KIP-848: an answer to ApiVersions without ConsumerGroupHeartbeat.
#[tokio::test]
async fn a_broker_that_does_not_know_the_protocol_gets_classic_members() {
    let (_broker, address) = lacking(CONSUMER_GROUP_HEARTBEAT).await;
    falls_back(&address).await;
    matches_no_patterns(&address).await;
}

/// A broker of ours that seems not to know this API, with a topic `t`.
async fn lacking(key: u8) -> (TestBroker, String) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let advertised = format!("PLAINTEXT://{address}");
    let broker = TestBroker::start_with(&[("advertised.listeners", &advertised)]);
    let target = broker.address();
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            tokio::spawn(forgetful(client, target.clone(), key));
        }
    });
    let admin = Admin::new(AdminConfig::new(&address)).unwrap();
    admin.create_topic(NewTopic::new("t", 1)).await.unwrap();
    (broker, address)
}

/// What a broker lacks is told to whoever needs it, by name; the rest works.
#[tokio::test]
async fn a_broker_that_lacks_something_is_of_use_for_the_rest() {
    let (_broker, address) = lacking(JOIN_GROUP).await;
    fill(&address, "t", 1, 0, 3).await;
    let config = defaults(&address, "g").group_protocol(GroupProtocol::Classic);
    let mut consumer = Consumer::new(config).unwrap();
    consumer.subscribe(["t"]).unwrap();
    lacks(consumer.poll(PATIENCE).await.map(drop), "JoinGroup");
    let config = ConsumerConfig::new(&address).auto_offset_reset(OffsetReset::Earliest);
    let mut consumer = Consumer::new(config).unwrap();
    consumer.assign([TopicPartition::new("t", 0)]).unwrap();
    assert_eq!(read(&mut consumer, 3).await, [0, 1, 2]);

    let (_broker, address) = lacking(FETCH).await;
    let mut consumer = Consumer::new(ConsumerConfig::new(&address)).unwrap();
    consumer.assign([TopicPartition::new("t", 0)]).unwrap();
    lacks(consumer.poll(PATIENCE).await.map(drop), "Fetch");

    let (_broker, address) = lacking(PRODUCE).await;
    let producer = Producer::new(ProducerConfig::new(&address)).unwrap();
    let report = producer.send(ProducerRecord::to("t").value("v")).await.unwrap();
    lacks(report.await.map(drop), "Produce");
}

fn lacks(outcome: ottla_client::Result<()>, what: &str) {
    let error = outcome.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.to_string().contains(&format!("has no {what}")), "{error}");
}

const PATIENCE: std::time::Duration = std::time::Duration::from_secs(30);
const PRODUCE: u8 = 0;
const FETCH: u8 = 1;
const JOIN_GROUP: u8 = 11;
const CONSUMER_GROUP_HEARTBEAT: u8 = 68;

/// A connection whose first answer, that to ApiVersions, names another key in this one's place.
async fn forgetful(client: TcpStream, target: String, key: u8) {
    let Ok(broker) = TcpStream::connect(target).await else { return };
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_broker, mut to_broker) = broker.into_split();
    let there = tokio::io::copy(&mut from_client, &mut to_broker);
    let back = async {
        let length = from_broker.read_i32().await?;
        let mut frame = vec![0; usize::try_from(length).expect("a length")];
        from_broker.read_exact(&mut frame).await?;
        // Correlation id, error code, count; then 7 bytes each: key, versions, no tags.
        let mut entries = frame[7..].chunks_exact_mut(7);
        if let Some(entry) = entries.find(|entry| entry[..2] == [0, key]) {
            entry[0] = 0x7f;
        }
        to_client.write_i32(length).await?;
        to_client.write_all(&frame).await?;
        tokio::io::copy(&mut from_broker, &mut to_client).await
    };
    tokio::select! {
        _ = there => {}
        _ = back => {}
    }
}

/// An Apache Kafka with `group.coordinator.rebalance.protocols=classic`, as `KAFKA_BOOTSTRAP`.
#[tokio::test]
#[ignore = "needs a broker with the protocol switched off: `cargo xtask client` starts one"]
async fn a_broker_with_the_protocol_switched_off_gets_classic_members() {
    let address = std::env::var("KAFKA_BOOTSTRAP").unwrap();
    falls_back(&address).await;
    matches_no_patterns(&address).await;
}

/// A group of members with nothing but the defaults uses the consumer protocol where it is.
#[tokio::test]
async fn the_default_is_the_consumer_protocol() {
    let bootstrap = crate::harness::bootstrap();
    let (topic, group) = (crate::harness::topic("defaults", 2).await, unique("defaults"));
    fill(&bootstrap, &topic, 2, 0, 10).await;
    let mut first = Consumer::new(defaults(&bootstrap, &group)).unwrap();
    let mut second = Consumer::new(defaults(&bootstrap, &group)).unwrap();
    first.subscribe([&*topic]).unwrap();
    read(&mut first, 10).await;
    first.commit().await.unwrap();
    second.subscribe([&*topic]).unwrap();
    settle(&mut first, &mut second, (1, 1)).await;
    let groups = crate::harness::admin().list_groups(GroupFilter::default()).await.unwrap();
    let found = groups.iter().find(|found| *found.group == *group).unwrap();
    assert_eq!(found.kind.to_lowercase(), "consumer");
    first.close().await.unwrap();
    second.close().await.unwrap();
}

/// KIP-848: a group of classic members that the coordinator does not convert is no group of the
/// consumer protocol (GROUP_ID_NOT_FOUND); who comes with the default joins them.
#[tokio::test]
async fn a_group_that_is_not_converted_gets_another_classic_member() {
    Warnings::collect();
    let policy = ("group.consumer.migration.policy", "disabled");
    let broker = TestBroker::start_with(&[policy]);
    let bootstrap = broker.address();
    let (topic, group) = (unique("unconverted"), unique("unconverted"));
    let admin = Admin::new(AdminConfig::new(&bootstrap)).unwrap();
    admin.create_topic(NewTopic::new(&topic, 2)).await.unwrap();
    let config = defaults(&bootstrap, &group);
    let classic = config.clone().group_protocol(GroupProtocol::Classic);
    let (mut first, mut second) = (Consumer::new(classic).unwrap(), Consumer::new(config).unwrap());
    first.subscribe([&*topic]).unwrap();
    settle_alone(&mut first, 2).await;
    second.subscribe([&*topic]).unwrap();
    settle(&mut first, &mut second, (1, 1)).await;
    let warnings = Warnings::of(&group);
    let told = warnings.iter().filter(|line| line.contains("falls back to `classic`")).count();
    assert_eq!(told, 1, "{warnings:?}");
    let told = warnings.iter().any(|line| line.contains("GROUP_ID_NOT_FOUND"));
    assert!(told, "{warnings:?}");
    let described = admin.describe_group(&group).await.unwrap();
    assert_eq!((described.members.len(), &*described.protocol_type), (2, "consumer"));
    first.close().await.unwrap();
    second.close().await.unwrap();
}

async fn settle_alone(consumer: &mut Consumer, count: usize) {
    while consumer.assignment().len() < count {
        consumer.poll(std::time::Duration::from_millis(50)).await.unwrap();
    }
}
