//! A classic group becomes one of the consumer protocol, because a member of that protocol joins.
//!
//! Its members keep what the last hard generation gave them, in an epoch of its number, and so
//! carry on; the newcomer raises the epoch, and they hear of it as of any rebalance. Whoever waits
//! for the others is sent back to join again.

use crate::assign::subscription::{Assignment, Subscription};
use crate::coordinator::barrier::Phase;
use crate::coordinator::consumers::partitions_of;
use crate::coordinator::front::classic::next;
use crate::coordinator::front::consumer::place::{Place, slots_of};
use crate::coordinator::group::Group;
use crate::coordinator::output::Index;
use crate::coordinator::pattern::Pattern;
use crate::coordinator::reconcile::{Position, Slot, State};
use crate::coordinator::record::{
    ClassicMember, ConsumerGroupMemberMetadata, ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadata, ConsumerGroupMetadataValue, ConsumerGroupTargetAssignmentMember,
    ConsumerGroupTargetAssignmentMetadata, ConsumerGroupTargetAssignmentMetadataValue, Record,
};
use crate::coordinator::roster::Member;
use crate::coordinator::turn::Turn;
use crate::coordinator::view::{Cause, Trigger};
use crate::message::admin::GroupKind;
use crate::message::consumer::{Heartbeat, Standing};
use crate::message::{Blob, GroupError};
use crate::probe::{self, Fault, Mark};
use alloc::collections::BTreeSet;
use alloc::sync::Arc;
use alloc::vec::Vec;
use ottla_model::{Generation, MemberId, TopicName, TopicsView};

impl Turn<'_> {
    /// Makes a group with members of another protocol one that this heartbeat may join. Its
    /// records are those of one decision, which the newcomer's are added to.
    pub(in super::super) fn upgrade(&mut self, ask: &Heartbeat<'_>) -> Result<Index, GroupError> {
        if ask.standing != Standing::Joining {
            return Err(self.left_behind(ask));
        }
        let obstacles = self.group.obstacles_to_upgrade(&self.services.config);
        if self.group.kind != GroupKind::Classic || !obstacles.is_empty() {
            return Err(GroupError::GroupIdNotFound);
        }
        self.check_newcomer(ask)?;
        let view = self.services.topics.clone().ok_or(GroupError::LoadInProgress)?;
        let records = self.upgrading(&view)?;
        let index = self.decide(records)?;
        probe::hit(Mark::CoordinatorUpgraded);
        self.leave_classic_protocol();
        Ok(index)
    }

    /// What a member of the consumer protocol hears of a group that became a classic one: it joins
    /// again, unless a process with its instance id took its place, which it would only take back.
    fn left_behind(&self, ask: &Heartbeat<'_>) -> GroupError {
        let holder = ask.instance.and_then(|instance| self.group.roster.holder(instance));
        match holder.is_some_and(|holder| **holder != *ask.member) {
            true => GroupError::FencedInstanceId,
            false => GroupError::UnknownMemberId,
        }
    }

    /// A newcomer that would be refused must not convert the group.
    fn check_newcomer(&self, ask: &Heartbeat<'_>) -> Result<(), GroupError> {
        if let Some(regex) = ask.regex.filter(|regex| !regex.is_empty()) {
            Pattern::parse(regex)?;
        }
        let roster = &self.group.roster;
        let takes_place = ask.instance.is_some_and(|instance| roster.holder(instance).is_some());
        match roster.len() >= self.services.config.consumer_group_size_max && !takes_place {
            true => Err(GroupError::GroupMaxSizeReached),
            false => Ok(()),
        }
    }

    /// The end of the classic group and the beginning of the other, in the order in which Kafka
    /// reads and writes them.
    fn upgrading(&self, view: &TopicsView) -> Result<Vec<Record>, GroupError> {
        let epoch = self.group.generation;
        let mut parts = self.parts_had(view)?.into_iter();
        let (mut says, mut targets, mut positions) = (Vec::new(), Vec::new(), Vec::new());
        for (id, member) in self.group.roster.in_order() {
            if member.is_stranger() {
                // It does not know its id, and will not come back by it.
                continue;
            }
            let group = self.group.id.clone();
            let value = Some(Arc::new(self.word_of(member)?));
            let record = ConsumerGroupMemberMetadata { group, member: id.clone(), value };
            says.push(Record::ConsumerGroupMemberMetadata(record));
            let Part { own, owes } = parts.next().unwrap_or_default();
            targets.push(Record::ConsumerGroupTargetAssignmentMember(
                ConsumerGroupTargetAssignmentMember {
                    group: self.group.id.clone(),
                    member: id.clone(),
                    value: Some(partitions_of(own.iter().copied())),
                },
            ));
            positions.push(self.position_at(epoch, own, owes).to_record(&self.group.id, id));
        }
        let mut records = self.end_of_classic();
        records.append(&mut says);
        records.push(self.epoch_record(epoch));
        records.append(&mut targets);
        records.push(self.target_record(epoch));
        records.append(&mut positions);
        Ok(records)
    }

    fn word_of(&self, member: &Member) -> Result<ConsumerGroupMemberMetadataValue, GroupError> {
        let subscription = Subscription::decode(&self.group.word(member));
        let subscription = subscription.map_err(|_| GroupError::GroupIdNotFound)?;
        let topics: BTreeSet<TopicName> = subscription.topics.into_iter().collect();
        Ok(ConsumerGroupMemberMetadataValue {
            instance: member.instance.clone(),
            rack: subscription.rack.map(Arc::from),
            client_id: member.client_id.clone(),
            client_host: member.client_host.clone(),
            topics: topics.into_iter().collect(),
            regex: None,
            rebalance_timeout: Some(member.rebalance_timeout),
            assignor: None,
            classic: Some(ClassicMember {
                session_timeout: member.session_timeout,
                protocols: member.protocols.to_vec(),
            }),
        })
    }

    /// What each member has, in their order, without strangers: what the last hard generation
    /// gave it, and what that took from it which it has not reported to have given up. Kafka knows
    /// nothing of the latter, and would give it to the newcomer while its owner still has it.
    fn parts_had(&self, view: &TopicsView) -> Result<Vec<Part>, GroupError> {
        let mut taken = BTreeSet::new();
        let mut parts = Vec::new();
        let members = self.group.roster.in_order().into_iter();
        let members: Vec<_> = members.filter(|(_, member)| !member.is_stranger()).collect();
        for (_, member) in &members {
            let part = Assignment::decode(&self.group.assignment_of(member));
            let part = part.map_err(|_| GroupError::GroupIdNotFound)?;
            let mut own = slots_of(&part.partitions, view);
            own.retain(|slot| taken.insert(*slot));
            parts.push(Part { own, owes: BTreeSet::new() });
        }
        for ((_, member), part) in members.iter().zip(&mut parts) {
            let said = Subscription::decode(&self.group.word(member)).unwrap_or_default();
            if probe::has(Fault::UpgradeForgetsOwed) {
                continue;
            }
            part.owes = slots_of(&said.owned, view);
            part.owes.retain(|slot| taken.insert(*slot));
        }
        Ok(parts)
    }

    fn position_at(
        &self,
        epoch: Generation,
        own: BTreeSet<Slot>,
        owes: BTreeSet<Slot>,
    ) -> Position {
        let hard = self.group.hard.metadata().map_or(epoch, |metadata| metadata.generation);
        let held = |slots: BTreeSet<Slot>| slots.into_iter().map(|slot| (slot, hard)).collect();
        let state = match owes.is_empty() {
            true => State::Stable,
            false => State::Unrevoked { revoking: held(owes) },
        };
        Position { epoch, previous_epoch: epoch, assigned: held(own), state }
    }

    fn epoch_record(&self, epoch: Generation) -> Record {
        // The newcomer's epoch follows, with the digest of what everyone subscribes to.
        let value = Some(ConsumerGroupMetadataValue { epoch, metadata_hash: 0 });
        let group = self.group.id.clone();
        Record::ConsumerGroupMetadata(ConsumerGroupMetadata { group, value })
    }

    fn target_record(&self, epoch: Generation) -> Record {
        let value =
            ConsumerGroupTargetAssignmentMetadataValue { epoch, assigned_at: self.now.wall };
        let (group, value) = (self.group.id.clone(), Some(value));
        Record::ConsumerGroupTargetAssignmentMetadata(ConsumerGroupTargetAssignmentMetadata {
            group,
            value,
        })
    }

    /// What is soft of the classic group ends; who waits is sent back.
    fn leave_classic_protocol(&mut self) {
        self.refuse_all_held(GroupError::RebalanceInProgress);
        self.leave_watch_to_leader();
        self.group.barrier.disarm();
        let phase = self.enter(Phase::Empty);
        for id in self.group.roster.ids_where(Member::is_parked) {
            self.refuse_parked(&id, GroupError::RebalanceInProgress, &id);
        }
        if core::mem::take(&mut self.group.is_restored) {
            // The coordinator before may have told members of one more (see `raise_generation`).
            self.group.generation = next(self.group.generation);
        }
        self.enter_protocol();
        for id in self.group.roster.ids_where(|_| true) {
            self.carry_over(&id);
        }
        let now = self.now;
        let triggers = match phase {
            Phase::Preparing(barrier) => Some(barrier.triggers),
            Phase::Empty | Phase::Completing { .. } | Phase::Stable => None,
        };
        let wanted = self.motion().want(now);
        wanted.triggers.add(Trigger::new(Cause::Upgraded));
        triggers.into_iter().for_each(|absorbed| wanted.triggers.absorb(absorbed));
    }

    /// A member's session and connection go on.
    fn carry_over(&mut self, id: &MemberId) {
        let Some(mut member) = self.group.roster.remove(id) else { return };
        if !self.is_classic(id) {
            self.services.lifelines.cut(member.connection);
            return;
        }
        let pulse = self.motion().pulse(id);
        (pulse.session, pulse.hold) = (member.session, core::mem::take(&mut member.hold));
        pulse.connection = member.connection;
        self.renew_consumer_session(id);
    }

    /// Whether this takes the place of the last member of the consumer protocol, and leaves
    /// classic ones alone.
    pub(super) fn replaces_last_consumer(&self, place: &Place) -> bool {
        let Place::Replaces(former) = place else { return false };
        let consumers = self.group.hard.consumers();
        !self.is_classic(former) && consumers.classics() + 1 == consumers.len()
    }
}

/// What a member has.
#[derive(Default)]
struct Part {
    /// What is its own.
    own: BTreeSet<Slot>,
    /// What it has to give up.
    owes: BTreeSet<Slot>,
}

impl Group {
    /// What a member says of itself in the terms of the assignor in force, or of its most wanted
    /// one, where it came after that was chosen.
    pub(super) fn word(&self, member: &Member) -> Blob {
        let chosen = self.protocol.as_deref();
        let chosen =
            chosen.and_then(|chosen| member.protocols.iter().find(|(n, _)| **n == *chosen));
        let word = chosen.or_else(|| member.protocols.first());
        word.map_or_else(Blob::default, |(_, metadata)| metadata.clone())
    }
}
