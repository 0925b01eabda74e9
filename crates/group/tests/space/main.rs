//! Every state a small group of the consumer protocol can get into (issue 4, must-show 3): the
//! shipped coordinator and the shipped members, three of them, two topics of three partitions, and
//! up to five things in one run that go otherwise: joins, leaves, deaths, silence, another
//! subscription, a lost connection, another coordinator.
//!
//! In each state no partition has two owners, targets are whole and epochs have not gone back; and
//! from each state, nothing more going wrong, everybody arrives within [`ROUNDS_MAX`] rounds.
//!
//! `OTTLA_SPACE_SECONDS` looks for so long, or until every state of up to five troubles was seen;
//! without it, all states of three. States are looked at breadth first, those of fewer troubles
//! before those of more, and remembered by a number of 64 bits. The moves of a group between
//! protocols are to join the events; the swarm has them.

// A test binary has no outside: `pub` says what other modules of it use.
#![allow(unreachable_pub)]

mod actor;
mod coordinator;
mod search;
mod shape;
mod world;

use ottla_group::probe::{self, Fault};
use search::Search;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Faults belong to the process: one test at a time.
static PROCESS: Mutex<()> = Mutex::new(());
/// Of a run without `OTTLA_SPACE_SECONDS`.
const TROUBLES_QUICK: usize = 3;
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
    let mut search = Search::new(troubles);
    let wrong = search.run(|| until.is_none_or(|until| Instant::now() < until)).err();
    println!("{}", search.summary());
    assert_eq!(wrong, None);
    assert!(search.states() > 2000, "only {} states", search.states());
}

/// The test of the test: each of these bugs leads to a state that is wrong, or to one that leads
/// nowhere.
#[test]
fn broken_coordinators_and_members_are_found() {
    let _alone = PROCESS.lock();
    for fault in [
        Fault::CoordinatorForgetsHolders,
        Fault::CoordinatorBelievesEveryone,
        Fault::CoordinatorTellsNobody,
        Fault::MemberReportsEarly,
        Fault::MemberIgnoresLapse,
    ] {
        probe::inject(Some(fault));
        let mut search = Search::new(TROUBLES_MAX);
        let wrong = search.run(|| true).err();
        probe::inject(None);
        println!("{fault:?}: {} states, then {wrong:?}", search.states());
        assert!(wrong.is_some(), "{fault:?} was not found");
    }
}
