//! What is on record of the group: the last record of each key, as compaction leaves it, and what
//! that says of each member.

use crate::shape::{hashed, nameless};
use crate::shift;
use crate::world::{PARTITIONS, topic_bit, topic_id};
use ottla_group::assign::Partitions;
use ottla_group::assign::subscription::{Assignment, Subscription};
use ottla_group::coordinator::record::{GroupMetadataValue, Record, StoredMember, StoredState};
use ottla_model::{MemberId, PartitionId, TopicId};
use std::collections::BTreeMap;

/// Partitions, a bit for each.
pub type Slots = u8;

/// The records of a group.
#[derive(Clone, Default)]
pub struct Log {
    records: BTreeMap<Key, Record>,
}

/// Of one member, what the log says.
#[derive(Default)]
pub struct Part {
    /// Bits of the topics it wants.
    pub topics: usize,
    pub target: Slots,
    pub epoch: i32,
    pub holds: Slots,
    pub is_settled: bool,
    /// Equal for members that stand alike, whoever they are.
    pub shape: u64,
}

/// A record of a group, by what it is about.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    Epoch,
    Target,
    Says(MemberId),
    Wants(MemberId),
    Stands(MemberId),
    Classic,
}

impl Log {
    pub fn records(&self) -> impl Iterator<Item = &Record> {
        self.records.values()
    }

    /// Keeps the last record of each key, as compaction does.
    pub fn write(&mut self, record: Record) {
        let (key, is_tombstone) = match &record {
            Record::GroupMetadata(it) => (Key::Classic, it.value.is_none()),
            Record::ConsumerGroupMetadata(it) => (Key::Epoch, it.value.is_none()),
            Record::ConsumerGroupTargetAssignmentMetadata(it) => (Key::Target, it.value.is_none()),
            Record::ConsumerGroupMemberMetadata(it) => {
                (Key::Says(it.member.clone()), it.value.is_none())
            }
            Record::ConsumerGroupTargetAssignmentMember(it) => {
                (Key::Wants(it.member.clone()), it.value.is_none())
            }
            Record::ConsumerGroupCurrentMemberAssignment(it) => {
                (Key::Stands(it.member.clone()), it.value.is_none())
            }
            other => unreachable!("no member here makes a {other:?}"),
        };
        match is_tombstone {
            true => drop(self.records.remove(&key)),
            false => drop(self.records.insert(key, record)),
        }
    }

    /// Counts epochs anew.
    pub fn shift(&mut self, by: i32) {
        self.records.values_mut().for_each(|record| shift::record(record, by));
    }

    /// The group's epoch, or its generation; 0 where it had none.
    pub fn epoch(&self) -> i32 {
        match (self.records.get(&Key::Epoch), self.classic()) {
            (_, Some(value)) => value.generation.0,
            (Some(Record::ConsumerGroupMetadata(it)), None) => it.value.map_or(0, |it| it.epoch.0),
            _ => 0,
        }
    }

    /// The epoch of the assignment.
    pub fn target_epoch(&self) -> i32 {
        match (self.records.get(&Key::Target), self.classic()) {
            (_, Some(value)) => value.generation.0,
            (Some(Record::ConsumerGroupTargetAssignmentMetadata(it)), None) => {
                it.value.map_or(0, |value| value.epoch.0)
            }
            _ => 0,
        }
    }

    /// Whether the group is a classic one.
    pub fn is_classic(&self) -> bool {
        self.records.contains_key(&Key::Classic)
    }

    /// Tells it from all others.
    pub fn key(&self) -> u64 {
        hashed(&format!("{:?}", self.records.values().collect::<Vec<_>>()))
    }

    pub fn parts(&self) -> BTreeMap<MemberId, Part> {
        if let Some(value) = self.classic() {
            let members = value.members.iter().enumerate();
            return members
                .map(|(at, it)| (it.member.clone(), Part::stored(value, at, it)))
                .collect();
        }
        let mut parts: BTreeMap<MemberId, Part> = BTreeMap::new();
        let mut shapes: BTreeMap<MemberId, String> = BTreeMap::new();
        for record in self.records.values() {
            let id = match record {
                Record::ConsumerGroupMemberMetadata(it) => &it.member,
                Record::ConsumerGroupTargetAssignmentMember(it) => &it.member,
                Record::ConsumerGroupCurrentMemberAssignment(it) => &it.member,
                _ => continue,
            };
            parts.entry(id.clone()).or_default().read(record);
            *shapes.entry(id.clone()).or_default() += &nameless(record, id);
        }
        for (id, shape) in shapes {
            parts.entry(id).or_default().shape = hashed(&shape);
        }
        parts
    }

    fn classic(&self) -> Option<&GroupMetadataValue> {
        match self.records.get(&Key::Classic) {
            Some(Record::GroupMetadata(it)) => it.value.as_deref(),
            _ => None,
        }
    }
}

impl Part {
    /// Of a member of a classic group, the how manieth one of it.
    fn stored(value: &GroupMetadataValue, at: usize, stored: &StoredMember) -> Self {
        let says = Subscription::decode(&stored.subscription).expect("members here make sense");
        let given = Assignment::decode(&stored.assignment).expect("leaders here make sense");
        let is_leader = value.leader.as_ref() == Some(&stored.member);
        let target = bits(&given.partitions);
        Self {
            topics: says.topics.iter().fold(0, |all, topic| all | topic_bit(topic)),
            target,
            epoch: value.generation.0,
            holds: target,
            is_settled: true,
            shape: hashed(&(at, is_leader, nameless(stored, &stored.member))),
        }
    }

    fn read(&mut self, record: &Record) {
        match record {
            Record::ConsumerGroupMemberMetadata(it) => {
                let says = it.value.iter().flat_map(|value| &value.topics);
                self.topics = says.fold(0, |all, topic| all | topic_bit(topic));
            }
            Record::ConsumerGroupTargetAssignmentMember(it) => {
                self.target = it.value.as_deref().map_or(0, slots);
            }
            Record::ConsumerGroupCurrentMemberAssignment(it) => {
                let Some(value) = &it.value else { return };
                self.epoch = value.epoch.0;
                self.is_settled = value.state == StoredState::Stable;
                let held = value.assigned.iter().chain(&value.revoking);
                self.holds =
                    held.fold(0, |all, held| all | slots(&[(held.topic, held.partitions.clone())]));
            }
            _ => {}
        }
    }
}

/// Whether no two of these have a partition in common.
pub fn all_disjoint(all: impl Iterator<Item = Slots>) -> bool {
    let mut taken = 0;
    all.into_iter().all(|slots| {
        let is_free = taken & slots == 0;
        taken |= slots;
        is_free
    })
}

/// All partitions of an assignment.
fn slots(partitions: &[(TopicId, Vec<PartitionId>)]) -> Slots {
    let slots = partitions.iter().flat_map(|(topic, ids)| ids.iter().map(|id| slot(*topic, *id)));
    slots.fold(0, |all, slot| all | slot)
}

/// Partitions by name.
pub fn bits(partitions: &Partitions) -> Slots {
    partitions.iter().fold(0, |all, (topic, id)| all | slot(topic_id(topic), id))
}

/// The bit of a partition.
fn slot(topic: TopicId, partition: PartitionId) -> Slots {
    let topic = i32::from(topic.0[0]) - 1;
    1 << (topic * PARTITIONS as i32 + partition.0)
}
