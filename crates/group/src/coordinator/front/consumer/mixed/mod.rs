//! Groups on their way between the classic and the consumer protocol, with members of both
//! (KIP-848, "Online Migration"; rules as in Kafka 4.4).
//!
//! Such a group is one of the consumer protocol: the coordinator assigns. Its classic members live
//! on over JoinGroup, SyncGroup, Heartbeat and LeaveGroup, of which none waits for others: a join
//! is a heartbeat that says what the member owns and moves it one step, a sync fetches what that
//! step gave it, and REBALANCE_IN_PROGRESS is how it hears that there is another step to take.
//! Its generation is its epoch. What a classic group needs to know of its members is on record
//! with them, so a group turns into the other kind and back within one batch.

mod downgrade;
mod join;
mod preview;
mod stay;
mod upgrade;

use crate::coordinator::consumers::Consumer;
use crate::coordinator::front::consumer::place::slots_of;
use crate::coordinator::reconcile::{Slot, State};
use crate::coordinator::timers::Timer;
use crate::coordinator::turn::Turn;
use crate::coordinator::view::BlockedOn;
use crate::message::GroupError;
use crate::probe::{self, Fault, Mark};
use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use ottla_model::MemberId;

impl Turn<'_> {
    /// The classic member of this id, if it may speak for itself and its instance.
    fn classic_member(
        &self,
        member: &str,
        instance: Option<&str>,
    ) -> Result<(MemberId, &Consumer), GroupError> {
        self.validate_consumer(member, instance)?;
        let found = self.group.hard.consumers().member(member);
        let found = found.filter(|(_, member)| member.is_classic());
        found.map(|(id, member)| (id.clone(), member)).ok_or(GroupError::UnknownMemberId)
    }

    /// Whether a classic member has another step to take. Until there is a target for the group's
    /// epoch, there is none: joining would bring it nothing.
    fn must_rejoin(&self, id: &MemberId, member: &Consumer) -> bool {
        let consumers = self.group.hard.consumers();
        let position = member.position();
        if position.epoch != consumers.target_epoch() {
            return true;
        }
        match position.state {
            State::Unrevoked { .. } => true,
            State::Unreleased => {
                let awaits = |slot: &&Slot| !position.assigned.contains_key(*slot);
                let is_free = |slot: &Slot| consumers.owner(*slot).is_none_or(|owner| owner == id);
                member.target().iter().filter(awaits).all(is_free)
            }
            State::Stable | State::Away => false,
        }
    }

    /// Tells classic members whose heartbeat's answer was kept that they have another step to take.
    pub(in crate::coordinator) fn tell_classics(&mut self) {
        let consumers = self.group.hard.consumers();
        if consumers.classics() == 0 || probe::has(Fault::CoordinatorKeepsNews) {
            return;
        }
        let concerned = self.holders().into_iter().filter(|id| {
            let member = consumers.member(id).filter(|(_, member)| member.is_classic());
            member.is_some_and(|(id, member)| self.must_rejoin(id, member))
        });
        let concerned: Vec<_> = concerned.collect();
        for id in &concerned {
            probe::hit(Mark::CoordinatorToldHeldClassic);
            self.owe_join(id);
            self.refuse_held(id, GroupError::RebalanceInProgress);
        }
    }

    /// A classic member was told to join again: from now on it is awaited, unless it already is.
    fn owe_join(&mut self, id: &MemberId) {
        let pulse = self.motion().pulse(id);
        if pulse.revokes_since.is_none() {
            self.owe(id, BlockedOn::Join);
        }
    }

    /// A classic member has its rebalance timeout for what it owes from now on.
    fn owe(&mut self, id: &MemberId, owes: BlockedOn) {
        let (now, timeout) = (self.now.mono, self.revocation_timeout(id));
        let group = self.group.id.clone();
        self.motion();
        let Some(motion) = &mut self.group.motion else { return };
        let pulse = motion.pulse(id);
        (pulse.owes, pulse.revokes_since) = (owes, Some(now));
        let timer = || Timer::Revocation(group, id.clone());
        self.services.timers.arm(&mut pulse.revocation, now, timeout, timer);
    }

    /// It owes nothing any more.
    fn forgive(&mut self, id: &MemberId) {
        let pulse = self.motion().pulse(id);
        pulse.revokes_since = None;
        pulse.revocation.disarm();
    }

    /// Partitions by their topics' names as partitions by their ids; those that do not exist are
    /// left out, as nobody can own them.
    fn existing(&self, named: &crate::assign::Partitions) -> Result<BTreeSet<Slot>, GroupError> {
        let view = self.services.topics.as_deref().ok_or(GroupError::LoadInProgress)?;
        Ok(slots_of(named, view))
    }
}
