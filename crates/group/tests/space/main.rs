//! Every state a small group can get into (issue 4, must-show 3): the shipped coordinator and the
//! shipped members, three of them, of the classic and the consumer protocol, two topics of three
//! partitions, and up to five things in one run that go otherwise: joins, leaves, deaths, silence,
//! another subscription, a lost connection, another coordinator. Where members of both protocols
//! meet, the group migrates, and back when one kind is gone.
//!
//! In each state no partition has two owners, targets are whole and epochs have not gone back; and
//! from each state, nothing more going wrong, everybody arrives within a few rounds.
//!
//! A classic member that its coordinator does not know any more, but the log does, joins no more:
//! there are only so many names here, and it would be given its former one.
//!
//! `OTTLA_SPACE_SECONDS` looks for so long, or until every state of up to five troubles was seen;
//! without it, all states of two. States are looked at breadth first, those of fewer troubles
//! before those of more, and remembered by a number of 64 bits.

// A test binary has no outside: `pub` says what other modules of it use.
#![allow(unreachable_pub)]

mod actor;
mod coordinator;
mod log;
mod search;
mod shape;
mod shift;
mod world;

use ottla_group::probe::{self, Fault};
use search::Search;
use std::sync::Mutex;
use std::time::{Duration, Instant};
use world::Tongue::{self, Classic, Consumer};
use world::{BOTH, Event, State};

/// Faults belong to the process: one test at a time.
static PROCESS: Mutex<()> = Mutex::new(());
/// Of a run without `OTTLA_SPACE_SECONDS`.
const TROUBLES_QUICK: usize = 2;
/// What the project claims.
const TROUBLES_MAX: usize = 5;

#[test]
fn no_state_is_wrong() {
    let _alone = PROCESS.lock();
    let seconds = std::env::var("OTTLA_SPACE_SECONDS").ok().and_then(|text| text.parse().ok());
    let (troubles, until) = match seconds {
        Some(seconds) => (TROUBLES_MAX, Some(Instant::now() + Duration::from_secs(seconds))),
        None => (TROUBLES_QUICK, None),
    };
    let mut search = Search::new(State::begin(), troubles);
    let wrong = search.run(|| until.is_none_or(|until| Instant::now() < until)).err();
    println!("{}", search.summary());
    assert_eq!(wrong, None);
    assert!(search.states() > 1500, "only {} states", search.states());
}

/// The test of the test: each of these bugs leads to a state that is wrong, or to one that leads
/// nowhere.
#[test]
fn broken_coordinators_and_members_are_found() {
    let _alone = PROCESS.lock();
    println!("{}", must_find(Fault::CoordinatorForgetsHolders, &[], &[]));
    println!("{}", must_find(Fault::CoordinatorBelievesEveryone, &[], &[]));
    println!("{}", must_find(Fault::CoordinatorTellsNobody, &[], &[]));
    println!("{}", must_find(Fault::MemberReportsEarly, &[(Consumer, BOTH)], &[]));
    println!("{}", must_find(Fault::MemberIgnoresLapse, &[(Consumer, BOTH)], &[]));
}

/// The same for migrations: Kafka 4.4 has each of these.
#[test]
fn broken_migrations_are_found() {
    let _alone = PROCESS.lock();
    let mixed = [(Classic, BOTH), (Consumer, BOTH)];
    println!(
        "{}",
        must_find(Fault::UpgradeForgetsOwed, &mixed[..1], &[Event::Join(1, Classic, BOTH)])
    );
    println!(
        "{}",
        must_find(Fault::DowngradeWritesTarget, &mixed, &[Event::Join(2, Classic, BOTH)])
    );
    println!("{}", must_find(Fault::DowngradeKeepsEpoch, &mixed, &[Event::Kill(1)]));
}

/// Finds a bug in what can become of a group of these processes; how, for people.
fn must_find(fault: Fault, processes: &[(Tongue, usize)], then: &[Event]) -> String {
    let start = State::of(processes, then);
    probe::inject(Some(fault));
    let mut search = Search::new(start, TROUBLES_MAX);
    let wrong = search.run(|| true).err();
    probe::inject(None);
    assert!(wrong.is_some(), "{fault:?} was not found in {} states", search.states());
    format!("{fault:?}: {} states, then {wrong:?}", search.states())
}
