//! KIP-345: static members keep their place through a restart, and fence who held it before.

use super::*;
use crate::assign::Partitions;
use crate::assign::subscription::Assignment;
use ottla_model::TopicPartition;

fn stable_pair() -> (World, Joined, Joined) {
    let mut world = World::new();
    let mut members = world.stable(&[Joiner::fixed("g", "a"), Joiner::fixed("g", "b")]);
    let follower = members.pop().expect("two members");
    let leader = members.pop().expect("two members");
    assert!(leader.member.starts_with("a-"), "an id begins with the instance: {}", leader.member);
    (world, leader, follower)
}

#[test]
fn kip_345_a_follower_restarts_without_a_rebalance() {
    let (mut world, leader, follower) = stable_pair();
    let back = world.join(&Joiner::fixed("g", "b"));
    let back = world.joined(back);
    assert_ne!(back.member, follower.member);
    assert_eq!((back.generation, &back.leader), (Generation(1), &leader.member));
    assert!(!back.skip_assignment);
    let sync = world.sync_as("g", &back, Some("b"), &[]);
    assert_eq!(world.assignment(sync), follower.member.as_bytes(), "its part stays its own");
    assert_eq!(world.beat_as("g", &leader.member, Some("a"), 1), Ok(()));
    assert_eq!(world.state("g"), GroupState::Stable);
}

/// The new id is on record before anyone hears of it.
#[test]
fn kip_345_the_new_id_is_written_down() {
    let (mut world, _, _) = stable_pair();
    world.durable_at_once = false;
    let token = world.join(&Joiner::fixed("g", "b"));
    assert!(world.is_waiting(token));
    world.make_durable();
    let back = world.joined(token);
    let Some(Record::GroupMetadata(last)) = world.records().pop() else { panic!("a generation") };
    let members = &last.value.as_ref().expect("members").members;
    assert_eq!(members[1].member, back.member);
}

/// KIP-814: a leader that restarts is told not to assign.
#[test]
fn kip_814_a_leader_restarts_without_a_rebalance() {
    let (mut world, _, follower) = stable_pair();
    let back = world.join(&Joiner::fixed("g", "a"));
    let back = world.joined(back);
    assert!(back.skip_assignment);
    assert_eq!(back.leader, back.member);
    assert_eq!(back.members.len(), 2, "it sees all members, to watch their topics");
    assert_eq!(world.beat_as("g", &follower.member, Some("b"), 1), Ok(()));
}

/// A leader that cannot skip assignment must not take itself for the leader.
#[test]
fn kip_345_a_leader_before_kip_814_comes_back_as_a_follower() {
    let (mut world, leader, _) = stable_pair();
    let back = world.join(&Joiner { knows_kip814: false, ..Joiner::fixed("g", "a") });
    let back = world.joined(back);
    assert_eq!(back.leader, leader.member);
    assert!(back.members.is_empty() && !back.skip_assignment);
    let sync = world.sync_as("g", &back, Some("a"), &[]);
    assert_eq!(world.assignment(sync), leader.member.as_bytes());
}

#[test]
fn kip_345_the_former_self_is_fenced() {
    let (mut world, leader, _) = stable_pair();
    world.join(&Joiner::fixed("g", "a"));
    let fenced = Err(GroupError::FencedInstanceId);
    assert_eq!(world.beat_as("g", &leader.member, Some("a"), 1), fenced);
    let sync = world.sync_as("g", &leader, Some("a"), &[]);
    assert_eq!(world.sync_outcome(sync).map(|_| ()), fenced);
    let join = world.join(&Joiner::fixed("g", "a").with_id(&leader.member));
    assert_eq!(world.refused(join).error, GroupError::FencedInstanceId);
    let left = world.leave(&[(&leader.member, Some("a"))]);
    assert_eq!(left.members[0].2, fenced);
    let unknown = Err(GroupError::UnknownMemberId);
    assert_eq!(world.beat("m", 1), unknown);
    assert_eq!(world.beat_as("g", &leader.member, Some("z"), 1), unknown);
}

#[test]
fn kip_345_a_parked_former_self_is_fenced_at_once() {
    let (mut world, leader, follower) = stable_pair();
    let rejoin = world.join(&Joiner::fixed("g", "a").with_id(&leader.member));
    assert_eq!(world.state("g"), GroupState::PreparingRebalance);
    let back = world.join(&Joiner::fixed("g", "a"));
    assert_eq!(world.refused(rejoin).error, GroupError::FencedInstanceId);
    assert!(world.is_waiting(back));
    let last = world.join(&Joiner::fixed("g", "b").with_id(&follower.member));
    let back = world.joined(back);
    assert_eq!(back.leader, back.member, "the place of the leader is its own");
    world.joined(last);
}

/// The leader may be assigning to the old id by now, so the group starts over.
#[test]
fn kip_345_a_restart_while_completing_rebalances() {
    let mut world = World::new();
    let (first, second) =
        (world.join(&Joiner::fixed("g", "a")), world.join(&Joiner::fixed("g", "b")));
    world.pass(Duration::ZERO);
    let (leader, follower) = (world.joined(first), world.joined(second));
    let parked = world.sync_as("g", &follower, Some("b"), &[]);
    let back = world.join(&Joiner::fixed("g", "b"));
    assert_eq!(world.sync_outcome(parked), Err(GroupError::FencedInstanceId));
    assert_eq!(world.state("g"), GroupState::PreparingRebalance);
    let rejoin = world.join(&Joiner::fixed("g", "a").with_id(&leader.member));
    assert_eq!(world.joined(rejoin).generation, Generation(2));
    world.joined(back);
}

/// Kafka keeps the old assignment even then; the member would wait for its new topics until the
/// next rebalance.
#[test]
fn a_static_member_that_comes_back_for_other_topics_rebalances() {
    let (mut world, _, _) = stable_pair();
    let back = Joiner::fixed("g", "b").protocols(&[("range", &wants(&["t", "u"]))]);
    world.join(&back);
    assert_eq!(world.state("g"), GroupState::PreparingRebalance);
}

/// Sticky assignors send what they own in the metadata: that alone is no reason to rebalance.
#[test]
fn kip_345_other_user_data_is_no_reason_to_rebalance() {
    let (mut world, _, _) = stable_pair();
    let topics = alloc::vec![TopicName::from("t")];
    let user_data = Some(alloc::vec![1, 2, 3]);
    let metadata = Subscription { topics, user_data, ..Subscription::default() }.encode(1);
    let back = world.join(&Joiner::fixed("g", "b").protocols(&[("range", &metadata)]));
    assert_eq!(world.joined(back).generation, Generation(1));
}

#[test]
fn kip_345_a_change_of_the_chosen_assignor_rebalances() {
    let (mut world, _, _) = stable_pair();
    let subscription = wants(&["t"]);
    let both: &[(&str, &[u8])] = &[("own", &subscription), ("range", &subscription)];
    let first = world.join(&Joiner::fixed("g", "a").protocols(both));
    assert_eq!(world.joined(first).generation, Generation(1), "b knows range alone");
    world.join(&Joiner::fixed("g", "b").protocols(both));
    assert_eq!(world.state("g"), GroupState::PreparingRebalance);
}

/// KIP-429: partitions that were taken from a static member are nobody's until it gives them up
/// and joins again. If it restarts before that, its new self knows of nothing to give up, and a
/// leader is told to skip: without a rebalance they would be nobody's for good.
#[test]
fn kip_429_a_static_member_that_owed_partitions_rebalances() {
    for (given, expected) in [
        (&[0, 1][..], GroupState::Stable),
        (&[0], GroupState::PreparingRebalance),
        (&[], GroupState::PreparingRebalance),
    ] {
        for (instance, restarts_coordinator) in [("a", false), ("b", false), ("a", true)] {
            let mut world = World::new();
            let set = |partitions: &[i32]| {
                let partitions = partitions.iter().map(|p| TopicPartition::new("t", *p));
                partitions.collect::<Partitions>()
            };
            let topics = alloc::vec![TopicName::from("t")];
            let owned = set(&[0, 1]);
            let owns = Subscription { topics, owned, ..Subscription::default() }.encode(1);
            let part = Assignment { partitions: set(given), user_data: None }.encode(1);
            let fixed = |instance| Joiner::fixed("g", instance).protocols(&[("range", &owns)]);
            let tokens = [world.join(&fixed("a")), world.join(&fixed("b"))];
            world.pass(world.config.initial_rebalance_delay * 2);
            let [leader, follower] = tokens.map(|token| world.joined(token));
            let parts = [&leader, &follower].map(|joined| (joined.member.as_str(), &part[..]));
            world.sync_as("g", &leader, Some("a"), &parts);
            world.sync_as("g", &follower, Some("b"), &[]);
            if restarts_coordinator {
                world.restart();
            }
            let back = Joiner::fixed("g", instance).protocols(&[("range", &wants(&["t"]))]);
            world.join(&back);
            assert_eq!(world.state("g"), expected, "{instance} was given {given:?}");
        }
    }
}

/// A group of two, `a` leading, that are assigned the four partitions of `t`.
fn assigned_pair() -> (World, Joined, Joined) {
    let mut world = World::new();
    world.topics([topic("t", 1)]);
    let tokens = [world.join(&Joiner::fixed("g", "a")), world.join(&Joiner::fixed("g", "b"))];
    world.pass(world.config.initial_rebalance_delay * 2);
    let [leader, follower] = tokens.map(|token| world.joined(token));
    assign_halves(&mut world, &leader, &follower);
    (world, leader, follower)
}

fn assign_halves(world: &mut World, leader: &Joined, follower: &Joined) {
    let half = |partitions: [i32; 2]| {
        let partitions = partitions.map(|p| TopicPartition::new("t", p)).into_iter().collect();
        Assignment { partitions, user_data: None }.encode(1)
    };
    let (lower, upper) = (half([0, 1]), half([2, 3]));
    let parts = [(leader.member.as_str(), &lower[..]), (follower.member.as_str(), &upper[..])];
    world.sync_as("g", leader, Some("a"), &parts);
    world.sync_as("g", follower, Some("b"), &[]);
    assert_eq!(world.state("g"), GroupState::Stable);
}

fn grown() -> Topic {
    Topic { partitions: alloc::vec![Partition::default(); 5], ..topic("t", 1) }
}

/// S6, KIP-814: a leader that restarts is told not to assign, and believes that what it finds is
/// what was assigned. Partitions that came while it was away would be nobody's.
#[test]
fn s6_a_leader_that_comes_back_to_a_grown_topic_rebalances() {
    for (instance, expected) in [("a", GroupState::PreparingRebalance), ("b", GroupState::Stable)] {
        let (mut world, ..) = assigned_pair();
        world.topics([grown()]);
        assert_eq!(world.state("g"), GroupState::Stable, "it is for the leader to see");
        world.join(&Joiner::fixed("g", instance));
        assert_eq!(world.state("g"), expected, "{instance}");
    }
}

/// S6, KIP-814: what comes after it was told so may be before it looked; and one that cannot skip
/// takes itself for a follower and never looks. The coordinator does, until they assign again.
#[test]
fn s6_the_coordinator_watches_for_a_leader_that_did_not_assign() {
    for (knows_kip814, restarts_coordinator) in [(true, false), (false, false), (true, true)] {
        let (mut world, _, follower) = assigned_pair();
        if restarts_coordinator {
            world.restart();
        } else {
            let back = world.join(&Joiner { knows_kip814, ..Joiner::fixed("g", "a") });
            world.joined(back);
        }
        assert_eq!(world.state("g"), GroupState::Stable);
        world.topics([topic("t", 1), topic("u", 2)]);
        assert_eq!(world.state("g"), GroupState::Stable, "nobody wants that topic");
        world.topics([grown()]);
        assert_eq!(world.state("g"), GroupState::PreparingRebalance);
        let again = world.join(&Joiner::fixed("g", "a"));
        let follower = world.join(&Joiner::fixed("g", "b").with_id(&follower.member));
        let (leader, follower) = (world.joined(again), world.joined(follower));
        assign_halves(&mut world, &leader, &follower);
        world.topics([topic("t", 1)]);
        world.topics([grown()]);
        assert_eq!(world.state("g"), GroupState::Stable, "the leader watches by itself");
    }
}

/// An administrator removes a static member by its instance alone.
#[test]
fn kip_345_leave_by_instance() {
    let (mut world, leader, _) = stable_pair();
    let left = world.leave(&[("", Some("b"))]);
    assert_eq!(left.members[0].2, Ok(()));
    assert_eq!(
        world.beat_as("g", &leader.member, Some("a"), 1),
        Err(GroupError::RebalanceInProgress)
    );
    assert_eq!(world.describe("g").unwrap().members.len(), 1);
}

/// Static members that do not rejoin keep their place until their session ends.
#[test]
fn kip_345_absent_static_members_stay_at_the_close_of_the_barrier() {
    let mut world = World::new();
    let long = Joiner { session: secs(300), ..Joiner::fixed("g", "b") };
    let members = world.stable(&[Joiner { session: secs(300), ..Joiner::fixed("g", "a") }, long]);
    let rejoin = world.join(&Joiner::fixed("g", "a").with_id(&members[0].member));
    world.pass(secs(60));
    let joined = world.joined(rejoin);
    assert_eq!(joined.members.len(), 2, "the leader assigns to the absent one too");
    let sync = world.sync_as("g", &joined, Some("a"), &[(&members[1].member, b"kept")]);
    world.assignment(sync);
    let back = world.join(&Joiner::fixed("g", "b"));
    let back = world.joined(back);
    let sync = world.sync_as("g", &back, Some("b"), &[]);
    assert_eq!(world.assignment(sync), b"kept");
}

/// Where nobody rejoins, static members end the wait by their sessions.
#[test]
fn kip_345_a_group_of_absent_static_members_ends_with_their_sessions() {
    let (mut world, leader, _) = stable_pair();
    world.leave(&[("", Some("b"))]);
    for _ in 0..20 {
        world.pass(secs(9));
        let told = world.beat_as("g", &leader.member, Some("a"), 1);
        assert_eq!(told, Err(GroupError::RebalanceInProgress));
    }
    world.pass(secs(60));
    assert_eq!(world.state("g"), GroupState::Empty);
}

#[test]
fn kip_345_a_promised_id_is_never_static() {
    let mut world = World::new();
    let promised = world.join(&Joiner { knows_kip394: true, ..Joiner::new("g") });
    let promised = world.refused(promised).member;
    let join = world.join(&Joiner::fixed("g", "a").with_id(&promised));
    assert_eq!(world.refused(join).error, GroupError::InvalidRequest);
}

/// A rebalance timeout of nothing must not make a barrier that nobody comes to spin.
#[test]
fn a_barrier_nobody_comes_to_is_looked_at_once_a_second() {
    let (mut world, _, _) = stable_pair();
    for instance in ["a", "b"] {
        let hasty = Joiner { rebalance: Duration::ZERO, ..Joiner::fixed("g", instance) };
        let back = world.join(&hasty);
        assert_eq!(world.joined(back).generation, Generation(1));
    }
    world.leave(&[("", Some("b"))]);
    world.pass(secs(9));
    assert_eq!(world.state("g"), GroupState::PreparingRebalance);
    world.pass(secs(1));
    assert_eq!(world.state("g"), GroupState::Empty);
}
