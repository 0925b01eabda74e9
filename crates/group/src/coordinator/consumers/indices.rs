//! What a group's records imply, kept up member by member.

use super::{Consumer, Says};
use crate::coordinator::reconcile::{Slot, State};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::Arc;
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
    /// How many members subscribe to each topic by name.
    pub(super) topics: BTreeMap<TopicName, u32>,
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

    pub(super) fn enter(&mut self, id: &MemberId, member: &Consumer) {
        for slot in member.position().holds() {
            self.owners.insert(slot, id.clone());
        }
        let Some(says) = &member.says else { return };
        self.members += 1;
        settled_at(member).iter().for_each(|epoch| count(&mut self.settled, epoch));
        self.bytes += id.len() + says.estimated_bytes();
        if let Some(instance) = &says.instance {
            self.instances.insert(instance.clone(), id.clone());
        }
        says.topics.iter().for_each(|topic| count(&mut self.topics, topic));
        says.assignor.iter().for_each(|assignor| count(&mut self.votes, assignor));
        says.pattern().into_iter().for_each(|pattern| count(&mut self.patterns, pattern));
        self.classics += usize::from(says.classic.is_some());
        supported(says).iter().for_each(|name| count(&mut self.support, name));
    }

    pub(super) fn leave(&mut self, id: &MemberId, member: &Consumer) {
        for slot in member.position().holds() {
            if self.owners.get(&slot) == Some(id) {
                self.owners.remove(&slot);
            }
        }
        let Some(says) = &member.says else { return };
        self.members -= 1;
        settled_at(member).iter().for_each(|epoch| discount(&mut self.settled, epoch));
        self.bytes -= id.len() + says.estimated_bytes();
        if let Some(instance) = &says.instance
            && self.instances.get(instance) == Some(id)
        {
            self.instances.remove(instance);
        }
        says.topics.iter().for_each(|topic| discount(&mut self.topics, topic));
        says.assignor.iter().for_each(|assignor| discount(&mut self.votes, assignor));
        says.pattern().into_iter().for_each(|pattern| discount(&mut self.patterns, pattern));
        self.classics -= usize::from(says.classic.is_some());
        supported(says).iter().for_each(|name| discount(&mut self.support, name));
    }
}

/// The classic assignors a member supports, each once.
fn supported(says: &Says) -> BTreeSet<&Arc<str>> {
    says.classic.iter().flat_map(|classic| &classic.protocols).map(|(name, _)| name).collect()
}

fn settled_at(member: &Consumer) -> Option<Generation> {
    let position = member.position();
    (position.state == State::Stable).then_some(position.epoch)
}

fn count<K: Ord + Clone>(counts: &mut BTreeMap<K, u32>, key: &K) {
    match counts.get_mut(key) {
        Some(times) => *times += 1,
        None => {
            counts.insert(key.clone(), 1);
        }
    }
}

fn discount<K: Ord>(counts: &mut BTreeMap<K, u32>, key: &K) {
    if let Some(times) = counts.get_mut(key) {
        *times -= 1;
        if *times == 0 {
            counts.remove(key);
        }
    }
}
