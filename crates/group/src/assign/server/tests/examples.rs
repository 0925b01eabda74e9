//! Small groups whose outcome can be read.

use super::super::ServerAssignor;
use super::world::{Member, Topics, World, moves, plain};
use alloc::collections::BTreeSet;
use alloc::format;
use alloc::vec;
use ottla_model::{InstanceId, MemberId};

fn fixed(instance: &str, topics: &[u8]) -> Member {
    let topics = topics.iter().copied().collect::<BTreeSet<_>>();
    Member { instance: Some(InstanceId::from(instance)), rack: None, topics }
}

/// KIP-848, "range": members by id, static ones first; the first few one partition longer; topics
/// of one size come out alike.
#[test]
fn range_gives_runs_in_order_of_identity() {
    let mut world = World::new(ServerAssignor::Range, plain(&[3, 3]));
    world.join("b", &[0, 1]);
    world.join("a", &[0, 1]);
    world.set("z", fixed("i", &[0, 1]));
    world.set("y", fixed("h", &[0]));
    world.assign();
    assert_eq!(world.recorded.len(), 4);
    assert_eq!(world.shown("y"), "t0[0]");
    assert_eq!(world.shown("z"), "t0[1] t1[0]");
    assert_eq!(world.shown("a"), "t0[2] t1[1]");
    assert_eq!(world.shown("b"), "t1[2]");

    world.leave("b");
    while !world.step() {}
    assert_eq!(world.target.take_changed(), ["a", "z"].map(MemberId::from));
    assert_eq!(world.shown("z"), "t0[1] t1[0, 1]");
    assert_eq!(world.shown("a"), "t0[2] t1[2]");
}

/// KIP-345 under range: a static member that comes back under another id owns what it owned.
#[test]
fn range_keeps_the_place_of_a_static_member() {
    let mut world = World::new(ServerAssignor::Range, plain(&[5]));
    world.set("m9", fixed("i1", &[0]));
    world.set("m8", fixed("i2", &[0]));
    world.assign();
    let before = world.shown("m9");
    world.leave("m9");
    world.set("m1", fixed("i1", &[0]));
    world.assign();
    assert_eq!(world.shown("m1"), before);
    assert_eq!(world.target.take_changed(), []);
}

/// Each topic is spread over the members, not only their sum (Kafka's uniform gives whole topics
/// to few members when all start at once).
#[test]
fn uniform_shares_out_each_topic() {
    let mut world = World::new(ServerAssignor::Uniform, plain(&[6, 6]));
    for id in ["a", "b", "c"] {
        world.join(id, &[0, 1]);
    }
    world.assign();
    for id in ["a", "b", "c"] {
        let share = world.target.share(id);
        assert_eq!(share.iter().map(|(_, ids)| ids.len()).collect::<vec::Vec<_>>(), [2, 2], "{id}");
    }
}

/// KIP-848: a joining member gets its quota, one partition from each of those above theirs.
#[test]
fn uniform_moves_what_a_joining_member_needs() {
    let mut world = World::new(ServerAssignor::Uniform, plain(&[12]));
    for id in ["a", "b", "c"] {
        world.join(id, &[0]);
    }
    world.assign();
    let before = world.owners();
    world.join("d", &[0]);
    world.assign();
    assert_eq!(moves(&before, &world.owners()), 3);
    world.check_even();
}

/// KIP-345 under uniform: removed and back under another id, told what it owned: nothing moves.
#[test]
fn uniform_restores_a_replaced_static_member() {
    let mut world = World::new(ServerAssignor::Uniform, plain(&[7]));
    world.set("m9", fixed("i1", &[0]));
    world.set("m8", fixed("i2", &[0]));
    world.assign();
    let share = world.target.share("m9");
    world.leave("m9");
    world.set("m1", fixed("i1", &[0]));
    world.target.restore("m1", super::world::flat(&share));
    world.assign();
    assert_eq!(world.target.share("m1"), share);
    world.check_whole();
}

/// A topic deleted and created again is another topic: all of it is placed anew and recorded.
#[test]
fn a_recreated_topic_is_recorded_under_its_new_id() {
    for assignor in ServerAssignor::ALL {
        let mut world = World::new(assignor, plain(&[4]));
        world.join("a", &[0]);
        world.assign();
        let mut topics = plain(&[4]);
        topics.insert(0, (1, vec![vec::Vec::new(); 4]));
        world.set_topics(topics);
        world.assign();
        assert_eq!(world.recorded[&MemberId::from("a")][0].0, super::world::topic_id(0, 1));
        world.set_topics(Topics::new());
        world.assign();
        world.check_whole();
    }
}

/// KIP-881's aim on the server: where racks allow, each member reads from its own.
#[test]
fn uniform_places_partitions_by_rack() {
    let racks = |index: usize| vec![(index % 3) as u8, ((index + 1) % 3) as u8];
    let topics: Topics = (0..4).map(|topic| (topic, (0, (0..30).map(racks).collect()))).collect();
    let mut world = World::new(ServerAssignor::Uniform, topics);
    for member in 0..10 {
        let rack = Some((member % 3) as u8);
        let topics = (0..4).collect();
        world.set(&format!("m{member}"), Member { instance: None, rack, topics });
    }
    world.assign();
    world.check_even();
    assert_eq!(strays(&world), 0);
    // 120 partitions, 12 each; the eleventh member takes from those it can read close by.
    world.set("n", Member { instance: None, rack: Some(1), topics: (0..4).collect() });
    let before = world.owners();
    world.assign();
    world.check_even();
    assert_eq!(moves(&before, &world.owners()), 10);
    assert!(strays(&world) <= 4, "{}", strays(&world));
}

/// Partitions whose owner has a rack and no replica in it.
fn strays(world: &World) -> usize {
    let owners = world.owners();
    let strays = owners.iter().filter(|((topic, _, index), owner)| {
        let racks = &world.topics[topic].1[*index as usize];
        world.members[*owner].rack.is_some_and(|rack| !racks.contains(&rack))
    });
    strays.count()
}

/// Kafka's range leaves the last members idle where there are more members than partitions.
#[test]
fn range_has_nothing_for_members_beyond_the_partitions() {
    let mut world = World::new(ServerAssignor::Range, plain(&[2, 2]));
    for id in ["a", "b", "c"] {
        world.join(id, &[0, 1]);
    }
    world.assign();
    assert_eq!(world.shown("c"), "");
    assert!(world.recorded.contains_key("c"), "an empty share of a new member is recorded too");
}
