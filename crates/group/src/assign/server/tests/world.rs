//! A group as a coordinator keeps it beside its [`Target`], and what must hold of the two.

use super::super::{MemberFacts, Progress, ServerAssignor, Share, Target};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use alloc::{format, vec};
use ottla_model::{
    InstanceId, MemberId, Partition, PartitionId, Topic, TopicId, TopicName, TopicsView,
};

/// A partition by topic number, version of the topic's id, and index.
pub(super) type At = (u8, u8, u32);

/// One member as the coordinator knows it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Member {
    pub(super) instance: Option<InstanceId>,
    pub(super) rack: Option<u8>,
    pub(super) topics: BTreeSet<u8>,
}

/// Topics by number: the version of its id, and the racks of each partition.
pub(super) type Topics = BTreeMap<u8, (u8, Vec<Vec<u8>>)>;

/// Hard state, and the target kept up beside it.
#[derive(Clone)]
pub(super) struct World {
    pub(super) target: Target,
    pub(super) members: BTreeMap<MemberId, Member>,
    pub(super) topics: Topics,
    /// What the records say, from the changes the target named.
    pub(super) recorded: BTreeMap<MemberId, Share>,
    /// How many units a step may work.
    pub(super) budget: usize,
    /// How many facts changed since the last full assignment.
    pub(super) changes: usize,
}

pub(super) fn topic_id(number: u8, version: u8) -> TopicId {
    let mut id = [0; 16];
    (id[0], id[1]) = (number + 1, version);
    TopicId(id)
}

/// So many topics without racks.
pub(super) fn plain(counts: &[usize]) -> Topics {
    (0..).zip(counts.iter().map(|count| (0, vec![Vec::new(); *count]))).collect()
}

fn view(topics: &Topics) -> Arc<TopicsView> {
    let topics = topics.iter().map(|(number, (version, partitions))| Topic {
        id: topic_id(*number, *version),
        name: TopicName::from(format!("t{number}")),
        partitions: partitions
            .iter()
            .map(|racks| Partition { racks: racks.iter().map(|rack| name_of(*rack)).collect() })
            .collect(),
    });
    Arc::new(TopicsView::new(topics))
}

fn name_of(rack: u8) -> Arc<str> {
    format!("rack{rack}").into()
}

impl World {
    pub(super) fn new(assignor: ServerAssignor, topics: Topics) -> Self {
        Self {
            target: Target::new(assignor, &view(&topics)),
            members: BTreeMap::new(),
            topics,
            recorded: BTreeMap::new(),
            budget: usize::MAX / 2,
            changes: 0,
        }
    }

    pub(super) fn join(&mut self, id: &str, topics: &[u8]) {
        self.set(
            id,
            Member { instance: None, rack: None, topics: topics.iter().copied().collect() },
        );
    }

    pub(super) fn set(&mut self, id: &str, member: Member) {
        self.changes += 1;
        let id = MemberId::from(id);
        tell(&mut self.target, &id, &member);
        self.members.insert(id, member);
    }

    pub(super) fn leave(&mut self, id: &str) {
        self.changes += 1;
        self.target.remove_member(id);
        self.members.remove(id);
        self.recorded.remove(id);
    }

    pub(super) fn set_topics(&mut self, topics: Topics) {
        self.changes += 1;
        let differs = |number: &&u8| self.topics.get(*number) != topics.get(*number);
        let differing = self.topics.keys().chain(topics.keys()).filter(differs);
        let differing = differing.map(|number| TopicName::from(format!("t{number}"))).collect();
        // Both ways must come to the same.
        match self.changes % 2 {
            0 => self.target.set_view(&view(&topics)),
            _ => self.target.set_view_differing(&view(&topics), &differing),
        }
        self.topics = topics;
    }

    /// These members, as far as they are there, subscribe to the same now.
    pub(super) fn subscribe_alike(&mut self, ids: &[MemberId], topics: &BTreeSet<u8>) {
        self.changes += ids.len();
        let names: Vec<_> =
            topics.iter().map(|number| TopicName::from(format!("t{number}"))).collect();
        self.target.set_topics(ids.iter().map(|id| &**id), &names);
        for id in ids {
            if let Some(member) = self.members.get_mut(id) {
                member.topics.clone_from(topics);
            }
        }
    }

    /// One step; says whether that was the last.
    pub(super) fn step(&mut self) -> bool {
        self.target.step(self.budget) == Progress::Settled
    }

    /// Works to the end, and records what changed as the coordinator does.
    pub(super) fn assign(&mut self) {
        while !self.step() {}
        self.changes = 0;
        for id in self.target.take_changed() {
            let share = self.target.share(&id);
            self.recorded.insert(id, share);
        }
    }

    /// A target built from hard state alone, as a new coordinator builds it.
    pub(super) fn rebuilt(&self) -> Target {
        let mut target = Target::new(self.target.assignor(), &view(&self.topics));
        for (id, member) in &self.members {
            tell(&mut target, id, member);
        }
        for (id, share) in &self.recorded {
            target.restore(id, flat(share));
        }
        target
    }

    /// Who owns what by the records.
    pub(super) fn owners(&self) -> BTreeMap<At, MemberId> {
        let mut owners = BTreeMap::new();
        for (id, share) in &self.recorded {
            for at in ats(share) {
                assert_eq!(owners.insert(at, id.clone()), None, "two own {at:?}");
            }
        }
        owners
    }

    /// Who owned what of that is still there and still subscribed to.
    pub(super) fn keepable(&self, before: &BTreeMap<At, MemberId>) -> BTreeMap<At, MemberId> {
        let stays = |((topic, version, index), owner): &(&At, &MemberId)| {
            let known = self.topics.get(topic).filter(|(known, _)| known == version);
            (*index as usize) < known.map_or(0, |(_, partitions)| partitions.len())
                && self.members.get(*owner).is_some_and(|member| member.topics.contains(topic))
        };
        before.iter().filter(stays).map(|(at, owner)| (*at, owner.clone())).collect()
    }

    pub(super) fn loads(&self) -> BTreeMap<&MemberId, usize> {
        let load = |id| self.recorded.get(id).map_or(0, |share| ats(share).count());
        self.members.keys().map(|id| (id, load(id))).collect()
    }

    /// Every partition of a subscribed topic has one owner, who subscribes to it; what the target
    /// says is what the records say.
    pub(super) fn check_whole(&self) {
        let owners = self.owners();
        for (number, (version, partitions)) in &self.topics {
            let is_wanted = self.members.values().any(|member| member.topics.contains(number));
            for index in 0..partitions.len() as u32 {
                let owner = owners.get(&(*number, *version, index));
                assert_eq!(owner.is_some(), is_wanted, "t{number}-{index} is {owner:?}'s");
            }
        }
        for ((topic, version, index), owner) in &owners {
            assert_eq!(self.topics[topic].0, *version, "t{topic} is of another time");
            assert!(self.members[owner].topics.contains(topic), "{owner} owns t{topic}-{index}");
            assert!(
                (*index as usize) < self.topics[topic].1.len(),
                "t{topic}-{index} is not there"
            );
        }
        for id in self.members.keys() {
            assert_eq!(self.recorded.get(id), Some(&self.target.share(id)), "{id}");
        }
    }

    /// No single move makes loads more even; with one subscription for all, loads differ by one
    /// at most.
    pub(super) fn check_even(&self) {
        let loads = self.loads();
        for ((topic, _, _), owner) in self.owners() {
            for (id, member) in &self.members {
                if member.topics.contains(&topic) {
                    assert!(loads[&owner] <= loads[id] + 1, "{owner} to {id}: {loads:?}");
                }
            }
        }
        if self.is_homogeneous() && !self.members.is_empty() {
            let (least, most) = (loads.values().min(), loads.values().max());
            assert!(most <= least.map(|least| least + 1).as_ref(), "{loads:?}");
        }
    }

    pub(super) fn is_homogeneous(&self) -> bool {
        let mut topics = self.members.values().map(|member| &member.topics);
        let first = topics.next();
        topics.all(|topics| Some(topics) == first)
    }

    /// `t0[0, 1] t1[2]`
    pub(super) fn shown(&self, id: &str) -> String {
        let share = self.target.share(id);
        let topics = share.iter().map(|(topic, ids)| format!("t{}{ids:?}", topic.0[0] - 1));
        topics.collect::<Vec<_>>().join(" ")
    }
}

fn tell(target: &mut Target, id: &MemberId, member: &Member) {
    let rack = member.rack.map(name_of);
    let topics: Vec<_> =
        member.topics.iter().map(|number| TopicName::from(format!("t{number}"))).collect();
    target.set_member(MemberFacts {
        id,
        instance: member.instance.as_ref(),
        rack: rack.as_deref(),
        topics: &topics,
    });
}

pub(super) fn flat(share: &Share) -> impl Iterator<Item = (TopicId, PartitionId)> + '_ {
    share.iter().flat_map(|(topic, ids)| ids.iter().map(|id| (*topic, *id)))
}

fn ats(share: &Share) -> impl Iterator<Item = At> + '_ {
    flat(share).map(|(topic, id)| (topic.0[0] - 1, topic.0[1], id.0 as u32))
}

/// How many of the partitions somebody could have kept went to another.
pub(super) fn moves(before: &BTreeMap<At, MemberId>, after: &BTreeMap<At, MemberId>) -> usize {
    before.iter().filter(|(at, owner)| after.get(at) != Some(owner)).count()
}
