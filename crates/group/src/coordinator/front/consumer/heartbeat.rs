//! ConsumerGroupHeartbeat: joining, staying and acknowledging.

use super::place::{Place, slots, validate};
use super::subscription::revived;
use crate::coordinator::consumers::partitions_of;
use crate::coordinator::front::classic::fresh_id;
use crate::coordinator::output::Index;
use crate::coordinator::reconcile::{Goal, Held, Position, Slot, State, reconcile};
use crate::coordinator::timers::Timer;
use crate::coordinator::turn::{Call, Turn};
use crate::message::admin::GroupKind;
use crate::message::consumer::{Beat, Heartbeat, Standing};
use crate::message::{GroupError, Reply};
use crate::probe::{self, Fault};
use alloc::collections::BTreeSet;
use core::time::Duration;
use ottla_model::{MemberId, TopicId};

impl Turn<'_> {
    /// A heartbeat with a group that exists, or that a new member may bring into being.
    pub(in super::super::super) fn consumer_heartbeat(
        &mut self,
        call: &Call<'_>,
        ask: &Heartbeat<'_>,
    ) {
        let outcome = validate(ask).and_then(|()| match ask.standing {
            Standing::Joining | Standing::Member(_) => self.beat_consumer(call, ask),
            Standing::Leaving => self.leave_consumer(ask),
            Standing::LeavingForNow => self.leave_consumer_for_now(ask),
        });
        // Last, so that it waits for whatever was decided on its way.
        self.reply(call.token, Reply::ConsumerHeartbeat(outcome));
    }

    fn beat_consumer(&mut self, call: &Call<'_>, ask: &Heartbeat<'_>) -> Result<Beat, GroupError> {
        if self.group.kind != GroupKind::Consumer && !self.group.is_empty() {
            // Here a group of classic members would begin to move to this protocol.
            return Err(GroupError::GroupIdNotFound);
        }
        let place = self.place_of_consumer(ask)?;
        let id = match (self.group.hard.consumers().member(ask.member), ask.member) {
            (Some((id, _)), _) => id.clone(),
            (None, "") => fresh_id(call.client.id, &call.fresh),
            (None, named) => MemberId::from(named),
        };
        let subscribed = self.subscribe_consumer(call, ask, &id, &place)?;
        let index = self.renew_target(subscribed.index);
        let was_told = self.assigned_to(&id, &place);
        let owned = ask.owned.as_ref().map(slots);
        self.advance(&id, ask.standing, owned.as_ref(), subscribed.is_changed, index);
        self.hear_consumer(&id, call);
        Ok(self.beat(&id, is_full(ask), was_told.as_ref()))
    }

    /// What a member was told last that it may own.
    fn assigned_to(&self, id: &MemberId, place: &Place) -> Option<Held> {
        let member = self.group.hard.consumers().member(id);
        match place {
            Place::Known => member.map(|(_, member)| member.position().assigned.clone()),
            Place::New | Place::Replaces(_) => None,
        }
    }

    /// Moves a member one step towards the target.
    fn advance(
        &mut self,
        id: &MemberId,
        standing: Standing,
        owned: Option<&BTreeSet<Slot>>,
        is_changed: bool,
        with: Option<Index>,
    ) {
        let consumers = self.group.hard.consumers();
        let Some((_, member)) = consumers.member(id) else { return };
        let epoch = consumers.target_epoch();
        let position = member.position();
        if position.is_at(epoch) && !is_changed {
            return;
        }
        let is_back = position.state == State::Away && standing == Standing::Joining;
        let back = is_back.then(|| revived(position));
        let topics = consumers.topics_of(member.says());
        let view = self.services.topics.as_deref();
        let wants = |topic: TopicId| match view {
            Some(view) => view.topic_by_id(topic).is_some_and(|t| topics.contains(&t.name)),
            None => true,
        };
        let forgets = probe::has(Fault::CoordinatorForgetsHolders);
        let is_free = |slot: Slot| forgets || consumers.owner(slot).is_none_or(|owner| owner == id);
        let target = member.target();
        let goal = Goal { epoch, target, owned, wants: &wants, is_free: &is_free };
        let next = reconcile(back.as_ref().unwrap_or(position), &goal).or(back);
        if let Some(next) = next {
            self.move_to(id, &next, with);
        }
    }

    /// Writes a member's next position, and watches over its revocation if it owes one.
    fn move_to(&mut self, id: &MemberId, next: &Position, with: Option<Index>) {
        let record = next.to_record(&self.group.id, id);
        self.decide_also(with, alloc::vec![record]);
        let now = self.now.mono;
        let owes = matches!(next.state, State::Unrevoked { .. });
        let timeout = self.revocation_timeout(id);
        let group = self.group.id.clone();
        self.motion();
        if let Some(motion) = &mut self.group.motion {
            let pulse = motion.pulse(id);
            pulse.revocation.disarm();
            pulse.revokes_since = owes.then(|| pulse.revokes_since.unwrap_or(now));
            if owes {
                let timer = || Timer::Revocation(group, id.clone());
                self.services.timers.arm(&mut pulse.revocation, now, timeout, timer);
            }
        }
        self.note_arrival();
    }

    /// If everyone is where the target wants them, the journal is told how long it took.
    pub(super) fn note_arrival(&mut self) {
        let consumers = self.group.hard.consumers();
        let is_settled = consumers.epoch() == consumers.target_epoch() && consumers.has_arrived();
        let now = self.now.mono;
        if is_settled && let Some(since) = self.motion().moving_since.take() {
            self.group.journal.arrived(now.since(since));
        }
    }

    fn revocation_timeout(&self, id: &MemberId) -> Duration {
        let member = self.group.hard.consumers().member(id);
        let own = member.and_then(|(_, member)| member.says().rebalance_timeout);
        own.unwrap_or(self.services.config.consumer_session_timeout)
    }

    /// How a member stands now. It is told what it may own if it asks in full, or if that is not
    /// what it was told last.
    fn beat(&self, id: &MemberId, is_full: bool, told: Option<&Held>) -> Beat {
        let member = self.group.hard.consumers().member(id);
        let position = member.map(|(_, member)| member.position().clone()).unwrap_or_default();
        let is_same = told.is_some_and(|told| told.keys().eq(position.assigned.keys()));
        let tells = is_full || !is_same;
        Beat {
            member: id.clone(),
            standing: Standing::Member(position.epoch),
            interval: self.consumer_heartbeat_interval(),
            assignment: tells.then(|| partitions_of(position.assigned.keys().copied())),
        }
    }
}

/// Whether a heartbeat names all that a member ever says, which it does when it is not sure what
/// was heard.
fn is_full(ask: &Heartbeat<'_>) -> bool {
    let subscribes = ask.topics.is_some() || ask.regex.is_some();
    ask.standing == Standing::Joining
        || (ask.rebalance_timeout.is_some() && subscribes && ask.owned.is_some())
}
