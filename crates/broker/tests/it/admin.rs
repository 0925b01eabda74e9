//! The other administrative keys, as a single broker answers them.

use crate::harness::{Client, TestBroker, batch};
use ottla_wire::generated::create_topics_request::{CreatableTopic, CreatableTopicConfig};
use ottla_wire::generated::delete_records_request::{DeleteRecordsPartition, DeleteRecordsTopic};
use ottla_wire::generated::describe_log_dirs_request::DescribableLogDirTopic;
use ottla_wire::generated::describe_producers_request::TopicRequest;
use ottla_wire::generated::describe_quorum_request::{PartitionData, TopicData};
use ottla_wire::generated::elect_leaders_request::TopicPartitions;
use ottla_wire::generated::list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic};
use ottla_wire::generated::produce_request::{PartitionProduceData, TopicProduceData};
use ottla_wire::generated::update_features_request::FeatureUpdateKey;
use ottla_wire::generated::*;
use ottla_wire::{ErrorCode, Records};

fn create(client: &mut Client, name: &str, configs: Vec<CreatableTopicConfig<'_>>) {
    let topic = CreatableTopic {
        name,
        num_partitions: 2,
        replication_factor: 1,
        configs,
        ..Default::default()
    };
    let answered =
        client.ask(7, &CreateTopicsRequest { topics: vec![topic], ..Default::default() });
    let response: CreateTopicsResponse<'_> = answered.read();
    assert_eq!(response.topics[0].error_code, 0);
}

/// KIP-700, KIP-919.
#[test]
fn the_cluster_is_described_for_brokers_alone() {
    let broker = TestBroker::start();
    let mut client = broker.connect();
    let mut describe = |version, endpoint_type| {
        let request = DescribeClusterRequest {
            endpoint_type,
            include_cluster_authorized_operations: true,
            ..Default::default()
        };
        let answered = client.ask(version, &request);
        let response: DescribeClusterResponse<'_> = answered.read();
        let brokers = response.brokers.iter().map(|broker| broker.broker_id).collect::<Vec<_>>();
        (response.error_code, brokers, response.controller_id)
    };
    for version in 0..=2 {
        assert_eq!(describe(version, 1), (0, vec![1], 1));
    }
    assert_eq!(describe(1, 2).0, ErrorCode::MismatchedEndpointType.number());
    assert_eq!(describe(1, 3).0, ErrorCode::UnsupportedEndpointType.number());
}

/// The operations a client may do are Kafka's own bits for a cluster without an authorizer.
#[test]
fn without_an_authorizer_everything_is_allowed() {
    let broker = TestBroker::start();
    let mut client = broker.connect();
    create(&mut client, "t", Vec::new());
    let request = MetadataRequest {
        topics: None,
        include_cluster_authorized_operations: true,
        include_topic_authorized_operations: true,
        ..Default::default()
    };
    let answered = client.ask(8, &request);
    let response: MetadataResponse<'_> = answered.read();
    assert_eq!(response.cluster_authorized_operations, 8096);
    assert_eq!(response.topics[0].topic_authorized_operations, 3576);
}

/// KIP-107 where there is nothing to delete, and where nothing may be.
#[test]
fn records_are_deleted_within_bounds() {
    let broker = TestBroker::start();
    let mut client = broker.connect();
    create(&mut client, "t", Vec::new());
    let compact = CreatableTopicConfig { name: "cleanup.policy", value: Some("compact") };
    create(&mut client, "c", vec![compact]);
    let mut delete = |name, partition_index, offset| {
        let partitions = vec![DeleteRecordsPartition { partition_index, offset }];
        let topics = vec![DeleteRecordsTopic { name, partitions }];
        let answered = client.ask(2, &DeleteRecordsRequest { topics, ..Default::default() });
        let response: DeleteRecordsResponse<'_> = answered.read();
        let line = &response.topics[0].partitions[0];
        (line.error_code, line.low_watermark)
    };
    assert_eq!(delete("t", 0, -1), (0, 0));
    assert_eq!(delete("t", 0, 5), (ErrorCode::OffsetOutOfRange.number(), -1));
    assert_eq!(delete("t", 0, -2), (ErrorCode::OffsetOutOfRange.number(), -1));
    assert_eq!(delete("t", 2, -1), (ErrorCode::UnknownTopicOrPartition.number(), -1));
    assert_eq!(delete("u", 0, -1), (ErrorCode::UnknownTopicOrPartition.number(), -1));
    assert_eq!(delete("c", 0, -1), (ErrorCode::PolicyViolation.number(), -1));
    let internal = delete("__consumer_offsets", 0, -1);
    assert_eq!(internal, (ErrorCode::InvalidTopicException.number(), -1));
}

/// KIP-664. Kafka tells of a partition as often as it is named, and leaves out a topic that names
/// none; here each is told of once.
#[test]
fn producers_of_a_partition_named_twice_are_told_of_once() {
    let broker = TestBroker::start();
    let mut client = broker.connect();
    create(&mut client, "t", Vec::new());
    let topic = |name, partition_indexes| TopicRequest { name, partition_indexes };
    let topics = vec![
        topic("t", vec![1, 0, 1]),
        topic("u", vec![]),
        topic("t", vec![0]),
        topic("t", vec![7, 7]),
    ];
    let answered = client.ask(0, &DescribeProducersRequest { topics });
    let response: DescribeProducersResponse<'_> = answered.read();
    let unknown = ErrorCode::UnknownTopicOrPartition.number();
    let told = response.topics.iter().map(|topic| {
        let lines = topic.partitions.iter().map(|line| (line.partition_index, line.error_code));
        (topic.name, lines.collect::<Vec<_>>())
    });
    let expected = [("t", vec![(1, 0), (0, 0)]), ("t", vec![(7, unknown)])];
    assert_eq!(told.collect::<Vec<_>>(), expected);
}

/// KIP-113, KIP-827.
#[test]
fn log_dirs_tell_partitions_and_room() {
    let broker = TestBroker::start();
    let mut client = broker.connect();
    create(&mut client, "t", Vec::new());
    create(&mut client, "u", Vec::new());
    let mut describe = |topics| {
        let answered = client.ask(4, &DescribeLogDirsRequest { topics });
        let response: DescribeLogDirsResponse<'_> = answered.read();
        let dir = &response.results[0];
        assert!(dir.total_bytes >= dir.usable_bytes && dir.usable_bytes > 0);
        let topics = dir.topics.iter();
        topics.map(|topic| (topic.name.to_owned(), topic.partitions.len())).collect::<Vec<_>>()
    };
    assert_eq!(describe(None), [("t".to_owned(), 2), ("u".to_owned(), 2)]);
    let one = DescribableLogDirTopic { topic: "u", partitions: vec![1, 9] };
    assert_eq!(describe(Some(vec![one])), [("u".to_owned(), 1)]);
}

/// KIP-183, KIP-460.
#[test]
fn there_is_never_a_leader_to_elect() {
    let broker = TestBroker::start();
    let mut client = broker.connect();
    create(&mut client, "t", Vec::new());
    let mut elect = |election_type, topic_partitions| {
        let request = ElectLeadersRequest { election_type, topic_partitions, ..Default::default() };
        let answered = client.ask(2, &request);
        let response: ElectLeadersResponse<'_> = answered.read();
        let results = response.replica_election_results.iter();
        let codes = results.flat_map(|topic| topic.partition_result.iter().map(|p| p.error_code));
        (response.error_code, codes.collect::<Vec<_>>())
    };
    let asked = || Some(vec![TopicPartitions { topic: "t", partitions: vec![0, 7] }]);
    let needless = ErrorCode::ElectionNotNeeded.number();
    let unknown = ErrorCode::UnknownTopicOrPartition.number();
    assert_eq!(elect(0, asked()), (0, vec![needless, unknown]));
    assert_eq!(elect(1, asked()), (0, vec![needless, unknown]));
    assert_eq!(elect(0, None), (0, Vec::new()));
    assert_eq!(elect(5, asked()).0, ErrorCode::InvalidRequest.number());
}

/// KIP-455.
#[test]
fn nothing_is_ever_reassigned() {
    let broker = TestBroker::start();
    let answered = broker.connect().ask(0, &ListPartitionReassignmentsRequest::default());
    let response: ListPartitionReassignmentsResponse<'_> = answered.read();
    assert_eq!((response.error_code, response.topics.len()), (0, 0));
}

/// KIP-595, KIP-853: the metadata of one broker is told as a quorum of one.
#[test]
fn the_quorum_is_the_broker_itself() {
    let broker = TestBroker::start();
    let mut client = broker.connect();
    for version in 0..=2 {
        let asked = |topic_name| TopicData {
            topic_name,
            partitions: vec![PartitionData { partition_index: 0 }],
        };
        let topics = vec![asked("__cluster_metadata"), asked("t")];
        let answered = client.ask(version, &DescribeQuorumRequest { topics });
        let response: DescribeQuorumResponse<'_> = answered.read();
        let quorum = &response.topics[0].partitions[0];
        assert_eq!((quorum.error_code, quorum.leader_id), (0, 1));
        assert_eq!(quorum.current_voters[0].log_end_offset, quorum.high_watermark);
        let other = &response.topics[1].partitions[0];
        assert_eq!(other.error_code, ErrorCode::UnknownTopicOrPartition.number());
        assert_eq!(response.nodes.len(), usize::from(version >= 2));
    }
}

/// KIP-584: no feature is known, so none can be set.
#[test]
fn unknown_features_are_refused_in_every_version() {
    let broker = TestBroker::start();
    let mut client = broker.connect();
    for version in 0..=2 {
        let update = FeatureUpdateKey { feature: "x", max_version_level: 1, ..Default::default() };
        let request = UpdateFeaturesRequest { feature_updates: vec![update], ..Default::default() };
        let answered = client.ask(version, &request);
        let response: UpdateFeaturesResponse<'_> = answered.read();
        assert_eq!(response.error_code, ErrorCode::InvalidUpdateVersion.number());
        assert_eq!(response.results.len(), usize::from(version < 2));
    }
}

/// KIP-848, KIP-584: the consumer protocol is announced as Kafka announces it, and can neither be
/// raised nor switched off.
#[test]
fn the_consumer_protocol_is_a_feature_that_stays() {
    let broker = TestBroker::start();
    let mut client = broker.connect();
    let hello = ApiVersionsRequest {
        client_software_name: "test",
        client_software_version: "1",
        ..Default::default()
    };
    let answered = client.ask(4, &hello);
    let response: ApiVersionsResponse<'_> = answered.read();
    let finalized = &response.finalized_features[0];
    assert_eq!((finalized.name, finalized.max_version_level), ("group.version", 1));
    assert_eq!(response.finalized_features_epoch, 0);
    assert_eq!(response.supported_features[0].max_version, 1);
    for (level, code) in [(1, 0), (0, 95), (2, 95)] {
        let update = FeatureUpdateKey {
            feature: "group.version",
            max_version_level: level,
            upgrade_type: 3,
            ..Default::default()
        };
        let request = UpdateFeaturesRequest { feature_updates: vec![update], ..Default::default() };
        let answered = client.ask(1, &request);
        let response: UpdateFeaturesResponse<'_> = answered.read();
        assert_eq!(response.error_code, code, "{level}");
    }
}

/// KIP-107: what was deleted stays deleted, also over a restart.
#[test]
fn deleted_records_do_not_come_back() {
    let mut broker = TestBroker::start();
    let mut client = broker.connect();
    create(&mut client, "t", Vec::new());
    let bytes = batch(&["a", "b", "c"]);
    for _ in 0..2 {
        let records = Some(Records::Borrowed(&bytes));
        let partition_data = vec![PartitionProduceData { index: 1, records }];
        let data = TopicProduceData { name: "t", partition_data, ..Default::default() };
        let request = ProduceRequest { acks: -1, topic_data: vec![data], ..Default::default() };
        let answered = client.ask(9, &request);
        let response: ProduceResponse<'_> = answered.read();
        assert_eq!(response.responses[0].partition_responses[0].error_code, 0);
    }
    let partitions = vec![DeleteRecordsPartition { partition_index: 1, offset: 4 }];
    let topics = vec![DeleteRecordsTopic { name: "t", partitions }];
    let answered = client.ask(2, &DeleteRecordsRequest { topics, ..Default::default() });
    let response: DeleteRecordsResponse<'_> = answered.read();
    let line = &response.topics[0].partitions[0];
    assert_eq!((line.error_code, line.low_watermark), (0, 4));
    for _ in 0..2 {
        let partition = ListOffsetsPartition {
            partition_index: 1,
            current_leader_epoch: -1,
            timestamp: EARLIEST,
        };
        let topics = vec![ListOffsetsTopic { name: "t", partitions: vec![partition] }];
        let request = ListOffsetsRequest { replica_id: -1, topics, ..Default::default() };
        let answered = broker.connect().ask(5, &request);
        let response: ListOffsetsResponse<'_> = answered.read();
        assert_eq!(response.topics[0].partitions[0].offset, 4);
        broker.restart();
    }
}

const EARLIEST: i64 = -2;
