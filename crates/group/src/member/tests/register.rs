//! A member of the register protocol (`docs/register-protocol.md`).

use super::*;
use crate::message::register::{Detection, HeartbeatAnswer, Registered};

/// The document's example: 1 s, three heartbeats in it, three of which may fail.
fn bench() -> Bench {
    with(3, 3)
}

fn with(frequency: i32, threshold: i32) -> Bench {
    Bench::with(|config| {
        config.session_timeout = Duration::from_secs(1);
        config.protocol = Protocol::Register(Detection::new(frequency, threshold).unwrap());
    })
}

impl Bench {
    fn registered(&mut self, generation: i32, partitions: &[i32]) -> String {
        self.answer(Reply::Register(Ok(Registered {
            group: "g".into(),
            generation: Generation(generation),
            member: "me".into(),
            partitions: partitions.iter().map(|p| TopicPartition::new("t", *p)).collect(),
        })))
    }

    fn beat(&mut self, outcome: Result<(), GroupError>) -> String {
        self.now = self.member.deadline().unwrap();
        self.member.handle_timeout(self.now);
        let said = self.said();
        let generation = Generation(1);
        said + &self.answer(Reply::RegisterHeartbeat(HeartbeatAnswer { generation, outcome }))
    }

    /// A member of generation 1 that owns these partitions.
    fn owning(mut self, partitions: &[i32]) -> Self {
        self.subscribe(&["t"]);
        self.find_and_join();
        self.registered(1, partitions);
        self
    }
}

#[test]
fn s7_a_registration_is_answered_with_what_to_own() {
    let mut bench = bench();
    bench.subscribe(&["t"]);
    assert_eq!(bench.find_and_join(), r#"register "" ["t"]; "#);
    assert_eq!(bench.registered(1, &[0, 1]), "assigned:t[0 1]; ");
    assert!(bench.member.is_stable());
}

/// S14: while the registration waits nothing beats. Afterwards the first heartbeat is due one
/// interval after it was sent.
#[test]
fn s9_s12_s14_s15_it_beats_every_third_of_a_second_and_awaits_each() {
    let mut bench = bench();
    bench.subscribe(&["t"]);
    bench.find_and_join();
    assert_eq!(bench.wait(900, None), "");
    assert_eq!(bench.registered(1, &[0]), "assigned:t[0]; heartbeat 1; ");

    let mut bench = bench_owning_now();
    let since = bench.now;
    assert_eq!(bench.member.deadline(), Some(since + Duration::from_micros(333_333)));
    assert_eq!(bench.beat(Ok(())), "heartbeat 1; ");
    assert_eq!(bench.member.deadline(), Some(since + Duration::from_micros(666_666)));
    bench.now = bench.member.deadline().unwrap();
    bench.member.handle_timeout(bench.now);
    assert_eq!(bench.said(), "heartbeat 1; ");
    // S9: not another one before that is answered.
    assert_eq!(bench.wait(600, None), "");
}

fn bench_owning_now() -> Bench {
    bench().owning(&[0])
}

/// S21, decision 27: what it owns is lost a session timeout, or the detection limit if that is
/// shorter, after the send of the last answered heartbeat; then it looks for the coordinator.
#[test]
fn s21_silence_ends_ownership_within_the_smaller_limit() {
    for (threshold, limit_ms) in [(3, 1000), (2, 666), (9, 1000)] {
        let mut bench = with(3, threshold).owning(&[0]);
        let said = bench.wait(limit_ms - 1, None);
        assert!(!said.contains("lost"), "{threshold}: {said}");
        let said = bench.wait(2, None);
        assert!(said.contains("lost:t[0]; ") && said.contains("disconnect"), "{threshold}: {said}");
    }
}

/// S22: a closed connection means a failed coordinator; what is owned is kept meanwhile, and the
/// next coordinator's answer to a heartbeat says whether it still is (S24).
#[test]
fn s22_s24_a_closed_connection_keeps_what_is_owned_and_beats_again() {
    let mut bench = bench_owning_now();
    bench.member.handle_disconnect(Lane::Main, bench.now);
    assert!(bench.said().starts_with("disconnect; "));
    assert_eq!(bench.wait(200, None), "find; ");
    let call = bench.find.take().unwrap();
    bench.member.handle_coordinator(call, Some(NodeId(2)), bench.now);
    assert_eq!(bench.said(), "");
    assert_eq!(bench.beat(Ok(())), "heartbeat 1; ");
}

/// S25: a coordinator that is not ready is asked again, one that is none is looked for.
#[test]
fn s25_what_is_owned_is_kept_while_the_coordinator_loads() {
    let mut bench = bench_owning_now();
    assert_eq!(bench.beat(Err(GroupError::LoadInProgress)), "heartbeat 1; ");
    assert_eq!(bench.beat(Err(GroupError::NotCoordinator)), "heartbeat 1; disconnect; ");
    assert_eq!(bench.wait(200, None), "find; ");
}

/// S26: who comes too late registers as a new consumer.
#[test]
fn s26_an_unknown_member_is_a_new_one() {
    let mut bench = bench_owning_now();
    let said = bench.beat(Err(GroupError::UnknownMemberId));
    assert_eq!(said, "heartbeat 1; lost:t[0]; register \"\" [\"t\"]; ");
}

/// S17: a stale generation is registered again with the id, and owns nothing until then.
#[test]
fn s17_a_stale_generation_is_a_loss_but_not_of_the_id() {
    let mut bench = bench_owning_now();
    let said = bench.beat(Err(GroupError::IllegalGeneration));
    assert_eq!(said, "heartbeat 1; lost:t[0]; register \"me\" [\"t\"]; ");
}

/// Step 3: it gives everything up, commits, and registers with its id. Heartbeats that are told
/// of the rebalance keep nobody alive (decision 25), so its own limit runs on.
#[test]
fn a_rebalance_is_joined_once_everything_was_given_up() {
    let mut bench = bench_owning_now();
    let told = bench.beat(Err(GroupError::RebalanceInProgress));
    assert_eq!(told, "heartbeat 1; revoke:t[0]; ");
    assert_eq!(bench.commit(0, 7), "commit 7 at 1; ");
    assert_eq!(bench.revoked(), "");
    assert_eq!(bench.committed(None), "committed; register \"me\" [\"t\"]; ");
    assert_eq!(bench.registered(2, &[1]), "assigned:t[1]; ");

    let mut slow = bench_owning_now();
    slow.beat(Err(GroupError::RebalanceInProgress));
    slow.beat(Err(GroupError::RebalanceInProgress));
    let said = slow.wait(400, None);
    assert!(said.contains("lost:t[0]; "), "{said}");
}

/// S38: another list of topics is registered; the same list in another order is nothing new.
#[test]
fn s38_another_list_is_registered() {
    let mut bench = bench_owning_now();
    assert_eq!(bench.subscribe(&["t"]), "");
    assert_eq!(bench.subscribe(&["t", "u"]), "watch[\"t\", \"u\"]; revoke:t[0]; ");
    assert_eq!(bench.revoked(), "register \"me\" [\"t\", \"u\"]; ");
    bench.registered(2, &[0]);
    assert_eq!(bench.subscribe(&["u", "t"]), "");
}

/// A registration that the barrier held for longer than the limit is confirmed by a heartbeat
/// before anything is owned.
#[test]
fn a_late_answer_is_confirmed_first() {
    let mut bench = bench();
    bench.subscribe(&["t"]);
    bench.find_and_join();
    bench.wait(5000, None);
    assert_eq!(bench.registered(1, &[0]), "heartbeat 1; ");
    let answer = HeartbeatAnswer { generation: Generation(1), outcome: Ok(()) };
    assert_eq!(bench.answer(Reply::RegisterHeartbeat(answer)), "assigned:t[0]; ");
}
