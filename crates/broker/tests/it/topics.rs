//! Topics from birth to death as clients see them: Metadata, creation, growth, deletion.

use crate::harness::{Client, TestBroker};
use ottla_wire::generated::create_partitions_request::CreatePartitionsTopic;
use ottla_wire::generated::create_topics_request::{CreatableTopic, CreatableTopicConfig};
use ottla_wire::generated::delete_topics_request::DeleteTopicState;
use ottla_wire::generated::describe_topic_partitions_request::{Cursor, TopicRequest};
use ottla_wire::generated::metadata_request::MetadataRequestTopic;
use ottla_wire::generated::*;
use ottla_wire::{ErrorCode, Uuid};
use std::time::Duration;

/// What a topic's line of an answer comes to: code and partitions.
type Line = (String, i16, usize);

fn named(name: &str) -> MetadataRequestTopic<'_> {
    MetadataRequestTopic { name: Some(name), topic_id: Uuid::ZERO }
}

fn metadata(client: &mut Client, version: i16, request: &MetadataRequest<'_>) -> Vec<Line> {
    let answered = client.ask(version, request);
    let response: MetadataResponse<'_> = answered.read();
    let line = |topic: &metadata_response::MetadataResponseTopic<'_>| {
        (topic.name.unwrap_or("-").to_owned(), topic.error_code, topic.partitions.len())
    };
    response.topics.iter().map(line).collect()
}

fn ask_for(topics: &[&'static str], create: bool) -> MetadataRequest<'static> {
    MetadataRequest {
        topics: Some(topics.iter().map(|name| named(name)).collect()),
        allow_auto_topic_creation: create,
        ..Default::default()
    }
}

fn create(client: &mut Client, name: &str, partitions: i32, configs: &[(&str, &str)]) -> i16 {
    let configs =
        configs.iter().map(|(name, value)| CreatableTopicConfig { name, value: Some(value) });
    let topic = CreatableTopic {
        name,
        num_partitions: partitions,
        replication_factor: 1,
        configs: configs.collect(),
        ..Default::default()
    };
    let answered =
        client.ask(7, &CreateTopicsRequest { topics: vec![topic], ..Default::default() });
    let response: CreateTopicsResponse<'_> = answered.read();
    response.topics[0].error_code
}

fn delete(client: &mut Client, topics: Vec<DeleteTopicState<'_>>) -> Vec<i16> {
    let answered = client.ask(6, &DeleteTopicsRequest { topics, ..Default::default() });
    let response: DeleteTopicsResponse<'_> = answered.read();
    response.responses.iter().map(|line| line.error_code).collect()
}

fn id_of(client: &mut Client, name: &str) -> Uuid {
    let topics = Some(vec![named(name)]);
    let answered = client.ask(12, &MetadataRequest { topics, ..Default::default() });
    let response: MetadataResponse<'_> = answered.read();
    response.topics[0].topic_id
}

/// Every version tells who leads, and where that is.
#[test]
fn metadata_in_every_version_names_a_leader_and_its_address() {
    let broker = TestBroker::start();
    let mut client = broker.connect();
    assert_eq!(create(&mut client, "t", 3, &[]), 0);
    for version in 0..=13 {
        let answered = client.ask(version, &ask_for(&["t"], false_from(version)));
        let response: MetadataResponse<'_> = answered.read();
        let port = i32::from(broker.address().port());
        assert_eq!((response.brokers[0].node_id, response.brokers[0].port), (1, port));
        let topic = &response.topics[0];
        assert_eq!((topic.name, topic.partitions.len()), (Some("t"), 3), "version {version}");
        for partition in &topic.partitions {
            assert_eq!((partition.error_code, partition.leader_id), (0, 1));
            assert_eq!((&*partition.replica_nodes, &*partition.isr_nodes), (&[1][..], &[1][..]));
        }
        assert_eq!(topic.topic_id.is_zero(), version < 10);
        assert_eq!(response.cluster_id.map(str::len), (version >= 2).then_some(22));
    }
}

/// Versions below 4 have no field to forbid creation with.
fn false_from(version: i16) -> bool {
    version < 4
}

/// KIP-4: all topics is an empty list in v0 and null later, where empty means none.
#[test]
fn no_topics_and_all_topics_are_told_apart_by_version() {
    let broker = TestBroker::start();
    let mut client = broker.connect();
    create(&mut client, "t", 1, &[]);
    let all = |topics| MetadataRequest { topics, ..Default::default() };
    assert_eq!(metadata(&mut client, 0, &all(Some(Vec::new()))).len(), 1);
    assert_eq!(metadata(&mut client, 1, &all(Some(Vec::new()))).len(), 0);
    for version in [1, 9, 13] {
        assert_eq!(metadata(&mut client, version, &all(None)), [("t".to_owned(), 0, 1)]);
    }
}

/// Topic auto-creation: when asked to, where allowed, with the broker's defaults.
#[test]
fn a_topic_is_created_because_it_was_asked_for() {
    let broker = TestBroker::with(&[("num.partitions", "4")]);
    let mut client = broker.connect();
    let unknown = ErrorCode::UnknownTopicOrPartition.number();
    let invalid = ErrorCode::InvalidTopicException.number();
    let line = |code, partitions| vec![("t".to_owned(), code, partitions)];
    assert_eq!(metadata(&mut client, 9, &ask_for(&["t"], false)), line(unknown, 0));
    assert_eq!(metadata(&mut client, 9, &ask_for(&["t"], true)), line(0, 4));
    let bad = metadata(&mut client, 9, &ask_for(&["a b", "u", "t", "t"], true));
    let expected = [("a b", invalid, 0), ("u", 0, 4), ("t", 0, 4)];
    assert_eq!(bad, expected.map(|(name, code, count)| (name.to_owned(), code, count)));
    let own = metadata(&mut client, 9, &ask_for(&["__transaction_state"], true));
    assert_eq!(own[0].1, unknown);
}

#[test]
fn auto_creation_can_be_switched_off() {
    let broker = TestBroker::with(&[("auto.create.topics.enable", "false")]);
    let asked = metadata(&mut broker.connect(), 9, &ask_for(&["t"], true));
    assert_eq!(asked[0].1, ErrorCode::UnknownTopicOrPartition.number());
    // Kafka reads such values in any case.
    let broker = TestBroker::with(&[("auto.create.topics.enable", "TRUE")]);
    let asked = metadata(&mut broker.connect(), 9, &ask_for(&["t"], true));
    assert_eq!(asked[0].1, 0);
}

/// KIP-516: from v12 on a topic may be asked for by its id.
#[test]
fn a_topic_is_found_by_its_id() {
    let broker = TestBroker::start();
    let mut client = broker.connect();
    create(&mut client, "t", 2, &[]);
    let by_id = |topic_id| MetadataRequest {
        topics: Some(vec![MetadataRequestTopic { name: None, topic_id }]),
        ..Default::default()
    };
    let id = id_of(&mut client, "t");
    assert_eq!(metadata(&mut client, 12, &by_id(id)), [("t".to_owned(), 0, 2)]);
    let unknown = ErrorCode::UnknownTopicId.number();
    assert_eq!(metadata(&mut client, 13, &by_id(Uuid([7; 16]))), [("-".to_owned(), unknown, 0)]);
}

/// KIP-599 and KIP-516; a request's order decides nothing.
#[test]
fn names_given_twice_are_refused_together() {
    let broker = TestBroker::start();
    let mut client = broker.connect();
    let topic = |name| CreatableTopic {
        name,
        num_partitions: 1,
        replication_factor: 1,
        ..Default::default()
    };
    let topics = vec![topic("a"), topic("b"), topic("a")];
    let answered = client.ask(5, &CreateTopicsRequest { topics, ..Default::default() });
    let response: CreateTopicsResponse<'_> = answered.read();
    let told: Vec<_> = response.topics.iter().map(|t| (t.name, t.error_code)).collect();
    assert_eq!(told, [("b", 0), ("a", ErrorCode::InvalidRequest.number())]);
    assert_eq!(response.topics[0].num_partitions, 1);
    let configs = response.topics[0].configs.as_ref().unwrap();
    assert!(configs.iter().any(|c| (c.name, c.value) == ("segment.bytes", Some("1073741824"))));

    let id = id_of(&mut client, "b");
    let state = |name, topic_id| DeleteTopicState { name, topic_id };
    let both = vec![state(Some("b"), Uuid::ZERO), state(None, id)];
    // The id counts; the name is refused because it is the same topic.
    let mut codes = delete(&mut client, both);
    codes.sort_unstable();
    assert_eq!(codes, [0, ErrorCode::InvalidRequest.number()]);
}

/// Issue 3: a recreated topic inherits nothing, and its name is free at once.
#[test]
fn a_deleted_topic_is_gone_and_a_recreated_one_is_new() {
    let mut broker = TestBroker::start();
    let mut client = broker.connect();
    create(&mut client, "t", 2, &[("retention.ms", "5")]);
    let first = id_of(&mut client, "t");
    let named = |name| DeleteTopicState { name: Some(name), topic_id: Uuid::ZERO };
    assert_eq!(delete(&mut client, vec![named("t")]), [0]);
    let unknown = ErrorCode::UnknownTopicOrPartition.number();
    assert_eq!(metadata(&mut client, 9, &ask_for(&["t"], false))[0].1, unknown);
    assert_eq!(delete(&mut client, vec![named("t")]), [unknown]);
    assert_eq!(create(&mut client, "t", 1, &[]), 0);
    assert_ne!(id_of(&mut client, "t"), first);
    broker.restart();
    let mut client = broker.connect();
    let after = metadata(&mut client, 9, &ask_for(&["t"], false));
    assert_eq!(after, [("t".to_owned(), 0, 1)]);
    // Files go in the background.
    while left_of(&broker, "t-1").next().is_some() {
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Folders of the data directory whose names begin so.
fn left_of(broker: &TestBroker, start: &'static str) -> impl Iterator<Item = String> + use<> {
    let entries = std::fs::read_dir(broker.data()).expect("its data");
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    names.filter(move |name| name.starts_with(start))
}

#[test]
fn deletion_can_be_switched_off() {
    // Kafka reads such values in any case.
    let broker = TestBroker::with(&[("delete.topic.enable", "False")]);
    let mut client = broker.connect();
    create(&mut client, "t", 1, &[]);
    let named = DeleteTopicState { name: Some("t"), topic_id: Uuid::ZERO };
    let disabled = ErrorCode::TopicDeletionDisabled.number();
    assert_eq!(delete(&mut client, vec![named]), [disabled]);
}

#[test]
fn a_grown_topic_has_its_new_partitions_at_once() {
    let broker = TestBroker::start();
    let mut client = broker.connect();
    create(&mut client, "t", 2, &[]);
    let mut grow = |count, validate_only| {
        let topics = vec![CreatePartitionsTopic { name: "t", count, assignments: None }];
        let request = CreatePartitionsRequest { topics, validate_only, ..Default::default() };
        let answered = client.ask(3, &request);
        let response: CreatePartitionsResponse<'_> = answered.read();
        response.results[0].error_code
    };
    assert_eq!(grow(2, false), ErrorCode::InvalidPartitions.number());
    assert_eq!(grow(5, true), 0);
    assert_eq!(grow(4, false), 0);
    assert_eq!(metadata(&mut client, 9, &ask_for(&["t"], false)), [("t".to_owned(), 0, 4)]);
}

/// KIP-966: pages of so many partitions, each going on where the last one ended.
#[test]
fn topics_are_described_page_by_page() {
    let broker = TestBroker::start();
    let mut client = broker.connect();
    create(&mut client, "a", 3, &[]);
    create(&mut client, "b", 2, &[]);
    let mut at: Option<(String, i32)> = None;
    let mut seen = Vec::new();
    for _ in 0..10 {
        let cursor =
            at.as_ref().map(|(topic, index)| Cursor { topic_name: topic, partition_index: *index });
        let request = DescribeTopicPartitionsRequest {
            response_partition_limit: 2,
            cursor,
            ..Default::default()
        };
        let answered = client.ask(0, &request);
        let page: DescribeTopicPartitionsResponse<'_> = answered.read();
        for topic in &page.topics {
            let name = topic.name.unwrap_or_default();
            seen.extend(topic.partitions.iter().map(|p| format!("{name}-{}", p.partition_index)));
        }
        at = page.next_cursor.map(|cursor| (cursor.topic_name.to_owned(), cursor.partition_index));
        if at.is_none() {
            break;
        }
    }
    assert_eq!(seen, ["a-0", "a-1", "a-2", "b-0", "b-1"]);
}

#[test]
fn a_cursor_outside_the_list_is_refused() {
    let broker = TestBroker::start();
    let mut client = broker.connect();
    create(&mut client, "a", 1, &[]);
    let request = DescribeTopicPartitionsRequest {
        topics: vec![TopicRequest { name: "a" }],
        cursor: Some(Cursor { topic_name: "b", partition_index: 0 }),
        ..Default::default()
    };
    let answered = client.ask(0, &request);
    let page: DescribeTopicPartitionsResponse<'_> = answered.read();
    assert_eq!(page.topics[0].error_code, ErrorCode::InvalidRequest.number());
}

/// A deletion that a crash interrupted goes on, and a log nobody can explain is set aside, not
/// opened and not removed.
#[test]
fn a_start_clears_up_what_a_crash_left() {
    let mut broker = TestBroker::start();
    create(&mut broker.connect(), "t", 1, &[]);
    broker.stop();
    let data = broker.data().to_owned();
    let half_gone = data.join("gone-0.0123456789abcdef0123456789abcdef-delete");
    std::fs::create_dir(&half_gone).expect("a folder");
    std::fs::create_dir(data.join("unknown-0")).expect("a folder");
    std::fs::write(data.join("unknown-0/00000000000000000000.log"), b"precious").expect("a file");
    broker.restart();
    assert_eq!(metadata(&mut broker.connect(), 1, &ask_for(&["t"], true))[0].1, 0);
    let left = || -> Vec<String> {
        let entries = std::fs::read_dir(&data).expect("its data").filter_map(Result::ok);
        entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
    };
    let aside = left().into_iter().find(|name| name.starts_with("unknown-0."));
    let aside = aside.expect("set aside");
    assert!(aside.ends_with("-stray"), "{aside}");
    let kept = std::fs::read(data.join(aside).join("00000000000000000000.log"));
    assert_eq!(kept.expect("still there"), b"precious");
    assert!(!left().iter().any(|name| name == "unknown-0"));
    for _ in 0..100 {
        if !half_gone.exists() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    panic!("{} is still there: {:?}", half_gone.display(), left());
}

/// Nobody leads a partition whose log does not open, as with a broken disk of Kafka's: a client
/// that is told otherwise sends there for ever.
#[test]
fn a_log_that_does_not_open_has_no_leader() {
    let mut broker = TestBroker::start();
    crate::harness::create_topic(&mut broker.connect(), "t", 2);
    broker.stop();
    let folder = broker.data().join("t-1");
    let segment = folder.join("00000000000000000000.log");
    std::fs::remove_file(&segment).expect("a segment");
    std::fs::create_dir(&segment).expect("what is no file");
    broker.restart();
    let mut client = broker.connect();
    let answer = client.ask(9, &ask_for(&["t"], false));
    let response: MetadataResponse<'_> = answer.read();
    let lines: Vec<_> = response.topics[0]
        .partitions
        .iter()
        .map(|part| (part.error_code, part.leader_id, part.offline_replicas.clone()))
        .collect();
    let nobody = ErrorCode::LeaderNotAvailable.number();
    assert_eq!(lines, [(0, 1, vec![]), (nobody, -1, vec![1])]);
    let request = DescribeTopicPartitionsRequest {
        topics: vec![TopicRequest { name: "t" }],
        response_partition_limit: 10,
        ..Default::default()
    };
    let answer = client.ask(0, &request);
    let response: DescribeTopicPartitionsResponse<'_> = answer.read();
    let parts = response.topics[0].partitions.iter();
    let lines: Vec<_> = parts.map(|part| (part.error_code, part.leader_id)).collect();
    assert_eq!(lines, [(0, 1), (nobody, -1)]);
}
