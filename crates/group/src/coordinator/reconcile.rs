//! How one member moves towards the target, by itself: the heart of KIP-848 as a pure function.
//!
//! A member gives up what it must before it is given anything new, and is given only what nobody
//! else holds. That alone keeps every partition with at most one owner; whatever the target is and
//! however often it changes, no step here can break it. Knows no group, no record and no time.
//!
//! ```text
//!               target took something           gave it up
//!   Stable ---------------------------> Unrevoked ---------+
//!     ^  |                                  ^              |
//!     |  | others hold some of it           | target took  v  others hold some of it
//!     |  +------------------------------> Unreleased <-----+------> Stable
//!     +------------------------------------+  nobody does any more
//! ```

#[cfg(test)]
mod tests;

use crate::probe::{self, Fault};
use alloc::collections::{BTreeMap, BTreeSet};
use ottla_model::{Generation, PartitionId, TopicId};

/// One partition.
pub(super) type Slot = (TopicId, PartitionId);

/// Partitions, each with the epoch at which their member came to hold them (KIP-1251).
pub(super) type Held = BTreeMap<Slot, Generation>;

/// Where a member stands.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(super) struct Position {
    /// Its epoch: the target's, once it has given up what that takes away.
    pub(super) epoch: Generation,
    /// The epoch before: a member whose last answer was lost still names it.
    pub(super) previous_epoch: Generation,
    /// What it may own. It may not yet have heard of all of it.
    pub(super) assigned: Held,
    pub(super) state: State,
}

/// How far a member has come.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(super) enum State {
    /// It has all of the target of its epoch. Leaves when the target moves on.
    #[default]
    Stable,
    /// It stays in its epoch until it reports that it owns none of `revoking`; until then these
    /// are its own as far as others are concerned. Takes longer than its rebalance timeout only
    /// once.
    Unrevoked {
        /// What it was told to give up.
        revoking: Held,
    },
    /// It is in the target's epoch and waits for partitions that others hold.
    Unreleased,
    /// It is static, said that it will be back, and holds what it held (epoch -2).
    Away,
}

/// What a member is to become.
pub(super) struct Goal<'a> {
    /// The target's epoch.
    pub(super) epoch: Generation,
    /// The target.
    pub(super) target: &'a BTreeSet<Slot>,
    /// What the member says it owns at this moment; `None` where it does not say.
    pub(super) owned: Option<&'a BTreeSet<Slot>>,
    /// Whether the member still wants a topic: a target that lags behind does not know.
    pub(super) wants: &'a dyn Fn(TopicId) -> bool,
    /// Whether no *other* member holds a partition.
    pub(super) is_free: &'a dyn Fn(Slot) -> bool,
}

/// The member's next position; `None` where it stays.
pub(super) fn reconcile(position: &Position, goal: &Goal<'_>) -> Option<Position> {
    let next = match &position.state {
        State::Away => return None,
        State::Unrevoked { revoking } if goal.still_owned(revoking) => return None,
        State::Stable if position.epoch == goal.epoch && !goal.unwanted(&position.assigned) => {
            return None;
        }
        State::Stable | State::Unrevoked { .. } | State::Unreleased => step(position, goal),
    };
    (next != *position).then_some(next)
}

/// One step towards the goal:
///
/// ```text
/// keeps    = assigned ∩ target
/// loses    = assigned − target
/// gains    = (target − assigned) ∩ free
/// awaits   = (target − assigned) − free
/// ```
fn step(position: &Position, goal: &Goal<'_>) -> Position {
    let is_target = |slot: &Slot| goal.target.contains(slot) && (goal.wants)(slot.0);
    let (mut assigned, loses): (Held, Held) =
        position.assigned.iter().partition(|(slot, _)| is_target(slot));
    if goal.still_owned(&loses) {
        let state = State::Unrevoked { revoking: loses };
        return Position { assigned, state, ..position.clone() };
    }
    let mut awaits = false;
    for slot in goal.target.iter().filter(|slot| is_target(slot)) {
        if assigned.contains_key(slot) {
            continue;
        }
        if (goal.is_free)(*slot) {
            assigned.insert(*slot, goal.epoch);
        } else {
            awaits = true;
        }
    }
    let moved = position.epoch != goal.epoch;
    Position {
        epoch: goal.epoch,
        previous_epoch: if moved { position.epoch } else { position.previous_epoch },
        assigned,
        state: if awaits { State::Unreleased } else { State::Stable },
    }
}

impl Position {
    /// Everything nobody else may be given.
    pub(super) fn holds(&self) -> impl Iterator<Item = Slot> {
        let revoking = match &self.state {
            State::Unrevoked { revoking } => Some(revoking),
            State::Stable | State::Unreleased | State::Away => None,
        };
        self.assigned.keys().chain(revoking.into_iter().flat_map(Held::keys)).copied()
    }

    /// Since which epoch it holds this partition, if it does.
    pub(super) fn held_since(&self, slot: Slot) -> Option<Generation> {
        match (self.assigned.get(&slot), &self.state) {
            (None, State::Unrevoked { revoking }) => revoking.get(&slot).copied(),
            (since, _) => since.copied(),
        }
    }

    /// Whether it has arrived at the target of `epoch`.
    pub(super) fn is_at(&self, epoch: Generation) -> bool {
        self.state == State::Stable && self.epoch == epoch
    }

    /// Whether everything in `owned` is its own.
    pub(super) fn may_own(&self, owned: &BTreeSet<Slot>) -> bool {
        owned.iter().all(|slot| self.assigned.contains_key(slot))
    }
}

impl Goal<'_> {
    /// Whether the member still owns some of these, as far as it says.
    fn still_owned(&self, held: &Held) -> bool {
        !held.is_empty()
            && !probe::has(Fault::CoordinatorBelievesEveryone)
            && self.owned.is_none_or(|owned| held.keys().any(|slot| owned.contains(slot)))
    }

    /// Whether some of these are of topics that the member gave up.
    fn unwanted(&self, held: &Held) -> bool {
        held.keys().any(|(topic, _)| !(self.wants)(*topic))
    }
}
