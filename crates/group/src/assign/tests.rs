//! What every assignor promises, over random groups; and what Java does, on fixed ones.

use super::*;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;
use alloc::vec;
use ottla_model::{Partition, PartitionId, Topic, TopicId};
use proptest::prelude::*;

/// A member between rebalances.
#[derive(Clone, Debug, Default)]
struct Player {
    id: String,
    instance: Option<String>,
    topics: Vec<TopicName>,
    owned: Partitions,
    generation: Option<Generation>,
}

impl Player {
    fn new(id: &str, topics: &[&str]) -> Self {
        let topics = topics.iter().copied().map(TopicName::from).collect();
        Self { id: id.into(), topics, ..Self::default() }
    }
}

fn view(topics: &[(&str, usize)]) -> TopicsView {
    TopicsView::new(topics.iter().map(|(name, count)| Topic {
        id: TopicId::ZERO,
        name: TopicName::from(*name),
        partitions: vec![Partition::default(); *count],
    }))
}

fn assign(assignor: Assignor, players: &[Player], view: &TopicsView) -> Vec<Partitions> {
    let subscribers: Vec<_> = players
        .iter()
        .map(|player| Subscriber {
            member: &player.id,
            instance: player.instance.as_deref(),
            topics: &player.topics,
            owned: &player.owned,
            generation: player.generation,
        })
        .collect();
    assignor.assign(&subscribers, view)
}

/// One rebalance: everyone owns what it got, in the next generation.
fn settle(assignor: Assignor, players: &mut [Player], view: &TopicsView, generation: i32) {
    let sets = assign(assignor, players, view);
    for (player, owned) in players.iter_mut().zip(sets) {
        player.owned = owned;
        player.generation = Some(Generation(generation));
    }
}

fn shown(sets: &[Partitions]) -> String {
    format!("{sets:?}")
}

fn loads(sets: &[Partitions]) -> Vec<usize> {
    sets.iter().map(Partitions::len).collect()
}

fn check_one_owner(players: &[Player], sets: &[Partitions], view: &TopicsView) {
    let mut owner: BTreeMap<(TopicName, PartitionId), usize> = BTreeMap::new();
    for (member, set) in sets.iter().enumerate() {
        for (topic, partition) in set.iter() {
            assert!(players[member].topics.contains(topic), "{member} did not want {topic}");
            assert!(owner.insert((topic.clone(), partition), member).is_none(), "two owners");
        }
    }
    let wanted: BTreeSet<_> = players.iter().flat_map(|player| &player.topics).collect();
    let expected: usize =
        wanted.iter().filter_map(|topic| view.topic(topic)).map(|t| t.partitions.len()).sum();
    assert_eq!(owner.len(), expected, "every partition of a subscribed topic has an owner");
}

/// No partition could go to another subscriber of its topic and bring two loads closer together.
fn check_balanced(players: &[Player], sets: &[Partitions]) {
    for (giver, set) in sets.iter().enumerate() {
        for (topic, _) in set.by_topic() {
            for (taker, other) in players.iter().enumerate() {
                let fits = other.topics.contains(topic);
                assert!(!fits || set.len() <= sets[taker].len() + 1, "{giver} -> {taker}: {topic}");
            }
        }
    }
}

fn any_view() -> impl Strategy<Value = Vec<usize>> {
    prop::collection::vec(0usize..12, 1..6)
}

/// Members by the topics they want (as bits) and what they claim to own, in which generation.
type Raw = (u8, Vec<(u8, i32)>, Option<i32>);

fn any_members() -> impl Strategy<Value = Vec<Raw>> {
    let claims = prop::collection::vec((0u8..7, -1..14), 0..12);
    prop::collection::vec((any::<u8>(), claims, prop::option::of(0..3)), 1..9)
}

fn build(topics: &[usize], raw: &[Raw], uniform: bool) -> (TopicsView, Vec<Player>) {
    let named: Vec<_> = topics.iter().enumerate().map(|(i, n)| (format!("t{i}"), *n)).collect();
    let borrowed: Vec<_> = named.iter().map(|(name, count)| (name.as_str(), *count)).collect();
    let players = raw.iter().enumerate().map(|(index, (wants, claims, generation))| {
        let wants = if uniform { raw[0].0 } else { *wants };
        // Bit 7 wants a topic that does not exist.
        let topics = (0..8).filter(|bit| wants & (1 << bit) != 0);
        let mut owned = Partitions::new();
        for (topic, partition) in claims {
            owned.insert(&TopicName::from(format!("t{topic}")), PartitionId(*partition));
        }
        Player {
            id: format!("m{index}"),
            instance: (index % 3 == 0).then(|| format!("i{}", 9 - index)),
            topics: topics.map(|bit| TopicName::from(format!("t{bit}"))).collect(),
            owned,
            generation: generation.map(Generation),
        }
    });
    (view(&borrowed), players.collect())
}

proptest! {
    /// S3, S4: whatever members claim, every partition has exactly one owner among those who want
    /// its topic; the order in which members are listed does not matter.
    #[test]
    fn one_owner_each_and_deterministic(
        topics in any_view(), raw in any_members(), uniform in any::<bool>(),
    ) {
        let (view, players) = build(&topics, &raw, uniform);
        for assignor in [Assignor::Range, Assignor::RoundRobin, Assignor::Sticky] {
            let sets = assign(assignor, &players, &view);
            check_one_owner(&players, &sets, &view);
            let mut turned = players.clone();
            turned.reverse();
            let mut again = assign(assignor, &turned, &view);
            again.reverse();
            prop_assert_eq!(&sets, &again, "{:?}", assignor);
        }
    }

    /// KIP-54: balanced whatever was owned before.
    #[test]
    fn sticky_is_balanced(
        topics in any_view(), raw in any_members(), uniform in any::<bool>(),
    ) {
        let (view, players) = build(&topics, &raw, uniform);
        let sets = assign(Assignor::Sticky, &players, &view);
        check_balanced(&players, &sets);
        if uniform {
            let (least, most) = (loads(&sets).into_iter().min(), loads(&sets).into_iter().max());
            prop_assert!(most <= least.map(|least| least + 1));
        }
    }

    /// KIP-54: a second rebalance of the same group moves nothing.
    #[test]
    fn sticky_is_idempotent(
        topics in any_view(), raw in any_members(), uniform in any::<bool>(),
    ) {
        let (view, mut players) = build(&topics, &raw, uniform);
        settle(Assignor::Sticky, &mut players, &view, 5);
        let before: Vec<_> = players.iter().map(|player| player.owned.clone()).collect();
        prop_assert_eq!(assign(Assignor::Sticky, &players, &view), before);
    }

    /// KIP-54: with one subscription, a join takes only the joiner's share, and a leave moves only
    /// what the leaver had.
    #[test]
    fn sticky_moves_the_share_of_who_comes_or_goes(
        topics in any_view(), members in 1usize..9, at in any::<prop::sample::Index>(),
    ) {
        let raw = vec![(0x3f, vec![], None); members];
        let (view, mut players) = build(&topics, &raw, true);
        settle(Assignor::Sticky, &mut players, &view, 1);
        let mut joined = players.clone();
        joined.push(Player { id: "z".into(), topics: players[0].topics.clone(), ..<_>::default() });
        let sets = assign(Assignor::Sticky, &joined, &view);
        for (player, set) in players.iter().zip(&sets) {
            prop_assert!(set.minus(&player.owned).is_empty(), "an old member got something new");
        }
        let leaver = players.remove(at.index(members));
        for (player, set) in players.iter().zip(assign(Assignor::Sticky, &players, &view)) {
            prop_assert!(player.owned.minus(&set).is_empty(), "a member that stays lost something");
            prop_assert!(set.minus(&player.owned).minus(&leaver.owned).is_empty());
        }
    }

    /// KIP-429: nobody gets what another member holds, and a second rebalance completes it.
    #[test]
    fn cooperative_hands_over_in_two_steps(
        topics in any_view(), raw in any_members(), uniform in any::<bool>(),
    ) {
        let (view, mut players) = build(&topics, &raw, uniform);
        let first = assign(Assignor::CooperativeSticky, &players, &view);
        for (member, set) in first.iter().enumerate() {
            for (topic, partition) in set.minus(&players[member].owned).iter() {
                let holder = players.iter().position(|p| p.owned.contains(topic, partition));
                prop_assert!(holder.is_none(), "{topic}-{partition} is still held");
            }
        }
        for generation in 5..8 {
            settle(Assignor::CooperativeSticky, &mut players, &view, generation);
        }
        let sets = assign(Assignor::CooperativeSticky, &players, &view);
        check_one_owner(&players, &sets, &view);
        check_balanced(&players, &sets);
    }
}

/// Java's RangeAssignor: ranges per topic, the first members one longer.
#[test]
fn range_as_in_java() {
    let players = [Player::new("b", &["x", "y"]), Player::new("a", &["x"])];
    let sets = assign(Assignor::Range, &players, &view(&[("x", 3), ("y", 2)]));
    assert_eq!(shown(&sets), "[x[2] y[0 1], x[0 1]]");
}

/// Java's order of members: static ones first, by instance id.
#[test]
fn range_keeps_a_static_members_place() {
    let mut players = [Player::new("a", &["x"]), Player::new("c", &["x"])];
    players[1].instance = Some("only".into());
    let sets = assign(Assignor::Range, &players, &view(&[("x", 3)]));
    assert_eq!(shown(&sets), "[x[2], x[0 1]]");
}

/// Java's RoundRobinAssignor with unlike subscriptions, from its own documentation.
#[test]
fn roundrobin_as_in_java() {
    let players = [
        Player::new("c0", &["t0"]),
        Player::new("c1", &["t0", "t1"]),
        Player::new("c2", &["t0", "t1", "t2"]),
    ];
    let sets = assign(Assignor::RoundRobin, &players, &view(&[("t0", 1), ("t1", 2), ("t2", 3)]));
    assert_eq!(shown(&sets), "[t0[0], t1[0], t1[1] t2[0 1 2]]");
}

/// Java's StickyAssignor on the same group: better balanced (KIP-54's example).
#[test]
fn sticky_as_in_java() {
    let players = [
        Player::new("c0", &["t0"]),
        Player::new("c1", &["t0", "t1"]),
        Player::new("c2", &["t0", "t1", "t2"]),
    ];
    let sets = assign(Assignor::Sticky, &players, &view(&[("t0", 1), ("t1", 2), ("t2", 3)]));
    assert_eq!(shown(&sets), "[t0[0], t1[0 1], t2[0 1 2]]");
}

/// KIP-341: a member that comes back from an old generation does not take partitions from those
/// who own them now; two that claim one partition in one generation both lose it first.
#[test]
fn the_younger_claim_wins() {
    let topics = view(&[("x", 2)]);
    let owned = |partitions: &[i32]| {
        partitions.iter().map(|p| ottla_model::TopicPartition::new("x", *p)).collect::<Partitions>()
    };
    let claimant = |id: &str, partitions: &[i32], generation| Player {
        owned: owned(partitions),
        generation: Some(Generation(generation)),
        ..Player::new(id, &["x"])
    };
    let players = [claimant("a", &[0], 1), claimant("b", &[0], 2), claimant("c", &[1], 2)];
    let sets = assign(Assignor::CooperativeSticky, &players, &topics);
    assert_eq!(shown(&sets), "[, x[0], x[1]]");
    let players = [claimant("a", &[0, 1], 2), claimant("b", &[0], 2)];
    let sets = assign(Assignor::CooperativeSticky, &players, &topics);
    assert_eq!(sets[1].len() + sets[0].len(), 2);
}

/// Members without topics, topics without partitions, no members at all: nothing to do, no panic.
#[test]
fn nothing_to_assign() {
    for assignor in Assignor::ALL {
        assert!(assign(assignor, &[], &view(&[("x", 3)])).is_empty());
        let players = [Player::new("a", &[]), Player::new("b", &["absent", "void"])];
        assert_eq!(shown(&assign(assignor, &players, &view(&[("void", 0)]))), "[, ]");
    }
}
