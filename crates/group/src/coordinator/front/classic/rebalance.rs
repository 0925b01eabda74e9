//! From one generation to the next: preparing, closing the barrier, beginning, running empty.

use super::super::super::barrier::{Barrier, Phase};
use super::super::super::journal::Triggers;
use super::super::super::record::{GroupMetadata, GroupMetadataValue, Record};
use super::super::super::roster::Parked;
use super::super::super::timers::Due;
use super::super::super::turn::Turn;
use super::super::super::view::{Cause, Trigger};
use crate::message::admin::GroupKind;
use crate::message::classic::{Joined, JoinedMember};
use crate::message::{GroupError, Reply};
use crate::probe::{self, Fault, Mark};
use alloc::collections::BTreeSet;
use alloc::sync::Arc;
use alloc::vec::Vec;
use ottla_model::{Generation, Instant, MemberId};

impl Turn<'_> {
    /// Something happened that asks for a new generation: begins a rebalance, or joins the one
    /// being prepared, which may be complete by it.
    pub(in super::super) fn rebalance(&mut self, triggers: impl IntoIterator<Item = Trigger>) {
        if let Phase::Preparing(barrier) = &mut self.group.phase {
            barrier.triggers.extend(triggers);
            self.close_if_complete();
        } else {
            self.prepare(triggers);
        }
    }

    /// Begins a rebalance of a group that is not preparing one.
    pub(in super::super) fn prepare(&mut self, triggers: impl IntoIterator<Item = Trigger>) {
        let triggers: Triggers = triggers.into_iter().collect();
        if matches!(self.group.phase, Phase::Completing { .. }) {
            probe::hit(Mark::CoordinatorOvertookGeneration);
            self.send_syncs_back(GroupError::RebalanceInProgress);
        }
        self.refuse_all_held(GroupError::RebalanceInProgress);
        self.group.roster.forgive_syncs();
        self.group.barrier.disarm();
        let rebalance_timeout = self.group.roster.rebalance_timeout();
        if self.group.kind == GroupKind::Register {
            self.prepare_register(triggers);
        } else if self.group.phase.is_empty() {
            let delay = self.services.config.initial_rebalance_delay;
            let barrier = Barrier::initial(self.now, triggers, delay, rebalance_timeout);
            self.group.phase = Phase::Preparing(barrier);
            self.arm_barrier(delay);
        } else {
            self.group.phase = Phase::Preparing(Barrier::new(self.now, triggers));
            if self.group.roster.all_joined() {
                self.close();
            } else {
                self.arm_barrier(rebalance_timeout);
            }
        }
    }

    /// Closes the barrier if everyone is there; an initial one waits for its time.
    pub(in super::super) fn close_if_complete(&mut self) {
        let Phase::Preparing(barrier) = &self.group.phase else { return };
        if !barrier.is_initial() && self.group.roster.all_joined() {
            self.close();
        }
    }

    /// The barrier's heap entry surfaced: members had their time to join, or to sync.
    pub(in super::super::super) fn barrier_surfaced(&mut self, queued: Instant) -> Due {
        let due = self.group.barrier.surfaced(queued, self.now.mono);
        if due == Due::Now {
            match &mut self.group.phase {
                Phase::Empty => {}
                Phase::Preparing(barrier) => {
                    let delay = self.services.config.initial_rebalance_delay;
                    match barrier.extend(delay) {
                        Some(more) => {
                            probe::hit(Mark::CoordinatorExtendedInitial);
                            self.arm_barrier(more);
                        }
                        None => self.close(),
                    }
                }
                Phase::Completing { .. } | Phase::Stable => self.expire_syncs(),
            }
        }
        due
    }

    /// Ends the wait for members: who has not joined is dropped, unless static. Where only static
    /// members are left and none has joined, waits again, until their sessions end.
    pub(in super::super) fn close(&mut self) {
        self.group.barrier.disarm();
        if self.group.kind == GroupKind::Register {
            self.close_register();
            return;
        }
        let absent = self.group.roster.ids_where(|m| !m.is_joining() && m.instance.is_none());
        for id in absent {
            probe::hit(Mark::CoordinatorDroppedAbsent);
            let trigger = self.trigger(Cause::JoinExpired, &id);
            self.absorb(trigger);
            self.remove_member(&id);
        }
        if self.group.roster.is_empty() {
            self.run_empty();
        } else if self.group.roster.elect_joined_leader() {
            self.begin_generation();
        } else {
            probe::hit(Mark::CoordinatorFoundNobody);
            self.arm_barrier(self.group.roster.rebalance_timeout().max(RETRY_MIN));
        }
    }

    fn begin_generation(&mut self) {
        let Phase::Preparing(barrier) = self.enter(Phase::Completing { closed: self.now.mono })
        else {
            return;
        };
        self.raise_generation();
        self.leave_watch_to_leader();
        self.group.protocol = self.group.roster.elect_protocol();
        self.group.subscribed = self.subscribed_topics();
        self.note_generation(barrier);
        let followers = Vec::new();
        let leader_sees = self.members_for_leader();
        for id in self.group.roster.ids_where(|_| true) {
            let is_leader = self.group.roster.is_leader(&id);
            let members = if is_leader { &leader_sees } else { &followers };
            if let Parked::Join { token, .. } = self.unpark(&id) {
                let joined = self.joined(&id, members.clone());
                self.reply(token, Reply::Join(Ok(joined)));
            } else {
                probe::hit(Mark::CoordinatorKeptAbsentStatic);
            }
            self.group.roster.owe_sync(&id, true);
            if let Some(member) = self.group.roster.member_mut(&id) {
                member.is_new = false;
                member.told = None;
                member.synced_at = None;
            }
            self.renew_session(&id);
        }
        self.arm_barrier(self.group.roster.rebalance_timeout());
    }

    /// Raises the generation to one that no member of the last hard one was ever told of.
    ///
    /// A generation is told before it is hard. If the next coordinator began anew at the last hard
    /// one, it would tell the same number again, and a request of the first telling that was long
    /// under way would pass for one of the second: a late commit would overwrite a newer one. So
    /// at most one number is told that is not on record, and a coordinator that takes over leaves
    /// one out. What is written for that is the last hard generation under the number that was
    /// told: its assignment, the last one anybody owned anything by, stays in force for it.
    fn raise_generation(&mut self) {
        let restored = core::mem::take(&mut self.group.is_restored);
        let told = if restored { next(self.group.generation) } else { self.group.generation };
        let hard = self.group.hard.metadata().filter(|hard| !hard.members.is_empty());
        let Some(hard) = hard.filter(|_| !probe::has(Fault::CoordinatorRepeatsGenerations)) else {
            self.group.generation = next(self.group.generation);
            return;
        };
        if hard.generation != told {
            let value = Arc::new(GroupMetadataValue { generation: told, ..(**hard).clone() });
            let group = self.group.id.clone();
            let record = Record::GroupMetadata(GroupMetadata { group, value: Some(value) });
            let decided = self.decide(alloc::vec![record]);
            debug_assert!(decided.is_ok(), "what was written before is no larger now");
        }
        self.group.generation = next(told);
    }

    /// Nobody is left: that too is a generation, and a hard one.
    pub(in super::super) fn run_empty(&mut self) {
        let Phase::Preparing(barrier) = self.enter(Phase::Empty) else { return };
        self.group.is_restored = false;
        self.leave_watch_to_leader();
        self.group.generation = next(self.group.generation);
        self.group.protocol = None;
        self.subscribe(BTreeSet::new());
        self.note_generation(barrier);
        let value = Arc::new(self.generation_record(|_, _| Default::default()));
        let group = self.group.id.clone();
        let record = Record::GroupMetadata(GroupMetadata { group, value: Some(value) });
        let decided = self.decide(alloc::vec![record]);
        debug_assert!(decided.is_ok(), "a generation without members fits into a batch");
        self.group.journal.emptied();
        self.write_journal();
    }

    /// Who has not synced in time is dropped, and the others rebalance.
    fn expire_syncs(&mut self) {
        let late = self.group.roster.ids_where(|member| member.owes_sync());
        let triggers: Vec<_> =
            late.iter().filter_map(|id| self.trigger(Cause::SyncExpired, id)).collect();
        for id in &late {
            self.remove_member(id);
        }
        if !late.is_empty() {
            probe::hit(Mark::CoordinatorDroppedUnsynced);
            self.prepare(triggers);
        }
    }

    /// Answers every parked sync with an error; its member lives on.
    pub(super) fn send_syncs_back(&mut self, error: GroupError) {
        for id in self.group.roster.ids_where(|member| member.is_syncing()) {
            self.refuse_parked(&id, error, "");
            self.renew_session(&id);
        }
    }

    /// The answer to a join of the generation in force.
    pub(in super::super) fn joined(&self, id: &MemberId, members: Vec<JoinedMember>) -> Joined {
        Joined {
            generation: self.group.generation,
            protocol_type: self.group.protocol_type.clone().unwrap_or_default(),
            protocol: self.group.protocol.clone().unwrap_or_default(),
            leader: self.group.roster.leader().unwrap_or(id).clone(),
            member: id.clone(),
            skip_assignment: false,
            members,
        }
    }

    /// Every member with its metadata for the assignor in force.
    pub(super) fn members_for_leader(&self) -> Vec<JoinedMember> {
        let protocol = self.group.protocol.clone().unwrap_or_default();
        let members = self.group.roster.in_order().into_iter();
        let seen = members.map(|(id, member)| JoinedMember {
            member: id.clone(),
            instance: member.instance.clone(),
            metadata: member.metadata(&protocol),
        });
        seen.collect()
    }

    /// Adds a trigger to the rebalance being prepared.
    pub(in super::super) fn absorb(&mut self, trigger: Option<Trigger>) {
        if let Phase::Preparing(barrier) = &mut self.group.phase {
            barrier.triggers.extend(trigger);
        }
    }

    pub(in super::super) fn enter(&mut self, phase: Phase) -> Phase {
        core::mem::replace(&mut self.group.phase, phase)
    }

    pub(in super::super) fn note_generation(&mut self, barrier: Barrier) {
        if let Some(trigger) = barrier.triggers.first() {
            *self.services.rebalances.entry(trigger.cause).or_insert(0) += 1;
        }
        self.group.journal.begin(
            self.group.generation,
            barrier.triggers,
            barrier.began,
            self.now.mono,
            &self.group.roster,
            self.services.config.journal_entries_max,
        );
    }
}

/// Generations rise; after the last one there is they begin anew at 1, as no client compares them
/// for order.
pub(in super::super::super) fn next(generation: Generation) -> Generation {
    if probe::has(Fault::CoordinatorReusesGenerations) {
        return Generation(generation.0.max(1));
    }
    Generation(generation.0.checked_add(1).unwrap_or(1))
}

/// How soon, at the earliest, a barrier that nobody came to is looked at again. A member may name
/// a rebalance timeout of nothing.
const RETRY_MIN: core::time::Duration = core::time::Duration::from_secs(1);
