//! Members go: for good, for now, or because they are removed.

use crate::coordinator::consumers::{AWAY, member_end};
use crate::coordinator::front::classic::{leaving_trigger, removal_trigger};
use crate::coordinator::group::Group;
use crate::coordinator::holds::Stir;
use crate::coordinator::reconcile::{Position, State};
use crate::coordinator::turn::{Call, Turn};
use crate::coordinator::view::{Cause, Trigger};
use crate::message::GroupError;
use crate::message::classic::{Leave, Leaver};
use crate::message::consumer::{Beat, Heartbeat, Standing};
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;
use ottla_model::MemberId;

impl Turn<'_> {
    /// A member goes for good (epoch -1).
    pub(super) fn leave_consumer(&mut self, ask: &Heartbeat<'_>) -> Result<Beat, GroupError> {
        self.validate_consumer(ask.member, ask.instance)?;
        let id = MemberId::from(ask.member);
        if self.is_classic(&id) {
            return Err(GroupError::UnknownMemberId);
        }
        self.give_way(&id);
        let trigger = self.consumer_trigger(Cause::Left, &id);
        self.remove_consumers(core::slice::from_ref(&id), alloc::vec![trigger]);
        Ok(gone(id, Standing::Leaving))
    }

    /// A static member goes and will be back within its session timeout (epoch -2): it keeps what
    /// it has until then.
    pub(super) fn leave_consumer_for_now(
        &mut self,
        ask: &Heartbeat<'_>,
    ) -> Result<Beat, GroupError> {
        self.validate_consumer(ask.member, ask.instance)?;
        let member = self.group.hard.consumers().member(ask.member);
        let member = member.filter(|(_, member)| !member.is_classic());
        let (id, member) = member.ok_or(GroupError::UnknownMemberId)?;
        let (id, position) = (id.clone(), member.position().clone());
        self.give_way(&id);
        let away = Position {
            epoch: AWAY,
            previous_epoch: position.epoch,
            assigned: position.assigned,
            state: State::Away,
        };
        self.decide(alloc::vec![away.to_record(&self.group.id, &id)])?;
        self.renew_consumer_session(&id);
        if let Some(motion) = &mut self.group.motion {
            let pulse = motion.pulse(&id);
            pulse.revocation.disarm();
            pulse.revokes_since = None;
            self.services.lifelines.cut(pulse.connection.take());
        }
        Ok(gone(id, Standing::LeavingForNow))
    }

    /// An administrator removes members, by id or by instance id; so may a classic LeaveGroup, by
    /// which classic members of a group on its way say goodbye themselves.
    pub(in super::super::super) fn dismiss_consumers(
        &mut self,
        call: &Call<'_>,
        ask: &Leave<'_>,
    ) -> Vec<Result<(), GroupError>> {
        let mut dismissed = BTreeMap::new();
        let mut outcomes = Vec::with_capacity(ask.members.len());
        for leaver in &ask.members {
            let found = self.consumer_to_dismiss(leaver);
            outcomes.push(found.as_ref().map(|_| ()).map_err(|error| *error));
            let why = |id: MemberId| self.why_dismissed(call, leaver, &id).map(|why| (id, why));
            dismissed.extend(found.ok().and_then(why));
        }
        let (ids, triggers): (Vec<_>, _) = dismissed.into_iter().unzip();
        self.remove_consumers(&ids, triggers);
        outcomes
    }

    /// Members of the consumer protocol say goodbye by a heartbeat: a LeaveGroup that names one
    /// comes from somebody else.
    fn why_dismissed(
        &self,
        call: &Call<'_>,
        leaver: &Leaver<'_>,
        id: &MemberId,
    ) -> Option<Trigger> {
        let (id, member) = self.group.hard.consumers().member(id)?;
        let why = if member.is_classic() { leaving_trigger } else { removal_trigger };
        Some(why(call, leaver, member.who(id)))
    }

    fn consumer_to_dismiss(&self, leaver: &Leaver<'_>) -> Result<MemberId, GroupError> {
        match (leaver.member, leaver.instance) {
            ("", instance) => {
                let holder = instance.and_then(|i| self.group.hard.consumers().holder(i));
                holder.cloned().ok_or(GroupError::UnknownMemberId)
            }
            (member, instance) => {
                self.validate_consumer(member, instance)?;
                Ok(MemberId::from(member))
            }
        }
    }

    /// Members are no longer part of the group, for these reasons: what they held is free at once.
    pub(super) fn remove_consumers(&mut self, ids: &[MemberId], triggers: Vec<Trigger>) {
        if ids.is_empty() {
            return;
        }
        if self.downgrade(ids, triggers.clone()) {
            return;
        }
        self.note_freed(ids);
        let mut records = Vec::new();
        let mut patterns: BTreeMap<Arc<str>, u32> = BTreeMap::new();
        for id in ids {
            records.extend(member_end(&self.group.id, id));
            let member = self.group.hard.consumers().member(id);
            if let Some(pattern) = member.and_then(|(_, member)| member.says().pattern()) {
                *patterns.entry(pattern.clone()).or_insert(0) += 1;
            }
        }
        let ended = patterns.iter().filter_map(|(pattern, gone)| self.pattern_end(pattern, *gone));
        records.extend(ended);
        let index = self.decide_split(records);
        for id in ids {
            self.forget_pulse(id);
            self.tell_target(id);
        }
        let index = self.raise_epoch(index, triggers);
        self.renew_target(index);
        self.stir(Stir::Freed);
        self.tell_classics();
        self.note_arrival();
    }

    /// Remembers, for the journal, what these were to own.
    fn note_freed(&mut self, ids: &[MemberId]) {
        self.motion();
        let Group { hard, motion, .. } = &mut *self.group;
        let Some(motion) = motion else { return };
        let wanted = motion.want(self.now);
        for (id, member) in ids.iter().filter_map(|id| hard.consumers().member(id)) {
            wanted.free(id, member.target().iter().copied());
        }
    }

    /// Nobody listens for a member any more.
    pub(super) fn forget_pulse(&mut self, id: &MemberId) {
        self.refuse_held(id, GroupError::UnknownMemberId);
        if let Some(motion) = &mut self.group.motion
            && let Some(pulse) = motion.pulses.remove(id)
        {
            self.services.lifelines.cut(pulse.connection);
        }
    }
}

fn gone(member: MemberId, standing: Standing) -> Beat {
    Beat { member, standing, interval: Duration::ZERO, assignment: None }
}
