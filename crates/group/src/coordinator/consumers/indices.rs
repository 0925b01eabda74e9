//! What a group's records imply, kept up member by member.

use super::{Consumer, Says};
use crate::coordinator::reconcile::{Slot, State};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::Arc;
use alloc::vec::Vec;
use ottla_model::{Generation, InstanceId, MemberId, TopicName};

/// See the fields. A member is either in all of them or in none.
#[derive(Debug, Default)]
pub(super) struct Indices {
    /// Who holds each partition.
    pub(super) owners: BTreeMap<Slot, MemberId>,
    /// Who holds each static identity.
    pub(super) instances: BTreeMap<InstanceId, MemberId>,
    /// How many members vote for each assignor.
    pub(super) votes: BTreeMap<Arc<str>, u32>,
    /// How many members and patterns subscribe to each topic.
    pub(super) topics: BTreeMap<TopicName, u32>,
    /// Topics that came into `topics` (true) or went, in order; `None` while nobody asks.
    pub(super) toggled: Option<Vec<(TopicName, bool)>>,
    /// How many members subscribe to each pattern.
    pub(super) patterns: BTreeMap<Arc<str>, u32>,
    /// How many members have all of the target of each epoch.
    pub(super) settled: BTreeMap<Generation, u32>,
    /// How many members that speak the classic protocol support each of its assignors.
    pub(super) support: BTreeMap<Arc<str>, u32>,
    classics: usize,
    members: usize,
    bytes: usize,
}

impl Indices {
    /// Nobody is in.
    pub(super) const NONE: Self = Self {
        owners: BTreeMap::new(),
        instances: BTreeMap::new(),
        votes: BTreeMap::new(),
        topics: BTreeMap::new(),
        toggled: None,
        patterns: BTreeMap::new(),
        settled: BTreeMap::new(),
        support: BTreeMap::new(),
        classics: 0,
        members: 0,
        bytes: 0,
    };

    /// How many members are in.
    pub(super) fn members(&self) -> usize {
        self.members
    }

    /// How many of them speak the classic protocol.
    pub(super) fn classics(&self) -> usize {
        self.classics
    }

    /// Bytes of what they say of themselves.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// One more member or pattern subscribes to a topic.
    pub(super) fn subscribe(&mut self, topic: &TopicName) {
        let is_new = count(&mut self.topics, topic);
        self.note(topic, is_new, true);
    }

    /// One less does.
    pub(super) fn unsubscribe(&mut self, topic: &TopicName) {
        let is_gone = discount(&mut self.topics, topic);
        self.note(topic, is_gone, false);
    }

    fn note(&mut self, topic: &TopicName, has_toggled: bool, is_on: bool) {
        if has_toggled && let Some(toggled) = &mut self.toggled {
            toggled.push((topic.clone(), is_on));
        }
    }

    /// What a member holds, and where it stands.
    pub(super) fn enter_position(&mut self, id: &MemberId, member: &Consumer) {
        for slot in member.position().holds() {
            self.owners.insert(slot, id.clone());
        }
        if let Some(epoch) = settled_at(member) {
            count(&mut self.settled, &epoch);
        }
    }

    /// The same goes.
    pub(super) fn leave_position(&mut self, id: &MemberId, member: &Consumer) {
        for slot in member.position().holds() {
            if self.owners.get(&slot) == Some(id) {
                self.owners.remove(&slot);
            }
        }
        if let Some(epoch) = settled_at(member) {
            discount(&mut self.settled, &epoch);
        }
    }

    pub(super) fn enter(&mut self, id: &MemberId, member: &Consumer) {
        self.enter_position(id, member);
        let Some(says) = &member.says else { return };
        self.members += 1;
        self.bytes += id.len() + says.estimated_bytes();
        if let Some(instance) = &says.instance {
            self.instances.insert(instance.clone(), id.clone());
        }
        says.topics.iter().for_each(|topic| self.subscribe(topic));
        if let Some(assignor) = &says.assignor {
            count(&mut self.votes, assignor);
        }
        if let Some(pattern) = says.pattern() {
            count(&mut self.patterns, pattern);
        }
        self.classics += usize::from(says.classic.is_some());
        for name in supported(says) {
            count(&mut self.support, name);
        }
    }

    pub(super) fn leave(&mut self, id: &MemberId, member: &Consumer) {
        self.leave_position(id, member);
        let Some(says) = &member.says else { return };
        self.members -= 1;
        self.bytes -= id.len() + says.estimated_bytes();
        if let Some(instance) = &says.instance
            && self.instances.get(instance) == Some(id)
        {
            self.instances.remove(instance);
        }
        says.topics.iter().for_each(|topic| self.unsubscribe(topic));
        if let Some(assignor) = &says.assignor {
            discount(&mut self.votes, assignor);
        }
        if let Some(pattern) = says.pattern() {
            discount(&mut self.patterns, pattern);
        }
        self.classics -= usize::from(says.classic.is_some());
        for name in supported(says) {
            discount(&mut self.support, name);
        }
    }
}

/// The classic assignors a member supports, each once.
fn supported(says: &Says) -> BTreeSet<&Arc<str>> {
    says.classic.iter().flat_map(|classic| &classic.protocols).map(|(name, _)| name).collect()
}

/// The epoch whose target a member has all of, if it has said what it is.
fn settled_at(member: &Consumer) -> Option<Generation> {
    let position = member.position();
    (member.says.is_some() && position.state == State::Stable).then_some(position.epoch)
}

/// One more; true for the first.
fn count<K: Ord + Clone>(counts: &mut BTreeMap<K, u32>, key: &K) -> bool {
    match counts.get_mut(key) {
        Some(times) => {
            *times += 1;
            false
        }
        None => {
            counts.insert(key.clone(), 1);
            true
        }
    }
}

/// One less; true for the last.
fn discount<K: Ord>(counts: &mut BTreeMap<K, u32>, key: &K) -> bool {
    let Some(times) = counts.get_mut(key) else { return false };
    *times -= 1;
    let is_gone = *times == 0;
    if is_gone {
        counts.remove(key);
    }
    is_gone
}
