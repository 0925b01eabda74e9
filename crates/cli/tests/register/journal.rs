//! Issue 4, must-show 7: whatever makes a group rebalance stands in its journal with the right
//! cause, mover and durations, and is still there after a kill -9.

use crate::member::Member;
use crate::wire::Wire;
use crate::{Stage, eventually};
use ottla_wire::convert::journal;
use ottla_wire::generated::create_partitions_request::CreatePartitionsTopic;
use ottla_wire::generated::delete_topics_request::DeleteTopicState;
use ottla_wire::generated::incremental_alter_configs_request::{
    AlterConfigsResource, AlterableConfig,
};
use ottla_wire::generated::leave_group_request::MemberIdentity;
use ottla_wire::generated::*;

/// Every entry as it is kept, oldest first, once the group can be asked.
fn notes(stage: &Stage, group_id: &str) -> Vec<Vec<u8>> {
    let mut notes = None;
    eventually("the group can be asked", || {
        let request = GroupJournalRequest { group_id };
        notes = stage.wire().ask(0, &request, |it| {
            let notes = it.notes.iter().map(|note| note.note.to_vec());
            (it.error_code == 0).then(|| notes.collect::<Vec<_>>())
        });
        notes.is_some()
    });
    notes.expect("it was asked")
}

/// The last entry, in Rust's words for it.
fn last(stage: &Stage, group: &str) -> String {
    let notes = notes(stage, group);
    let note = notes.last().expect("a group that rebalanced");
    format!("{:?}", journal::decode(note).expect("a note"))
}

fn assert_says(stage: &Stage, group: &str, expected: &[&str]) {
    let entry = last(stage, group);
    for expected in expected {
        assert!(entry.contains(expected), "no {expected} in {entry}");
    }
}

/// The member learns of a rebalance by a heartbeat and registers again.
fn follows(member: &mut Member, wire: &mut Wire) {
    eventually("a rebalance", || member.beat(wire).error == 27);
    assert_eq!(member.register(wire), 0);
}

fn set_assignor(wire: &mut Wire, group: &str, value: &str) {
    let config =
        AlterableConfig { name: "register.assignor", value: Some(value), ..Default::default() };
    let resource =
        AlterConfigsResource { resource_type: 32, resource_name: group, configs: vec![config] };
    let request =
        IncrementalAlterConfigsRequest { resources: vec![resource], validate_only: false };
    assert_eq!(wire.ask(1, &request, |it| it.responses[0].error_code), 0);
}

#[test]
fn the_journal_tells_every_cause_and_outlives_a_kill() {
    let mut stage = Stage::new();
    let (admin, wire, other) = (&mut stage.wire(), &mut stage.wire(), &mut stage.wire());
    let mut member = Member::patient("g", &["t", "u"]);
    assert_eq!(member.register(wire), 0);
    let id = member.id.clone();
    let to = format!("from: None, to: Some({id:?})");
    assert_says(&stage, "g", &["cause: Joined", &id, "moved: Some(4)", &to, "outcome: Assigned"]);

    let mut second = Member::patient("g", &["t"]);
    second.send_registration(other);
    follows(&mut member, wire);
    assert_eq!(second.take_registration(other), 0);
    let between = format!("from: Some({id:?}), to: Some({:?})", second.id);
    assert_says(&stage, "g", &["cause: Joined", &second.id, "moved: Some(2)", &between]);
    assert_says(&stage, "g", &["consumer.example", "client_id: \"consumer\"", "join_took: "]);

    assert_eq!(second.leave(other), 0);
    follows(&mut member, wire);
    assert_says(&stage, "g", &["cause: Left", &second.id, "moved: Some(2)"]);

    let mut mortal = Member::new("g", &["t"]);
    mortal.send_registration(other);
    follows(&mut member, wire);
    assert_eq!(mortal.take_registration(other), 0);
    follows(&mut member, wire);
    assert_says(&stage, "g", &["cause: SessionExpired", &mortal.id]);

    member.topics.push("w".into());
    assert_eq!(member.register(wire), 0);
    assert_says(&stage, "g", &["cause: MetadataChanged", &id, "moved: Some(0)"]);

    admin.create_topic("u", 1);
    follows(&mut member, wire);
    assert_says(&stage, "g", &["cause: TopicCreated", "\"u\"", "moved: Some(1)"]);

    let topics = vec![CreatePartitionsTopic { name: "t", count: 6, assignments: None }];
    let request = CreatePartitionsRequest { topics, timeout_ms: 10_000, validate_only: false };
    assert_eq!(admin.ask(3, &request, |it| it.results[0].error_code), 0);
    follows(&mut member, wire);
    assert_says(&stage, "g", &["cause: PartitionsAdded", "\"t\"", "moved: Some(2)"]);

    let topics = vec![DeleteTopicState { name: Some("u"), ..Default::default() }];
    let request = DeleteTopicsRequest { topics, timeout_ms: 10_000, ..Default::default() };
    assert_eq!(admin.ask(6, &request, |it| it.responses[0].error_code), 0);
    follows(&mut member, wire);
    assert_says(&stage, "g", &["cause: TopicDeleted", "\"u\"", "moved: Some(1)"]);

    set_assignor(admin, "g", "roundrobin");
    follows(&mut member, wire);
    assert_says(&stage, "g", &["cause: AssignorChanged", "\"register.assignor\""]);

    // An administrator removes it: its last member is gone, and the group is empty.
    admin.client = "an-admin";
    let members = vec![MemberIdentity { member_id: &id, ..Default::default() }];
    let request = LeaveGroupRequest { group_id: "g", members, ..Default::default() };
    assert_eq!(admin.ask(3, &request, |it| it.members[0].error_code), 0);
    let removed = ["cause: Removed", &id, "client_id: \"an-admin\"", "outcome: Emptied"];
    assert_says(&stage, "g", &removed);

    let before = notes(&stage, "g");
    assert_eq!(before.len(), 11);
    stage.broker.kill_and_restart();
    assert_eq!(notes(&stage, "g"), before);
}
