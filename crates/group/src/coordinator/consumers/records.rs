//! Between records and the shapes the rules work on.

use crate::coordinator::reconcile::{Held, Position, Slot, State};
use crate::coordinator::record::{
    ConsumerGroupCurrentMemberAssignment, ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadata, ConsumerGroupTargetAssignmentMember, HeldPartitions, Record,
    StoredState,
};
use crate::message::consumer::Partitions;
use alloc::collections::BTreeSet;
use alloc::sync::Arc;
use alloc::vec::Vec;
use ottla_model::{Generation, GroupId, MemberId, PartitionId, TopicId};

/// The partitions of a record or a request, each once.
pub(super) fn slots(partitions: &Partitions) -> BTreeSet<Slot> {
    let slots = partitions.iter().flat_map(|(topic, partitions)| {
        partitions.iter().map(move |partition| (*topic, *partition))
    });
    slots.collect()
}

/// Partitions by topic, for a record or an answer.
pub(in super::super) fn partitions_of(slots: impl IntoIterator<Item = Slot>) -> Partitions {
    let mut topics: Partitions = Vec::new();
    for (topic, partition) in slots {
        match topics.last_mut() {
            Some((last, partitions)) if *last == topic => partitions.push(partition),
            _ => topics.push((topic, alloc::vec![partition])),
        }
    }
    topics
}

/// The position that a record tells of. A state that only a later Kafka knows is taken as one
/// whose member has not given up anything yet: it is told its target anew.
pub(super) fn position(value: &ConsumerGroupCurrentMemberAssignmentValue) -> Position {
    let assigned = held(&value.assigned, value.epoch);
    let revoking = held(&value.revoking, value.epoch);
    let state = match value.state {
        _ if value.epoch == AWAY => State::Away,
        StoredState::Unrevoked => State::Unrevoked { revoking },
        StoredState::Unreleased => State::Unreleased,
        StoredState::Unknown(_) if !revoking.is_empty() => State::Unrevoked { revoking },
        StoredState::Stable | StoredState::Unknown(_) => State::Stable,
    };
    let (epoch, previous_epoch) = (value.epoch, value.previous_epoch);
    Position { epoch, previous_epoch, assigned, state }
}

fn held(topics: &[HeldPartitions], epoch: Generation) -> Held {
    let slots = topics.iter().flat_map(|held| {
        let epochs = held.epochs.as_deref().unwrap_or_default();
        let since = epochs.iter().copied().chain(core::iter::repeat(epoch));
        held.partitions.iter().zip(since).map(|(p, since)| ((held.topic, *p), since))
    });
    slots.collect()
}

impl Position {
    /// The position as a record tells it.
    pub(in super::super) fn to_record(&self, group: &GroupId, member: &MemberId) -> Record {
        let (state, revoking) = match &self.state {
            State::Stable | State::Away => (StoredState::Stable, Vec::new()),
            State::Unrevoked { revoking } => (StoredState::Unrevoked, stored(revoking)),
            State::Unreleased => (StoredState::Unreleased, Vec::new()),
        };
        let value = ConsumerGroupCurrentMemberAssignmentValue {
            epoch: self.epoch,
            previous_epoch: self.previous_epoch,
            state,
            assigned: stored(&self.assigned),
            revoking,
        };
        Record::ConsumerGroupCurrentMemberAssignment(ConsumerGroupCurrentMemberAssignment {
            group: group.clone(),
            member: member.clone(),
            value: Some(Arc::new(value)),
        })
    }
}

fn stored(held: &Held) -> Vec<HeldPartitions> {
    let mut topics: Vec<(TopicId, Vec<PartitionId>, Vec<Generation>)> = Vec::new();
    for ((topic, partition), since) in held {
        match topics.last_mut() {
            Some((last, partitions, epochs)) if last == topic => {
                partitions.push(*partition);
                epochs.push(*since);
            }
            _ => topics.push((*topic, alloc::vec![*partition], alloc::vec![*since])),
        }
    }
    let stored = topics.into_iter().map(|(topic, partitions, epochs)| HeldPartitions {
        topic,
        partitions,
        epochs: Some(epochs),
    });
    stored.collect()
}

/// The records that end a member, in the order Kafka needs to read them.
pub(in super::super) fn member_end(group: &GroupId, member: &MemberId) -> [Record; 3] {
    let (group, member) = (group.clone(), member.clone());
    [
        Record::ConsumerGroupCurrentMemberAssignment(ConsumerGroupCurrentMemberAssignment {
            group: group.clone(),
            member: member.clone(),
            value: None,
        }),
        Record::ConsumerGroupTargetAssignmentMember(ConsumerGroupTargetAssignmentMember {
            group: group.clone(),
            member: member.clone(),
            value: None,
        }),
        Record::ConsumerGroupMemberMetadata(ConsumerGroupMemberMetadata {
            group,
            member,
            value: None,
        }),
    ]
}

/// The epoch of a static member that went and will be back.
pub(in super::super) const AWAY: Generation = Generation(-2);
