//! Which assignor a group uses: each member votes for its most wanted one that all support.

use super::Roster;
use crate::message::classic::Protocol;
use alloc::sync::Arc;
use alloc::vec::Vec;

impl Roster {
    /// Whether every member supports one of `protocols`.
    pub(in super::super) fn supports_any(&self, protocols: &[Protocol<'_>]) -> bool {
        protocols.iter().any(|protocol| self.is_candidate(protocol.name))
    }

    /// The assignor most members vote for, each for its most wanted one that all support. Among
    /// equals the eldest member's preference decides.
    pub(in super::super) fn elect_protocol(&self) -> Option<Arc<str>> {
        let (_, eldest) = self.members.iter().min_by_key(|(_, member)| member.serial)?;
        let mut votes: Vec<(&Arc<str>, u32)> = eldest
            .protocols
            .iter()
            .filter(|(name, _)| self.is_candidate(name))
            .map(|(name, _)| (name, 0))
            .collect();
        for member in self.members.values() {
            let vote = member.protocols.iter().find(|(name, _)| self.is_candidate(name));
            let slot = vote.and_then(|(name, _)| votes.iter_mut().find(|(n, _)| *n == name));
            if let Some((_, count)) = slot {
                *count += 1;
            }
        }
        // `max_by_key` keeps the last of equals, so the preferred one must come last.
        votes.into_iter().rev().max_by_key(|(_, count)| *count).map(|(name, _)| name.clone())
    }

    fn is_candidate(&self, name: &str) -> bool {
        self.support.get(name).is_some_and(|count| *count as usize == self.members.len())
    }
}
