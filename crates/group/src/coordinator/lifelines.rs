//! Which connections live members speak on, over all groups of a shard.
//!
//! Only the register protocol breaks a dead member's socket (S19), but whoever is alive on it, in
//! whatever protocol and group, must not suffer for it; so everyone is counted. Knows no group and
//! no rule.

use super::map::{Map, seeded};
use ottla_model::ConnectionId;

/// How many members' last valid request came on each connection (decision 17).
#[derive(Debug)]
pub(super) struct Lifelines {
    members: Map<ConnectionId, u32>,
}

impl Lifelines {
    /// Nobody speaks.
    pub(super) fn new(seed: u64) -> Self {
        Self { members: seeded(seed) }
    }

    /// A member whose connection was `line` speaks on `now`.
    pub(super) fn follow(&mut self, line: &mut Option<ConnectionId>, now: ConnectionId) {
        if *line != Some(now) {
            self.cut(line.replace(now));
            *self.members.entry(now).or_insert(0) += 1;
        }
    }

    /// A member whose connection was `line` is gone.
    pub(super) fn cut(&mut self, line: Option<ConnectionId>) {
        let Some(connection) = line else { return };
        if let Some(count) = self.members.get_mut(&connection) {
            *count -= 1;
            if *count == 0 {
                self.members.remove(&connection);
            }
        }
    }

    /// Whether a live member speaks on `connection`.
    pub(super) fn has(&self, connection: ConnectionId) -> bool {
        self.members.contains_key(&connection)
    }

    /// Nobody speaks any more.
    pub(super) fn clear(&mut self) {
        self.members.clear();
    }
}

/// For tests that look behind the counts.
#[cfg(test)]
impl Lifelines {
    pub(super) fn counts(&self) -> alloc::collections::BTreeMap<ConnectionId, u32> {
        self.members.iter().map(|(connection, count)| (*connection, *count)).collect()
    }
}
