//! Classic groups over the wire: the path from socket to shard to log and back. The rules of
//! groups have their tests in the group crate.

use crate::harness::{Client, TestBroker, create_topic};
use ottla_wire::generated::find_coordinator_response::Coordinator;
use ottla_wire::generated::join_group_request::JoinGroupRequestProtocol;
use ottla_wire::generated::offset_commit_request::{
    OffsetCommitRequestPartition, OffsetCommitRequestTopic,
};
use ottla_wire::generated::offset_fetch_request::{
    OffsetFetchRequestGroup, OffsetFetchRequestTopics,
};
use ottla_wire::generated::sync_group_request::SyncGroupRequestAssignment;
use ottla_wire::generated::*;
use ottla_wire::{ApiKey, ErrorCode};

pub(crate) fn find(client: &mut Client, group: &str) {
    let keys = vec![group];
    let request = FindCoordinatorRequest { coordinator_keys: keys, ..Default::default() };
    let answer = client.ask(4, &request);
    let response: FindCoordinatorResponse<'_> = answer.read();
    let Coordinator { error_code, node_id, .. } = response.coordinators[0];
    assert_eq!((error_code, node_id), (0, 1));
}

pub(crate) fn join<'a>(group: &'a str, member: &'a str) -> JoinGroupRequest<'a> {
    JoinGroupRequest {
        group_id: group,
        member_id: member,
        session_timeout_ms: 30_000,
        rebalance_timeout_ms: 30_000,
        protocol_type: "consumer",
        protocols: vec![JoinGroupRequestProtocol { name: "range", metadata: b"topics" }],
        ..Default::default()
    }
}

/// Joins as a new member; its id and generation.
pub(crate) fn joined(client: &mut Client, group: &str) -> (String, i32) {
    let answer = client.ask(5, &join(group, ""));
    let response: JoinGroupResponse<'_> = answer.read();
    assert_eq!(response.error_code, ErrorCode::MemberIdRequired.number(), "KIP-394");
    let member = response.member_id.to_owned();
    let answer = client.ask(5, &join(group, &member));
    let response: JoinGroupResponse<'_> = answer.read();
    assert_eq!((response.error_code, response.leader), (0, member.as_str()));
    let generation = response.generation_id;
    let assignments =
        vec![SyncGroupRequestAssignment { member_id: &member, assignment: b"all of it" }];
    let request = SyncGroupRequest {
        group_id: group,
        generation_id: generation,
        member_id: &member,
        assignments,
        ..Default::default()
    };
    let answer = client.ask(3, &request);
    let response: SyncGroupResponse<'_> = answer.read();
    assert_eq!((response.error_code, response.assignment), (0, &b"all of it"[..]));
    (member, generation)
}

fn heartbeat(client: &mut Client, group: &str, member: &str, generation: i32) -> ErrorCode {
    let request = HeartbeatRequest {
        group_id: group,
        generation_id: generation,
        member_id: member,
        ..Default::default()
    };
    let answer = client.ask(3, &request);
    let response: HeartbeatResponse = answer.read();
    ErrorCode::from_number(response.error_code).expect("a code")
}

pub(crate) fn commit(group: &str, offset: i64) -> OffsetCommitRequest<'_> {
    let partition = OffsetCommitRequestPartition {
        partition_index: 0,
        committed_offset: offset,
        committed_leader_epoch: -1,
        committed_metadata: Some("note"),
    };
    let topic =
        OffsetCommitRequestTopic { name: "t", partitions: vec![partition], ..Default::default() };
    OffsetCommitRequest {
        group_id: group,
        generation_id_or_member_epoch: -1,
        topics: vec![topic],
        ..Default::default()
    }
}

fn committed(client: &mut Client, group: &str) -> Result<i64, ErrorCode> {
    let topic =
        OffsetFetchRequestTopics { name: "t", partition_indexes: vec![0], ..Default::default() };
    let group = OffsetFetchRequestGroup {
        group_id: group,
        topics: Some(vec![topic]),
        ..Default::default()
    };
    let request = OffsetFetchRequest { groups: vec![group], ..Default::default() };
    let answer = client.ask(8, &request);
    let response: OffsetFetchResponse<'_> = answer.read();
    let group = &response.groups[0];
    match ErrorCode::from_number(group.error_code).expect("a code") {
        ErrorCode::None => Ok(group.topics[0].partitions[0].committed_offset),
        code => Err(code),
    }
}

/// As a client does: on this code it asks again, and on no other.
fn committed_once_loaded(client: &mut Client, group: &str) -> i64 {
    loop {
        match committed(client, group) {
            Ok(offset) => return offset,
            Err(ErrorCode::CoordinatorLoadInProgress) => std::thread::yield_now(),
            Err(code) => panic!("{code}"),
        }
    }
}

/// As Kafka: what is named twice is answered twice, in the request's order.
#[test]
fn offsets_of_partitions_named_twice_are_told_twice() {
    let broker = TestBroker::start();
    let mut client = broker.connect();
    create_topic(&mut client, "t", 1);
    find(&mut client, "g");
    assert_eq!(committed_once_loaded(&mut client, "g"), -1);
    let answer = client.ask(9, &commit("g", 5));
    let _: OffsetCommitResponse<'_> = answer.read();
    let topic = |name, partition_indexes| OffsetFetchRequestTopics {
        name,
        partition_indexes,
        ..Default::default()
    };
    let topics = vec![topic("t", vec![0, 3, 0]), topic("u", vec![0]), topic("t", vec![0])];
    let group = || OffsetFetchRequestGroup {
        group_id: "g",
        topics: Some(topics.clone()),
        ..Default::default()
    };
    let request = OffsetFetchRequest { groups: vec![group(), group()], ..Default::default() };
    let answer = client.ask(8, &request);
    let response: OffsetFetchResponse<'_> = answer.read();
    assert_eq!(response.groups.len(), 2);
    for group in &response.groups {
        let told = group.topics.iter().map(|topic| {
            let offsets = topic.partitions.iter();
            let offsets = offsets.map(|line| (line.partition_index, line.committed_offset));
            (topic.name, offsets.collect::<Vec<_>>())
        });
        let expected =
            [("t", vec![(0, 5), (3, -1), (0, 5)]), ("u", vec![(0, -1)]), ("t", vec![(0, 5)])];
        assert_eq!(told.collect::<Vec<_>>(), expected);
    }
}

#[test]
fn a_member_joins_beats_and_goes_on_after_a_restart_of_the_broker() {
    let mut broker = TestBroker::start();
    let mut client = broker.connect();
    create_topic(&mut client, "t", 1);
    find(&mut client, "g");
    let (member, generation) = joined(&mut client, "g");
    assert_eq!(heartbeat(&mut client, "g", &member, generation), ErrorCode::None);
    assert_eq!(heartbeat(&mut client, "g", &member, generation + 1), ErrorCode::IllegalGeneration);
    assert_eq!(heartbeat(&mut client, "g", "nobody", generation), ErrorCode::UnknownMemberId);
    broker.restart();
    let mut client = broker.connect();
    committed_once_loaded(&mut client, "g");
    assert_eq!(heartbeat(&mut client, "g", &member, generation), ErrorCode::None);
}

#[test]
fn commits_survive_a_restart_and_are_never_absent_while_it_loads() {
    let mut broker = TestBroker::start();
    let mut client = broker.connect();
    create_topic(&mut client, "t", 1);
    find(&mut client, "g");
    for offset in 1..=20 {
        client.send(7, &commit("g", offset));
    }
    for _ in 1..=20 {
        let answer = client.receive(ApiKey::OffsetCommit, 7);
        let response: OffsetCommitResponse<'_> = answer.read();
        assert_eq!(response.topics[0].partitions[0].error_code, 0);
    }
    assert_eq!(committed(&mut client, "g"), Ok(20));
    assert_eq!(committed(&mut client, "other"), Ok(-1));
    broker.restart();
    assert_eq!(committed_once_loaded(&mut broker.connect(), "g"), 20);
}

#[test]
fn a_commit_for_an_unknown_topic_is_refused_for_it_alone() {
    let broker = TestBroker::start();
    let mut client = broker.connect();
    create_topic(&mut client, "t", 1);
    find(&mut client, "g");
    let mut request = commit("g", 5);
    request.topics.push(OffsetCommitRequestTopic { name: "nosuch", ..request.topics[0].clone() });
    let answer = client.ask(7, &request);
    let response: OffsetCommitResponse<'_> = answer.read();
    let codes: Vec<_> =
        response.topics.iter().map(|topic| topic.partitions[0].error_code).collect();
    assert_eq!(codes, [0, ErrorCode::UnknownTopicOrPartition.number()]);
    assert_eq!(committed(&mut client, "g"), Ok(5));
}

/// A join that waits for others is answered at shutdown, so that its client looks elsewhere.
#[test]
fn a_shutdown_answers_parked_joins() {
    let mut broker = TestBroker::with(&[("group.initial.rebalance.delay.ms", "600000")]);
    let mut client = broker.connect();
    find(&mut client, "g");
    client.send(2, &join("g", ""));
    // Its own answer cannot be waited for; that the group exists shows that it is parked.
    let mut other = broker.connect();
    loop {
        let request = DescribeGroupsRequest { groups: vec!["g"], ..Default::default() };
        let answer = other.ask(4, &request);
        let response: DescribeGroupsResponse<'_> = answer.read();
        if response.groups[0].group_state == "PreparingRebalance" {
            break;
        }
    }
    assert!(broker.stop(), "in time");
    let answer = client.receive(ApiKey::JoinGroup, 2);
    let response: JoinGroupResponse<'_> = answer.read();
    assert_eq!(response.error_code, ErrorCode::NotCoordinator.number());
}

/// A transactional producer looks for its coordinator first, and fails there.
#[test]
fn a_transaction_coordinator_is_refused_for_good() {
    let broker = TestBroker::start();
    let request =
        FindCoordinatorRequest { key_type: 1, coordinator_keys: vec!["tx"], ..Default::default() };
    let answer = broker.connect().ask(4, &request);
    let response: FindCoordinatorResponse<'_> = answer.read();
    let wanted = ErrorCode::TransactionalIdAuthorizationFailed.number();
    assert_eq!(response.coordinators[0].error_code, wanted);
}

#[test]
fn groups_are_listed_described_and_deleted() {
    let broker = TestBroker::start();
    let mut client = broker.connect();
    create_topic(&mut client, "t", 1);
    find(&mut client, "g");
    client.ask(7, &commit("g", 5));
    let answer = client.ask(4, &ListGroupsRequest::default());
    let response: ListGroupsResponse<'_> = answer.read();
    assert_eq!(response.groups.len(), 1);
    assert_eq!((response.groups[0].group_id, response.groups[0].group_state), ("g", "Empty"));
    let repeated = DescribeGroupsRequest { groups: vec!["g"; 1_000], ..Default::default() };
    let answer = client.ask(5, &repeated);
    let response: DescribeGroupsResponse<'_> = answer.read();
    assert_eq!(response.groups.len(), 1, "an answer does not outgrow its question");
    let request = DeleteGroupsRequest { groups_names: vec!["g", "nosuch", "g"] };
    let answer = client.ask(2, &request);
    let response: DeleteGroupsResponse<'_> = answer.read();
    let codes: Vec<_> = response.results.iter().map(|result| result.error_code).collect();
    assert_eq!(codes, [0, ErrorCode::GroupIdNotFound.number()]);
    assert_eq!(committed(&mut client, "g"), Ok(-1));
}
