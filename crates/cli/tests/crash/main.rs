//! Issue "the heart and a single broker", crash: `kill -9` at random moments under load.
//!
//! A real broker process is killed and restarted while producers, committers, readers of commits
//! and a group member go on. Checked from outside: no acked record or commit is missing, no record
//! is there twice, a committed offset is never answered as absent or older, and a live member meets
//! no rebalance. `OTTLA_ROUNDS` scales it; the seed is printed and taken from `OTTLA_SEED`.

mod broker;
mod commits;
mod link;
mod member;
mod produce;
mod restart;
mod world;

use broker::Broker;
use std::thread;
use std::time::Duration;
use world::{Random, World};

/// Rounds of kill and restart in an ordinary test run; the claimed size is 200.
const ROUNDS: u64 = 6;
/// Partitions of the topic under load, each with one idempotent producer.
const PARTITIONS: i32 = 4;
/// Groups that commit, each with a reader that never stops asking.
const GROUPS: usize = 4;
/// How long a broker lives in one round, in milliseconds.
const LIFE_MS: std::ops::Range<u64> = 40..400;

#[test]
fn acked_survives_kill_and_nothing_comes_twice() {
    let rounds = setting("OTTLA_ROUNDS").unwrap_or(ROUNDS);
    let seed = setting("OTTLA_SEED").unwrap_or_else(world::entropy);
    println!("crash: {rounds} rounds, OTTLA_SEED={seed}");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut broker = Broker::start(folder.path());
    let world = World::new(broker.address());
    world.create_topic(PARTITIONS);
    world.find_coordinator();

    let produced = thread::scope(|scope| {
        let producers: Vec<_> = (0..PARTITIONS)
            .map(|partition| scope.spawn(move || produce::run(world, partition, seed)))
            .collect();
        for group in 0..GROUPS {
            let ledger = world.ledger();
            scope.spawn(move || commits::commit(world, ledger, group, seed));
            scope.spawn(move || commits::read(world, ledger, group));
        }
        scope.spawn(move || member::run(world));
        // However it ends: threads that go on would hide why.
        let _stop = world.stop_at_end();
        kill_and_restart(&mut broker, world, rounds, seed);
        world.stop();
        producers.into_iter().map(|producer| producer.join().expect("a producer")).collect()
    });
    verify(world, produced);
    println!("crash: {}", world.summary());
}

fn kill_and_restart(broker: &mut Broker, world: &World, rounds: u64, seed: u64) {
    let mut random = Random::new(seed);
    for round in 0..rounds {
        world.wait_for_progress();
        thread::sleep(Duration::from_millis(random.within(LIFE_MS)));
        broker.kill_and_restart();
        world.moved_to(broker.address());
        assert!(world.violations().is_empty(), "round {round}: {:#?}", world.violations());
    }
    world.wait_for_progress();
}

/// Holds every partition's log against what its producer was told.
fn verify(world: &World, produced: Vec<produce::Ledger>) {
    for ledger in produced {
        produce::verify(world, &ledger);
    }
    assert!(world.violations().is_empty(), "{:#?}", world.violations());
}

fn setting(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}
