//! Who is in a group: members, those promised a place, static identities, and what they vote for.
//!
//! Membership here is soft: it is what the group will write at its next generation, restored from
//! the last one after a restart. The roster keeps its counts true and hands back whoever was
//! waiting; it never decides about a rebalance and answers nobody.

use super::map::{Map, seeded};
use super::timers::Deadline;
use super::view::Who;
use crate::message::classic::Protocol;
use crate::message::{Blob, Token};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;
use ottla_model::{ConnectionId, InstanceId, Instant, MemberId};

/// An assignor a member supports, with its metadata for it.
pub(super) type Supported = (Arc<str>, Blob);

/// One member.
#[derive(Debug)]
pub(super) struct Member {
    /// Its place in the order of joining.
    pub(super) serial: u32,
    pub(super) instance: Option<InstanceId>,
    pub(super) client_id: Arc<str>,
    pub(super) client_host: Arc<str>,
    pub(super) session_timeout: Duration,
    pub(super) rebalance_timeout: Duration,
    /// Most wanted first, names distinct.
    pub(super) protocols: Arc<[Supported]>,
    /// Whether `protocols` came from a record, which keeps only the chosen one.
    pub(super) restored: bool,
    /// Whether it has not yet been told of a generation; such a member cannot heartbeat.
    pub(super) is_new: bool,
    /// Its place in the last generation's record, if it is part of that generation.
    pub(super) stored: Option<u32>,
    /// When it is taken for dead.
    pub(super) session: Deadline,
    /// When it last joined, for the journal.
    pub(super) joined_at: Instant,
    /// When it last synced, for the journal.
    pub(super) synced_at: Option<Instant>,
    parked: Parked,
    owes_sync: bool,
}

/// The request of a member that waits for the others.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Parked {
    /// None.
    #[default]
    No,
    /// A join. `stranger` names the connection of a member that was never told its id: should the
    /// connection close, nobody can speak for that member any more.
    Join {
        /// Answers it.
        token: Token,
        /// See above.
        stranger: Option<ConnectionId>,
    },
    /// A sync.
    Sync(Token),
}

/// An id given out (KIP-394) whose joiner has not come back yet.
#[derive(Debug)]
pub(super) struct Pending {
    pub(super) client_id: Arc<str>,
    pub(super) client_host: Arc<str>,
    pub(super) since: Instant,
    pub(super) session: Deadline,
}

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
    pub(super) fn remove(&mut self, id: &str) {
        if let Some((id, _)) = self.leave(id)
            && self.is_leader(&id)
        {
            self.leader = None;
        }
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
        if let Some(instance) = &member.instance {
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

/// Votes for an assignor.
impl Roster {
    /// Whether every member supports one of `protocols`.
    pub(super) fn supports_any(&self, protocols: &[Protocol<'_>]) -> bool {
        protocols.iter().any(|protocol| self.is_candidate(protocol.name))
    }

    /// The assignor most members vote for, each for its most wanted one that all support. Among
    /// equals the eldest member's preference decides.
    pub(super) fn elect_protocol(&self) -> Option<Arc<str>> {
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

impl Member {
    /// A member that has joined nothing yet; its serial is set when it is added.
    pub(super) fn new(
        instance: Option<InstanceId>,
        client_id: Arc<str>,
        client_host: Arc<str>,
        session_timeout: Duration,
        rebalance_timeout: Duration,
        protocols: Arc<[Supported]>,
    ) -> Self {
        Self {
            serial: 0,
            instance,
            client_id,
            client_host,
            session_timeout,
            rebalance_timeout,
            protocols,
            restored: false,
            is_new: false,
            stored: None,
            session: Deadline::unarmed(),
            joined_at: Instant::ZERO,
            synced_at: None,
            parked: Parked::No,
            owes_sync: false,
        }
    }

    /// Whether its join is parked.
    pub(super) fn is_joining(&self) -> bool {
        matches!(self.parked, Parked::Join { .. })
    }

    /// Whether its sync is parked.
    pub(super) fn is_syncing(&self) -> bool {
        matches!(self.parked, Parked::Sync(_))
    }

    /// Whether a request of its is parked.
    pub(super) fn is_parked(&self) -> bool {
        self.parked != Parked::No
    }

    /// Whether its join is parked on `connection` and it was never told its id.
    pub(super) fn is_stranger_of(&self, connection: ConnectionId) -> bool {
        matches!(self.parked, Parked::Join { stranger: Some(c), .. } if c == connection)
    }

    /// Whether it has not synced in this generation.
    pub(super) fn owes_sync(&self) -> bool {
        self.owes_sync
    }

    /// Its metadata for one assignor; empty where it does not support it.
    pub(super) fn metadata(&self, protocol: &str) -> Blob {
        let found = self.protocols.iter().find(|(name, _)| **name == *protocol);
        found.map_or_else(Blob::default, |(_, metadata)| metadata.clone())
    }

    /// Whether it supports exactly these, with the same metadata. Of a member restored from the
    /// log only one assignor is known, and only that one can differ.
    pub(super) fn matches(&self, protocols: &[Protocol<'_>]) -> bool {
        let same = |(name, metadata): &Supported, other: &Protocol<'_>| {
            **name == *other.name && **metadata == *other.metadata
        };
        if self.restored {
            return self.protocols.iter().all(|own| protocols.iter().any(|p| same(own, p)));
        }
        self.protocols.len() == protocols.len()
            && self.protocols.iter().zip(protocols).all(|(own, other)| same(own, other))
    }

    /// The member as the journal remembers it.
    pub(super) fn who(&self, id: &MemberId) -> Who {
        Who {
            member: id.clone(),
            instance: self.instance.clone(),
            client_id: self.client_id.clone(),
            client_host: self.client_host.clone(),
        }
    }

    /// Bytes of what it sent about itself.
    pub(super) fn bytes(&self, id: &MemberId) -> usize {
        let protocols: usize =
            self.protocols.iter().map(|(name, metadata)| name.len() + metadata.len()).sum();
        id.len()
            + self.instance.as_ref().map_or(0, |instance| instance.len())
            + self.client_id.len()
            + self.client_host.len()
            + protocols
    }
}
