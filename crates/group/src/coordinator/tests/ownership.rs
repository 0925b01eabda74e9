//! Who may answer, and until when: S23-S25 and the contract's T.

use super::*;

/// S25: not the owner, S24: the owner but still loading.
#[test]
fn s23_s25_before_ownership_and_before_the_log_is_read() {
    let mut world = World::unowned(Config::default());
    assert_eq!(world.lifecycle(), Lifecycle::Disowned);
    assert_eq!(world.beat("m", 1), Err(GroupError::NotCoordinator));
    let join = world.join(&Joiner::new("g").with_id("m"));
    let refused = world.refused(join);
    assert_eq!((refused.error, &*refused.member), (GroupError::NotCoordinator, "m"));
    world.own(secs(100));
    assert_eq!(world.lifecycle(), Lifecycle::Loading(OwnershipEpoch(1)));
    assert_eq!(world.beat("m", 1), Err(GroupError::LoadInProgress));
    assert_eq!(world.commit("g", "", -1, 1).unwrap_err(), GroupError::LoadInProgress);
    world.load();
    assert_eq!(world.beat("m", 1), Err(GroupError::UnknownMemberId));
}

/// Past T, less the margin, everyone who waits or asks is sent away: a heartbeat appends nothing
/// that storage could refuse.
#[test]
fn nothing_is_answered_past_the_end_of_ownership() {
    let mut world = World::unowned(Config {
        initial_rebalance_delay: Duration::ZERO,
        ownership_margin: secs(1),
        ..Config::default()
    });
    world.own(secs(30));
    world.load();
    let members = world.stable(&[Joiner::new("g")]);
    let parked = world.join(&Joiner::new("g"));
    for _ in 0..3 {
        world.pass(secs(9));
        assert_eq!(world.beat(&members[0].member, 1), Err(GroupError::RebalanceInProgress));
    }
    world.pass(millis(1_999));
    assert!(world.is_waiting(parked));
    world.pass(millis(1));
    assert_eq!(world.refused(parked).error, GroupError::NotCoordinator);
    assert_eq!(world.lifecycle(), Lifecycle::Lapsed(OwnershipEpoch(1)));
    assert_eq!(world.beat(&members[0].member, 1), Err(GroupError::NotCoordinator));
    assert_eq!(world.shard.poll_timeout(), None, "a silent shard waits for nothing");
}

#[test]
fn parked_requests_are_sent_away_when_ownership_ends() {
    let mut world =
        World::unowned(Config { initial_rebalance_delay: secs(60), ..Config::default() });
    world.own(secs(30));
    world.load();
    let parked = world.join(&Joiner::new("g"));
    world.pass(secs(30));
    assert_eq!(world.refused(parked).error, GroupError::NotCoordinator);
}

/// A late request finds it silent even if its driver slept through the deadline.
#[test]
fn a_request_after_a_long_pause_is_refused() {
    let mut world = World::unowned(Config::default());
    world.own(secs(30));
    world.load();
    world.now.mono = world.now.mono + secs(31);
    assert_eq!(world.beat("m", 1), Err(GroupError::NotCoordinator));
}

#[test]
fn a_renewal_in_time_changes_nothing() {
    let mut world =
        World::unowned(Config { initial_rebalance_delay: Duration::ZERO, ..Config::default() });
    world.own(secs(30));
    world.load();
    let members = world.stable(&[Joiner::new("g")]);
    for _ in 0..10 {
        world.pass(secs(9));
        world.renew(secs(30));
        assert_eq!(world.beat(&members[0].member, 1), Ok(()));
    }
}

/// A renewal that comes late: others may have ruled meanwhile as far as members know, so sessions
/// begin anew and what was soft is gone.
#[test]
fn a_renewal_after_a_lapse_starts_from_the_last_generation() {
    let mut world =
        World::unowned(Config { initial_rebalance_delay: Duration::ZERO, ..Config::default() });
    world.own(secs(30));
    world.load();
    let members = world.stable(&[Joiner::new("g")]);
    world.commit("g", &members[0].member, 1, 3).unwrap();
    world.pass(secs(1));
    let parked = world.join(&Joiner::new("g"));
    for _ in 0..3 {
        world.pass(secs(8));
        let _ = world.beat(&members[0].member, 1);
    }
    world.pass(secs(60));
    assert_eq!(world.refused(parked).error, GroupError::NotCoordinator);
    world.renew(secs(100));
    assert_eq!(world.lifecycle(), Lifecycle::Active(OwnershipEpoch(1)));
    assert_eq!(world.state("g"), GroupState::Stable);
    world.pass(secs(9));
    assert_eq!(world.beat(&members[0].member, 1), Ok(()));
    assert_eq!(world.fetch("g"), Some(3));
}

#[test]
fn a_new_epoch_forgets_and_loads_again() {
    let mut world = World::new();
    let members = world.stable(&[Joiner::new("g")]);
    let parked = world.join(&Joiner::new("g"));
    world.own(secs(1_000));
    assert_eq!(world.refused(parked).error, GroupError::NotCoordinator);
    assert_eq!(world.beat(&members[0].member, 1), Err(GroupError::LoadInProgress));
    world.load();
    assert_eq!(world.beat(&members[0].member, 1), Ok(()));
}

#[test]
fn losing_ownership_sends_everyone_away() {
    let mut world = World::new();
    world.stable(&[Joiner::new("g")]);
    let parked = world.join(&Joiner::new("g"));
    world.durable_at_once = false;
    let commit = world.commit_later("h", "", -1, 1);
    world.disown();
    assert_eq!(world.refused(parked).error, GroupError::NotCoordinator);
    assert!(world.is_waiting(commit), "the driver has it and must refuse it itself");
    assert_eq!(world.beat("m", 1), Err(GroupError::NotCoordinator));
}

/// A failed append: memory is ahead of the log, so nothing it knows may be said any more.
#[test]
fn a_failed_append_silences_the_shard_for_good() {
    let mut world = World::new();
    let members = world.stable(&[Joiner::new("g")]);
    let parked = world.join(&Joiner::new("g"));
    world.fail_append();
    assert_eq!(world.refused(parked).error, GroupError::NotCoordinator);
    assert_eq!(world.lifecycle(), Lifecycle::Failed);
    world.renew(secs(1_000));
    world.own(secs(1_000));
    world.load();
    assert_eq!(world.beat(&members[0].member, 1), Err(GroupError::NotCoordinator));
}
