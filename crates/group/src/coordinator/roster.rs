//! Who is in a group: members, those promised a place, static identities, and what they vote for.
//!
//! Membership here is soft: it is what the group will write at its next generation, restored from
//! the last one after a restart. The roster keeps its counts true and hands back whoever was
//! waiting; it never decides about a rebalance and answers nobody.

mod member;
mod votes;

pub(super) use member::{Member, Parked, Pending, Supported};

use super::map::{Map, seeded};
use super::view::Who;
use crate::message::Token;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;
use ottla_model::{ConnectionId, InstanceId, Instant, MemberId};

/// The members of one group.
#[derive(Debug)]
pub(super) struct Roster {
    members: Map<MemberId, Member>,
    pending: Map<MemberId, Pending>,
    instances: Map<InstanceId, MemberId>,
    /// How many members support each assignor.
    support: Map<Arc<str>, u32>,
    leader: Option<MemberId>,
    parked_joins: usize,
    owed_syncs: usize,
    next_serial: u32,
    bytes: usize,
}

impl Roster {
    /// Nobody.
    pub(super) fn new(seed: u64) -> Self {
        Self {
            members: seeded(seed),
            pending: seeded(seed),
            instances: seeded(seed),
            support: seeded(seed),
            leader: None,
            parked_joins: 0,
            owed_syncs: 0,
            next_serial: 0,
            bytes: 0,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.members.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    pub(super) fn member(&self, id: &str) -> Option<&Member> {
        self.members.get(id)
    }

    pub(super) fn member_mut(&mut self, id: &str) -> Option<&mut Member> {
        self.members.get_mut(id)
    }

    /// The member and its own copy of its id.
    pub(super) fn entry_mut(&mut self, id: &str) -> Option<(&MemberId, &mut Member)> {
        self.members.get_key_value_mut(id)
    }

    /// The member's own copy of its id, to share.
    pub(super) fn id(&self, id: &str) -> Option<&MemberId> {
        self.members.get_key_value(id).map(|(id, _)| id)
    }

    /// Members in the order they joined.
    pub(super) fn in_order(&self) -> Vec<(&MemberId, &Member)> {
        let mut members: Vec<_> = self.members.iter().collect();
        members.sort_unstable_by_key(|(_, member)| member.serial);
        members
    }

    /// Ids in the order their members joined, of those `wanted`.
    pub(super) fn ids_where(&self, mut wanted: impl FnMut(&Member) -> bool) -> Vec<MemberId> {
        let mut members: Vec<_> = self.members.iter().filter(|(_, m)| wanted(m)).collect();
        members.sort_unstable_by_key(|(_, member)| member.serial);
        members.into_iter().map(|(id, _)| id.clone()).collect()
    }

    /// The member that holds this instance id.
    pub(super) fn holder(&self, instance: &str) -> Option<&MemberId> {
        self.instances.get(instance)
    }

    pub(super) fn leader(&self) -> Option<&MemberId> {
        self.leader.as_ref()
    }

    pub(super) fn is_leader(&self, id: &str) -> bool {
        self.leader.as_deref() == Some(id)
    }

    /// Members whose join is parked.
    pub(super) fn parked_joins(&self) -> usize {
        self.parked_joins
    }

    /// Members that have not synced in this generation.
    pub(super) fn owed_syncs(&self) -> usize {
        self.owed_syncs
    }

    /// Bytes of ids, hosts and metadata.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether everyone known is at the barrier.
    pub(super) fn all_joined(&self) -> bool {
        self.parked_joins == self.members.len() && self.pending.is_empty()
    }

    /// The longest time any member wants for rejoining.
    pub(super) fn rebalance_timeout(&self) -> Duration {
        self.members.values().map(|member| member.rebalance_timeout).max().unwrap_or_default()
    }

    /// The member as the journal remembers it.
    pub(super) fn who(&self, id: &str) -> Option<Who> {
        let (id, member) = self.members.get_key_value(id)?;
        Some(member.who(id))
    }

    /// Adds a member; the first one leads. Any promise to this id is kept by it.
    pub(super) fn add(&mut self, id: MemberId, mut member: Member) {
        debug_assert!(!self.members.contains_key(&id), "an id has one member");
        self.pending.remove(&*id);
        member.serial = self.next_serial;
        self.next_serial += 1;
        if self.members.is_empty() {
            self.leader = Some(id.clone());
        }
        self.enter(id, member);
    }

    /// Removes a member. Where it led nobody does, until the barrier closes: looking for another
    /// leader at once would make a large group's leaving quadratic.
    pub(super) fn remove(&mut self, id: &str) -> Option<Member> {
        let (id, member) = self.leave(id)?;
        if self.is_leader(&id) {
            self.leader = None;
        }
        Some(member)
    }

    /// Gives a static member a new id, in its old place. What was parked under the old id is
    /// handed back.
    pub(super) fn replace(&mut self, old: &str, new: MemberId) -> Option<Parked> {
        let was_leader = self.is_leader(old);
        let parked = self.unpark(old);
        let (_, member) = self.leave(old)?;
        if was_leader {
            self.leader = Some(new.clone());
        }
        self.enter(new, member);
        Some(parked)
    }

    /// Replaces what a member says of itself. `who` it is stays.
    pub(super) fn update(&mut self, id: &str, change: impl FnOnce(&mut Member)) {
        let Some((id, mut member)) = self.leave(id) else { return };
        change(&mut member);
        self.enter(id, member);
    }

    /// Parks a member's join and hands back what was parked before.
    pub(super) fn park_join(
        &mut self,
        id: &str,
        token: Token,
        stranger: Option<ConnectionId>,
        now: Instant,
    ) -> Parked {
        self.park(id, Parked::Join { token, stranger }, |member| member.joined_at = now)
    }

    /// Parks a member's sync and hands back what was parked before.
    pub(super) fn park_sync(&mut self, id: &str, token: Token) -> Parked {
        self.park(id, Parked::Sync(token), |_| {})
    }

    /// Takes what a member has parked.
    pub(super) fn unpark(&mut self, id: &str) -> Parked {
        self.park(id, Parked::No, |_| {})
    }

    /// Whether a member owes its sync, from now on.
    pub(super) fn owe_sync(&mut self, id: &str, owes: bool) {
        if let Some(member) = self.members.get_mut(id)
            && member.owes_sync != owes
        {
            member.owes_sync = owes;
            if owes {
                self.owed_syncs += 1;
            } else {
                self.owed_syncs -= 1;
            }
        }
    }

    /// Nobody owes a sync any more.
    pub(super) fn forgive_syncs(&mut self) {
        if self.owed_syncs > 0 {
            self.members.values_mut().for_each(|member| member.owes_sync = false);
            self.owed_syncs = 0;
        }
    }

    /// Makes sure that the leader is one of those at the barrier, the eldest if it must be another
    /// one; false where nobody is there.
    pub(super) fn elect_joined_leader(&mut self) -> bool {
        let has_joined = |member: &Member| member.is_joining();
        let leader = self.leader.as_ref().and_then(|id| self.members.get(id));
        if leader.is_some_and(has_joined) {
            return true;
        }
        let joined = self.members.iter().filter(|(_, member)| has_joined(member));
        let Some((eldest, _)) = joined.min_by_key(|(_, member)| member.serial) else {
            return false;
        };
        self.leader = Some(eldest.clone());
        true
    }

    /// Restores the leader a record names.
    pub(super) fn restore_leader(&mut self, leader: Option<&MemberId>) {
        if let Some((id, _)) = leader.and_then(|id| self.members.get_key_value(id)) {
            self.leader = Some(id.clone());
        }
    }

    fn park(&mut self, id: &str, parked: Parked, note: impl FnOnce(&mut Member)) -> Parked {
        let Some(member) = self.members.get_mut(id) else { return Parked::No };
        note(member);
        self.parked_joins -= usize::from(member.is_joining());
        let before = core::mem::replace(&mut member.parked, parked);
        self.parked_joins += usize::from(member.is_joining());
        before
    }

    fn enter(&mut self, id: MemberId, member: Member) {
        for (name, _) in member.protocols.iter() {
            *self.support.entry(name.clone()).or_insert(0) += 1;
        }
        if let Some(instance) = &member.instance {
            self.instances.insert(instance.clone(), id.clone());
        }
        self.parked_joins += usize::from(member.is_joining());
        self.owed_syncs += usize::from(member.owes_sync);
        self.bytes += member.bytes(&id);
        self.members.insert(id, member);
    }

    fn leave(&mut self, id: &str) -> Option<(MemberId, Member)> {
        let (id, member) = self.members.remove_entry(id)?;
        for (name, _) in member.protocols.iter() {
            if let Some(count) = self.support.get_mut(name) {
                *count -= 1;
                if *count == 0 {
                    self.support.remove(name);
                }
            }
        }
        if let Some(instance) = &member.instance
            && self.instances.get(instance) == Some(&id)
        {
            self.instances.remove(instance);
        }
        self.parked_joins -= usize::from(member.is_joining());
        self.owed_syncs -= usize::from(member.owes_sync);
        self.bytes -= member.bytes(&id);
        Some((id, member))
    }
}

/// For tests that look behind the counts.
#[cfg(test)]
impl Roster {
    pub(super) fn support(&self) -> alloc::collections::BTreeMap<Arc<str>, u32> {
        self.support.iter().map(|(name, count)| (name.clone(), *count)).collect()
    }

    pub(super) fn instances_len(&self) -> usize {
        self.instances.len()
    }
}

/// Promises: ids given out whose joiners have not come back.
impl Roster {
    pub(super) fn promise(&mut self, id: MemberId, pending: Pending) {
        self.pending.insert(id, pending);
    }

    pub(super) fn pending(&self, id: &str) -> Option<&Pending> {
        self.pending.get(id)
    }

    pub(super) fn pending_mut(&mut self, id: &str) -> Option<&mut Pending> {
        self.pending.get_mut(id)
    }

    pub(super) fn all_pending(&self) -> impl Iterator<Item = (&MemberId, &Pending)> {
        self.pending.iter()
    }

    pub(super) fn pending_len(&self) -> usize {
        self.pending.len()
    }

    pub(super) fn break_promise(&mut self, id: &str) -> Option<Pending> {
        self.pending.remove(id)
    }

    pub(super) fn break_promises(&mut self) {
        self.pending.clear();
    }
}
