//! Consumers that fall silent: when they are dead, what becomes of their sockets, and who hears
//! of it.

use crate::member::Member;
use crate::{Stage, eventually};
use std::time::{Duration, Instant};

/// The document's example: no heartbeat for 3 x 1000/3 ms, and the consumer is dead, not earlier;
/// its socket is broken; the others rebalance and own what it had.
#[test]
fn s11_s13_s18_s19_s20_a_silent_consumer_is_dead_after_its_limit() {
    let stage = Stage::new();
    let (alive_on, silent_on) = (&mut stage.wire(), &mut stage.wire());
    let mut alive = Member::patient("g", &["t"]);
    assert_eq!(alive.register(alive_on), 0);
    let mut silent = Member::new("g", &["t"]);
    silent.send_registration(silent_on);
    eventually("the rebalance is announced", || alive.beat(alive_on).error == 27);
    alive.send_registration(alive_on);
    // The limit starts with the response, which cannot have been sent before this.
    let began = Instant::now();
    assert_eq!(silent.take_registration(silent_on), 0);
    assert_eq!(alive.take_registration(alive_on), 0);
    assert_eq!((alive.owned.len(), silent.owned.len()), (2, 2));

    assert!(silent_on.is_broken(), "S19");
    let lived = began.elapsed();
    assert!(lived >= Duration::from_secs(1), "dead after {lived:?}");
    eventually("S20: its death starts a rebalance", || alive.beat(alive_on).error == 27);
    assert_eq!(alive.register(alive_on), 0);
    assert_eq!(alive.owned.len(), 4);

    // S26: it is unknown now, and new if it registers without an id.
    let wire = &mut stage.wire();
    assert_eq!(silent.beat(wire).error, 25);
    assert_eq!(silent.register(wire), 25);
}

/// Detection is paused while a registration waits, and starts in full with its response.
#[test]
fn s14_a_waiting_registration_is_not_silent() {
    let stage = Stage::new();
    let (one_on, other_on) = (&mut stage.wire(), &mut stage.wire());
    let mut one = Member::patient("g", &["t"]);
    assert_eq!(one.register(one_on), 0);
    // Its limit is 300 ms, and it waits for three times as long.
    let mut other = Member { session_timeout: 3000, frequency: 10, threshold: 1, ..one.clone() };
    other.id.clear();
    other.send_registration(other_on);
    std::thread::sleep(Duration::from_millis(900));
    one.send_registration(one_on);
    assert_eq!(other.take_registration(other_on), 0);
    let began = Instant::now();
    assert_eq!(one.take_registration(one_on), 0);
    assert_eq!(other.owned.len(), 2);
    // From now on silence counts.
    assert!(other_on.is_broken());
    // It began on the other side, a little earlier than here.
    assert!(began.elapsed() >= Duration::from_millis(200), "{:?}", began.elapsed());
}

/// A connection that several consumers share, in groups of one shard and of several, closes when
/// the last of them is dead (decision 17).
#[test]
fn s19_a_shared_socket_lives_as_long_as_somebody_on_it() {
    let stage = Stage::new();
    // Of 50 offsets partitions "2" and "d" share one, and "a" has another.
    for (mortal, survivor) in [("2", "d"), ("2", "a")] {
        let wire = &mut stage.wire();
        let mut dies = Member { session_timeout: 300, ..Member::new(mortal, &["t"]) };
        let mut lives = Member { session_timeout: 3000, ..Member::new(survivor, &["t"]) };
        assert_eq!((dies.register(wire), lives.register(wire)), (0, 0));
        let watcher = &mut stage.wire();
        let next = dies.generation + 1;
        eventually("one is dead", || watcher.metadata(mortal).generation == next);
        assert_eq!(lives.beat(wire).error, 0, "{survivor}: the socket is not broken");
        assert!(wire.is_broken(), "{survivor}: the last one is dead too");
    }
}

/// The connection of a consumer is the one its last valid request came on (decision 17): the one
/// it came from is not touched.
#[test]
fn s19_a_consumer_takes_its_connection_along() {
    let stage = Stage::new();
    let (first, second, third) = (&mut stage.wire(), &mut stage.wire(), &mut stage.wire());
    let mut member = Member::new("g", &["t"]);
    assert_eq!(member.register(first), 0);
    assert_eq!(member.beat(second).error, 0);
    let stranger = Member { id: "nobody".into(), ..member.clone() };
    assert_eq!(stranger.beat(third).error, 25);
    assert!(second.is_broken());
    assert!(first.is_open() && third.is_open());
}

/// S22 from the server's side, decision 9: a closed socket is not a death. The consumer comes back
/// on another within its limit and carries on.
#[test]
fn s22_a_closed_socket_is_no_death() {
    let stage = Stage::new();
    let mut member = Member::patient("g", &["t"]);
    assert_eq!(member.register(&mut stage.wire()), 0);
    // That connection is closed by now.
    let answer = member.beat(&mut stage.wire());
    assert_eq!((answer.error, answer.generation), (0, 1));
}

/// Decision 26: whoever waits without an id and goes away was never there.
#[test]
fn d26_a_registration_that_is_given_up_leaves_no_phantom() {
    let stage = Stage::new();
    let wire = &mut stage.wire();
    let mut member = Member::patient("g", &["t"]);
    assert_eq!(member.register(wire), 0);
    let mut gone = stage.wire();
    Member::new("g", &["t"]).send_registration(&mut gone);
    eventually("the rebalance is announced", || member.beat(wire).error == 27);
    drop(gone);
    // It is withdrawn, or was answered just before, and then its limit ends it.
    let own = |member: &mut Member, wire: &mut _| {
        assert_eq!(member.register(wire), 0);
        member.owned.len()
    };
    eventually("all is owned by who is there", || own(&mut member, wire) == 4);
}

/// Leaving is immediate and leaves the connection open (decisions 9 and 21).
#[test]
fn d21_leaving_breaks_no_socket() {
    let stage = Stage::new();
    let wire = &mut stage.wire();
    let mut member = Member::new("g", &["t"]);
    assert_eq!(member.register(wire), 0);
    assert_eq!(member.leave(wire), 0);
    assert_eq!(member.beat(wire).error, 25);
    std::thread::sleep(Duration::from_millis(1500));
    assert!(wire.is_open());
}
