//! A group that lives: coordinator, assignment, heartbeats and their checks, changes of topics.

use crate::member::{Beat, Member, register_all};
use crate::wire::{Metadata, Wire};
use crate::{Stage, eventually};
use ottla_wire::generated::create_partitions_request::CreatePartitionsTopic;
use ottla_wire::generated::delete_topics_request::DeleteTopicState;
use ottla_wire::generated::incremental_alter_configs_request::{
    AlterConfigsResource, AlterableConfig,
};
use ottla_wire::generated::join_group_request::JoinGroupRequestProtocol;
use ottla_wire::generated::offset_commit_request::{
    OffsetCommitRequestPartition, OffsetCommitRequestTopic,
};
use ottla_wire::generated::*;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// One broker is the coordinator; ConsumerMetadata and FindCoordinator agree on it, and its epoch
/// is that of the offsets partition, which a restart raises (decision 3).
#[test]
fn s5_one_broker_is_the_coordinator_of_a_group() {
    let mut stage = Stage::new();
    let wire = &mut stage.wire();
    let before = wire.metadata("g");
    let address = stage.broker.address().to_string();
    assert_eq!((before.error, before.node, &before.address), (0, 1, &address));
    assert_eq!(before.generation, 0, "decision 13: a group nobody knows");
    assert!(before.epoch > 0);
    let request = FindCoordinatorRequest { key: "g", ..Default::default() };
    let found = wire.ask(3, &request, |it| (it.node_id, format!("{}:{}", it.host, it.port)));
    assert_eq!(found, (before.node, before.address.clone()));

    let mut member = Member::patient("g", &["t"]);
    assert_eq!(member.register(wire), 0);
    assert_eq!(wire.metadata("g"), Metadata { generation: 1, ..before });
    assert_eq!(wire.metadata("").error, 24, "decision 4");

    stage.broker.kill_and_restart();
    let wire = &mut stage.wire();
    eventually("the coordinator has read its log", || wire.metadata("g").error == 0);
    let after = wire.metadata("g");
    assert_eq!(after.generation, 1);
    assert!(after.epoch > before.epoch, "{} then {}", before.epoch, after.epoch);
}

/// Three consumers of a group own every partition, each once, and are told so.
#[test]
fn s4_every_partition_has_one_owner() {
    let stage = Stage::new();
    stage.wire().create_topic("u", 5);
    let mut members: Vec<_> = (0..3).map(|_| Member::patient("g", &["t", "u"])).collect();
    let mut wires: Vec<_> = (0..3).map(|_| stage.wire()).collect();
    for count in 1..=3 {
        // Who is in already comes back when its heartbeat says so; the newcomer waits for them.
        members[count - 1].send_registration(&mut wires[count - 1]);
        for (member, wire) in members.iter().zip(&mut wires).take(count - 1) {
            eventually("a rebalance is announced", || member.beat(wire).error == 27);
            member.send_registration(wire);
        }
        for (member, wire) in members.iter_mut().zip(&mut wires).take(count) {
            assert_eq!(member.take_registration(wire), 0);
        }
        let now = &members[..count];
        assert!(now.iter().all(|member| member.generation == now[0].generation));
        let owned: Vec<_> = now.iter().flat_map(|member| member.owned.clone()).collect();
        let distinct: BTreeSet<_> = owned.iter().cloned().collect();
        assert_eq!((owned.len(), distinct.len()), (9, 9), "{owned:?}");
        assert!(now.iter().all(|member| member.owned.len() + 1 >= 9 / count));
    }
}

/// Each heartbeat is answered, in order, with its own group and id and the group's generation.
#[test]
fn s9_every_heartbeat_is_answered() {
    let stage = Stage::new();
    let wire = &mut stage.wire();
    let mut one = Member::patient("g", &["t"]);
    let mut other = Member::patient("h", &["t"]);
    assert_eq!((one.register(wire), other.register(wire)), (0, 0));
    for _ in 0..50 {
        one.send_beat(wire);
        other.send_beat(wire);
    }
    for _ in 0..50 {
        for member in [&one, &other] {
            let (group, id) = (member.group.clone(), member.id.clone());
            let expected = Beat { error: 0, generation: 1, group, id };
            assert_eq!(member.take_beat(wire), Some(expected));
        }
    }
}

/// A consumer that beats every session_timeout / heartbeat_frequency lives on, for several of its
/// limits.
#[test]
fn s10_s15_beating_at_the_interval_keeps_alive() {
    let stage = Stage::new();
    let wire = &mut stage.wire();
    // As the example, twice as slow, so that a loaded machine does not miss three in a row.
    let mut member = Member { session_timeout: 2000, ..Member::new("g", &["t"]) };
    assert_eq!(member.register(wire), 0);
    let began = Instant::now();
    while began.elapsed() < Duration::from_millis(6000) {
        std::thread::sleep(Duration::from_micros(2_000_000 / 3));
        assert_eq!(member.beat(wire).error, 0);
    }
    assert_eq!(member.beat(wire).generation, 1);
}

#[test]
fn s16_s17_heartbeats_are_checked() {
    let stage = Stage::new();
    let wire = &mut stage.wire();
    let mut member = Member::patient("g", &["t"]);
    assert_eq!(member.register(wire), 0);
    let with = |group: &str, id: &str, generation| Member {
        group: group.into(),
        id: id.into(),
        generation,
        ..member.clone()
    };
    let mut says = |member: Member| {
        let answer = member.beat(wire);
        assert_eq!((&answer.group, &answer.id), (&member.group, &member.id), "decision 14");
        (answer.error, answer.generation)
    };
    assert_eq!(says(with("g", &member.id, 1)), (0, 1));
    assert_eq!(says(with("", &member.id, 1)), (24, -1));
    assert_eq!(says(with("nobody", &member.id, 1)), (25, -1));
    assert_eq!(says(with("g", "never-assigned", 1)), (25, 1));
    assert_eq!(says(with("g", "", 1)), (25, 1));
    assert_eq!(says(with("g", &member.id, 0)), (22, 1));
    assert_eq!(says(with("g", &member.id, 2)), (22, 1));

    // A newcomer waits: the group is told to register again.
    let other = &mut stage.wire();
    Member::patient("g", &["t"]).send_registration(other);
    eventually("the rebalance is announced", || member.beat(wire).error == 27);
    assert_eq!(member.beat(wire).generation, 1);
}

/// Decision 4 and the broker's limits, over the wire.
#[test]
fn s8_terms_of_a_registration_are_checked() {
    let stage = Stage::new();
    let wire = &mut stage.wire();
    let example = Member::new("g", &["t"]);
    let mut says = |member: Member| member.clone().register(wire);
    assert_eq!(says(Member { group: String::new(), ..example.clone() }), 24);
    assert_eq!(says(Member { frequency: 0, ..example.clone() }), 42);
    assert_eq!(says(Member { threshold: -1, ..example.clone() }), 42);
    assert_eq!(says(Member { session_timeout: 99, ..example.clone() }), 26);
    assert_eq!(says(Member { session_timeout: -1, ..example.clone() }), 26);
    assert_eq!(says(Member { session_timeout: 1_800_001, ..example.clone() }), 26);
    assert_eq!(says(Member { id: "late".into(), ..example.clone() }), 25);
    let largest = Member { frequency: i32::MAX, threshold: i32::MAX, ..example };
    assert_eq!(says(Member { session_timeout: 1_800_000, ..largest }), 0);
}

/// A topic that grows, is created or is deleted reaches whoever subscribes to it, and nobody else.
#[test]
fn s6_s28_topics_reach_those_who_subscribe() {
    let stage = Stage::new();
    let (admin, wire) = (&mut stage.wire(), &mut stage.wire());
    let mut member = Member::patient("g", &["t", "later"]);
    let mut bystander = Member::patient("h", &["other"]);
    assert_eq!((member.register(wire), bystander.register(wire)), (0, 0));
    assert_eq!((member.owned.len(), bystander.owned.len()), (4, 0));

    let topics = vec![CreatePartitionsTopic { name: "t", count: 6, assignments: None }];
    let request = CreatePartitionsRequest { topics, timeout_ms: 10_000, validate_only: false };
    assert_eq!(admin.ask(3, &request, |it| it.results[0].error_code), 0);
    moves_on(&mut member, wire, 6);

    admin.create_topic("later", 2);
    moves_on(&mut member, wire, 8);

    let topics = vec![DeleteTopicState { name: Some("t"), ..Default::default() }];
    let request = DeleteTopicsRequest { topics, timeout_ms: 10_000, ..Default::default() };
    assert_eq!(admin.ask(6, &request, |it| it.responses[0].error_code), 0);
    moves_on(&mut member, wire, 2);
    assert_eq!(bystander.beat(wire).error, 0);
    assert_eq!(bystander.generation, 1);
}

/// Decision 22: `register.assignor` of a group is set by Kafka's own request and has its effect.
#[test]
fn d22_a_group_chooses_its_assignor() {
    let stage = Stage::new();
    stage.wire().create_topic("u", 3);
    let mut members = vec![Member::patient("g", &["t", "u"]), Member::patient("g", &["t", "u"])];
    let mut wires = vec![stage.wire(), stage.wire()];
    assert_eq!(members[0].register(&mut wires[0]), 0);
    members[1].send_registration(&mut wires[1]);
    eventually("a rebalance", || members[0].beat(&mut wires[0]).error == 27);
    assert_eq!(members[0].register(&mut wires[0]), 0);
    assert_eq!(members[1].take_registration(&mut wires[1]), 0);
    members.iter().for_each(|member| assert!(is_range(member), "{:?}", member.owned));

    let config = AlterableConfig { name: "register.assignor", ..Default::default() };
    let set = |value| {
        let configs = vec![AlterableConfig { value: Some(value), ..config }];
        let resource = AlterConfigsResource { resource_type: 32, resource_name: "g", configs };
        let request =
            IncrementalAlterConfigsRequest { resources: vec![resource], validate_only: false };
        stage.wire().ask(1, &request, |it| it.responses[0].error_code)
    };
    assert_eq!(set("sticky"), 40, "INVALID_CONFIG");
    assert_eq!(set("roundrobin"), 0);
    for (member, wire) in members.iter().zip(&mut wires) {
        eventually("a rebalance", || member.beat(wire).error == 27);
    }
    register_all(&mut members, &mut wires);
    assert!(!members.iter().all(is_range), "{members:?}");
}

/// Decisions 11 and 15: other protocols stay out of a live group; offsets are Kafka's.
#[test]
fn d11_d15_kafka_requests_meet_a_register_group() {
    let stage = Stage::new();
    let wire = &mut stage.wire();
    let mut member = Member::patient("g", &["t"]);
    assert_eq!(member.register(wire), 0);
    let join = JoinGroupRequest {
        group_id: "g",
        session_timeout_ms: 30_000,
        rebalance_timeout_ms: 30_000,
        protocol_type: "consumer",
        protocols: vec![JoinGroupRequestProtocol { name: "range", metadata: b"" }],
        ..Default::default()
    };
    assert_eq!(wire.ask(5, &join, |it| it.error_code), 23);
    let beat = HeartbeatRequest {
        group_id: "g",
        generation_id: 1,
        member_id: &member.id,
        ..Default::default()
    };
    assert_eq!(wire.ask(3, &beat, |it| it.error_code), 25);
    assert_eq!(commit(wire, &member.id, 1, 41), 0);
    assert_eq!(commit(wire, &member.id, 2, 42), 22);
    assert_eq!(commit(wire, &member.id, -1, 42), 25);
    assert_eq!(commit(wire, "nobody", 1, 42), 25);

    // Kafka's tools see a group of consumers (decision 28).
    let list = ListGroupsRequest { types_filter: vec!["Classic"], ..Default::default() };
    let listed = wire.ask(5, &list, |it| {
        it.groups
            .iter()
            .map(|group| (group.group_id.to_owned(), group.protocol_type.to_owned()))
            .collect::<Vec<_>>()
    });
    assert_eq!(listed, [("g".to_owned(), "consumer".to_owned())]);
    let describe = DescribeGroupsRequest { groups: vec!["g"], ..Default::default() };
    wire.ask(5, &describe, |it| {
        let group = &it.groups[0];
        assert_eq!((group.group_state, group.protocol_data), ("Stable", "register"));
        let described = &group.members[0];
        assert_eq!((described.member_id, described.client_id), (&*member.id, "consumer"));
        assert_eq!(described.client_host, "consumer.example");
        // ConsumerProtocolAssignment version 0: one topic, t, with four partitions.
        assert_eq!(described.member_assignment[..9], *b"\0\0\0\0\0\x01\0\x01t");
    });
    assert_eq!(member.leave(wire), 0);
    assert_eq!(wire.ask(5, &join, |it| it.error_code), 79, "an empty group may change");
}

fn is_range(member: &Member) -> bool {
    // Contiguous in each topic.
    let gaps = member.owned.windows(2).filter(|pair| pair[0].0 == pair[1].0);
    gaps.into_iter().all(|pair| pair[0].1 + 1 == pair[1].1)
}

/// The member learns of a rebalance by a heartbeat, registers again and owns so many partitions.
fn moves_on(member: &mut Member, wire: &mut Wire, partitions: usize) {
    eventually("a rebalance", || member.beat(wire).error == 27);
    let before = member.generation;
    assert_eq!(member.register(wire), 0);
    assert_eq!((member.generation, member.owned.len()), (before + 1, partitions));
}

/// Commits for partition 0 of `t`; the partition's error.
pub(crate) fn commit(wire: &mut Wire, member: &str, generation: i32, offset: i64) -> i16 {
    let partition = OffsetCommitRequestPartition {
        partition_index: 0,
        committed_offset: offset,
        committed_leader_epoch: -1,
        committed_metadata: None,
    };
    let topic =
        OffsetCommitRequestTopic { name: "t", partitions: vec![partition], ..Default::default() };
    let request = OffsetCommitRequest {
        group_id: "g",
        generation_id_or_member_epoch: generation,
        member_id: member,
        topics: vec![topic],
        ..Default::default()
    };
    wire.ask(7, &request, |it| it.topics[0].partitions[0].error_code)
}
