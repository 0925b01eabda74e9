//! One transition at a time, then all of them at random.

use super::*;
use alloc::vec::Vec;
use proptest::prelude::*;

const TOPIC: TopicId = TopicId([1; 16]);

fn slot(partition: i32) -> Slot {
    (TOPIC, PartitionId(partition))
}

fn held(partitions: &[i32], epoch: i32) -> Held {
    partitions.iter().map(|p| (slot(*p), Generation(epoch))).collect()
}

fn set(partitions: &[i32]) -> BTreeSet<Slot> {
    partitions.iter().map(|p| slot(*p)).collect()
}

fn position(epoch: i32, assigned: &[i32], state: State) -> Position {
    let previous_epoch = Generation(epoch - 1);
    Position { epoch: Generation(epoch), previous_epoch, assigned: held(assigned, 1), state }
}

fn unrevoked(revoking: &[i32]) -> State {
    State::Unrevoked { revoking: held(revoking, 1) }
}

/// The member's next position, its target being `target` at `epoch`, others holding `taken`.
fn next(
    position: &Position,
    (epoch, target): (i32, &[i32]),
    owned: Option<&[i32]>,
    taken: &[i32],
) -> Option<Position> {
    let (target, owned, taken) = (set(target), owned.map(set), set(taken));
    reconcile(
        position,
        &Goal {
            epoch: Generation(epoch),
            target: &target,
            owned: owned.as_ref(),
            wants: &|_| true,
            is_free: &|slot| !taken.contains(&slot),
        },
    )
}

/// The partitions of a position and its state's kind, to compare at a glance.
fn shown(position: Option<Position>) -> Option<(i32, Vec<i32>, &'static str)> {
    let position = position?;
    let state = match position.state {
        State::Stable => "stable",
        State::Unrevoked { .. } => "unrevoked",
        State::Unreleased => "unreleased",
        State::Away => "away",
    };
    let assigned = position.assigned.keys().map(|(_, partition)| partition.0);
    Some((position.epoch.0, assigned.collect(), state))
}

#[test]
fn stable_stays_at_the_targets_epoch() {
    let stable = position(5, &[1, 2], State::Stable);
    assert_eq!(next(&stable, (5, &[1, 2]), None, &[]), None);
}

#[test]
fn stable_to_stable_gains_what_is_free() {
    let stable = position(5, &[1], State::Stable);
    let moved = next(&stable, (6, &[1, 2]), None, &[]).expect("a step");
    assert_eq!(shown(Some(moved.clone())), Some((6, [1, 2].into(), "stable")));
    assert_eq!(moved.previous_epoch, Generation(5));
    assert_eq!(moved.held_since(slot(1)), Some(Generation(1)), "KIP-1251: kept since epoch 1");
    assert_eq!(moved.held_since(slot(2)), Some(Generation(6)));
}

#[test]
fn stable_to_unrevoked_stays_in_its_epoch() {
    let stable = position(5, &[1, 2], State::Stable);
    let moved = next(&stable, (6, &[2, 3]), None, &[]).expect("a step");
    assert_eq!(shown(Some(moved.clone())), Some((5, [2].into(), "unrevoked")));
    assert_eq!(moved.holds().collect::<BTreeSet<_>>(), set(&[1, 2]), "others see both as taken");
    assert_eq!(moved.held_since(slot(1)), Some(Generation(1)));
}

#[test]
fn stable_that_says_it_owns_nothing_skips_the_revocation() {
    let stable = position(5, &[1, 2], State::Stable);
    assert_eq!(shown(next(&stable, (6, &[2]), Some(&[2]), &[])), Some((6, [2].into(), "stable")));
}

#[test]
fn stable_to_unreleased_waits_for_others() {
    let stable = position(5, &[1], State::Stable);
    let moved = next(&stable, (6, &[1, 2, 3]), None, &[3]);
    assert_eq!(shown(moved), Some((6, [1, 2].into(), "unreleased")));
}

#[test]
fn unrevoked_stays_until_it_says_that_it_gave_up() {
    let unrevoked = position(5, &[2], unrevoked(&[1]));
    assert_eq!(next(&unrevoked, (6, &[2]), None, &[]), None);
    assert_eq!(next(&unrevoked, (6, &[2]), Some(&[1, 2]), &[]), None);
    assert_eq!(
        shown(next(&unrevoked, (6, &[2]), Some(&[2]), &[])),
        Some((6, [2].into(), "stable"))
    );
}

#[test]
fn unrevoked_to_unrevoked_if_the_target_took_more() {
    let before = position(5, &[2, 3], unrevoked(&[1]));
    let moved = next(&before, (7, &[2]), Some(&[2, 3]), &[]).expect("a step");
    assert_eq!(moved.state, unrevoked(&[3]));
    assert_eq!(moved.epoch, Generation(5));
}

#[test]
fn unrevoked_takes_back_what_it_gave_up_if_the_target_returns_it() {
    let before = position(5, &[2], unrevoked(&[1]));
    let moved = next(&before, (7, &[1, 2]), Some(&[2]), &[]).expect("a step");
    assert_eq!(shown(Some(moved.clone())), Some((7, [1, 2].into(), "stable")));
    assert_eq!(moved.held_since(slot(1)), Some(Generation(7)), "it is another ownership");
}

#[test]
fn unreleased_to_stable_once_others_let_go() {
    let before = position(6, &[1], State::Unreleased);
    assert_eq!(next(&before, (6, &[1, 2]), None, &[2]), None);
    let moved = next(&before, (6, &[1, 2]), None, &[]).expect("a step");
    assert_eq!(shown(Some(moved.clone())), Some((6, [1, 2].into(), "stable")));
    assert_eq!(moved.previous_epoch, Generation(5), "whoever missed two answers is still known");
}

#[test]
fn unreleased_to_unrevoked_if_the_target_took_something() {
    let before = position(6, &[1], State::Unreleased);
    assert_eq!(shown(next(&before, (7, &[2]), None, &[2])), Some((6, [].into(), "unrevoked")));
}

#[test]
fn away_stays() {
    let away = position(-2, &[1], State::Away);
    assert_eq!(next(&away, (7, &[]), Some(&[]), &[]), None);
}

#[test]
fn what_is_not_wanted_any_more_is_revoked_before_the_target_knows() {
    let stable = position(5, &[1], State::Stable);
    let goal = Goal {
        epoch: Generation(5),
        target: &set(&[1, 2]),
        owned: None,
        wants: &|_| false,
        is_free: &|_| true,
    };
    assert_eq!(shown(reconcile(&stable, &goal)), Some((5, [].into(), "unrevoked")));
}

/// What happens to the members of a small group.
#[derive(Clone, Copy, Debug)]
enum Event {
    /// The target changes: each partition goes to the member this digit of the number names.
    Target(u32),
    /// A member says that it owns what it was told.
    Beat(usize),
    /// A member says nothing of what it owns.
    Mute(usize),
    /// A member joins anew.
    Rejoin(usize),
}

const MEMBERS: usize = 3;
const PARTITIONS: i32 = 4;

fn events() -> impl Strategy<Value = Vec<Event>> {
    let member = || 0..MEMBERS;
    let event = prop_oneof![
        2 => (0u32..256).prop_map(Event::Target),
        5 => member().prop_map(Event::Beat),
        2 => member().prop_map(Event::Mute),
        1 => member().prop_map(Event::Rejoin),
    ];
    proptest::collection::vec(event, 0..60)
}

/// Some members, what each was told, and the target.
struct Play {
    positions: [Position; MEMBERS],
    told: [BTreeSet<Slot>; MEMBERS],
    targets: [BTreeSet<Slot>; MEMBERS],
    epoch: i32,
}

impl Play {
    fn new() -> Self {
        let positions = core::array::from_fn(|_| Position::default());
        Self { positions, told: Default::default(), targets: Default::default(), epoch: 0 }
    }

    fn take(&mut self, event: Event) {
        match event {
            Event::Target(digits) => {
                self.epoch += 1;
                self.targets = Default::default();
                for partition in 0..PARTITIONS {
                    // The fourth digit leaves a partition to nobody.
                    let member = (digits >> (2 * partition)) as usize & 3;
                    if let Some(target) = self.targets.get_mut(member) {
                        target.insert(slot(partition));
                    }
                }
            }
            Event::Beat(member) => self.beat(member, Some(self.told[member].clone())),
            Event::Mute(member) => self.beat(member, None),
            Event::Rejoin(member) => self.beat(member, Some(BTreeSet::new())),
        }
        self.check();
    }

    fn beat(&mut self, member: usize, owned: Option<BTreeSet<Slot>>) {
        let before = &self.positions[member];
        let others = self.positions.iter().enumerate().filter(|(other, _)| *other != member);
        let taken: BTreeSet<Slot> = others.flat_map(|(_, other)| other.holds()).collect();
        let goal = Goal {
            epoch: Generation(self.epoch),
            target: &self.targets[member],
            owned: owned.as_ref(),
            wants: &|_| true,
            is_free: &|slot| !taken.contains(&slot),
        };
        if let Some(after) = reconcile(before, &goal) {
            assert!(after.epoch >= before.epoch, "epochs rise");
            assert!(after.epoch <= goal.epoch, "no epoch is ahead of the target");
            self.positions[member] = after;
        }
        // The answer arrives: it owns what it may, and gives the rest up at once.
        self.told[member] = self.positions[member].assigned.keys().copied().collect();
    }

    fn check(&self) {
        let mut holders = BTreeMap::new();
        for (member, position) in self.positions.iter().enumerate() {
            for slot in position.holds() {
                assert_eq!(holders.insert(slot, member), None, "{slot:?} has two owners");
            }
        }
    }
}

proptest! {
    /// KIP-848, "Assignment Reconciliation": no partition has two owners, epochs never fall, and
    /// from wherever the members stand they arrive in a bounded number of heartbeats.
    #[test]
    fn members_never_share_and_always_arrive(events in events()) {
        let mut play = Play::new();
        events.into_iter().for_each(|event| play.take(event));
        for _ in 0..3 {
            (0..MEMBERS).for_each(|member| play.take(Event::Beat(member)));
        }
        for (position, target) in play.positions.iter().zip(&play.targets) {
            prop_assert!(position.is_at(Generation(play.epoch)), "{position:?}");
            prop_assert_eq!(&position.assigned.keys().copied().collect::<BTreeSet<_>>(), target);
        }
    }
}
