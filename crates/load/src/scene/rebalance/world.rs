//! Who owns what in the group, seen from the members: each tells of what it gains and loses at the
//! moment it does. Nobody asks the broker; two owners at once are a violation and counted.

use crate::member::Partition;
use std::collections::HashMap;
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// The number of a member in its scene.
pub(super) type Number = usize;

/// One group.
#[derive(Default)]
pub(super) struct World {
    /// Whoever lives: how much it owns, and whether the coordinator knows.
    members: HashMap<Number, Standing>,
    owners: HashMap<Partition, Number>,
    /// Partitions that nobody owns now: whose they were, and since when.
    lost: HashMap<Partition, (Number, Instant)>,
    /// Partitions there are.
    expected: usize,
    /// Whether everybody may own all, so that nobody owns two more than another.
    is_even: bool,
    changed_at: Option<Instant>,
    /// Of the act that is under way.
    pub(super) act: Act,
    /// Why a member gave up.
    pub(super) failure: Option<String>,
}

#[derive(Default)]
struct Standing {
    owned: usize,
    is_known: bool,
}

/// What was seen during one act.
#[derive(Default)]
pub(super) struct Act {
    /// Requests of the members.
    pub(super) beats: u64,
    /// For each partition that went to another member: how long nobody had it.
    pub(super) moved: Vec<Duration>,
    /// Partitions that were taken away and given back to the same member.
    pub(super) paused: u64,
    /// Partitions that had two owners at once.
    pub(super) doubled: u64,
}

impl World {
    pub(super) fn new(expected: usize, is_even: bool) -> Self {
        Self { expected, is_even, ..Default::default() }
    }

    /// There are more partitions now.
    pub(super) fn grow(&mut self, expected: usize) {
        self.expected = expected;
    }

    /// Somebody is about to join.
    pub(super) fn arrives(&mut self, who: Number) {
        self.members.insert(who, Standing::default());
    }

    /// Somebody is gone, and what it owned with it.
    pub(super) fn leaves(&mut self, who: Number, owned: &[Partition], now: Instant) {
        self.loses(who, owned, now);
        self.members.remove(&who);
    }

    pub(super) fn gains(&mut self, who: Number, partitions: &[Partition], now: Instant) {
        for partition in partitions {
            if self.owners.insert(*partition, who).is_some() {
                self.act.doubled += 1;
            }
            match self.lost.remove(partition) {
                Some((before, _)) if before == who => self.act.paused += 1,
                Some((_, since)) => self.act.moved.push(now.duration_since(since)),
                None => {}
            }
        }
        self.changed(who, now, partitions.len().cast_signed());
    }

    pub(super) fn loses(&mut self, who: Number, partitions: &[Partition], now: Instant) {
        for partition in partitions {
            if self.owners.get(partition) == Some(&who) {
                self.owners.remove(partition);
                self.lost.insert(*partition, (who, now));
            }
        }
        self.changed(who, now, -partitions.len().cast_signed());
    }

    /// The coordinator was told all (`is_known`) or not all of what the member owns.
    pub(super) fn spoke(&mut self, who: Number, is_known: bool, now: Instant) {
        let Some(standing) = self.members.get_mut(&who) else { return };
        if standing.is_known != is_known {
            standing.is_known = is_known;
            self.changed_at = Some(now);
        }
    }

    /// Since when every partition has an owner, every owner is known to the coordinator and nobody
    /// owns two more than another; `None` while that is not so.
    pub(super) fn converged_at(&self) -> Option<Instant> {
        let is_whole = self.owners.len() == self.expected;
        if !is_whole || self.members.values().any(|member| !member.is_known) {
            return None;
        }
        let sizes = || self.members.values().map(|member| member.owned);
        let spread = sizes().max().unwrap_or(0) - sizes().min().unwrap_or(0);
        if self.is_even && spread > 1 { None } else { self.changed_at }
    }

    fn changed(&mut self, who: Number, now: Instant, by: isize) {
        if by == 0 {
            return;
        }
        self.changed_at = Some(now);
        if let Some(member) = self.members.get_mut(&who) {
            member.owned = member.owned.saturating_add_signed(by);
        }
    }
}

/// What all members and the conductor share, on one thread.
pub(super) struct Stage {
    pub(super) world: std::cell::RefCell<World>,
    /// Something happened.
    pub(super) happened: Notify,
}

#[cfg(test)]
mod tests {
    use super::*;
    use ottla_wire::Uuid;

    #[test]
    fn a_group_has_converged_when_all_is_owned_known_and_even() {
        let now = Instant::now();
        let partition = |number| (Uuid::ZERO, number);
        let mut world = World::new(4, true);
        world.arrives(1);
        world.gains(1, &[0, 1, 2, 3].map(partition), now);
        assert_eq!(world.converged_at(), None);
        world.spoke(1, true, now);
        assert_eq!(world.converged_at(), Some(now));
        world.arrives(2);
        world.spoke(2, true, now);
        assert_eq!(world.converged_at(), None);
        world.loses(1, &[2, 3].map(partition), now);
        world.gains(2, &[2, 3].map(partition), now);
        assert_eq!(world.converged_at(), Some(now));
        assert_eq!((world.act.moved.len(), world.act.paused, world.act.doubled), (2, 0, 0));
    }

    #[test]
    fn two_owners_and_a_needless_pause_are_counted() {
        let (now, partition) = (Instant::now(), (Uuid::ZERO, 0));
        let mut world = World::new(1, true);
        world.gains(1, &[partition], now);
        world.gains(2, &[partition], now);
        assert_eq!(world.act.doubled, 1);
        world.loses(2, &[partition], now);
        world.gains(2, &[partition], now);
        assert_eq!(world.act.paused, 1);
    }
}
