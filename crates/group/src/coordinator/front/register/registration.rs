//! RegisterConsumer: new members, members that come to the barrier, and members that change their
//! mind or only say that they are there.

use super::PROTOCOL;
use super::terms::{subscription_of, topics_of};
use crate::coordinator::barrier::Phase;
use crate::coordinator::front::classic::fresh_id;
use crate::coordinator::record::{GroupMetadata, Record};
use crate::coordinator::roster::{Member, Supported};
use crate::coordinator::turn::{Call, Turn};
use crate::coordinator::view::Cause;
use crate::message::admin::GroupKind;
use crate::message::register::{Detection, Register, Registered};
use crate::message::{Blob, GroupError, Reply};
use alloc::sync::Arc;
use ottla_model::MemberId;

/// A registration as it was understood.
struct Terms<'a> {
    ask: &'a Register<'a>,
    detection: Detection,
    subscription: Blob,
    host: &'a str,
}

impl Turn<'_> {
    /// A registration with a group that exists, or that a new member may bring into being.
    pub(in super::super::super) fn register(&mut self, call: &Call<'_>, ask: &Register<'_>) {
        if let Err(error) = self.admit(call, ask) {
            self.reply(call.token, Reply::Register(Err(error)));
        }
    }

    /// Answers or parks the registration, unless it is refused.
    fn admit(&mut self, call: &Call<'_>, ask: &Register<'_>) -> Result<(), GroupError> {
        let frequency = ask.heartbeat_frequency;
        let detection = Detection::new(frequency, ask.failed_heartbeat_threshold)
            .ok_or(GroupError::InvalidRequest)?;
        let roster = &self.group.roster;
        let is_empty = roster.is_empty() && self.group.hard.consumers().is_empty();
        if self.group.kind != GroupKind::Register && !is_empty {
            return Err(GroupError::InconsistentGroupProtocol);
        }
        if !ask.member.is_empty() && roster.member(ask.member).is_none() {
            return Err(GroupError::UnknownMemberId);
        }
        let host = if ask.host.is_empty() { call.client.host } else { ask.host };
        let subscription = subscription_of(ask, detection);
        let terms = Terms { ask, detection, subscription, host };
        self.check_room(call, &terms)?;
        if ask.member.is_empty() {
            self.register_new(call, &terms);
            Ok(())
        } else {
            self.register_again(call, &terms)
        }
    }

    fn check_room(&mut self, call: &Call<'_>, terms: &Terms<'_>) -> Result<(), GroupError> {
        let (roster, config) = (&self.group.roster, &self.services.config);
        let known = roster.id(terms.ask.member);
        let own = known.and_then(|id| Some((id, roster.member(id)?)));
        let is_parked = own.is_some_and(|(_, member)| member.is_parked());
        let has_place = match self.group.phase {
            Phase::Empty => true,
            // Who comes first to an oversized group stays.
            Phase::Preparing(_) => is_parked || roster.parked_joins() < config.group_size_max,
            Phase::Completing { .. } | Phase::Stable => {
                own.is_some() || roster.len() < config.group_size_max
            }
        };
        if !has_place {
            self.remove_member(terms.ask.member);
            self.close_if_complete();
            return Err(GroupError::GroupMaxSizeReached);
        }
        let sent = PROTOCOL.len() + terms.subscription.len() + terms.host.len();
        let sent = sent + call.client.id.len();
        let others = roster.bytes() - own.map_or(0, |(id, member)| member.bytes(id));
        if others + sent > config.group_metadata_bytes_max {
            return Err(GroupError::GroupMaxSizeReached);
        }
        if !is_parked && self.services.parked >= config.parked_max {
            return Err(GroupError::NotAvailable);
        }
        Ok(())
    }

    fn register_new(&mut self, call: &Call<'_>, terms: &Terms<'_>) {
        if self.group.roster.is_empty() {
            self.take_over();
        }
        let id = fresh_id(call.client.id, &call.fresh);
        let mut member = Member::new(
            None,
            Arc::from(call.client.id),
            Arc::from(terms.host),
            terms.ask.session_timeout,
            terms.ask.session_timeout,
            terms.supported(),
        );
        member.detection = Some(terms.detection);
        self.group.roster.add(id.clone(), member);
        self.park_registration(call, &id, true);
        let trigger = self.trigger(Cause::Joined, &id);
        self.rebalance(trigger);
    }

    /// A group without members may change its protocol (decision 11): ids that a classic group
    /// promised are void, and a rebalance that waited for them is over.
    fn take_over(&mut self) {
        if matches!(self.group.phase, Phase::Preparing(_)) {
            self.close();
        }
        self.group.roster.break_promises();
        self.leave_consumer_protocol();
        self.group.kind = GroupKind::Register;
    }

    /// A member that is known registers again. In a stable group it is answered at once if it
    /// wants the same topics (decision 8); else it comes to the barrier, or asks for one.
    fn register_again(&mut self, call: &Call<'_>, terms: &Terms<'_>) -> Result<(), GroupError> {
        let id = MemberId::from(terms.ask.member);
        let wanted = self.topics_wanted_by_register(&id);
        let is_same_topics = topics_of(&terms.subscription) == wanted;
        if self.group.phase.is_stable() && is_same_topics {
            return self.confirm(call, &id, terms);
        }
        self.update_terms(call, &id, terms);
        self.park_registration(call, &id, false);
        let cause = (!is_same_topics).then_some(Cause::MetadataChanged);
        let trigger = cause.and_then(|cause| self.trigger(cause, &id));
        self.rebalance(trigger);
        Ok(())
    }

    /// Nothing changes but, perhaps, timeouts: they are in force at once and on record before the
    /// answer (decision 18, S27). It counts as a heartbeat.
    fn confirm(
        &mut self,
        call: &Call<'_>,
        id: &MemberId,
        terms: &Terms<'_>,
    ) -> Result<(), GroupError> {
        let same = |member: &Member| {
            *member.metadata(PROTOCOL) == *terms.subscription
                && member.session_timeout == terms.ask.session_timeout
                && *member.client_host == *terms.host
        };
        if !self.group.roster.member(id).is_some_and(same) {
            self.update_terms(call, id, terms);
            let value = self.generation_record(|_, member| self.group.assignment_of(member));
            let group = self.group.id.clone();
            let record = GroupMetadata { group, value: Some(Arc::new(value)) };
            self.decide(alloc::vec![Record::GroupMetadata(record)])?;
        }
        self.hear(id, call);
        let registered = self.registered(id);
        self.reply(call.token, Reply::Register(Ok(registered)));
        Ok(())
    }

    /// The answer to a registration in the generation in force.
    pub(super) fn registered(&self, id: &MemberId) -> Registered {
        let member = self.group.roster.member(id);
        let assignment = member.map(|member| self.group.assignment_of(member)).unwrap_or_default();
        Registered {
            group: self.group.id.clone(),
            generation: self.group.generation,
            member: id.clone(),
            partitions: super::rebalance::partitions_of(&assignment),
        }
    }

    /// The topics a member of a register group wants, in order.
    pub(super) fn topics_wanted_by_register(
        &self,
        id: &str,
    ) -> alloc::vec::Vec<ottla_model::TopicName> {
        let member = self.group.roster.member(id);
        member.map(|member| topics_of(&member.metadata(PROTOCOL))).unwrap_or_default()
    }

    fn update_terms(&mut self, call: &Call<'_>, id: &str, terms: &Terms<'_>) {
        self.group.roster.update(id, |member| {
            member.protocols = terms.supported();
            member.restored = false;
            member.session_timeout = terms.ask.session_timeout;
            member.rebalance_timeout = terms.ask.session_timeout;
            member.detection = Some(terms.detection);
            member.client_id = Arc::from(call.client.id);
            member.client_host = Arc::from(terms.host);
        });
    }

    /// Parks a registration: until it is answered the member is not silent (decision 5), and the
    /// rebalance may last as long as its session timeout (decisions 6 and 16).
    fn park_registration(&mut self, call: &Call<'_>, id: &MemberId, stranger: bool) {
        self.park_join(call, id, stranger);
        let Some(member) = self.group.roster.member_mut(id) else { return };
        member.session.disarm();
        let session_timeout = member.session_timeout;
        if let Phase::Preparing(barrier) = &self.group.phase {
            let ends = barrier.began.mono + session_timeout;
            if self.group.barrier.is_before(ends) {
                self.arm_barrier(ends.since(self.now.mono));
            }
        }
    }
}

impl Terms<'_> {
    fn supported(&self) -> Arc<[Supported]> {
        Arc::from([(Arc::from(PROTOCOL), self.subscription.clone())])
    }
}
