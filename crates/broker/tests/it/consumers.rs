//! Groups of the consumer protocol (KIP-848) over the wire: the path from socket to shard to log
//! and back, and what is shown of them over HTTP. The rules have their tests in the group crate.

use crate::groups::{find, join, joined};
use crate::harness::{Answered, Client, TestBroker, create_topic};
use crate::http::get;
use ottla_wire::ErrorCode;
use ottla_wire::generated::consumer_group_heartbeat_request::TopicPartitions;
use ottla_wire::generated::incremental_alter_configs_request::{
    AlterConfigsResource, AlterableConfig,
};
use ottla_wire::generated::join_group_request::JoinGroupRequestProtocol;
use ottla_wire::generated::offset_commit_request::{
    OffsetCommitRequestPartition, OffsetCommitRequestTopic,
};
use ottla_wire::generated::*;
use std::time::Duration;

/// A member as a client of the protocol keeps it.
pub(crate) struct Member {
    id: &'static str,
    epoch: i32,
    owned: Vec<TopicPartitions>,
}

impl Member {
    pub(crate) fn new(id: &'static str) -> Self {
        Self { id, epoch: 0, owned: Vec::new() }
    }

    /// Everything a member may say, which is right at any time.
    pub(crate) fn says(&self) -> ConsumerGroupHeartbeatRequest<'static> {
        ConsumerGroupHeartbeatRequest {
            group_id: "billing",
            member_id: self.id,
            member_epoch: self.epoch,
            rebalance_timeout_ms: 60_000,
            subscribed_topic_names: Some(vec!["orders"]),
            topic_partitions: Some(self.owned.clone()),
            ..Default::default()
        }
    }

    /// Beats, once the coordinator has read its log, and does as it is told.
    pub(crate) fn beat(&mut self, client: &mut Client) -> i16 {
        let mut answer = client.ask(1, &self.says());
        while answer.read::<ConsumerGroupHeartbeatResponse<'_>>().error_code == LOADING {
            std::thread::sleep(Duration::from_millis(5));
            answer = client.ask(1, &self.says());
        }
        self.take(&answer)
    }

    /// Does as an answer tells it.
    pub(crate) fn take(&mut self, answer: &Answered) -> i16 {
        let response: ConsumerGroupHeartbeatResponse<'_> = answer.read();
        if response.error_code == 0 {
            self.epoch = response.member_epoch;
            self.owned = response.assignment.map_or_else(
                || std::mem::take(&mut self.owned),
                |told| {
                    let told = told.topic_partitions.into_iter();
                    told.map(|topic| TopicPartitions {
                        topic_id: topic.topic_id,
                        partitions: topic.partitions,
                    })
                    .collect()
                },
            );
        }
        response.error_code
    }

    pub(crate) fn partitions(&self) -> Vec<i32> {
        self.owned.iter().flat_map(|topic| topic.partitions.clone()).collect()
    }
}

const LOADING: i16 = ErrorCode::CoordinatorLoadInProgress.number();

/// Both beat until they own what is to be theirs, in the same epoch.
fn settle(client: &mut Client, members: &mut [Member], each: usize) {
    for _ in 0..500 {
        for member in members.iter_mut() {
            assert_eq!(member.beat(client), 0, "{}", member.id);
        }
        let mut all: Vec<i32> = members.iter().flat_map(Member::partitions).collect();
        all.sort_unstable();
        assert!(all.is_sorted_by(|a, b| a < b), "two own the same: {all:?}");
        let epoch = members[0].epoch;
        if members.iter().all(|it| it.partitions().len() == each && it.epoch == epoch) {
            return;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("{:?}", members.iter().map(Member::partitions).collect::<Vec<_>>());
}

fn commit(client: &mut Client, member: &str, epoch: i32) -> i16 {
    let partition = OffsetCommitRequestPartition { committed_offset: 7, ..Default::default() };
    let topic = OffsetCommitRequestTopic {
        name: "orders",
        partitions: vec![partition],
        ..Default::default()
    };
    let request = OffsetCommitRequest {
        group_id: "billing",
        generation_id_or_member_epoch: epoch,
        member_id: member,
        topics: vec![topic],
        ..Default::default()
    };
    let answer = client.ask(9, &request);
    let response: OffsetCommitResponse<'_> = answer.read();
    response.topics[0].partitions[0].error_code
}

/// KIP-848: two share; what they were told and committed outlives a restart, and nobody moves.
#[test]
fn members_share_and_stay_what_they_are_over_a_restart() {
    let mut broker = TestBroker::with(&[("http.listen", "127.0.0.1:0")]);
    let mut client = broker.connect();
    create_topic(&mut client, "orders", 4);
    find(&mut client, "billing");
    let mut members = [Member::new("one"), Member::new("two")];
    settle(&mut client, &mut members[..1], 4);
    settle(&mut client, &mut members, 2);
    let (epoch, owned) = (members[0].epoch, members[0].partitions());
    assert_eq!(commit(&mut client, "one", epoch), 0);
    assert_eq!(commit(&mut client, "one", epoch + 1), ErrorCode::StaleMemberEpoch.number());
    assert_eq!(commit(&mut client, "three", epoch), ErrorCode::UnknownMemberId.number());

    broker.restart();
    let mut client = broker.connect();
    find(&mut client, "billing");
    settle(&mut client, &mut members, 2);
    assert_eq!((members[0].epoch, members[0].partitions()), (epoch, owned));
    let describe =
        ConsumerGroupDescribeRequest { group_ids: vec!["billing"; 2], ..Default::default() };
    let answer = client.ask(1, &describe);
    let response: ConsumerGroupDescribeResponse<'_> = answer.read();
    let [group] = &*response.groups else { panic!("named twice, answered once: {response:?}") };
    assert_eq!((group.error_code, group.group_state), (0, "Stable"));
    assert_eq!((group.group_epoch, group.assignment_epoch), (epoch, epoch));
    let ids: Vec<_> = group.members.iter().map(|member| member.member_id).collect();
    assert_eq!(ids, ["one", "two"]);
    assert_eq!(group.members[0].assignment, group.members[0].target_assignment);

    members[1].epoch = -1;
    assert_eq!(members[1].beat(&mut client), 0, "it leaves");
    settle(&mut client, &mut members[..1], 4);
}

/// KIP-848, "Request Validation": what makes no sense is refused, in the protocol's words.
#[test]
fn what_makes_no_sense_is_refused() {
    let broker = TestBroker::start();
    let mut client = broker.connect();
    find(&mut client, "billing");
    let joins = || Member::new("one").says();
    let refused = [
        (
            ErrorCode::InvalidRegularExpression,
            ConsumerGroupHeartbeatRequest {
                subscribed_topic_names: None,
                subscribed_topic_regex: Some("a)|(b"),
                ..joins()
            },
        ),
        (
            ErrorCode::UnsupportedAssignor,
            ConsumerGroupHeartbeatRequest { server_assignor: Some("lucky"), ..joins() },
        ),
        (
            ErrorCode::InvalidRequest,
            ConsumerGroupHeartbeatRequest { rebalance_timeout_ms: -1, ..joins() },
        ),
        (ErrorCode::UnknownMemberId, ConsumerGroupHeartbeatRequest { member_epoch: 3, ..joins() }),
    ];
    for (code, request) in refused {
        let answer = client.ask(1, &request);
        let response: ConsumerGroupHeartbeatResponse<'_> = answer.read();
        assert_eq!(response.error_code, code.number(), "{request:?}");
    }
}

/// Issue 4: a group, whom it waits for, and why it rebalanced, over HTTP.
#[test]
fn groups_and_their_journals_are_shown_over_http() {
    let broker = TestBroker::with(&[("http.listen", "127.0.0.1:0")]);
    let mut client = broker.connect();
    create_topic(&mut client, "orders", 4);
    find(&mut client, "billing");
    let mut members = [Member::new("one"), Member::new("two")];
    settle(&mut client, &mut members[..1], 4);
    settle(&mut client, &mut members, 2);

    let shown = |path: &str, expected: &[&str]| {
        let (status, text) = get(&broker, path);
        assert_eq!(status, 200, "{text}");
        assert!(text.contains("content-type: application/json"), "{text}");
        for expected in expected {
            assert!(text.contains(expected), "no {expected} in {text}");
        }
    };
    let state = ["\"group\": \"billing\"", "\"type\": \"consumer\"", "\"state\": \"Stable\""];
    shown("/groups", &state);
    shown("/groups/b%69lling", &state);
    shown("/groups/billing", &["\"members\": 2", "\"blocking\": []", "\"last_rebalance\": {"]);
    let causes = ["\"cause\": \"Joined\"", "\"id\": \"two\"", "\"outcome\": \"Assigned\""];
    shown("/groups/billing/journal", &causes);
    shown("/groups/billing/journal", &["\"from\": \"one\"", "\"to\": \"two\"", "\"moved\": 2"]);
    for absent in ["/groups/nosuch", "/groups/billing/nosuch", "/groups/%zz"] {
        assert_eq!(get(&broker, absent).0, 404, "{absent}");
    }
}

/// `ConsumerProtocolSubscription` version 1: wants `orders`, owns nothing.
const SUBSCRIPTION: &[u8] = b"\0\x01\0\0\0\x01\0\x06orders\xff\xff\xff\xff\0\0\0\0";

/// KIP-848, "Online Migration": a classic member joins a group of the consumer protocol, is told
/// its part by the server, and both are described as what they are.
#[test]
fn a_classic_member_shares_a_group_with_one_of_the_consumer_protocol() {
    let broker = TestBroker::with(&[("http.listen", "127.0.0.1:0")]);
    let mut client = broker.connect();
    create_topic(&mut client, "orders", 4);
    find(&mut client, "billing");
    let mut members = [Member::new("one")];
    settle(&mut client, &mut members, 4);
    let protocols = vec![JoinGroupRequestProtocol { name: "range", metadata: SUBSCRIPTION }];
    let first = JoinGroupRequest { protocols, ..join("billing", "") };
    let answer = client.ask(5, &first);
    let id = answer.read::<JoinGroupResponse<'_>>().member_id.to_owned();
    let again = JoinGroupRequest { member_id: &id, ..first };
    let mut part = Vec::new();
    // The assignment's version, one topic, its name, and two partitions of four bytes each.
    while part.len() < 2 + 4 + 8 + 4 + 8 {
        assert_eq!(members[0].beat(&mut client), 0);
        let answer = client.ask(5, &again);
        let joined: JoinGroupResponse<'_> = answer.read();
        assert_eq!((joined.error_code, joined.leader), (0, ""), "nobody is told that it leads");
        assert!(joined.members.is_empty());
        let sync = SyncGroupRequest {
            group_id: "billing",
            generation_id: joined.generation_id,
            member_id: &id,
            ..Default::default()
        };
        part = client.ask(3, &sync).read::<SyncGroupResponse<'_>>().assignment.to_vec();
        std::thread::sleep(Duration::from_millis(5));
    }
    let describe =
        ConsumerGroupDescribeRequest { group_ids: vec!["billing"], ..Default::default() };
    let answer = client.ask(1, &describe);
    let response: ConsumerGroupDescribeResponse<'_> = answer.read();
    let group = &response.groups[0];
    let kind = |id: &str| group.members.iter().find(|m| m.member_id == id).map(|m| m.member_type);
    assert_eq!((kind("one"), kind(&id)), (Some(1), Some(0)));
    let (_, text) = get(&broker, "/groups/billing");
    assert!(text.contains("\"to\": \"classic\"") && text.contains("\"obstacles\": []"), "{text}");
}

/// `group.consumer.migration.policy`: what it forbids does not happen, and the group says why.
#[test]
fn a_policy_keeps_a_classic_group_as_it_is() {
    let broker = TestBroker::with(&[
        ("http.listen", "127.0.0.1:0"),
        ("group.consumer.migration.policy", "downgrade"),
        ("group.initial.rebalance.delay.ms", "0"),
    ]);
    let mut client = broker.connect();
    create_topic(&mut client, "orders", 4);
    find(&mut client, "billing");
    joined(&mut client, "billing");
    assert_eq!(Member::new("one").beat(&mut client), ErrorCode::GroupIdNotFound.number());
    let (_, text) = get(&broker, "/groups/billing");
    assert!(text.contains("\"to\": \"consumer\""), "{text}");
    assert!(text.contains("group.consumer.migration.policy is downgrade"), "{text}");
    let answer = client.ask(0, &GroupJournalRequest { group_id: "billing" });
    let told: GroupJournalResponse<'_> = answer.read();
    assert_eq!(told.migrates_to, Some("consumer"));
    assert_eq!(told.obstacles.first(), Some(&"group.consumer.migration.policy is downgrade"));
}

/// `group.consumer.assignors`: members may vote for these alone, and the first is the default.
#[test]
fn the_assignors_that_may_be_used_can_be_set() {
    let broker = TestBroker::with(&[("group.consumer.assignors", "range")]);
    let mut client = broker.connect();
    create_topic(&mut client, "orders", 4);
    find(&mut client, "billing");
    let mut member = Member::new("one");
    assert_eq!(member.beat(&mut client), 0);
    for (assignor, code) in
        [("uniform", ErrorCode::UnsupportedAssignor), ("range", ErrorCode::None)]
    {
        let vote =
            ConsumerGroupHeartbeatRequest { server_assignor: Some(assignor), ..member.says() };
        let answer = client.ask(1, &vote);
        let response: ConsumerGroupHeartbeatResponse<'_> = answer.read();
        assert_eq!(response.error_code, code.number(), "{assignor}");
        let ask = ConsumerGroupDescribeRequest { group_ids: vec!["billing"], ..Default::default() };
        let answer = client.ask(1, &ask);
        let described: ConsumerGroupDescribeResponse<'_> = answer.read();
        assert_eq!(described.groups[0].assignor_name, "range", "whatever was voted for");
    }
}

/// `group.consumer.min.*` and `group.consumer.max.*`: what a group may set for itself. What it set
/// under other bounds counts as the nearest that is allowed.
#[test]
fn what_a_group_sets_for_itself_has_bounds() {
    let mut broker = TestBroker::with(&[
        ("group.consumer.session.timeout.ms", "8000"),
        ("group.consumer.min.session.timeout.ms", "6000"),
        ("group.consumer.max.session.timeout.ms", "9000"),
        ("group.consumer.heartbeat.interval.ms", "300"),
        ("group.consumer.min.heartbeat.interval.ms", "200"),
        ("group.consumer.max.heartbeat.interval.ms", "500"),
        ("group.consumer.min.assignment.interval.ms", "50"),
        ("group.consumer.max.assignment.interval.ms", "200"),
    ]);
    let mut client = broker.connect();
    create_topic(&mut client, "orders", 4);
    find(&mut client, "billing");
    for (name, low, least, most, high) in [
        ("consumer.session.timeout.ms", "5999", "6000", "9000", "9001"),
        ("consumer.heartbeat.interval.ms", "199", "200", "500", "501"),
        ("consumer.assignment.interval.ms", "49", "50", "200", "201"),
    ] {
        for (value, code) in [
            (low, ErrorCode::InvalidConfig),
            (high, ErrorCode::InvalidConfig),
            (least, ErrorCode::None),
            (most, ErrorCode::None),
        ] {
            assert_eq!(set(&mut client, name, value), code.number(), "{name}={value}");
        }
    }
    assert_eq!(interval(&mut client), 500);
    broker.restart_with(&[("group.consumer.max.heartbeat.interval.ms", "400")]);
    assert_eq!(interval(&mut broker.connect()), 400);
    broker.restart_with(&[
        ("group.consumer.session.timeout.ms", "900"),
        ("group.consumer.min.session.timeout.ms", "900"),
        ("group.consumer.max.session.timeout.ms", "900"),
    ]);
    // A third of the session, which the group had set to more than is allowed now.
    assert_eq!(interval(&mut broker.connect()), 300);
}

/// Sets something for the group `billing`; the error.
fn set(client: &mut Client, name: &str, value: &str) -> i16 {
    let config = AlterableConfig { name, value: Some(value), ..Default::default() };
    let resource =
        AlterConfigsResource { resource_type: 32, resource_name: "billing", configs: vec![config] };
    let request =
        IncrementalAlterConfigsRequest { resources: vec![resource], ..Default::default() };
    let answer = client.ask(1, &request);
    answer.read::<IncrementalAlterConfigsResponse<'_>>().responses[0].error_code
}

/// How often a member of `billing` that joins is asked to come back.
fn interval(client: &mut Client) -> i32 {
    let joins = Member::new("one").says();
    loop {
        let answer = client.ask(1, &joins);
        let response: ConsumerGroupHeartbeatResponse<'_> = answer.read();
        match response.error_code {
            0 => return response.heartbeat_interval_ms,
            error => assert_eq!(error, LOADING),
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}
