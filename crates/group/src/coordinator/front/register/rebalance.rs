//! From one generation to the next: waiting for registrations, assigning, answering.

use super::PROTOCOL;
use crate::assign::subscription::Assignment;
use crate::assign::{Partitions, Subscriber};
use crate::coordinator::barrier::{Barrier, Phase};
use crate::coordinator::front::classic::next;
use crate::coordinator::group::CONSUMER;
use crate::coordinator::journal::Triggers;
use crate::coordinator::record::{GroupMetadata, GroupMetadataValue, Record};
use crate::coordinator::roster::{Member, Parked};
use crate::coordinator::turn::Turn;
use crate::coordinator::view::Cause;
use crate::message::{Blob, GroupError, Reply};
use crate::probe::{self, Mark};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::Arc;
use alloc::vec::Vec;
use ottla_model::{MemberId, TopicName, TopicsView};

impl Turn<'_> {
    /// Begins a rebalance: it waits for every known live member, at most the largest session
    /// timeout among them (decision 6).
    pub(in super::super) fn prepare_register(&mut self, triggers: Triggers) {
        self.group.phase = Phase::Preparing(Barrier::new(self.now, triggers));
        if self.group.roster.all_joined() {
            self.close();
        } else {
            self.arm_barrier(self.group.roster.rebalance_timeout());
        }
    }

    /// Ends the wait: who has not registered is dead, socket included (decision 16).
    pub(in super::super) fn close_register(&mut self) {
        let absent = self.group.roster.ids_where(|member| !member.is_joining());
        let lines = self.lines_of(&absent);
        for id in &absent {
            probe::hit(Mark::CoordinatorDroppedAbsent);
            let trigger = self.trigger(Cause::JoinExpired, id);
            self.absorb(trigger);
            self.remove_member(id);
        }
        if self.group.roster.is_empty() {
            self.run_empty();
        } else {
            self.begin_register_generation();
        }
        self.break_lines(lines);
    }

    /// Assigns, writes the generation down, and answers everyone (S3, S4, S7).
    fn begin_register_generation(&mut self) {
        let Phase::Preparing(barrier) = self.enter(Phase::Stable) else { return };
        let ended = self.group.generation;
        self.group.is_restored = false;
        self.group.generation = next(ended);
        self.group.protocol_type = Some(Arc::from(CONSUMER));
        self.group.protocol = Some(Arc::from(PROTOCOL));
        self.group.roster.elect_joined_leader();
        let wanted = self.wanted();
        let parts = self.share_out(&wanted);
        let value = Arc::new(self.generation_record(|id, _| {
            let partitions = parts.get(id).cloned().unwrap_or_default();
            Blob::from(Assignment { partitions, user_data: None }.encode(0))
        }));
        let before = self.group.hard.metadata().cloned();
        let group = self.group.id.clone();
        let record = GroupMetadata { group, value: Some(value.clone()) };
        if let Err(error) = self.decide(alloc::vec![Record::GroupMetadata(record)]) {
            self.group.generation = ended;
            return self.assignment_refused(error);
        }
        self.subscribe(wanted.into_iter().flat_map(|(_, topics)| topics).collect());
        self.note_generation(barrier);
        self.answer_registrations(&value);
        let (now, roster) = (self.now.mono, &self.group.roster);
        self.group.journal.complete(now, now, roster, before.as_deref(), &value);
        self.write_journal();
    }

    /// Every member's topics.
    fn wanted(&self) -> Vec<(MemberId, Vec<TopicName>)> {
        let members = self.group.roster.in_order().into_iter();
        members.map(|(id, _)| (id.clone(), self.topics_wanted_by_register(id))).collect()
    }

    /// Every member's part, by the group's assignor (decisions 10 and 22).
    fn share_out(&self, wanted: &[(MemberId, Vec<TopicName>)]) -> BTreeMap<MemberId, Partitions> {
        let owned = Partitions::new();
        let subscribers: Vec<_> = wanted
            .iter()
            .map(|(member, topics)| Subscriber {
                member,
                instance: None,
                topics,
                owned: &owned,
                generation: None,
            })
            .collect();
        let nothing = TopicsView::default();
        let topics = self.services.topics.as_deref().unwrap_or(&nothing);
        let parts = self.assignor().assign(&subscribers, topics);
        wanted.iter().map(|(member, _)| member.clone()).zip(parts).collect()
    }

    fn answer_registrations(&mut self, value: &GroupMetadataValue) {
        for (index, stored) in value.members.iter().enumerate() {
            let id = &stored.member;
            if let Some(member) = self.group.roster.member_mut(id) {
                member.stored = Some(index as u32);
                member.synced_at = Some(self.now.mono);
            }
            if let Parked::Join { token, .. } = self.unpark(id) {
                let registered = self.registered(id);
                self.reply(token, Reply::Register(Ok(registered)));
            }
            self.renew_session(id);
        }
    }

    /// The generation does not fit into a batch: everyone is told. Who never had an id is gone;
    /// the others may register with fewer topics.
    fn assignment_refused(&mut self, error: GroupError) {
        let strangers = self.group.roster.ids_where(Member::is_stranger);
        let trigger = self.group.roster.leader().cloned();
        let trigger = trigger.and_then(|id| self.trigger(Cause::AssignmentTooLarge, &id));
        for id in self.group.roster.ids_where(Member::is_parked) {
            self.refuse_parked(&id, error, "");
            self.renew_session(&id);
        }
        for id in &strangers {
            self.remove_member(id);
        }
        self.prepare(trigger);
    }

    /// The group subscribes to these topics from now on (S28).
    pub(in super::super) fn subscribe(&mut self, topics: BTreeSet<TopicName>) {
        let before = self.group.subscribed.as_ref();
        self.services.watch.change(&self.group.id, before, &topics);
        self.group.subscribed = Some(topics);
    }
}

/// The partitions of an assignment we wrote.
pub(super) fn partitions_of(assignment: &[u8]) -> Partitions {
    Assignment::decode(assignment).map(|read| read.partitions).unwrap_or_default()
}
