//! Classic groups: all members move together, one of them assigns (JoinGroup, SyncGroup,
//! Heartbeat, LeaveGroup as Kafka 4 has them; KIP-62, 345, 394, 814).
//!
//! A generation becomes hard with its leader's sync, when the group is stable, or when nobody is
//! left. What lies between (who has joined, who waits) is soft: after a restart the last
//! generation is in force again. Members of a later one are told ILLEGAL_GENERATION and rejoin;
//! none of them owned anything by it, for a sync is answered only once its record is durable.

mod heartbeat;
mod join;
mod leave;
mod rebalance;
mod silence;
mod sync;
mod topics;

pub(super) use join::PROTOCOLS_MAX;
pub(in super::super) use join::fresh_id;
pub(in super::super) use leave::all_leaving;
pub(super) use leave::{leaving_trigger, removal_trigger};
pub(in super::super) use rebalance::next;

use super::super::barrier::Phase;
use super::super::record::{GroupMetadataValue, StoredMember};
use super::super::roster::{Member, Parked};
use super::super::turn::Turn;
use super::super::view::Cause;
use super::register;
use crate::assign::subscription::Subscription;
use crate::message::admin::GroupKind;
use crate::message::classic::JoinRefused;
use crate::message::{Blob, GroupError, Reply};
use crate::probe::{self, Fault, Mark};
use alloc::collections::BTreeSet;
use alloc::sync::Arc;
use alloc::vec::Vec;
use ottla_model::{MemberId, TopicName};

impl Turn<'_> {
    /// Derives the soft state from the hard one: the last generation is in force, nobody waits,
    /// every session begins anew.
    pub(in super::super) fn restore(&mut self) {
        let Some(metadata) = self.group.hard.metadata().cloned() else {
            return self.restore_consumers();
        };
        self.group.generation = metadata.generation;
        self.group.is_restored = true;
        self.group.protocol_type =
            (!metadata.protocol_type.is_empty()).then(|| metadata.protocol_type.clone());
        self.group.protocol = metadata.protocol.clone();
        self.group.kind = register::kind_of(&metadata);
        for (index, stored) in metadata.members.iter().enumerate() {
            if self.group.roster.member(&stored.member).is_some() {
                // No coordinator writes a member twice; a record that has one is still read.
                continue;
            }
            let member = restored(stored, &metadata, index as u32, self.group.kind);
            self.group.roster.add(stored.member.clone(), member);
            if !probe::has(Fault::CoordinatorRestoresNoSessions) {
                self.renew_session(&stored.member);
            }
        }
        self.group.roster.restore_leader(metadata.leader.as_ref());
        self.group.phase = if metadata.members.is_empty() { Phase::Empty } else { Phase::Stable };
        self.group.subscribed = self.subscribed_topics();
        self.restore_register();
        let leader = self.group.roster.leader().and_then(|id| self.group.roster.member(id));
        let is_static = leader.is_some_and(|leader| leader.instance.is_some());
        if self.group.kind == GroupKind::Classic && is_static {
            self.watch_for_leader();
        }
        if self.group.roster.len() > self.services.config.group_size_max {
            // The bound was lowered: whoever rejoins first stays.
            let leader = self.group.roster.leader().cloned();
            let trigger = leader.and_then(|leader| self.trigger(Cause::TooManyMembers, &leader));
            self.prepare(trigger);
        }
    }

    /// Forgets the soft state and tells whoever waits to look for another coordinator.
    pub(in super::super) fn let_everyone_go(&mut self) {
        self.refuse_all_held(GroupError::NotCoordinator);
        for id in self.group.roster.ids_where(Member::is_parked) {
            probe::hit(Mark::CoordinatorLapsedParked);
            self.refuse_parked(&id, GroupError::NotCoordinator, &id);
        }
        self.group.forget_soft(self.services.config.hash_seed);
    }

    /// Whether `member` may speak for itself and, if it is static, for its instance.
    pub(in super::super) fn validate_member(
        &self,
        member: &str,
        instance: Option<&str>,
    ) -> Result<(), GroupError> {
        if let Some(instance) = instance {
            match self.group.roster.holder(instance) {
                None => return Err(GroupError::UnknownMemberId),
                Some(_) if probe::has(Fault::CoordinatorFencesNobody) => return Ok(()),
                Some(holder) if **holder != *member => return Err(GroupError::FencedInstanceId),
                Some(_) => {}
            }
        }
        self.group.roster.member(member).map(|_| ()).ok_or(GroupError::UnknownMemberId)
    }

    /// Topics the members subscribe to under the assignor in force; `None` where the group is not
    /// one of consumers or a subscription cannot be read.
    pub(super) fn subscribed_topics(&self) -> Option<BTreeSet<TopicName>> {
        if !self.group.is_consumer() {
            return None;
        }
        let mut topics = BTreeSet::new();
        if self.group.roster.is_empty() {
            return Some(topics);
        }
        let protocol = self.group.protocol.as_deref()?;
        for (_, member) in self.group.roster.in_order() {
            topics.extend(Subscription::decode(&member.metadata(protocol)).ok()?.topics);
        }
        Some(topics)
    }

    /// Removes a member and answers what it has parked: it is not known any more.
    pub(in super::super) fn remove_member(&mut self, id: &str) {
        self.refuse_held(id, GroupError::UnknownMemberId);
        self.refuse_parked(id, GroupError::UnknownMemberId, "");
        if let Some(member) = self.group.roster.remove(id) {
            self.services.lifelines.cut(member.connection);
        }
    }

    /// Answers what a member has parked, if anything, with an error. A refused join is told
    /// `told_id`.
    pub(in super::super) fn refuse_parked(&mut self, id: &str, error: GroupError, told_id: &str) {
        let parked = self.unpark(id);
        self.refuse(parked, error, told_id);
    }

    fn refuse(&mut self, parked: Parked, error: GroupError, told_id: &str) {
        match parked {
            Parked::No => {}
            Parked::Join { token, .. } => {
                let reply = match self.group.kind {
                    GroupKind::Classic | GroupKind::Consumer => {
                        Reply::Join(Err(JoinRefused::new(error, told_id)))
                    }
                    GroupKind::Register => Reply::Register(Err(error)),
                };
                self.reply(token, reply);
            }
            Parked::Sync(token) => self.reply(token, Reply::Sync(Err(error))),
        }
    }

    /// Takes what a member has parked, to answer it.
    pub(in super::super) fn unpark(&mut self, id: &str) -> Parked {
        let parked = self.group.roster.unpark(id);
        self.forget_parked(id, parked);
        parked
    }

    /// Counts out a parked request that is about to be answered.
    fn forget_parked(&mut self, id: &str, parked: Parked) {
        if parked == Parked::No {
            return;
        }
        self.services.parked -= 1;
        if let Parked::Join { stranger: Some(connection), .. } = parked
            && let Some(strangers) = self.services.strangers.get_mut(&connection)
        {
            strangers.remove(&(self.group.id.clone(), MemberId::from(id)));
            if strangers.is_empty() {
                self.services.strangers.remove(&connection);
            }
        }
    }

    /// The record of the generation in force, with each member's part as `assignment` has it.
    pub(in super::super) fn generation_record(
        &self,
        assignment: impl Fn(&MemberId, &Member) -> Blob,
    ) -> GroupMetadataValue {
        let protocol = self.group.protocol.clone().unwrap_or_default();
        let members = self.group.roster.in_order();
        let stored = members.into_iter().map(|(id, member)| StoredMember {
            member: id.clone(),
            instance: member.instance.clone(),
            client_id: member.client_id.clone(),
            client_host: member.client_host.clone(),
            rebalance_timeout: member.rebalance_timeout,
            session_timeout: member.session_timeout,
            subscription: member.metadata(&protocol),
            assignment: assignment(id, member),
        });
        GroupMetadataValue {
            protocol_type: self.group.protocol_type.clone().unwrap_or_default(),
            generation: self.group.generation,
            protocol: self.group.protocol.clone(),
            leader: self.group.roster.leader().cloned(),
            state_since: Some(self.now.wall),
            members: stored.collect::<Vec<_>>(),
        }
    }
}

fn restored(
    stored: &StoredMember,
    metadata: &GroupMetadataValue,
    index: u32,
    kind: GroupKind,
) -> Member {
    let protocol = metadata.protocol.clone().unwrap_or_default();
    let mut member = Member::new(
        stored.instance.clone(),
        stored.client_id.clone(),
        stored.client_host.clone(),
        stored.session_timeout,
        stored.rebalance_timeout,
        Arc::from([(protocol, stored.subscription.clone())]),
    );
    member.restored = true;
    member.detection = match kind {
        GroupKind::Classic | GroupKind::Consumer => None,
        GroupKind::Register => register::detection_of(&stored.subscription),
    };
    member.stored = Some(index);
    member
}
