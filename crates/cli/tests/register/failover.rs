//! The coordinator dies (`kill -9`) and the next one reads its log: before that it refuses or does
//! not listen, afterwards everything is as it was.

use crate::member::{Member, register_all};
use crate::steady::commit;
use crate::{Stage, eventually};
use ottla_wire::generated::offset_fetch_request::OffsetFetchRequestTopic;
use ottla_wire::generated::{DescribeGroupsRequest, OffsetFetchRequest};
use std::time::{Duration, Instant};

/// Live consumers meet the new coordinator before it has loaded their group (14, or 15 and 16
/// before it owns it) or after (accepted as normal), and never a rebalance.
#[test]
fn s23_s24_s25_consumers_outlive_their_coordinator() {
    let mut stage = Stage::new();
    let mut members = [Member::patient("g", &["t"]), Member::patient("g", &["t"])];
    let mut wires = [stage.wire(), stage.wire()];
    assert_eq!(members[0].register(&mut wires[0]), 0);
    members[1].send_registration(&mut wires[1]);
    eventually("a rebalance", || members[0].beat(&mut wires[0]).error == 27);
    assert_eq!(members[0].register(&mut wires[0]), 0);
    assert_eq!(members[1].take_registration(&mut wires[1]), 0);
    for _ in 0..3 {
        stage.broker.kill_and_restart();
        for member in &members {
            let wire = &mut stage.wire();
            eventually("accepted as normal", || {
                let answer = member.beat(wire);
                assert!(matches!(answer.error, 0 | 14..=16), "{answer:?}");
                let generation = if answer.error == 0 { member.generation } else { -1 };
                assert_eq!(answer.generation, generation);
                answer.error == 0
            });
        }
    }
}

/// What is stored of a group: members with host and id, topics and timeouts, who owns what, the
/// generation, offsets. All of it is there after a kill.
#[test]
fn s27_a_group_survives_whole() {
    let mut stage = Stage::new();
    let wire = &mut stage.wire();
    let mut member = Member::patient("g", &["t"]);
    assert_eq!(member.register(wire), 0);
    assert_eq!(commit(wire, &member.id, 1, 41), 0);
    // Changed timeouts are on record before the answer, without a generation (decision 18).
    member.session_timeout = 59_000;
    assert_eq!(member.register(wire), 0);
    assert_eq!(member.generation, 1);
    let before = describe(&stage);

    stage.broker.kill_and_restart();
    let wire = &mut stage.wire();
    eventually("loaded", || member.beat(wire).error == 0);
    assert_eq!(describe(&stage), before);
    let owned = member.owned.clone();
    assert_eq!(member.register(wire), 0, "nothing changed, so it is answered at once");
    assert_eq!((member.generation, &member.owned), (1, &owned));
    let topics = vec![OffsetFetchRequestTopic { name: "t", partition_indexes: vec![0] }];
    let request = OffsetFetchRequest { group_id: "g", topics: Some(topics), ..Default::default() };
    let committed = wire.ask(7, &request, |it| it.topics[0].partitions[0].committed_offset);
    assert_eq!(committed, 41);
}

fn describe(stage: &Stage) -> String {
    let request = DescribeGroupsRequest { groups: vec!["g"], ..Default::default() };
    stage.wire().ask(5, &request, |response| format!("{response:?}"))
}

/// Timers start in full at the load; who is silent from then on is dead, and new when it comes.
#[test]
fn s26_who_comes_too_late_is_new() {
    let mut stage = Stage::new();
    let mut member = Member::new("g", &["t"]);
    assert_eq!(member.register(&mut stage.wire()), 0);
    let began = Instant::now();
    stage.broker.kill_and_restart();
    let wire = &mut stage.wire();
    eventually("counted out by the new coordinator", || {
        let metadata = wire.metadata("g");
        metadata.error == 0 && metadata.generation == 2
    });
    assert!(began.elapsed() >= Duration::from_secs(1), "in full: {:?}", began.elapsed());
    assert_eq!(member.beat(wire).error, 25);
    assert_eq!(member.register(wire), 25);
    let old = std::mem::take(&mut member.id);
    assert_eq!(member.register(wire), 0);
    assert_eq!(member.generation, 3, "decision 24: it rises through emptiness");
    assert_ne!(member.id, old);
}

/// A topic that grew between two coordinators is found by the second; one that is subscribed to
/// and does not exist yet is watched by it (S28).
#[test]
fn s28_subscriptions_are_watched_after_a_restart() {
    let mut stage = Stage::new();
    let mut members = vec![Member::patient("g", &["t", "later"])];
    assert_eq!(members[0].register(&mut stage.wire()), 0);
    stage.broker.kill_and_restart();
    let mut wires = vec![stage.wire()];
    eventually("loaded", || members[0].beat(&mut wires[0]).error == 0);
    stage.wire().create_topic("later", 3);
    eventually("a rebalance", || members[0].beat(&mut wires[0]).error == 27);
    register_all(&mut members, &mut wires);
    assert_eq!(members[0].owned.len(), 7);
}

/// A rebalance that was under way when the coordinator died: the last generation is in force
/// again, and the newcomer, who was told nothing, registers once more.
#[test]
fn s23_a_rebalance_begins_anew_at_the_next_coordinator() {
    let mut stage = Stage::new();
    let mut member = Member::patient("g", &["t"]);
    let wire = &mut stage.wire();
    assert_eq!(member.register(wire), 0);
    let mut newcomer = Member::patient("g", &["t"]);
    newcomer.send_registration(&mut stage.wire());
    let waiting = &mut stage.wire();
    newcomer.send_registration(waiting);
    eventually("a rebalance", || member.beat(wire).error == 27);
    stage.broker.kill_and_restart();
    assert!(waiting.is_broken());
    let (wire, other) = (&mut stage.wire(), &mut stage.wire());
    eventually("as before", || member.beat(wire).error == 0);
    newcomer.send_registration(other);
    eventually("a rebalance", || member.beat(wire).error == 27);
    assert_eq!(member.register(wire), 0);
    assert_eq!(newcomer.take_registration(other), 0);
    assert_eq!((member.owned.len(), newcomer.owned.len()), (2, 2));
}
