//! The swarm: many members of the shipped code, two would-be coordinators over one log, and a
//! network, disks and clocks that fail; seed by seed, in memory, with time that only jumps.
//!
//! `OTTLA_SEEDS=100000` runs so many seeds (300 without), from `OTTLA_SEED_FIRST` on;
//! `OTTLA_SEED=N` runs one and prints what happened in it. What is checked lives in
//! [`checker`]: from outside, by what members and readers were told.

// A test binary has no outside: `pub` says what other modules of it use.
#![allow(unreachable_pub)]

mod actor;
mod bugs;
mod chaos;
mod checker;
#[path = "../harness/mod.rs"]
mod harness;
mod net;
mod rng;
mod site;
mod wires;
mod world;

use ottla_group::probe::{self, Fault, Mark};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use world::{EVENTS_MIN, World};

/// Marks and faults belong to the process: one test at a time.
static PROCESS: Mutex<()> = Mutex::new(());
const SEEDS_DEFAULT: u64 = 300;
/// After so many broken seeds there is no need for more.
const BROKEN_MAX: usize = 8;
/// A bug must show itself in so many seeds.
const BUG_SEEDS_MAX: u64 = 1000;
/// With so many seeds every coverage mark must have been hit.
const SEEDS_FULL: u64 = 20_000;

/// Branches no member of the shipped code leads to, each with the scenario that does.
const MARKS_ELSEWHERE: &[Mark] = &[
    // phantom.txt: only clients older than KIP-394 join without knowing their id.
    Mark::CoordinatorStrangerGone,
    // absence.txt: members never delete what they committed.
    Mark::CoordinatorAbsenceWaited,
    // static-absent.txt: takes a group whose every member is static, all of them away at once; held
    // heartbeats made that rarer than one seed in 100,000.
    Mark::CoordinatorFoundNobody,
    // register/s19-socket.txt: members of the swarm speak the classic protocol.
    Mark::CoordinatorSparedSocket,
];

/// Bugs that members of the shipped code hide, each with the scenario that shows them.
const FAULTS_ELSEWHERE: &[Fault] = &[
    // stale-generation.txt: a member commits only what it owns, closes the connection of a commit
    // it gives up, and stops before others begin, so its stale commits do not arrive.
    Fault::CoordinatorTakesStaleCommits,
    // stale-generation.txt: the same, for the assignments of a leader.
    Fault::CoordinatorTakesStaleAssignments,
    // restart.txt: what could be taken for a request of the second telling does not arrive.
    Fault::CoordinatorRepeatsGenerations,
    // absence.txt: members never delete what they committed.
    Fault::CoordinatorForgetsRemovals,
    // holds.txt: whoever hears late of a rebalance still comes to it.
    Fault::CoordinatorKeepsNews,
    // tests/space finds these, which take a coordinator that goes at the right moment, or a member
    // that comes then.
    Fault::UpgradeForgetsOwed,
    Fault::DowngradeWritesTarget,
    Fault::DowngradeKeepsEpoch,
];

/// What one seed came to.
struct Outcome {
    hash: u64,
    events: u64,
    acked: u64,
    reads: u64,
    is_rivalled: bool,
    verdict: Result<(), String>,
}

fn run(seed: u64) -> Outcome {
    let mut world = World::new(seed, false);
    let verdict = world.run();
    Outcome {
        hash: world.trace.hash,
        events: world.events,
        acked: world.checker.acked,
        reads: world.checker.reads,
        is_rivalled: world.rival_answers > 0,
        verdict,
    }
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

#[test]
fn no_violation() {
    let _alone = PROCESS.lock();
    if let Some(seed) = number("OTTLA_SEED") {
        return tell(seed);
    }
    let seeds = number("OTTLA_SEEDS").unwrap_or(SEEDS_DEFAULT);
    let first = number("OTTLA_SEED_FIRST").unwrap_or(0);
    let began = std::time::Instant::now();
    let sums = run_all(first, seeds, BROKEN_MAX);
    let took = began.elapsed();
    println!(
        "{seeds} seeds: {} events, {} commits acknowledged, {} reads, {} seeds with two \
         coordinators active at once, {:.0} seeds/s",
        sums.events.load(Relaxed),
        sums.acked.load(Relaxed),
        sums.reads.load(Relaxed),
        sums.rivalled.load(Relaxed),
        seeds as f64 / took.as_secs_f64(),
    );
    let missed: Vec<_> = probe::hits().filter(|(_, hit)| !hit).map(|(mark, _)| mark).collect();
    let missed_here: Vec<_> = missed.iter().filter(|m| !MARKS_ELSEWHERE.contains(m)).collect();
    println!("marks hit: {} of {}; missed: {missed:?}", all_marks() - missed.len(), all_marks());
    let broken = sums.broken.into_inner().expect("no thread panicked");
    assert!(broken.is_empty(), "{}", broken.join("\n"));
    assert!(sums.rivalled.load(Relaxed) >= seeds / 10, "two coordinators in a tenth of the seeds");
    let is_full = seeds >= SEEDS_FULL;
    assert!(!is_full || missed_here.is_empty(), "marks that no seed reached: {missed_here:?}");
}

fn all_marks() -> usize {
    probe::hits().count()
}

#[derive(Default)]
struct Sums {
    events: AtomicU64,
    acked: AtomicU64,
    reads: AtomicU64,
    rivalled: AtomicU64,
    /// What went wrong, with how to see it again; the first few.
    broken: Mutex<Vec<String>>,
}

fn run_all(first: u64, seeds: u64, broken_max: usize) -> Sums {
    let sums = Sums::default();
    let next = AtomicU64::new(first);
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get());
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Relaxed);
                    let broken = sums.broken.lock().expect("no thread panicked").len();
                    if seed >= first + seeds || broken >= broken_max {
                        return;
                    }
                    check(seed, &sums);
                }
            });
        }
    });
    sums
}

fn check(seed: u64, sums: &Sums) {
    let outcome = std::panic::catch_unwind(|| run(seed));
    let violation = match &outcome {
        Ok(Outcome { verdict: Err(violation), .. }) => violation.clone(),
        Ok(Outcome { events, .. }) if *events < EVENTS_MIN => format!("only {events} events"),
        Ok(_) => String::new(),
        Err(_) => "an assertion fails".into(),
    };
    if !violation.is_empty() {
        let line = format!("seed {seed}: {violation}\n  {}", replay(seed));
        sums.broken.lock().expect("no thread panicked").push(line);
    }
    let Ok(outcome) = outcome else { return };
    sums.events.fetch_add(outcome.events, Relaxed);
    sums.acked.fetch_add(outcome.acked, Relaxed);
    sums.reads.fetch_add(outcome.reads, Relaxed);
    sums.rivalled.fetch_add(u64::from(outcome.is_rivalled), Relaxed);
}

fn replay(seed: u64) -> String {
    format!(
        "replay: OTTLA_SEED={seed} cargo test -p ottla-group --test swarm no_violation -- \
         --nocapture"
    )
}

/// Runs one seed and prints everything that happens in it.
#[allow(clippy::print_stdout, reason = "it was asked for")]
fn tell(seed: u64) {
    let mut world = World::new(seed, true);
    let verdict = world.run();
    for line in world.trace.lines.take().unwrap_or_default() {
        println!("{line}");
    }
    assert_eq!(verdict, Ok(()), "seed {seed}");
}

/// The same seed is the same run, to the last event.
#[test]
fn every_seed_is_one_run() {
    let _alone = PROCESS.lock();
    for seed in 0..40 {
        assert_eq!(run(seed).hash, run(seed).hash, "seed {seed}");
    }
}

/// Bugs that somebody could make, switched on one by one: the swarm finds each.
#[test]
fn reintroduced_bugs_are_found() {
    let _alone = PROCESS.lock();
    let mut unfound = Vec::new();
    // An assertion of the core is as good a find as a violation; nobody wants to read it.
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    for fault in Fault::ALL.iter().filter(|fault| !FAULTS_ELSEWHERE.contains(fault)) {
        probe::inject(Some(*fault));
        let sums = run_all(0, BUG_SEEDS_MAX, 1);
        probe::inject(None);
        match sums.broken.into_inner().expect("no thread panicked").first() {
            Some(found) => println!("{fault:?}: {}", found.lines().next().unwrap_or_default()),
            None => unfound.push(fault),
        }
    }
    std::panic::set_hook(hook);
    assert!(unfound.is_empty(), "bugs that {BUG_SEEDS_MAX} seeds do not find: {unfound:?}");
}
