//! A coordinator that dies in each state, and the law beneath: what the log says is all there is.

use super::super::record::OffsetCommit;
use super::*;
use alloc::vec;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

/// Stable: live members carry on, without a rebalance, with what they had.
#[test]
fn a_restart_of_a_stable_group_disturbs_nobody() {
    let mut world = World::new();
    let members = world.stable(&[Joiner::new("g"), Joiner::fixed("g", "i")]);
    world.commit("g", &members[0].member, 1, 5).unwrap();
    world.restart();
    assert_eq!(world.beat(&members[0].member, 1), Ok(()));
    assert_eq!(world.beat_as("g", &members[1].member, Some("i"), 1), Ok(()));
    let sync = world.sync(&members[1], &[]);
    assert_eq!(world.assignment(sync), members[1].member.as_bytes());
    world.commit("g", &members[0].member, 1, 6).unwrap();
    assert_eq!(world.fetch("g"), Some(6));
    assert_eq!(world.describe("g").unwrap().members.len(), 2);
    world.pass(secs(9));
    assert_eq!(world.beat(&members[0].member, 1), Ok(()), "sessions began anew");
    world.pass(secs(1));
    assert_eq!(world.state("g"), GroupState::PreparingRebalance, "and end as ever");
}

/// A static member restarts while its coordinator does.
#[test]
fn a_static_member_and_its_coordinator_restart_together() {
    let mut world = World::new();
    let members = world.stable(&[Joiner::fixed("g", "i")]);
    world.restart();
    let back = world.join(&Joiner::fixed("g", "i"));
    let back = world.joined(back);
    assert!(back.skip_assignment);
    let sync = world.sync_as("g", &back, Some("i"), &[]);
    assert_eq!(world.assignment(sync), members[0].member.as_bytes());
}

/// Preparing: the last generation is in force again; the joiner that was parked asks anew.
#[test]
fn a_restart_while_preparing_returns_to_the_last_generation() {
    let mut world = World::new();
    let members = world.stable(&[Joiner::new("g")]);
    world.join(&Joiner::new("g"));
    assert_eq!(world.beat(&members[0].member, 1), Err(GroupError::RebalanceInProgress));
    world.restart();
    assert_eq!(world.state("g"), GroupState::Stable);
    assert_eq!(world.beat(&members[0].member, 1), Ok(()));
    world.commit("g", &members[0].member, 1, 5).unwrap();
}

/// Completing: members know a generation that never became hard. They are told, and rejoin.
#[test]
fn a_restart_while_completing_sends_members_back_to_join() {
    let mut world = World::new();
    let members = world.stable(&[Joiner::new("g")]);
    let new = world.join(&Joiner::new("g"));
    let rejoin = world.join(&Joiner::new("g").with_id(&members[0].member));
    let (leader, follower) = (world.joined(rejoin), world.joined(new));
    let parked = world.sync(&follower, &[]);
    assert!(world.is_waiting(parked));
    world.restart();
    assert_eq!(world.beat(&leader.member, 2), Err(GroupError::IllegalGeneration));
    let stale = world.sync(&leader, &[]);
    assert_eq!(world.sync_outcome(stale), Err(GroupError::IllegalGeneration));
    assert_eq!(world.beat(&follower.member, 2), Err(GroupError::UnknownMemberId));
    world.join(&Joiner::new("g"));
    let rejoin = world.join(&Joiner::new("g").with_id(&leader.member));
    let again = world.joined(rejoin);
    // 2 was told of and is in no record: it is never told of again, for another generation.
    assert_eq!((again.generation, again.members.len()), (Generation(3), 2));
}

/// Completing, with the leader's sync decided but lost: nobody heard of it.
#[test]
fn a_generation_that_was_never_durable_never_was() {
    let mut world = World::new();
    let first = world.join(&Joiner::new("g"));
    world.pass(Duration::ZERO);
    let joined = world.joined(first);
    world.durable_at_once = false;
    let sync = world.sync(&joined, &[]);
    assert!(world.is_waiting(sync));
    world.restart();
    world.durable_at_once = true;
    assert_eq!(world.beat(&joined.member, 1), Err(GroupError::UnknownMemberId));
    assert_eq!(world.state("g"), GroupState::Dead);
}

/// Empty: offsets and the generation survive, and the next generation is higher.
#[test]
fn a_restart_of_an_empty_group_keeps_offsets_and_generation() {
    let mut world = World::new();
    let members = world.stable(&[Joiner::new("g")]);
    world.commit("g", &members[0].member, 1, 5).unwrap();
    world.leave(&[(&members[0].member, None)]);
    world.restart();
    assert_eq!(world.state("g"), GroupState::Empty);
    assert_eq!(world.fetch("g"), Some(5));
    let members = world.stable(&[Joiner::new("g")]);
    assert_eq!(members[0].generation, Generation(3));
}

/// A record keeps one assignor of each member. A follower that comes back with all it has is not
/// taken for changed.
#[test]
fn a_restored_follower_that_rejoins_unchanged_does_not_rebalance() {
    let mut world = World::new();
    let subscription = wants(&["t"]);
    let both: &[(&str, &[u8])] = &[("range", &subscription), ("sticky", &subscription)];
    let joiner = Joiner::new("g").protocols(both);
    let members = world.stable(&[joiner.clone(), joiner.clone()]);
    world.restart();
    let follower = world.join(&joiner.with_id(&members[1].member));
    assert_eq!(world.joined(follower).generation, Generation(1));
    let changed = Joiner::new("g").protocols(&[("range", &wants(&["u"]))]);
    world.join(&changed.with_id(&members[1].member));
    assert_eq!(world.state("g"), GroupState::PreparingRebalance);
}

/// An unacknowledged commit may be lost with its coordinator; an acknowledged one may not.
#[test]
fn an_acknowledged_commit_survives() {
    let mut world = World::new();
    world.commit("g", "", -1, 1).unwrap();
    world.durable_at_once = false;
    let lost = world.commit_later("g", "", -1, 2);
    assert!(world.is_waiting(lost));
    world.restart();
    assert_eq!(world.fetch("g"), Some(1));
}

/// Something that happens to a shard, with small numbers to meet often.
#[derive(Clone, Copy, Debug)]
enum Step {
    Join {
        group: u8,
        who: u8,
        fixed: bool,
        topics: u8,
    },
    Rejoin {
        group: u8,
        who: u8,
        topics: u8,
    },
    Sync {
        group: u8,
        who: u8,
    },
    Beat {
        group: u8,
        who: u8,
    },
    Leave {
        group: u8,
        who: u8,
    },
    Commit {
        group: u8,
        who: u8,
        topic: u8,
        partition: u8,
        note: bool,
    },
    DeleteOffsets {
        group: u8,
        topic: u8,
    },
    DeleteGroup {
        group: u8,
    },
    Topics {
        present: u8,
    },
    Pass {
        seconds: u16,
    },
    /// Everyone who was told of a generation rejoins and syncs.
    Settle {
        group: u8,
    },
    Lapse,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let (group, who) = (0..2_u8, 0..6_u8);
    let any_group = group.clone();
    let step = prop_oneof![
        4 => (group.clone(), who.clone(), any::<bool>(), 0..3_u8).prop_map(
            |(group, who, fixed, topics)| Step::Join { group, who, fixed, topics }),
        4 => (group.clone(), who.clone(), 0..3_u8).prop_map(
            |(group, who, topics)| Step::Rejoin { group, who, topics }),
        6 => (group.clone(), who.clone()).prop_map(|(group, who)| Step::Sync { group, who }),
        3 => (group.clone(), who.clone()).prop_map(|(group, who)| Step::Beat { group, who }),
        2 => (group.clone(), who.clone()).prop_map(|(group, who)| Step::Leave { group, who }),
        4 => (group.clone(), who, 0..3_u8, 0..3_u8, any::<bool>()).prop_map(
            |(group, who, topic, partition, note)| {
                Step::Commit { group, who, topic, partition, note }
            }),
        1 => (group.clone(), 0..3_u8).prop_map(
            |(group, topic)| Step::DeleteOffsets { group, topic }),
        1 => group.clone().prop_map(|group| Step::DeleteGroup { group }),
        5 => group.prop_map(|group| Step::Settle { group }),
        1 => (0..8_u8).prop_map(|present| Step::Topics { present }),
        6 => (0..4_u16).prop_map(|seconds| Step::Pass { seconds }),
        1 => (4..90_u16).prop_map(|seconds| Step::Pass { seconds }),
        1 => (600..60_000_u16).prop_map(|seconds| Step::Pass { seconds }),
        1 => any_group.prop_map(|_| Step::Lapse),
    ];
    proptest::collection::vec(step, 1..80)
}

const GROUPS: [&str; 2] = ["g", "h"];
const TOPICS: [&str; 3] = ["t", "u", "v"];
const INSTANCES: [&str; 6] = ["a", "b", "c", "d", "e", "f"];

/// A world with what its would-be members last heard.
struct Play {
    world: World,
    heard: BTreeMap<(u8, u8), Joined>,
    asked: BTreeMap<(u8, u8), Token>,
}

impl Play {
    fn new() -> Self {
        let config = Config {
            initial_rebalance_delay: Duration::ZERO,
            offsets_retention: secs(3_600),
            ..Config::default()
        };
        Self { world: World::with(config), heard: BTreeMap::new(), asked: BTreeMap::new() }
    }

    fn take(&mut self, step: Step) {
        match step {
            Step::Join { group, who, fixed, topics } => {
                self.join((group, who), topics, |joiner| Joiner {
                    instance: fixed.then_some(INSTANCES[who as usize]),
                    ..joiner
                });
            }
            Step::Rejoin { group, who, topics } => {
                let id = self.id((group, who));
                self.join((group, who), topics, |joiner| joiner.with_id(&id));
            }
            Step::Sync { group, who } => self.sync((group, who)),
            Step::Beat { group, who } => {
                let (id, generation) = (self.id((group, who)), self.generation((group, who)));
                self.world.beat_later(GROUPS[group as usize], &id, None, generation);
            }
            Step::Leave { group, who } => {
                let id = self.id((group, who));
                let members = alloc::vec![Leaver { member: &id, instance: None, reason: None }];
                let group = GROUPS[group as usize];
                self.world.ask(1, "c", Ask::Leave(Leave { group, members }));
            }
            Step::Commit { group, who, topic, partition, note } => {
                let (id, generation) = (self.id((group, who)), self.generation((group, who)));
                let at = (TOPICS[topic as usize], TopicId([topic + 1; 16]));
                let offset =
                    (partition.into(), self.world.serial as i64, if note { "n" } else { "" });
                let retention = note.then_some(secs(700));
                let group = GROUPS[group as usize];
                self.world.commit_for(group, (&id, generation), at, &[offset], retention);
            }
            Step::DeleteOffsets { group, topic } => {
                let _ =
                    self.world.delete_offsets(GROUPS[group as usize], TOPICS[topic as usize], 0);
            }
            Step::DeleteGroup { group } => {
                let _ = self.world.delete_group(GROUPS[group as usize]);
            }
            Step::Topics { present } => {
                let is_present = |index: &u8| present & (1 << index) != 0;
                let topics = (0..3).filter(is_present);
                self.world.topics(topics.map(|index| topic(TOPICS[index as usize], index + 1)));
            }
            Step::Settle { group } => self.settle(group),
            Step::Pass { seconds } => self.world.pass(secs(seconds.into())),
            Step::Lapse => {
                self.world.renew(secs(1));
                self.world.pass(secs(2));
                self.world.renew(secs(1_000_000_000));
            }
        }
        self.listen();
    }

    fn join(&mut self, who: (u8, u8), topics: u8, change: impl FnOnce(Joiner) -> Joiner) {
        let topics = &TOPICS[..=topics as usize];
        let joiner = Joiner::new(GROUPS[who.0 as usize]).protocols(&[("range", &wants(topics))]);
        let token = self.world.join(&change(joiner));
        self.asked.insert(who, token);
    }

    fn sync(&mut self, who: (u8, u8)) {
        if let Some(joined) = self.heard.get(&who).cloned() {
            let members = joined.members.iter();
            let parts: Vec<_> = members.map(|member| (&*member.member, &b"p"[..])).collect();
            self.world.sync_as(GROUPS[who.0 as usize], &joined, None, &parts);
        }
    }

    fn settle(&mut self, group: u8) {
        let members: Vec<_> = self.heard.keys().filter(|who| who.0 == group).copied().collect();
        for who in &members {
            let id = self.id(*who);
            self.join(*who, 0, |joiner| joiner.with_id(&id));
        }
        self.world.pass(Duration::ZERO);
        self.listen();
        members.into_iter().for_each(|who| self.sync(who));
    }

    fn id(&self, who: (u8, u8)) -> String {
        self.heard.get(&who).map_or_else(String::new, |joined| joined.member.to_string())
    }

    fn generation(&self, who: (u8, u8)) -> i32 {
        self.heard.get(&who).map_or(-1, |joined| joined.generation.0)
    }

    fn listen(&mut self) {
        let asked = core::mem::take(&mut self.asked);
        for (who, token) in asked {
            if self.world.is_waiting(token) {
                self.asked.insert(who, token);
            } else if let Ok(joined) = self.world.join_outcome(token) {
                self.heard.insert(who, joined);
            }
        }
    }
}

proptest! {
    /// Decide, record, replay: after every decision, a shard that read the log equals the one that
    /// wrote it. And one that begins to serve from it, with nothing else, writes nothing.
    #[test]
    fn replaying_the_log_gives_the_same_hard_state(steps in steps()) {
        let mut play = Play::new();
        for step in steps {
            play.take(step);
            let mut reader = World::unowned(play.world.config.clone());
            reader.now = play.world.now;
            reader.log = play.world.log.clone();
            reader.own(secs(1_000));
            reader.load();
            prop_assert_eq!(reader.shard.hard_records(), play.world.shard.hard_records());
            prop_assert_eq!(reader.log.len(), play.world.log.len());
        }
    }

    /// Compaction keeps the last record of each key; that must be all the state there is.
    #[test]
    fn a_compacted_log_gives_the_same_hard_state(steps in steps()) {
        let mut play = Play::new();
        steps.into_iter().for_each(|step| play.take(step));
        let mut last = BTreeMap::new();
        for (index, record) in play.world.records().into_iter().enumerate() {
            let key = match &record {
                Record::OffsetCommit(OffsetCommit { group, topic, partition, .. }) => {
                    (group.clone(), Some((topic.clone(), *partition)))
                }
                Record::GroupMetadata(metadata) => (metadata.group.clone(), None),
                other => unreachable!("no member here speaks the consumer protocol: {other:?}"),
            };
            last.insert(key, (index, record));
        }
        let mut kept: Vec<_> = last.into_values().collect();
        kept.sort_by_key(|(index, _)| *index);
        let mut reader = World::unowned(play.world.config.clone());
        let records = kept.into_iter().map(|(_, record)| record).collect();
        reader.log.push(Append { index: Index(0), records });
        reader.own(secs(1_000));
        reader.load();
        prop_assert_eq!(reader.shard.hard_records(), play.world.shard.hard_records());
    }
}

/// A property is worth what its cases reach: every state, with several members, and every kind of
/// record.
#[test]
fn random_plays_reach_every_state() {
    let mut runner = TestRunner::deterministic();
    let mut seen = BTreeMap::new();
    let mut see = |what: String| *seen.entry(what).or_insert(0) += 1;
    for _ in 0..100 {
        let steps = steps().new_tree(&mut runner).expect("a play").current();
        let mut play = Play::new();
        for step in steps {
            play.take(step);
            for view in GROUPS.iter().filter_map(|group| play.world.shard.group(group).value) {
                see(alloc::format!("{}, {}", view.state, view.members.min(2)));
            }
        }
        for record in play.world.records() {
            see(match record {
                Record::OffsetCommit(commit) => alloc::format!("commit {}", commit.value.is_some()),
                Record::GroupMetadata(metadata) => {
                    let members = metadata.value.map(|value| value.members.len().min(1));
                    alloc::format!("generation {members:?}")
                }
                other => unreachable!("no member here speaks the consumer protocol: {other:?}"),
            });
        }
    }
    for state in ["PreparingRebalance", "CompletingRebalance", "Stable"] {
        assert!(
            seen.get(&alloc::format!("{state}, 2")).is_some_and(|times| *times > 50),
            "{seen:?}"
        );
    }
    for record in ["commit true", "commit false", "generation None", "generation Some(0)"] {
        assert!(seen.get(record).is_some_and(|times| *times > 50), "{record} in {seen:?}");
    }
}
