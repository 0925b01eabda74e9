//! Every key that is served, in every version it is served in, with something to say: a reply that
//! its version cannot carry would close the connection (ListOffsets 1-3 once did).

use crate::harness::{Client, TestBroker, batch, create_topic};
use ottla_wire::generated as wire;
use ottla_wire::{APIS, Records, Request};

const TOPIC: &str = "t";
const GROUP: &str = "g";

#[test]
fn topics_and_records() {
    let broker = TestBroker::start();
    let client = &mut broker.connect();
    create_topic(client, TOPIC, 2);
    let bytes: &'static [u8] = batch(&["a", "b"]).leak();
    each(client, |version| produce(version, bytes));
    each(client, fetch);
    each(client, |_| delete_records());
    each(client, |_| offset_for_leader_epoch());
    each(client, |version| wire::MetadataRequest {
        // All topics: an empty list in version 0, none later.
        topics: (version == 0).then(Vec::new),
        ..Default::default()
    });
    each(client, |version| wire::CreateTopicsRequest {
        topics: vec![wire::create_topics_request::CreatableTopic {
            name: format!("new-{version}").leak(),
            num_partitions: 1,
            replication_factor: 1,
            ..Default::default()
        }],
        ..Default::default()
    });
    each(client, delete_topics);
    each(client, |version| wire::CreatePartitionsRequest {
        topics: vec![wire::create_partitions_request::CreatePartitionsTopic {
            name: TOPIC,
            count: i32::from(version) + 3,
            assignments: None,
        }],
        timeout_ms: 10_000,
        validate_only: false,
    });
    each(client, |_| wire::InitProducerIdRequest::default());
}

#[test]
fn groups_and_offsets() {
    let broker = TestBroker::start();
    let client = &mut broker.connect();
    create_topic(client, TOPIC, 1);
    each(client, find_coordinator);
    each(client, offset_commit);
    each(client, offset_fetch);
    each(client, join_group);
    each(client, |_| wire::SyncGroupRequest { group_id: GROUP, ..Default::default() });
    each(client, |_| wire::HeartbeatRequest { group_id: GROUP, ..Default::default() });
    each(client, |version| wire::LeaveGroupRequest {
        group_id: GROUP,
        members: if version < 3 { Vec::new() } else { vec![Default::default()] },
        ..Default::default()
    });
    each(client, |_| wire::DescribeGroupsRequest { groups: vec![GROUP], ..Default::default() });
    each(client, |_| wire::ListGroupsRequest::default());
    each(client, |_| wire::ConsumerMetadataRequest { group_id: GROUP });
    each(client, |_| register_consumer());
    each(client, |_| wire::RegisterHeartbeatRequest { group_id: GROUP, ..Default::default() });
    each(client, |version| wire::ConsumerGroupHeartbeatRequest {
        group_id: "consumers",
        member_id: if version < 1 { "" } else { "member" },
        rebalance_timeout_ms: 1000,
        subscribed_topic_names: Some(vec![TOPIC]),
        subscribed_topic_regex: if version < 1 { None } else { Some("t.*") },
        topic_partitions: Some(Vec::new()),
        ..Default::default()
    });
    each(client, |_| wire::ConsumerGroupDescribeRequest {
        group_ids: vec!["consumers", "nobody"],
        include_authorized_operations: true,
    });
    each(client, |_| wire::OffsetDeleteRequest { group_id: GROUP, ..Default::default() });
    each(client, |_| wire::DeleteGroupsRequest { groups_names: vec![GROUP] });
}

#[test]
fn settings_and_the_cluster() {
    let broker = TestBroker::start();
    let client = &mut broker.connect();
    create_topic(client, TOPIC, 1);
    each(client, |_| describe_configs());
    each(client, |_| alter_configs());
    each(client, |_| incremental_alter_configs());
    each(client, |_| wire::DescribeLogDirsRequest { topics: None });
    each(client, |_| wire::DescribeClusterRequest::default());
    each(client, |_| wire::ElectLeadersRequest { topic_partitions: None, ..Default::default() });
    each(client, |_| wire::ListPartitionReassignmentsRequest::default());
    each(client, |_| wire::ListConfigResourcesRequest::default());
    each(client, |_| wire::UpdateFeaturesRequest::default());
    each(client, |_| wire::DescribeProducersRequest {
        topics: vec![wire::describe_producers_request::TopicRequest {
            name: TOPIC,
            partition_indexes: vec![0],
        }],
    });
    each(client, |_| wire::DescribeTopicPartitionsRequest {
        topics: vec![wire::describe_topic_partitions_request::TopicRequest { name: TOPIC }],
        ..Default::default()
    });
    each(client, |_| wire::DescribeQuorumRequest {
        topics: vec![wire::describe_quorum_request::TopicData {
            topic_name: "__cluster_metadata",
            partitions: vec![Default::default()],
        }],
    });
}

/// Asks in every version and reads each reply to its last byte.
fn each<R: Request<'static>>(client: &mut Client, request: impl Fn(i16) -> R) {
    let api = APIS.iter().find(|api| api.key == R::KEY && api.served).expect("a key we serve");
    for version in api.accepted.iter() {
        let answer = client.ask(version, &request(version));
        let _: R::Response<'_> = answer.read();
    }
}

fn produce(version: i16, bytes: &'static [u8]) -> wire::ProduceRequest<'static> {
    use wire::produce_request::{PartitionProduceData, TopicProduceData};
    let records = Some(Records::Borrowed(bytes));
    let partition_data = vec![PartitionProduceData { index: 0, records }];
    let name = if version < 13 { TOPIC } else { "" };
    let topic_data = vec![TopicProduceData { name, partition_data, ..Default::default() }];
    wire::ProduceRequest { acks: -1, timeout_ms: 10_000, topic_data, ..Default::default() }
}

fn fetch(version: i16) -> wire::FetchRequest<'static> {
    use wire::fetch_request::{FetchPartition, FetchTopic};
    let partition = FetchPartition { partition_max_bytes: 1 << 20, ..Default::default() };
    let topic = if version < 13 { TOPIC } else { "" };
    let topics = vec![FetchTopic { topic, partitions: vec![partition], ..Default::default() }];
    wire::FetchRequest { max_bytes: 1 << 20, topics, ..Default::default() }
}

fn register_consumer() -> wire::RegisterConsumerRequest<'static> {
    wire::RegisterConsumerRequest {
        group_id: "registered",
        session_timeout: 30_000,
        heartbeat_frequency: 3,
        failed_heartbeat_threshold: 3,
        topics: vec![TOPIC],
        ..Default::default()
    }
}

fn delete_records() -> wire::DeleteRecordsRequest<'static> {
    use wire::delete_records_request::{DeleteRecordsPartition, DeleteRecordsTopic};
    let partitions = vec![DeleteRecordsPartition { partition_index: 0, offset: 1 }];
    let topics = vec![DeleteRecordsTopic { name: TOPIC, partitions }];
    wire::DeleteRecordsRequest { topics, timeout_ms: 10_000 }
}

fn delete_topics(version: i16) -> wire::DeleteTopicsRequest<'static> {
    use wire::delete_topics_request::DeleteTopicState;
    let name: &'static str = format!("new-{}", version + 1).leak();
    let mut request = wire::DeleteTopicsRequest { timeout_ms: 10_000, ..Default::default() };
    if version < 6 {
        request.topic_names = vec![name];
    } else {
        request.topics = vec![DeleteTopicState { name: Some(name), ..Default::default() }];
    }
    request
}

fn offset_for_leader_epoch() -> wire::OffsetForLeaderEpochRequest<'static> {
    use wire::offset_for_leader_epoch_request::{OffsetForLeaderPartition, OffsetForLeaderTopic};
    let partitions = vec![OffsetForLeaderPartition::default()];
    let topics = vec![OffsetForLeaderTopic { topic: TOPIC, partitions }];
    wire::OffsetForLeaderEpochRequest { topics, ..Default::default() }
}

fn find_coordinator(version: i16) -> wire::FindCoordinatorRequest<'static> {
    let mut request = wire::FindCoordinatorRequest::default();
    if version < 4 {
        request.key = GROUP;
    } else {
        request.coordinator_keys = vec![GROUP];
    }
    request
}

fn offset_commit(version: i16) -> wire::OffsetCommitRequest<'static> {
    use wire::offset_commit_request::{OffsetCommitRequestPartition, OffsetCommitRequestTopic};
    let partition = OffsetCommitRequestPartition { committed_offset: 1, ..Default::default() };
    let name = if version < 10 { TOPIC } else { "" };
    let partitions = vec![partition];
    let topics = vec![OffsetCommitRequestTopic { name, partitions, ..Default::default() }];
    wire::OffsetCommitRequest { group_id: GROUP, topics, ..Default::default() }
}

fn offset_fetch(version: i16) -> wire::OffsetFetchRequest<'static> {
    use wire::offset_fetch_request::{OffsetFetchRequestGroup, OffsetFetchRequestTopic};
    let mut request = wire::OffsetFetchRequest::default();
    if version < 8 {
        let topic = OffsetFetchRequestTopic { name: TOPIC, partition_indexes: vec![0] };
        request.group_id = GROUP;
        request.topics = Some(vec![topic]);
    } else {
        let group = OffsetFetchRequestGroup { group_id: GROUP, topics: None, ..Default::default() };
        request.groups = vec![group];
    }
    request
}

fn join_group(version: i16) -> wire::JoinGroupRequest<'static> {
    use wire::join_group_request::JoinGroupRequestProtocol;
    let protocol = JoinGroupRequestProtocol { name: "range", ..Default::default() };
    wire::JoinGroupRequest {
        // A group each: nobody waits for the member of another version.
        group_id: format!("joined-{version}").leak(),
        session_timeout_ms: 6_000,
        rebalance_timeout_ms: 6_000,
        protocol_type: "consumer",
        protocols: vec![protocol],
        ..Default::default()
    }
}

/// Kafka's number for a topic among the resources that have settings.
const TOPIC_RESOURCE: i8 = 2;

fn describe_configs() -> wire::DescribeConfigsRequest<'static> {
    let resource = wire::describe_configs_request::DescribeConfigsResource {
        resource_type: TOPIC_RESOURCE,
        resource_name: TOPIC,
        configuration_keys: None,
    };
    wire::DescribeConfigsRequest {
        resources: vec![resource],
        include_synonyms: true,
        ..Default::default()
    }
}

fn alter_configs() -> wire::AlterConfigsRequest<'static> {
    use wire::alter_configs_request::{AlterConfigsResource, AlterableConfig};
    let configs = vec![AlterableConfig { name: "retention.ms", value: Some("1000000") }];
    let (resource_type, resource_name) = (TOPIC_RESOURCE, TOPIC);
    let resources = vec![AlterConfigsResource { resource_type, resource_name, configs }];
    wire::AlterConfigsRequest { resources, ..Default::default() }
}

fn incremental_alter_configs() -> wire::IncrementalAlterConfigsRequest<'static> {
    use wire::incremental_alter_configs_request::{AlterConfigsResource, AlterableConfig};
    let name = "retention.ms";
    let configs = vec![AlterableConfig { name, value: Some("2000000"), ..Default::default() }];
    let (resource_type, resource_name) = (TOPIC_RESOURCE, TOPIC);
    let resources = vec![AlterConfigsResource { resource_type, resource_name, configs }];
    wire::IncrementalAlterConfigsRequest { resources, ..Default::default() }
}
