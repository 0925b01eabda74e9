//! Everything has a bound with a defined answer.

use super::*;

fn world(config: impl FnOnce(&mut Config)) -> World {
    let mut settings = Config { initial_rebalance_delay: Duration::ZERO, ..Config::default() };
    config(&mut settings);
    World::with(settings)
}

#[test]
fn session_timeouts_have_bounds() {
    let mut world = World::new();
    for session in [millis(5_999), secs(1_801)] {
        let join = world.join(&Joiner { session, ..Joiner::new("g") });
        assert_eq!(world.refused(join).error, GroupError::InvalidSessionTimeout);
    }
    let nameless = world.join(&Joiner { group: "", ..Joiner::new("g") });
    assert_eq!(world.refused(nameless).error, GroupError::InvalidGroupId);
}

/// group.max.size: a stable group that is full takes nobody in.
#[test]
fn kip_389_a_full_group_refuses_new_members() {
    let mut world = world(|config| config.group_size_max = 2);
    let members = world.stable(&[Joiner::new("g"), Joiner::new("g")]);
    let third = world.join(&Joiner::new("g"));
    assert_eq!(world.refused(third).error, GroupError::GroupMaxSizeReached);
    assert_eq!(world.beat(&members[0].member, 1), Ok(()));
}

/// Kafka turns such a member away: its place is its own, so it comes back to a full group too.
#[test]
fn a_static_member_comes_back_to_a_full_group() {
    let mut world = world(|config| config.group_size_max = 1);
    world.stable(&[Joiner::fixed("g", "a")]);
    let back = world.join(&Joiner::fixed("g", "a"));
    assert_eq!(world.joined(back).generation, Generation(1));
    let other = world.join(&Joiner::fixed("g", "b"));
    assert_eq!(world.refused(other).error, GroupError::GroupMaxSizeReached);
}

/// group.max.size: while preparing, the first to come to the barrier have the places.
#[test]
fn kip_389_the_last_to_rejoin_goes() {
    let mut world = world(|config| config.group_size_max = 2);
    let members = world.stable(&[Joiner::new("g"), Joiner::new("g")]);
    let leader = world.join(&Joiner::new("g").with_id(&members[0].member));
    let third = world.join(&Joiner::new("g"));
    let last = world.join(&Joiner::new("g").with_id(&members[1].member));
    assert_eq!(world.refused(last).error, GroupError::GroupMaxSizeReached);
    assert_eq!(world.joined(leader).members.len(), 2);
    world.joined(third);
}

/// group.max.size: a group that comes from the log too large is rebalanced to fit.
#[test]
fn kip_389_a_loaded_group_shrinks() {
    let mut world = World::new();
    let members = world.stable(&[Joiner::new("g"), Joiner::new("g"), Joiner::new("g")]);
    world.config.group_size_max = 2;
    world.restart();
    assert_eq!(world.state("g"), GroupState::PreparingRebalance);
    let outcomes: Vec<_> = members
        .iter()
        .map(|member| world.join(&Joiner::new("g").with_id(&member.member)))
        .collect();
    assert_eq!(world.refused(outcomes[2]).error, GroupError::GroupMaxSizeReached);
    assert_eq!(world.joined(outcomes[0]).members.len(), 2);
}

#[test]
fn promised_ids_are_bounded() {
    let mut world = world(|config| config.group_size_max = 3);
    let joiner = Joiner { knows_kip394: true, ..Joiner::new("g") };
    for _ in 0..3 {
        let promised = world.join(&joiner);
        assert_eq!(world.refused(promised).error, GroupError::MemberIdRequired);
    }
    let fourth = world.join(&joiner);
    assert_eq!(world.refused(fourth).error, GroupError::GroupMaxSizeReached);
    world.pass(secs(10));
    assert_eq!(world.state("g"), GroupState::Dead, "promises alone do not keep a group");
}

#[test]
fn groups_are_bounded() {
    let mut world = world(|config| config.groups_max = 1);
    world.commit("g", "", -1, 1).unwrap();
    assert_eq!(world.commit("h", "", -1, 1).unwrap_err(), GroupError::NotAvailable);
    let join = world.join(&Joiner { group: "h", ..Joiner::new("g") });
    assert_eq!(world.refused(join).error, GroupError::NotAvailable);
    world.commit("g", "", -1, 2).unwrap();
}

#[test]
fn parked_requests_are_bounded() {
    let mut world = world(|config| config.parked_max = 2);
    let first = world.join(&Joiner::new("g"));
    world.join(&Joiner::new("g"));
    let third = world.join(&Joiner::new("g"));
    assert_eq!(world.refused(third).error, GroupError::NotAvailable);
    world.pass(Duration::ZERO);
    assert_eq!(world.joined(first).members.len(), 2);
    let later = world.join(&Joiner::new("g"));
    assert!(world.is_waiting(later), "places are free again");
}

#[test]
fn syncs_count_among_the_parked() {
    let mut world = world(|config| config.parked_max = 2);
    let tokens = [world.join(&Joiner::new("g")), world.join(&Joiner::new("g"))];
    world.pass(Duration::ZERO);
    let [leader, follower] = tokens.map(|token| world.joined(token));
    let others = [world.join(&Joiner::new("h")), world.join(&Joiner::new("h"))];
    let crowded = world.sync(&follower, &[]);
    assert_eq!(world.sync_outcome(crowded), Err(GroupError::NotAvailable));
    world.pass(Duration::ZERO);
    for other in others {
        world.joined(other);
    }
    let parked = world.sync(&follower, &[]);
    assert!(world.is_waiting(parked));
    world.join(&Joiner::new("h"));
    let leader_sync = world.sync(&leader, &[(&follower.member, b"f")]);
    assert_eq!(world.assignment(leader_sync), b"", "a sync that answers itself needs no place");
    assert_eq!(world.assignment(parked), b"f");
}

#[test]
fn metadata_of_a_group_is_bounded() {
    let mut world = world(|config| config.group_metadata_bytes_max = 300);
    world.stable(&[Joiner::new("g").protocols(&[("range", &[0; 100])])]);
    let large = world.join(&Joiner::new("g").protocols(&[("range", &[0; 200])]));
    assert_eq!(world.refused(large).error, GroupError::GroupMaxSizeReached);
    let small = world.join(&Joiner::new("g").protocols(&[("range", &[0; 10])]));
    assert!(world.is_waiting(small));
}

/// A commit above the batch bound is refused before anything of it is true.
#[test]
fn a_commit_above_the_batch_bound_changes_nothing() {
    let mut world = world(|config| config.batch_bytes_max = 1_000);
    let many: Vec<_> = (0..100).map(|partition| (partition, 1, "")).collect();
    let token = world.commit_for("g", ("", -1), ("t", TopicId::ZERO), &many, None);
    assert_eq!(world.committed(token).unwrap_err(), GroupError::RecordTooLarge);
    assert!(world.log.is_empty());
    assert_eq!(world.state("g"), GroupState::Dead);
}

/// An assignment above the batch bound is refused to all, who rebalance.
#[test]
fn an_assignment_above_the_batch_bound_is_refused() {
    let mut world = world(|config| config.batch_bytes_max = 1_000);
    let tokens = [world.join(&Joiner::new("g")), world.join(&Joiner::new("g"))];
    world.pass(Duration::ZERO);
    let [leader, follower] = tokens.map(|token| world.joined(token));
    let parked = world.sync(&follower, &[]);
    let large = world.sync(&leader, &[(&follower.member, &[0; 1_000])]);
    assert_eq!(world.sync_outcome(large), Err(GroupError::RecordTooLarge));
    assert_eq!(world.sync_outcome(parked), Err(GroupError::RecordTooLarge));
    assert_eq!(world.state("g"), GroupState::PreparingRebalance);
    assert!(world.log.is_empty());
}

/// Deleting a group is cleaning, and cleaning may be split; its answer waits for the last batch.
#[test]
fn deleting_a_group_is_split_by_the_batch_bound() {
    let mut world = world(|config| config.batch_bytes_max = 1_000);
    for partition in 0..50 {
        let at = ("t", TopicId::ZERO);
        let token = world.commit_for("g", ("", -1), at, &[(partition, 1, "")], None);
        world.committed(token).unwrap();
    }
    assert_eq!(world.delete_group("g"), Ok(()));
    assert_eq!(world.state("g"), GroupState::Dead);
    world.restart();
    assert_eq!(world.state("g"), GroupState::Dead);
}

/// There are millions of offsets, and many thousands of members and groups.
#[test]
fn what_there_is_much_of_stays_small() {
    use super::super::{group::Group, offsets::OFFSET_BYTES, roster::Member};
    assert_eq!(OFFSET_BYTES, 48);
    assert!(size_of::<Member>() <= 240, "{}", size_of::<Member>());
    assert!(size_of::<Group>() <= 512, "{}", size_of::<Group>());
}

/// A list of assignors is compared in the square of its length.
#[test]
fn assignors_of_a_member_are_bounded() {
    let mut world = World::new();
    let names: Vec<_> = (0..101).map(|_| ("range", &b""[..])).collect();
    let join = world.join(&Joiner::new("g").protocols(&names));
    assert_eq!(world.refused(join).error, GroupError::InvalidRequest);
}
