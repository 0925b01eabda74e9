//! Describing, listing, deleting, and what users read about rebalances.

use super::super::{BlockedOn, Cause, GroupView};
use super::*;

fn view(world: &World) -> GroupView {
    let observed = world.shard.group("g");
    assert_eq!(observed.after, None);
    observed.value.expect("the group exists")
}

fn causes(world: &World) -> Vec<Vec<Cause>> {
    let journal = view(world).journal;
    journal
        .iter()
        .map(|entry| entry.triggers.iter().map(|trigger| trigger.cause).collect())
        .collect()
}

#[test]
fn describing_shows_metadata_and_assignments_of_a_stable_group() {
    let mut world = World::new();
    let members = world.stable(&[Joiner::new("g"), Joiner::fixed("g", "i")]);
    let description = world.describe("g").unwrap();
    assert_eq!(description.state, GroupState::Stable);
    assert_eq!((&*description.protocol_type, &*description.protocol), ("consumer", "range"));
    let first = &description.members[0];
    assert_eq!(first.member, members[0].member);
    assert_eq!((&*first.client_id, &*first.client_host), ("c", "/127.0.0.1"));
    assert_eq!(&*first.metadata, wants(&["t"]));
    assert_eq!(&*first.assignment, members[0].member.as_bytes());
    assert_eq!(description.members[1].instance, Some("i".into()));

    world.join(&Joiner::new("g"));
    let description = world.describe("g").unwrap();
    assert_eq!(description.state, GroupState::PreparingRebalance);
    assert_eq!(&*description.protocol, "");
    assert!(description.members.iter().all(|member| member.metadata.is_empty()));
}

#[test]
fn an_unknown_group_is_not_described() {
    let mut world = World::new();
    assert_eq!(world.describe("g").unwrap_err(), GroupError::GroupIdNotFound);
}

/// KIP-518 and KIP-848: filters by state and type; what no group can match matches none.
#[test]
fn kip_518_lists_filter_by_state_and_type() {
    let mut world = World::new();
    world.stable(&[Joiner::new("g")]);
    world.commit("h", "", -1, 1).unwrap();
    let ids = |listings: Vec<Listing>| -> Vec<String> {
        listings.iter().map(|listing| listing.group.to_string()).collect()
    };
    assert_eq!(ids(world.list(&[], &[])), ["g", "h"]);
    assert_eq!(ids(world.list(&["stable"], &[])), ["g"]);
    assert_eq!(ids(world.list(&["Empty", "Stable"], &["Classic"])), ["g", "h"]);
    assert_eq!(ids(world.list(&["Rebalancing"], &[])), [""; 0]);
    assert_eq!(ids(world.list(&[], &["consumer"])), [""; 0]);
    let listing = world.list(&["Empty"], &[]).remove(0);
    assert_eq!(&*listing.protocol_type, "");
}

#[test]
fn only_a_group_without_members_is_deleted() {
    let mut world = World::new();
    assert_eq!(world.delete_group("g"), Err(GroupError::GroupIdNotFound));
    let members = world.stable(&[Joiner::new("g")]);
    world.commit("g", &members[0].member, 1, 1).unwrap();
    assert_eq!(world.delete_group("g"), Err(GroupError::NonEmptyGroup));
    world.leave(&[(&members[0].member, None)]);
    assert_eq!(world.delete_group("g"), Ok(()));
    assert_eq!(world.fetch("g"), None);
    assert_eq!(world.state("g"), GroupState::Dead);
    world.restart();
    assert_eq!(world.fetch("g"), None);
    assert_eq!(world.delete_group("g"), Err(GroupError::GroupIdNotFound));
}

#[test]
fn groups_are_counted_by_state() {
    let mut world = World::new();
    world.stable(&[Joiner::new("g")]);
    world.commit("h", "", -1, 1).unwrap();
    world.join(&Joiner { group: "i", ..Joiner::new("i") });
    let counts = world.shard.states().value;
    assert_eq!((counts.stable, counts.empty, counts.preparing_rebalance), (1, 1, 1));
}

#[test]
fn lag_sees_every_committed_offset() {
    let mut world = World::new();
    let at = ("t", TopicId::ZERO);
    world.commit_for("g", ("", -1), at, &[(0, 5, ""), (1, 6, "")], None);
    let mut seen = Vec::new();
    let after = world.shard.committed(&mut |c| seen.push((c.partition.0, c.offset.0)));
    assert_eq!(after, None);
    assert_eq!(seen, [(0, 5), (1, 6)]);
}

/// Every way a generation ends is told apart, with who caused it.
#[test]
fn the_journal_names_causes() {
    let mut world = World::new();
    let members = world.stable(&[Joiner::new("g"), Joiner::fixed("g", "i")]);
    let (leader, fixed) = (members[0].member.clone(), members[1].member.clone());
    let joiner = Joiner::new("g").with_id(&leader);
    let fixed = Joiner::fixed("g", "i").with_id(&fixed);

    let settle = |world: &mut World, tokens: &[Token]| {
        let joined: Vec<_> = tokens.iter().map(|token| world.joined(*token)).collect();
        world.settle(&joined);
    };
    let tokens = [world.join(&joiner), world.join(&fixed)];
    settle(&mut world, &tokens);
    let changed = fixed.clone().protocols(&[("range", &wants(&["u"]))]);
    let tokens = [world.join(&changed), world.join(&joiner)];
    settle(&mut world, &tokens);
    let third = world.join(&Joiner::new("g"));
    let tokens = [third, world.join(&changed), world.join(&joiner)];
    settle(&mut world, &tokens);
    world.leave(&[("", Some("i"))]);
    world.pass(secs(9));
    let rejoin = world.join(&joiner);
    world.pass(secs(1));
    let alone = world.joined(rejoin);
    world.settle(&[alone]);

    assert_eq!(
        causes(&world),
        [
            alloc::vec![Cause::Joined, Cause::Joined],
            alloc::vec![Cause::LeaderRejoined],
            alloc::vec![Cause::MetadataChanged],
            alloc::vec![Cause::Joined],
            alloc::vec![Cause::Removed, Cause::SessionExpired],
        ]
    );
    let last = view(&world).journal.pop().expect("five entries");
    assert_eq!(
        last.triggers[0].who.as_ref().and_then(|who| who.instance.clone()),
        Some("i".into())
    );
    assert_eq!(last.join_took, secs(10));
    assert_eq!(last.sync_took, Some(Duration::ZERO));
    assert_eq!(last.slowest[0].join_took, secs(9));
    assert_eq!((last.generation, last.members), (Generation(5), 1));
}

/// Where assignments can be read, the journal tells which partitions moved.
#[test]
fn the_journal_tells_what_moved() {
    use crate::assign::Partitions;
    use crate::assign::subscription::Assignment;
    let owns = |partitions: &[i32]| {
        let mut owned = Partitions::new();
        let topic = TopicName::from("t");
        for partition in partitions {
            owned.insert(&topic, PartitionId(*partition));
        }
        Assignment { partitions: owned, user_data: None }.encode(0)
    };
    let mut world = World::new();
    let first = world.join(&Joiner::new("g"));
    world.pass(Duration::ZERO);
    let first = world.joined(first);
    let sync = world.sync(&first, &[(&first.member, &owns(&[0, 1, 2]))]);
    world.assignment(sync);
    let second = world.join(&Joiner::new("g"));
    let rejoin = world.join(&Joiner::new("g").with_id(&first.member));
    let (second, first) = (world.joined(second), world.joined(rejoin));
    let parts = [(&*first.member, &*owns(&[0, 1])), (&*second.member, &*owns(&[2]))];
    let sync = world.sync(&first, &parts);
    world.assignment(sync);
    let journal = view(&world).journal;
    assert_eq!(journal[0].moved, Some(3));
    assert_eq!(journal[1].moved, Some(1));
    let moved = &journal[1].moves[0];
    assert_eq!(moved.partition, PartitionId(2));
    assert_eq!((&moved.from, &moved.to), (&Some(first.member), &Some(second.member)));
}

#[test]
fn the_journal_is_bounded() {
    let mut world = World::with(Config {
        initial_rebalance_delay: Duration::ZERO,
        journal_entries_max: 3,
        ..Config::default()
    });
    for _ in 0..5 {
        let members = world.stable(&[Joiner::new("g")]);
        world.leave(&[(&members[0].member, None)]);
    }
    let generations: Vec<_> = view(&world).journal.iter().map(|entry| entry.generation.0).collect();
    assert_eq!(generations, [8, 9, 10]);
}

/// Who is blocking now, and since when.
#[test]
fn whoever_holds_up_a_group_is_named() {
    let mut world = World::new();
    let members = world.stable(&[Joiner::new("g"), Joiner::new("g")]);
    assert!(view(&world).blocking.is_empty());
    let new = world.join(&Joiner::new("g"));
    let since = world.now.mono;
    world.pass(secs(1));
    let rejoin = world.join(&Joiner::new("g").with_id(&members[0].member));
    let blocking = view(&world).blocking;
    assert_eq!(blocking.len(), 1);
    assert_eq!(blocking[0].who.member, members[1].member);
    assert_eq!((blocking[0].owes, blocking[0].since), (BlockedOn::Join, since));
    world.join(&Joiner::new("g").with_id(&members[1].member));
    world.joined(new);
    let leader = world.joined(rejoin);
    let owing: Vec<_> = view(&world).blocking.iter().map(|b| b.owes).collect();
    assert_eq!(owing, [BlockedOn::Sync; 3]);
    let sync = world.sync(&leader, &[]);
    world.assignment(sync);
    assert!(view(&world).blocking.is_empty());
}

/// KIP-800: the client's own words stand beside the cause.
#[test]
fn kip_800_the_journal_keeps_reasons() {
    let mut world = World::new();
    let reason = Some("need to revoke partitions and re-join");
    world.stable(&[Joiner { reason, ..Joiner::new("g") }]);
    let trigger = view(&world).journal[0].triggers[0].clone();
    assert_eq!(trigger.cause, Cause::Joined);
    assert_eq!(trigger.reason.as_deref(), reason);
}

/// KIP-429: a member that gave up partitions rejoins with the same topics and other owned
/// partitions; the journal does not call that a changed subscription.
#[test]
fn kip_429_the_second_step_is_told_apart() {
    let mut world = World::new();
    let members = world.stable(&[Joiner::new("g"), Joiner::new("g")]);
    let topics = alloc::vec![TopicName::from("t")];
    let user_data = Some(alloc::vec![1]);
    let owns = Subscription { topics, user_data, ..Subscription::default() }.encode(1);
    let changed = Joiner::new("g").protocols(&[("range", &owns)]);
    let follower = world.join(&changed.with_id(&members[1].member));
    let leader = world.join(&Joiner::new("g").with_id(&members[0].member));
    world.joined(follower);
    world.joined(leader);
    assert_eq!(causes(&world)[1], [Cause::OwnershipChanged]);
}

#[test]
fn rebalances_are_counted_by_cause() {
    let mut world = World::new();
    let members = world.stable(&[Joiner::new("g"), Joiner::new("g")]);
    world.leave(&[(&members[0].member, None), (&members[1].member, None)]);
    let counts: Vec<_> = world.shard.rebalances().collect();
    assert_eq!(counts, [(Cause::Joined, 1), (Cause::Left, 1)]);
    assert_eq!(world.shard.groups().value.len(), 1);
}
