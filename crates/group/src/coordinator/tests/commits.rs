//! Committing, reading and deleting offsets: who may, and what of topics that change.

use super::*;

const T1: TopicId = TopicId([1; 16]);
const T2: TopicId = TopicId([2; 16]);

#[test]
fn a_member_of_the_current_generation_commits() {
    let mut world = World::new();
    let members = world.stable(&[Joiner::new("g")]);
    let committed = world.commit("g", &members[0].member, 1, 42).unwrap();
    assert_eq!(committed.topics[0].1, [(PartitionId(0), Ok(()))]);
    assert_eq!(world.fetch("g"), Some(42));
}

#[test]
fn commits_are_fenced_by_membership_and_generation() {
    let mut world = World::new();
    let members = world.stable(&[Joiner::new("g")]);
    let member = &members[0].member;
    assert_eq!(world.commit("g", "m", 1, 1).unwrap_err(), GroupError::UnknownMemberId);
    assert_eq!(world.commit("g", member, 0, 1).unwrap_err(), GroupError::IllegalGeneration);
    assert_eq!(world.commit("g", member, 2, 1).unwrap_err(), GroupError::IllegalGeneration);
    assert_eq!(world.commit("g", "", -1, 1).unwrap_err(), GroupError::UnknownMemberId);
    assert_eq!(world.commit("h", member, 1, 1).unwrap_err(), GroupError::GroupIdNotFound);
    assert_eq!(world.fetch("g"), None);
    assert_eq!(world.state("h"), GroupState::Dead);
}

/// Kafka tells a commit of a generation that its group is gone from version 9 on (KIP-848).
#[test]
fn an_old_client_whose_group_is_gone_has_an_illegal_generation() {
    let mut world = World::new();
    for (knows_epochs, expected) in
        [(false, GroupError::IllegalGeneration), (true, GroupError::GroupIdNotFound)]
    {
        let token = world.ask(
            1,
            "c",
            Ask::Commit(Commit {
                group: "g",
                generation: Generation(1),
                member: "m",
                instance: None,
                retention: None,
                knows_epochs,
                topics: alloc::vec![],
            }),
        );
        assert_eq!(world.committed(token), Err(expected));
    }
}

/// While members rejoin, the last generation may still commit what it read; once the next one
/// has begun it may not, and the next may not before it has its assignment.
#[test]
fn commits_during_a_rebalance() {
    let mut world = World::new();
    let members = world.stable(&[Joiner::new("g")]);
    let old = members[0].member.clone();
    let new = world.join(&Joiner::new("g"));
    world.commit("g", &old, 1, 1).unwrap();
    let rejoin = world.join(&Joiner::new("g").with_id(&old));
    world.joined(rejoin);
    world.joined(new);
    assert_eq!(world.commit("g", &old, 1, 2).unwrap_err(), GroupError::IllegalGeneration);
    assert_eq!(world.commit("g", &old, 2, 2).unwrap_err(), GroupError::RebalanceInProgress);
    assert_eq!(world.fetch("g"), Some(1));
}

/// A commit is a sign of life, stable or preparing.
#[test]
fn a_commit_renews_the_session() {
    let mut world = World::new();
    let members = world.stable(&[Joiner::new("g")]);
    for offset in 0..5 {
        world.pass(secs(9));
        world.commit("g", &members[0].member, 1, offset).unwrap();
    }
    assert_eq!(world.state("g"), GroupState::Stable);
}

/// A simple consumer: no membership, a group of its own making.
#[test]
fn a_commit_without_membership_makes_a_group() {
    let mut world = World::new();
    world.commit("g", "", -1, 5).unwrap();
    assert_eq!(world.fetch("g"), Some(5));
    let description = world.describe("g").unwrap();
    assert_eq!(description.state, GroupState::Empty);
    assert_eq!(description.protocol_type, "".into());
    world.commit("g", "", -1, 6).unwrap();
    assert_eq!(world.fetch("g"), Some(6));
}

/// The empty group id is accepted for offsets, as it was before groups had rules.
#[test]
fn offsets_of_the_nameless_group() {
    let mut world = World::new();
    world.commit("", "", -1, 5).unwrap();
    assert_eq!(world.fetch(""), Some(5));
}

#[test]
fn an_administrator_commits_into_a_group_whose_members_are_gone() {
    let mut world = World::new();
    let members = world.stable(&[Joiner::new("g")]);
    world.leave(&[(&members[0].member, None)]);
    world.commit("g", "", -1, 7).unwrap();
    assert_eq!(
        world.commit("g", &members[0].member, 1, 8).unwrap_err(),
        GroupError::UnknownMemberId
    );
    assert_eq!(world.fetch("g"), Some(7));
}

/// offset.metadata.max.bytes refuses that partition, not the others.
#[test]
fn a_note_that_is_too_long_is_refused_by_itself() {
    let mut world = World::new();
    let long = "x".repeat(4097);
    let token = world.commit_for("g", ("", -1), ("t", T1), &[(0, 1, &long), (1, 2, "note")], None);
    let committed = world.committed(token).unwrap();
    assert_eq!(committed.topics[0].1[0].1, Err(GroupError::OffsetMetadataTooLarge));
    assert_eq!(committed.topics[0].1[1].1, Ok(()));
    let all = world.fetch_all("g");
    assert_eq!(all.len(), 1);
    assert_eq!((all["t-1"].offset, &*all["t-1"].metadata), (Offset(2), "note"));
}

#[test]
fn a_commit_of_nothing_acceptable_leaves_no_group() {
    let mut world = World::new();
    let long = "x".repeat(4097);
    let token = world.commit_for("g", ("", -1), ("t", T1), &[(0, 1, &long)], None);
    world.committed(token).unwrap();
    assert_eq!(world.state("g"), GroupState::Dead);
    assert!(world.log.is_empty());
}

#[test]
fn fetching_all_lists_what_is_there() {
    let mut world = World::new();
    assert!(world.fetch_all("g").is_empty());
    for topic in ["u", "t"] {
        let token = world.commit_for("g", ("", -1), (topic, T1), &[(2, 3, ""), (0, 1, "")], None);
        world.committed(token).unwrap();
    }
    let all = world.fetch_all("g");
    let offsets: Vec<_> = all.iter().map(|(name, at)| (name.as_str(), at.offset.0)).collect();
    assert_eq!(offsets, [("t-0", 1), ("t-2", 3), ("u-0", 1), ("u-2", 3)]);
}

/// KIP-496: offsets of topics nobody reads go, the others stay.
#[test]
fn kip_496_deleting_offsets() {
    let mut world = World::new();
    assert_eq!(world.delete_offsets("g", "t", 0), Err(GroupError::GroupIdNotFound));
    let members = world.stable(&[Joiner::new("g")]);
    let member = (&*members[0].member, 1);
    for topic in ["t", "u"] {
        let token = world.commit_for("g", member, (topic, T1), &[(0, 1, "")], None);
        world.committed(token).unwrap();
    }
    let subscribed = Ok(Err(GroupError::GroupSubscribedToTopic));
    assert_eq!(world.delete_offsets("g", "t", 0), subscribed);
    assert_eq!(world.delete_offsets("g", "u", 0), Ok(Ok(())));
    assert_eq!(world.delete_offsets("g", "u", 9), Ok(Ok(())), "nothing there is no error");
    assert_eq!(world.fetch_all("g").keys().collect::<Vec<_>>(), ["t-0"]);
    world.leave(&[(&members[0].member, None)]);
    assert_eq!(world.delete_offsets("g", "t", 0), Ok(Ok(())));
    assert!(world.fetch_all("g").is_empty());
    world.restart();
    assert!(world.fetch_all("g").is_empty());
}

/// KIP-496: of a group that is not one of consumers nothing can be told while it has members.
#[test]
fn kip_496_deleting_offsets_of_another_type_of_group() {
    let mut world = World::new();
    let worker = Joiner { protocol_type: "connect", ..Joiner::new("g") };
    let members = world.stable(&[worker]);
    assert_eq!(world.delete_offsets("g", "t", 0), Err(GroupError::NonEmptyGroup));
    world.leave(&[(&members[0].member, None)]);
    assert_eq!(world.delete_offsets("g", "t", 0), Ok(Ok(())));
}

/// KIP-496: where a subscription cannot be read, any topic may be subscribed to.
#[test]
fn kip_496_unreadable_subscriptions_protect_every_topic() {
    let mut world = World::new();
    world.stable(&[Joiner::new("g").protocols(&[("range", b"?")])]);
    let subscribed = Ok(Err(GroupError::GroupSubscribedToTopic));
    assert_eq!(world.delete_offsets("g", "u", 0), subscribed);
}

#[test]
fn deleting_a_topic_removes_its_offsets_for_good() {
    let mut world = World::new();
    world.topics([topic("t", 1), topic("u", 2)]);
    for (name, id) in [("t", T1), ("u", T2)] {
        let token = world.commit_for("g", ("", -1), (name, id), &[(0, 1, ""), (1, 1, "")], None);
        world.committed(token).unwrap();
    }
    world.topics([topic("u", 2)]);
    assert_eq!(world.fetch_all("g").keys().collect::<Vec<_>>(), ["u-0", "u-1"]);
    world.restart();
    assert_eq!(world.fetch_all("g").keys().collect::<Vec<_>>(), ["u-0", "u-1"]);
}

/// A recreated topic has another id, and inherits nothing: not even for a moment.
#[test]
fn a_recreated_topic_inherits_nothing() {
    let mut world = World::new();
    world.topics([topic("t", 1)]);
    let token = world.commit_for("g", ("", -1), ("t", T1), &[(0, 1, "")], None);
    world.committed(token).unwrap();
    world.topics([topic("t", 2)]);
    assert_eq!(world.fetch("g"), None);
    // A commit that was on its way when the topic changed is for the topic that is gone.
    let late = world.commit_for("g", ("", -1), ("t", T1), &[(0, 1, "")], None);
    let late = world.committed(late).unwrap();
    assert_eq!(late.topics[0].1[0].1, Err(GroupError::UnknownTopicOrPartition));
    let current = world.commit_for("g", ("", -1), ("t", T2), &[(0, 9, "")], None);
    world.committed(current).unwrap();
    assert_eq!(world.fetch("g"), Some(9));
}

/// The topic changed while no coordinator was there to see it.
#[test]
fn a_topic_recreated_during_a_restart_inherits_nothing() {
    let mut world = World::new();
    let token = world.commit_for("g", ("", -1), ("t", T1), &[(0, 1, "")], None);
    world.committed(token).unwrap();
    world.restart();
    assert_eq!(world.fetch("g"), Some(1), "without a view nothing is known to be gone");
    world.topics([topic("t", 2)]);
    assert_eq!(world.fetch("g"), None);
    let Some(Record::OffsetCommit(last)) = world.records().pop() else { panic!("a tombstone") };
    assert_eq!(last.value, None);
}

/// A topic may be so new that the view lacks it: its offsets are not taken for orphans at once.
#[test]
fn a_commit_for_a_topic_newer_than_the_view_is_kept() {
    let mut world = World::new();
    world.topics([]);
    let token = world.commit_for("g", ("", -1), ("t", T1), &[(0, 1, "")], None);
    world.committed(token).unwrap();
    world.restart();
    world.topics([]);
    assert_eq!(world.fetch("g"), Some(1));
    world.pass(secs(601));
    assert_eq!(world.fetch("g"), None, "ten minutes later it is an orphan");
}

/// Offsets committed before ids were known count for whatever topic has the name.
#[test]
fn an_offset_without_topic_id_is_kept_while_the_name_exists() {
    let mut world = World::new();
    world.commit("g", "", -1, 5).unwrap();
    world.topics([topic("t", 1)]);
    assert_eq!(world.fetch("g"), Some(5));
    world.topics([]);
    assert_eq!(world.fetch("g"), None);
}
