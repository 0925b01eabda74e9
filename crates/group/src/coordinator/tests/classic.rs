//! Joining, syncing, heartbeating, leaving: dynamic members of a classic group.

use super::*;

fn preparing() -> (World, Vec<Joined>, Token) {
    let mut world = World::new();
    let members = world.stable(&[Joiner::new("g"), Joiner::new("g")]);
    let third = world.join(&Joiner::new("g"));
    (world, members, third)
}

/// KIP-394: a first join is sent back with an id, and only that id joins.
#[test]
fn kip_394_first_join_must_come_back_with_its_id() {
    let mut world = World::new();
    let joiner = Joiner { knows_kip394: true, ..Joiner::new("g") };
    let first = world.join(&joiner);
    let refused = world.refused(first);
    assert_eq!(refused.error, GroupError::MemberIdRequired);
    assert!(
        refused.member.starts_with("c-"),
        "an id begins with the client id: {}",
        refused.member
    );
    let second = world.join(&joiner.with_id(&refused.member));
    world.pass(Duration::ZERO);
    let joined = world.joined(second);
    assert_eq!(joined.member, refused.member);
    assert_eq!(joined.generation, Generation(1));
    assert_eq!(joined.leader, joined.member);
    assert_eq!(joined.members.len(), 1);
}

/// KIP-394: an id that nobody comes back with is forgotten after a session timeout, and holds up
/// no rebalance after that.
#[test]
fn kip_394_a_promised_id_lasts_a_session_timeout() {
    let mut world = World::new();
    world.stable(&[Joiner::new("g")]);
    let promised = world.join(&Joiner { knows_kip394: true, ..Joiner::new("g") });
    let promised = world.refused(promised).member;
    let other = world.join(&Joiner::new("g"));
    let leader = world.describe("g").unwrap().members[0].member.clone();
    let again = world.join(&Joiner::new("g").with_id(&leader));
    assert!(world.is_waiting(again), "the barrier waits for the promised member");
    world.pass(secs(10));
    assert_eq!(world.joined(again).generation, Generation(2));
    world.joined(other);
    let late = world.join(&Joiner::new("g").with_id(&promised));
    assert_eq!(world.refused(late).error, GroupError::UnknownMemberId);
}

#[test]
fn an_unknown_member_cannot_join_by_id() {
    let mut world = World::new();
    let absent = world.join(&Joiner::new("g").with_id("m"));
    assert_eq!(world.refused(absent).error, GroupError::UnknownMemberId);
    world.stable(&[Joiner::new("g")]);
    let stranger = world.join(&Joiner::new("g").with_id("m"));
    assert_eq!(world.refused(stranger).error, GroupError::UnknownMemberId);
}

/// group.initial.rebalance.delay.ms: extended while joins keep arriving, by at most the delay.
#[test]
fn initial_delay_is_extended_while_members_come() {
    let mut world =
        World::with(Config { initial_rebalance_delay: millis(100), ..Config::default() });
    let first = world.join(&Joiner::new("g"));
    world.pass(millis(90));
    let second = world.join(&Joiner::new("g"));
    world.pass(millis(90));
    let third = world.join(&Joiner::new("g"));
    assert!(world.is_waiting(first));
    world.pass(millis(119));
    assert!(world.is_waiting(first), "the third came during the extension, so it is extended");
    world.pass(millis(1));
    let leader = world.joined(first);
    assert_eq!(leader.members.len(), 3);
    assert_eq!(world.joined(second).generation, Generation(1));
    assert_eq!(world.joined(third).generation, Generation(1));
}

/// group.initial.rebalance.delay.ms: never extended past the rebalance timeout.
#[test]
fn initial_delay_ends_with_the_rebalance_timeout() {
    let mut world =
        World::with(Config { initial_rebalance_delay: millis(100), ..Config::default() });
    let joiner = Joiner { rebalance: millis(250), ..Joiner::new("g") };
    let first = world.join(&joiner);
    let mut passed = 0;
    while world.is_waiting(first) {
        world.pass(millis(50));
        passed += 50;
        if world.is_waiting(first) {
            world.join(&joiner);
        }
        assert!(passed < 1_000, "the initial rebalance ends");
    }
    // 100 ms, then 100 ms and 50 ms of extensions; Kafka counts the last remainder once more.
    assert!((250..=350).contains(&passed), "{passed} ms");
}

#[test]
fn the_leader_assigns_and_everyone_gets_its_part() {
    let mut world = World::new();
    let members = world.stable(&[Joiner::new("g"), Joiner::new("g"), Joiner::new("g")]);
    assert_eq!(members[0].members.len(), 3, "the leader sees all");
    assert!(members[1].members.is_empty(), "a follower sees nobody");
    assert_eq!(members[0].protocol, "range".into());
    for member in &members {
        assert_eq!(world.beat(&member.member, 1), Ok(()));
    }
}

#[test]
fn a_follower_may_sync_before_and_after_its_leader() {
    let mut world = World::new();
    let (first, second) = (world.join(&Joiner::new("g")), world.join(&Joiner::new("g")));
    let third = world.join(&Joiner::new("g"));
    world.pass(Duration::ZERO);
    let (leader, early, late) = (world.joined(first), world.joined(second), world.joined(third));
    let early_sync = world.sync(&early, &[]);
    assert!(world.is_waiting(early_sync));
    assert_eq!(world.beat(&early.member, 1), Ok(()), "heartbeats are answered while completing");
    let leader_sync = world.sync(&leader, &[(&early.member, b"e"), (&late.member, b"l")]);
    assert_eq!(world.assignment(leader_sync), b"", "who is not mentioned owns nothing");
    assert_eq!(world.assignment(early_sync), b"e");
    let late_sync = world.sync(&late, &[]);
    assert_eq!(world.assignment(late_sync), b"l");
}

#[test]
fn a_new_member_makes_everyone_rejoin() {
    let (mut world, members, third) = preparing();
    assert_eq!(world.state("g"), GroupState::PreparingRebalance);
    for member in &members {
        assert_eq!(world.beat(&member.member, 1), Err(GroupError::RebalanceInProgress));
    }
    let rejoin = world.join(&Joiner::new("g").with_id(&members[0].member));
    assert!(world.is_waiting(third));
    let last = world.join(&Joiner::new("g").with_id(&members[1].member));
    assert_eq!(world.joined(rejoin).generation, Generation(2));
    assert_eq!(world.joined(last).generation, Generation(2));
    assert_eq!(world.joined(third).generation, Generation(2));
    assert_eq!(world.state("g"), GroupState::CompletingRebalance);
}

#[test]
fn who_does_not_rejoin_in_time_is_dropped() {
    let (mut world, members, third) = preparing();
    let rejoin = world.join(&Joiner::new("g").with_id(&members[1].member));
    for _ in 0..7 {
        world.pass(secs(8));
        assert_eq!(world.beat(&members[0].member, 1), Err(GroupError::RebalanceInProgress));
    }
    assert!(world.is_waiting(rejoin));
    world.pass(secs(4));
    let joined = world.joined(rejoin);
    assert_eq!(joined.leader, joined.member, "the eldest that joined leads");
    assert_eq!(joined.members.len(), 2);
    world.joined(third);
    assert_eq!(world.beat(&members[0].member, 1), Err(GroupError::UnknownMemberId));
}

#[test]
fn a_silent_member_is_dropped_after_its_session() {
    let mut world = World::new();
    let members = world.stable(&[Joiner::new("g"), Joiner::new("g")]);
    world.pass(secs(9));
    assert_eq!(world.beat(&members[0].member, 1), Ok(()));
    world.pass(millis(999));
    assert_eq!(world.state("g"), GroupState::Stable);
    world.pass(millis(1));
    assert_eq!(world.state("g"), GroupState::PreparingRebalance);
    assert_eq!(world.describe("g").unwrap().members.len(), 1);
    assert_eq!(world.beat(&members[1].member, 1), Err(GroupError::UnknownMemberId));
}

#[test]
fn a_member_that_waits_is_not_silent() {
    let (mut world, members, third) = preparing();
    let rejoin = world.join(&Joiner::new("g").with_id(&members[0].member));
    for _ in 0..5 {
        world.pass(secs(9));
        assert_eq!(world.beat(&members[1].member, 1), Err(GroupError::RebalanceInProgress));
    }
    let last = world.join(&Joiner::new("g").with_id(&members[1].member));
    for token in [rejoin, third, last] {
        assert_eq!(world.joined(token).generation, Generation(2));
    }
}

/// A new member cannot heartbeat, so its join is bounded by time (five minutes, as in Kafka).
#[test]
fn a_new_member_is_dropped_after_five_minutes_at_the_barrier() {
    let mut world = World::new();
    let patient = Joiner { rebalance: secs(1_200), session: secs(1_200), ..Joiner::new("g") };
    let members = world.stable(core::slice::from_ref(&patient));
    let new = world.join(&Joiner::new("g"));
    world.pass(secs(299));
    assert!(world.is_waiting(new));
    world.pass(secs(1));
    assert_eq!(world.refused(new).error, GroupError::UnknownMemberId);
    assert_eq!(world.beat(&members[0].member, 1), Err(GroupError::RebalanceInProgress));
}

/// A follower whose sync never comes is dropped after the rebalance timeout (KAFKA-12495).
#[test]
fn who_does_not_sync_in_time_is_dropped() {
    let mut world = World::new();
    let (first, second) = (world.join(&Joiner::new("g")), world.join(&Joiner::new("g")));
    world.pass(Duration::ZERO);
    let (leader, late) = (world.joined(first), world.joined(second));
    let sync = world.sync(&leader, &[]);
    world.assignment(sync);
    for _ in 0..7 {
        world.pass(secs(8));
        assert_eq!(world.beat(&leader.member, 1), Ok(()));
        assert_eq!(world.beat(&late.member, 1), Ok(()));
    }
    world.pass(secs(4));
    assert_eq!(world.beat(&leader.member, 1), Err(GroupError::RebalanceInProgress));
    assert_eq!(world.beat(&late.member, 1), Err(GroupError::UnknownMemberId));
}

#[test]
fn a_leader_that_never_assigns_is_dropped() {
    let mut world = World::new();
    let (first, second) = (world.join(&Joiner::new("g")), world.join(&Joiner::new("g")));
    world.pass(Duration::ZERO);
    let (leader, follower) = (world.joined(first), world.joined(second));
    let sync = world.sync(&follower, &[]);
    for _ in 0..7 {
        world.pass(secs(8));
        assert_eq!(world.beat(&leader.member, 1), Ok(()));
    }
    world.pass(secs(4));
    assert_eq!(world.sync_outcome(sync), Err(GroupError::RebalanceInProgress));
    assert_eq!(world.beat(&leader.member, 1), Err(GroupError::UnknownMemberId));
    let rejoin = world.join(&Joiner::new("g").with_id(&follower.member));
    assert_eq!(world.joined(rejoin).leader, follower.member);
}

#[test]
fn a_sync_of_another_generation_or_state_is_refused() {
    let (mut world, members, _) = preparing();
    let early = world.sync(&members[0], &[]);
    assert_eq!(world.sync_outcome(early), Err(GroupError::RebalanceInProgress));
    let stale = Joined { generation: Generation(0), ..members[0].clone() };
    let stale = world.sync(&stale, &[]);
    assert_eq!(world.sync_outcome(stale), Err(GroupError::IllegalGeneration));
    let stranger = Joined { member: "m".into(), ..members[0].clone() };
    let stranger = world.sync(&stranger, &[]);
    assert_eq!(world.sync_outcome(stranger), Err(GroupError::UnknownMemberId));
    let other = Joined { protocol: "roundrobin".into(), ..members[0].clone() };
    let other = world.sync(&other, &[]);
    assert_eq!(world.sync_outcome(other), Err(GroupError::InconsistentGroupProtocol));
    let absent = world.sync_as("absent", &members[0], None, &[]);
    assert_eq!(world.sync_outcome(absent), Err(GroupError::UnknownMemberId));
}

#[test]
fn heartbeats_of_strangers_and_stale_generations_are_refused() {
    let mut world = World::new();
    assert_eq!(world.beat("m", 1), Err(GroupError::UnknownMemberId));
    let members = world.stable(&[Joiner::new("g")]);
    assert_eq!(world.beat("m", 1), Err(GroupError::UnknownMemberId));
    assert_eq!(world.beat(&members[0].member, 0), Err(GroupError::IllegalGeneration));
    assert_eq!(world.beat(&members[0].member, 2), Err(GroupError::IllegalGeneration));
    assert_eq!(world.beat_as("", "m", None, 1), Err(GroupError::InvalidGroupId));
}

/// A leader asks for a new assignment by joining again; a follower that changed nothing does not.
#[test]
fn the_leader_rejoining_rebalances_and_an_unchanged_follower_does_not() {
    let mut world = World::new();
    let members = world.stable(&[Joiner::new("g"), Joiner::new("g")]);
    let follower = world.join(&Joiner::new("g").with_id(&members[1].member));
    let told = world.joined(follower);
    assert_eq!((told.generation, told.leader), (Generation(1), members[0].member.clone()));
    assert!(told.members.is_empty());
    assert_eq!(world.state("g"), GroupState::Stable);
    world.join(&Joiner::new("g").with_id(&members[0].member));
    assert_eq!(world.state("g"), GroupState::PreparingRebalance);
}

#[test]
fn a_follower_with_new_metadata_rebalances() {
    let mut world = World::new();
    let members = world.stable(&[Joiner::new("g"), Joiner::new("g")]);
    let changed = Joiner::new("g").protocols(&[("range", &wants(&["t", "u"]))]);
    world.join(&changed.with_id(&members[1].member));
    assert_eq!(world.state("g"), GroupState::PreparingRebalance);
}

/// A join whose answer was lost is answered again, as long as the generation is being completed.
#[test]
fn a_repeated_join_is_answered_again_while_completing() {
    let mut world = World::new();
    let (first, second) = (world.join(&Joiner::new("g")), world.join(&Joiner::new("g")));
    world.pass(Duration::ZERO);
    let (leader, follower) = (world.joined(first), world.joined(second));
    let again = world.join(&Joiner::new("g").with_id(&leader.member));
    assert_eq!(world.joined(again), leader);
    let again = world.join(&Joiner::new("g").with_id(&follower.member));
    assert_eq!(world.joined(again), follower);
    let waiting = world.sync(&follower, &[]);
    let changed = Joiner::new("g").protocols(&[("range", &wants(&["u"]))]);
    world.join(&changed.with_id(&leader.member));
    assert_eq!(world.sync_outcome(waiting), Err(GroupError::RebalanceInProgress));
}

/// A second join of the same member takes the place of the first, which is answered.
#[test]
fn an_overtaken_join_is_told_to_rejoin() {
    let (mut world, members, _) = preparing();
    let rejoiner = Joiner::new("g").with_id(&members[0].member);
    let overtaken = world.join(&rejoiner);
    let current = world.join(&rejoiner);
    assert_eq!(world.refused(overtaken).error, GroupError::RebalanceInProgress);
    assert!(world.is_waiting(current));
}

#[test]
fn votes_choose_among_the_assignors_all_support() {
    let mut world = World::new();
    let sticky_first: &[(&str, &[u8])] = &[("sticky", b"s"), ("range", b"r")];
    let range_first: &[(&str, &[u8])] = &[("range", b"r"), ("own", b"o"), ("sticky", b"s")];
    let own_first: &[(&str, &[u8])] = &[("own", b"o"), ("range", b"r"), ("sticky", b"s")];
    let joiners = [sticky_first, range_first, own_first];
    let tokens = joiners.map(|protocols| world.join(&Joiner::new("g").protocols(protocols)));
    world.pass(Duration::ZERO);
    let leader = world.joined(tokens[0]);
    assert_eq!(leader.protocol, "range".into(), "two votes to one, as own is not common to all");
    assert!(leader.members.iter().all(|member| *member.metadata == *b"r"));
}

#[test]
fn a_member_must_share_type_and_assignor() {
    let mut world = World::new();
    world.stable(&[Joiner::new("g")]);
    let other_type = world.join(&Joiner { protocol_type: "connect", ..Joiner::new("g") });
    assert_eq!(world.refused(other_type).error, GroupError::InconsistentGroupProtocol);
    let other_assignor = world.join(&Joiner::new("g").protocols(&[("own", b"")]));
    assert_eq!(world.refused(other_assignor).error, GroupError::InconsistentGroupProtocol);
    let nothing = world.join(&Joiner { group: "h", ..Joiner::new("g").protocols(&[]) });
    assert_eq!(world.refused(nothing).error, GroupError::InconsistentGroupProtocol);
    assert_eq!(world.state("h"), GroupState::Dead, "a refused join leaves no group behind");
}

#[test]
fn leaving_rebalances_and_the_last_one_leaves_the_group_empty() {
    let mut world = World::new();
    let members = world.stable(&[Joiner::new("g"), Joiner::new("g")]);
    let left = world.leave(&[(&members[0].member, None)]);
    assert_eq!(left.members[0].2, Ok(()));
    assert_eq!(world.beat(&members[1].member, 1), Err(GroupError::RebalanceInProgress));
    world.leave(&[(&members[1].member, None)]);
    assert_eq!(world.state("g"), GroupState::Empty);
    let Some(Record::GroupMetadata(last)) = world.records().pop() else { panic!("a generation") };
    let value = last.value.expect("an empty group is kept");
    assert_eq!((value.generation, value.members.len()), (Generation(2), 0));
    assert_eq!((&value.leader, &value.protocol), (&None, &None));
}

#[test]
fn leaving_answers_each_by_itself() {
    let mut world = World::new();
    let members = world.stable(&[Joiner::new("g"), Joiner::new("g")]);
    let left = world.leave(&[("m", None), (&members[1].member, None), ("", Some("i"))]);
    let outcomes: Vec<_> = left.members.iter().map(|member| member.2).collect();
    let unknown = Err(GroupError::UnknownMemberId);
    assert_eq!(outcomes, [unknown, Ok(()), unknown]);
    assert_eq!(world.describe("g").unwrap().members.len(), 1);
}

#[test]
fn leaving_a_group_that_is_not_there_leaves_nobody() {
    let mut world = World::new();
    let left = world.leave(&[("m", None)]);
    assert_eq!(left.members[0].2, Err(GroupError::UnknownMemberId));
}

/// Generations rise over a group's whole life, through emptiness too.
#[test]
fn generations_rise_through_emptiness() {
    let mut world = World::new();
    let members = world.stable(&[Joiner::new("g")]);
    world.leave(&[(&members[0].member, None)]);
    let again = world.stable(&[Joiner::new("g")]);
    assert_eq!(again[0].generation, Generation(3));
}

/// What was parked is answered when its member goes, so that no connection hangs.
#[test]
fn a_leaving_member_has_its_parked_requests_answered() {
    let (mut world, members, third) = preparing();
    let rejoin = world.join(&Joiner::new("g").with_id(&members[0].member));
    world.leave(&[(&members[0].member, None)]);
    assert_eq!(world.refused(rejoin).error, GroupError::UnknownMemberId);
    world.leave(&[(&members[1].member, None)]);
    let alone = world.joined(third);
    let waiting = world.sync(&alone, &[]);
    assert!(!world.is_waiting(waiting));
}

/// Improves on Kafka, which keeps such a member for five minutes: JoinGroup v0-v3 tells nobody
/// the id before the join is complete, so the connection is all there is of that member.
#[test]
fn a_member_that_was_never_told_its_id_goes_with_its_connection() {
    let mut world = World::new();
    let members = world.stable(&[Joiner::new("g")]);
    world.join(&Joiner { connection: 9, ..Joiner::new("g") });
    let rejoin = world.join(&Joiner::new("g").with_id(&members[0].member));
    let rejoined = world.joined(rejoin);
    assert_eq!(rejoined.members.len(), 2);
    // Told its id: it may come back over another connection.
    world.close_connection(9);
    assert_eq!(world.describe("g").unwrap().members.len(), 2);

    world.join(&Joiner { connection: 10, ..Joiner::new("g") });
    let rejoin = world.join(&Joiner::new("g").with_id(&members[0].member));
    assert!(world.is_waiting(rejoin));
    world.close_connection(10);
    assert_eq!(world.describe("g").unwrap().members.len(), 2);
}
