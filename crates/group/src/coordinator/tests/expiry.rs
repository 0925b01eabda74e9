//! KIP-211: when offsets, and groups, end by themselves.

use super::*;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

fn world() -> World {
    World::with(Config {
        initial_rebalance_delay: Duration::ZERO,
        offsets_retention: DAY,
        ..Config::default()
    })
}

fn beat_for(world: &mut World, member: &str, span: Duration) {
    let mut left = span;
    while !left.is_zero() {
        let step = left.min(secs(9));
        world.pass(step);
        world.beat(member, 1).expect("the member lives");
        left -= step;
    }
}

#[test]
fn kip_211_a_simple_groups_offsets_age_from_their_commit() {
    let mut world = world();
    world.commit("g", "", -1, 1).unwrap();
    world.pass(DAY - secs(60));
    let other = world.commit_for("g", ("", -1), ("u", TopicId::ZERO), &[(0, 1, "")], None);
    world.committed(other).unwrap();
    world.pass(secs(660));
    assert_eq!(world.fetch_all("g").keys().collect::<Vec<_>>(), ["u-0"]);
    world.pass(DAY);
    assert_eq!(world.state("g"), GroupState::Dead);
    world.restart();
    assert_eq!(world.state("g"), GroupState::Dead);
}

#[test]
fn kip_211_a_groups_offsets_age_from_when_it_became_empty() {
    let mut world = world();
    let members = world.stable(&[Joiner::new("g")]);
    world.commit("g", &members[0].member, 1, 1).unwrap();
    beat_for(&mut world, &members[0].member, secs(3_600));
    world.leave(&[(&members[0].member, None)]);
    world.pass(DAY - secs(1));
    assert_eq!(world.fetch("g"), Some(1));
    world.pass(secs(601));
    assert_eq!(world.fetch("g"), None);
    assert_eq!(world.state("g"), GroupState::Dead, "the group goes with its last offset");
    let Some(Record::GroupMetadata(last)) = world.records().pop() else { panic!("a tombstone") };
    assert_eq!(last.value, None);
}

/// Emptiness is on record with its time, so a restart does not start the age anew.
#[test]
fn kip_211_age_survives_a_restart() {
    let mut world = world();
    let members = world.stable(&[Joiner::new("g")]);
    world.commit("g", &members[0].member, 1, 1).unwrap();
    world.leave(&[(&members[0].member, None)]);
    world.pass(DAY - secs(60));
    world.restart();
    world.pass(secs(660));
    assert_eq!(world.fetch("g"), None);
}

#[test]
fn kip_211_members_keep_offsets_of_their_topics_alive() {
    let mut world = World::with(Config {
        initial_rebalance_delay: Duration::ZERO,
        offsets_retention: secs(1_200),
        ..Config::default()
    });
    let members = world.stable(&[Joiner::new("g")]);
    let member = &members[0].member;
    for name in ["t", "u"] {
        let at = (name, TopicId::ZERO);
        let token = world.commit_for("g", (member, 1), at, &[(0, 1, "")], None);
        world.committed(token).unwrap();
    }
    beat_for(&mut world, member, secs(1_900));
    assert_eq!(world.fetch_all("g").keys().collect::<Vec<_>>(), ["t-0"]);
}

/// OffsetCommit v2-v4 could name a retention of its own.
#[test]
fn an_explicit_retention_counts_instead() {
    let mut world = world();
    let at = ("t", TopicId::ZERO);
    let token = world.commit_for("g", ("", -1), at, &[(0, 1, "")], Some(secs(3_600)));
    world.committed(token).unwrap();
    let token = world.commit_for("g", ("", -1), at, &[(1, 1, "")], Some(DAY * 3));
    world.committed(token).unwrap();
    world.pass(secs(3_599));
    assert_eq!(world.fetch_all("g").len(), 2);
    world.restart();
    world.pass(secs(601));
    assert_eq!(world.fetch_all("g").keys().collect::<Vec<_>>(), ["t-1"]);
    world.pass(DAY * 2);
    assert_eq!(world.fetch_all("g").len(), 1);
    world.pass(DAY);
    assert_eq!(world.state("g"), GroupState::Dead);
}

/// As in Kafka, a group that is empty and has no offsets is not kept at all.
#[test]
fn an_empty_group_without_offsets_goes_at_the_next_look() {
    let mut world = world();
    let members = world.stable(&[Joiner::new("g")]);
    world.leave(&[(&members[0].member, None)]);
    assert_eq!(world.state("g"), GroupState::Empty);
    world.pass(secs(600));
    assert_eq!(world.state("g"), GroupState::Dead);
}

/// Expiry may be split: many tombstones are several batches.
#[test]
fn expiry_is_split_by_the_batch_bound() {
    let mut world = World::with(Config {
        initial_rebalance_delay: Duration::ZERO,
        offsets_retention: DAY,
        batch_bytes_max: 2_000,
        ..Config::default()
    });
    for partition in 0..100 {
        let at = ("t", TopicId::ZERO);
        let token = world.commit_for("g", ("", -1), at, &[(partition, 1, "")], None);
        world.committed(token).unwrap();
    }
    let before = world.log.len();
    world.pass(DAY + secs(600));
    let tombstones: usize = world.log[before..].iter().map(|append| append.records.len()).sum();
    assert_eq!(tombstones, 100);
    assert!(world.log.len() > before + 1, "more than one batch");
    for append in &world.log {
        let bytes: usize = append.records.iter().map(Record::estimated_bytes).sum();
        assert!(bytes <= 2_000);
    }
}
