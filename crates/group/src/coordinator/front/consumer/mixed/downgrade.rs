//! A group of the consumer protocol becomes a classic one, because only classic members are left.
//!
//! They keep what they hold: the record says so, and each may name its last epoch until the next
//! generation begins. That begins at once, as somebody must assign what those who went had, unless
//! a classic member took the place of the last one that went and everyone has arrived.
//!
//! Kafka writes down the target in place of what members hold. We do not, because a target may
//! name partitions that somebody else still owns: a coordinator that took over at that moment
//! would hand them out twice. And it writes the epoch as the generation; a coordinator that takes
//! over before the next one would then rest, with what the last member had in nobody's hands. Our
//! record has the generation after it, of which no member knows, so all join again.

use crate::coordinator::barrier::Phase;
use crate::coordinator::consumers::Consumer;
use crate::coordinator::front::classic::next;
use crate::coordinator::group::CONSUMER;
use crate::coordinator::map::{Map, seeded};
use crate::coordinator::motion::Pulse;
use crate::coordinator::record::{GroupMetadata, Record};
use crate::coordinator::roster::{Member, Roster};
use crate::coordinator::turn::{Call, Turn};
use crate::coordinator::view::{Cause, Trigger};
use crate::message::admin::GroupKind;
use crate::message::classic::Joined;
use crate::message::{Blob, GroupError};
use crate::probe::{self, Fault, Mark};
use alloc::sync::Arc;
use alloc::vec::Vec;
use ottla_model::{Generation, MemberId};

impl Turn<'_> {
    /// Makes the group a classic one, if only classic members are left without those `going`, and
    /// nothing is in the way; false where it stays what it is. `triggers` say why they go.
    pub(in super::super) fn downgrade(
        &mut self,
        going: &[MemberId],
        triggers: Vec<Trigger>,
    ) -> bool {
        let consumers = self.group.hard.consumers();
        let (classics, stay) = (consumers.classics(), consumers.len() - going.len());
        let leaves_consumers = going.iter().all(|id| !self.is_classic(id));
        if !leaves_consumers || stay == 0 || classics != stay {
            return false;
        }
        let obstacles = self.group.obstacles_to_downgrade(&self.services.config);
        if !obstacles.is_empty() {
            return false;
        }
        let is_settled = going.is_empty()
            && consumers.epoch() == consumers.target_epoch()
            && consumers.has_arrived();
        if !self.write_downgrade(going, is_settled) {
            return false;
        }
        probe::hit(Mark::CoordinatorDowngraded);
        self.enter_classic_protocol(going);
        if is_settled {
            // Whoever leads does not know: the coordinator watches the topics in its place.
            self.watch_for_leader();
        } else {
            self.prepare(triggers.into_iter().chain([Trigger::new(Cause::Downgraded)]));
        }
        true
    }

    /// The end of the one group and the beginning of the other; false where that is too large.
    fn write_downgrade(&mut self, going: &[MemberId], is_settled: bool) -> bool {
        let consumers = self.group.hard.consumers();
        let epoch = consumers.epoch();
        let mut roster = Roster::new(self.services.config.hash_seed);
        let mut parts: Map<MemberId, Blob> = seeded(self.services.config.hash_seed);
        for (id, member) in consumers.members().filter(|(id, _)| !going.contains(id)) {
            let held = match probe::has(Fault::DowngradeWritesTarget) {
                true => member.target().iter().copied().collect(),
                false => member.position().assigned.keys().copied().collect::<Vec<_>>(),
            };
            let part = self.classic_part(member.says().classic.as_ref(), held);
            parts.insert(id.clone(), part);
            roster.add(id.clone(), classic_member(member, is_settled));
        }
        let mut records = self.end_of_consumers();
        let generation_before = self.group.generation;
        let keeps_epoch = is_settled || probe::has(Fault::DowngradeKeepsEpoch);
        self.group.generation = if keeps_epoch { epoch } else { next(epoch) };
        self.group.protocol = roster.elect_protocol();
        self.group.protocol_type = Some(Arc::from(CONSUMER));
        self.group.roster = roster;
        let part = |id: &MemberId, _: &Member| parts.get(id).cloned().unwrap_or_default();
        let value = Some(Arc::new(self.generation_record(part)));
        let group = self.group.id.clone();
        records.push(Record::GroupMetadata(GroupMetadata { group, value }));
        if self.decide(records).is_err() {
            self.group.generation = generation_before;
            self.group.protocol = None;
            self.group.roster = Roster::new(self.services.config.hash_seed);
            return false;
        }
        true
    }

    /// What is soft of the consumer group ends; sessions and connections of who stays go on.
    fn enter_classic_protocol(&mut self, going: &[MemberId]) {
        self.refuse_all_held(GroupError::RebalanceInProgress);
        for id in going {
            self.forget_pulse(id);
        }
        self.group.kind = GroupKind::Classic;
        self.enter(Phase::Stable);
        let motion = self.group.motion.take();
        let mut pulses = motion.map(|motion| motion.pulses).unwrap_or_default();
        for (index, id) in self.group.roster.ids_where(|_| true).iter().enumerate() {
            let pulse = pulses.remove(id);
            if let Some(member) = self.group.roster.member_mut(id) {
                member.stored = Some(index as u32);
                if let Some(Pulse { session, connection, hold, .. }) = pulse {
                    (member.session, member.connection, member.hold) = (session, connection, hold);
                }
            }
            self.renew_session(id);
        }
        for (_, pulse) in pulses {
            self.services.lifelines.cut(pulse.connection);
        }
        self.group.subscribed = self.subscribed_topics();
    }

    /// The answer to a static member that took the place of the last one of the consumer
    /// protocol; `None` where it waits for the others.
    pub(super) fn joined_after_downgrade(
        &mut self,
        call: &Call<'_>,
        id: &MemberId,
    ) -> Option<Joined> {
        if self.group.phase.is_stable() {
            // It leads, if it does, without being told: it has nothing to compute.
            let mut joined = self.joined(id, Vec::new());
            joined.leader = MemberId::from("");
            return Some(joined);
        }
        self.park_join(call, id, false);
        self.rebalance(None);
        None
    }
}

fn classic_member(member: &Consumer, is_settled: bool) -> Member {
    let says = member.says();
    let classic = says.classic.as_ref();
    let session_timeout = classic.map(|classic| classic.session_timeout).unwrap_or_default();
    let protocols = classic.map(|classic| classic.protocols.clone()).unwrap_or_default();
    let mut classic = Member::new(
        says.instance.clone(),
        says.client_id.clone(),
        says.client_host.clone(),
        session_timeout,
        says.rebalance_timeout.unwrap_or(session_timeout),
        Arc::from(protocols),
    );
    let told: Generation = member.position().epoch;
    classic.told = (!is_settled).then_some(told);
    classic
}
