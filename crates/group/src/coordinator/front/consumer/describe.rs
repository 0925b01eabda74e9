//! ConsumerGroupDescribe: a group and its members from outside.

use crate::coordinator::consumers::{Consumer, partitions_of};
use crate::coordinator::reconcile::Slot;
use crate::coordinator::turn::{Call, Turn};
use crate::message::admin::GroupKind;
use crate::message::consumer::{DescribedMember, Description, NamedPartitions};
use crate::message::{GroupError, Reply};
use alloc::sync::Arc;
use alloc::vec::Vec;
use ottla_model::MemberId;

impl Turn<'_> {
    /// Describes a group that exists.
    pub(in super::super::super) fn describe_consumers(&mut self, call: &Call<'_>) {
        let outcome = match self.group.kind {
            GroupKind::Consumer => Ok(self.described_consumers()),
            GroupKind::Classic | GroupKind::Register => Err(GroupError::GroupIdNotFound),
        };
        self.reply(call.token, Reply::ConsumerDescribe(outcome));
    }

    fn described_consumers(&self) -> Description {
        let consumers = self.group.hard.consumers();
        let members = consumers.members().map(|(id, member)| self.described_consumer(id, member));
        Description {
            group: self.group.id.clone(),
            state: self.group.state(),
            epoch: consumers.epoch(),
            assignment_epoch: consumers.target_epoch(),
            assignor: Arc::from(self.elected_assignor().name()),
            members: members.collect(),
        }
    }

    fn described_consumer(&self, id: &MemberId, member: &Consumer) -> DescribedMember {
        let says = member.says();
        DescribedMember {
            member: id.clone(),
            instance: says.instance.clone(),
            rack: says.rack.clone(),
            epoch: member.position().epoch,
            client_id: says.client_id.clone(),
            client_host: says.client_host.clone(),
            topics: says.topics.clone(),
            regex: says.pattern().cloned(),
            assignment: self.named(member.position().assigned.keys().copied()),
            target: self.named(member.target().iter().copied()),
            is_classic: says.classic.is_some(),
        }
    }

    /// Partitions with their topics' names; those of topics that are gone have none and are left
    /// out.
    pub(super) fn named(&self, slots: impl IntoIterator<Item = Slot>) -> Vec<NamedPartitions> {
        let view = self.services.topics.as_deref();
        let topics = partitions_of(slots).into_iter();
        let named = topics.filter_map(|(id, partitions)| {
            let topic = view?.topic_by_id(id)?.name.clone();
            Some(NamedPartitions { id, topic, partitions })
        });
        named.collect()
    }
}
