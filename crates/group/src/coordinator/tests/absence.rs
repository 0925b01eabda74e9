//! The contract's rule of durability: nobody sees what could still be lost, and nobody waits for
//! what does not concern them.

use super::*;

#[test]
fn a_generation_is_told_once_it_is_durable() {
    let mut world = World::new();
    let token = world.join(&Joiner::new("g"));
    world.pass(Duration::ZERO);
    let joined = world.joined(token);
    world.durable_at_once = false;
    let sync = world.sync(&joined, &[]);
    let beat = world.beat_later("g", &joined.member, None, 1);
    assert!(world.is_waiting(sync) && world.is_waiting(beat));
    world.make_durable();
    world.assignment(sync);
    assert_eq!(world.answer(beat), Reply::Heartbeat(Ok(())));
}

/// A commit storm delays no heartbeat, of this group or another.
#[test]
fn a_heartbeat_waits_for_no_commit_and_no_other_group() {
    let mut world = World::new();
    let members = world.stable(&[Joiner::new("g")]);
    let other = world.join(&Joiner { group: "h", ..Joiner::new("h") });
    world.pass(Duration::ZERO);
    let other = world.joined(other);
    world.durable_at_once = false;
    let commit = world.commit_later("g", &members[0].member, 1, 1);
    let sync = world.sync_as("h", &other, None, &[]);
    assert_eq!(world.beat(&members[0].member, 1), Ok(()));
    assert!(world.is_waiting(commit) && world.is_waiting(sync));
}

#[test]
fn a_fetch_waits_for_the_groups_last_commit() {
    let mut world = World::new();
    world.commit("g", "", -1, 1).unwrap();
    world.durable_at_once = false;
    let commit = world.commit_later("g", "", -1, 2);
    let fetch = world.fetch_later("g");
    let other = world.fetch_later("h");
    assert_eq!(world.fetched(other), None, "another group's absence is known");
    assert!(world.is_waiting(commit) && world.is_waiting(fetch));
    world.make_durable();
    assert_eq!(world.fetched(fetch), Some(2));
}

/// An answer of absence too waits until the removal is durable.
#[test]
fn absence_waits_for_the_removal() {
    let mut world = World::new();
    world.commit("g", "", -1, 1).unwrap();
    world.durable_at_once = false;
    let delete = world.ask(1, "c", Ask::DeleteGroup(DeleteGroup { group: "g" }));
    let fetch = world.fetch_later("g");
    let describe = world.ask(1, "c", Ask::Describe(Describe { group: "g" }));
    let list = world.ask(1, "c", Ask::List(List::default()));
    let join = world.join(&Joiner::new("g").with_id("m"));
    let all = [delete, fetch, describe, list, join];
    assert!(all.iter().all(|token| world.is_waiting(*token)));
    assert_eq!(world.shard.group("g").after, Some(world.shard.last_index()));
    world.make_durable();
    assert!(all.iter().all(|token| !world.is_waiting(*token)));
    assert_eq!(world.fetched(fetch), None);
    assert_eq!(world.answer(describe), Reply::Describe(Err(GroupError::GroupIdNotFound)));
}

/// A group of the same id inherits the wait of the one that was removed.
#[test]
fn a_group_made_anew_waits_for_the_removal_of_the_old() {
    let mut world = World::new();
    world.commit("g", "", -1, 1).unwrap();
    world.durable_at_once = false;
    world.ask(1, "c", Ask::DeleteGroup(DeleteGroup { group: "g" }));
    let promised = world.join(&Joiner { knows_kip394: true, ..Joiner::new("g") });
    let fetch = world.fetch_later("g");
    assert!(world.is_waiting(promised) && world.is_waiting(fetch));
    world.make_durable();
    assert_eq!(world.refused(promised).error, GroupError::MemberIdRequired);
    assert_eq!(world.fetched(fetch), None);
}

/// A commit that brings a group into being is seen by Describe and List when it is durable.
#[test]
fn existence_waits_for_the_commit_that_made_it() {
    let mut world = World::new();
    world.durable_at_once = false;
    world.commit_later("g", "", -1, 1);
    let describe = world.ask(1, "c", Ask::Describe(Describe { group: "g" }));
    let list = world.ask(1, "c", Ask::List(List::default()));
    assert!(world.is_waiting(describe) && world.is_waiting(list));
    world.make_durable();
    assert!(!world.is_waiting(describe) && !world.is_waiting(list));
}

/// The last member's leave is answered when the empty generation is durable.
#[test]
fn the_last_leave_waits_for_the_empty_generation() {
    let mut world = World::new();
    let members = world.stable(&[Joiner::new("g")]);
    world.durable_at_once = false;
    let leaver = Leaver { member: &members[0].member, instance: None, reason: None };
    let leave = Ask::Leave(Leave { group: "g", members: alloc::vec![leaver] });
    let leave = world.ask(1, "c", leave);
    assert!(world.is_waiting(leave));
    world.make_durable();
    assert!(!world.is_waiting(leave));
}

/// Commits are appended in the order they were accepted, each request its own batch.
#[test]
fn decisions_keep_their_order() {
    let mut world = World::new();
    world.durable_at_once = false;
    for offset in 1..=3 {
        world.commit_later("g", "", -1, offset);
    }
    let offsets: Vec<_> = world
        .records()
        .into_iter()
        .map(|record| match record {
            Record::OffsetCommit(commit) => commit.value.map(|value| value.offset.0),
            _ => None,
        })
        .collect();
    assert_eq!(offsets, [Some(1), Some(2), Some(3)]);
    let indices: Vec<_> = world.log.iter().map(|append| append.index.0).collect();
    assert_eq!(indices, [1, 2, 3]);
}
