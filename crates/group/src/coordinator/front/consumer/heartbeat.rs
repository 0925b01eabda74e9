//! ConsumerGroupHeartbeat: joining, staying and acknowledging.

use super::place::{Place, slots};
use super::subscription::revived;
use crate::coordinator::consumers::partitions_of;
use crate::coordinator::front::classic::fresh_id;
use crate::coordinator::group::Group;
use crate::coordinator::holds::Stir;
use crate::coordinator::output::Index;
use crate::coordinator::reconcile::{Goal, Position, Slot, State, reconcile};
use crate::coordinator::timers::Timer;
use crate::coordinator::turn::{Call, Turn};
use crate::message::admin::GroupKind;
use crate::message::consumer::{Beat, Heartbeat, Standing};
use crate::message::{GroupError, Reply};
use crate::probe::{self, Fault};
use alloc::collections::BTreeSet;
use core::time::Duration;
use ottla_model::{Generation, MemberId, TopicId};

impl Turn<'_> {
    /// A heartbeat with a group that exists, or that a new member may bring into being.
    pub(in super::super::super) fn consumer_heartbeat(
        &mut self,
        call: &Call<'_>,
        ask: &Heartbeat<'_>,
    ) {
        let outcome = self.validate(ask).and_then(|()| match ask.standing {
            Standing::Joining | Standing::Member(_) => self.beat_consumer(call, ask),
            Standing::Leaving => self.leave_consumer(ask).map(Some),
            Standing::LeavingForNow => self.leave_consumer_for_now(ask).map(Some),
        });
        // Last, so that it waits for whatever was decided on its way.
        if let Some(outcome) = outcome.transpose() {
            self.reply(call.token, Reply::ConsumerHeartbeat(outcome));
        }
    }

    /// `None` where the answer is kept.
    fn beat_consumer(
        &mut self,
        call: &Call<'_>,
        ask: &Heartbeat<'_>,
    ) -> Result<Option<Beat>, GroupError> {
        let upgraded = match self.group.kind {
            GroupKind::Classic | GroupKind::Register if !self.group.is_empty() => {
                Some(self.upgrade(ask)?)
            }
            _ => None,
        };
        let place = self.place_of_consumer(ask)?;
        // Whoever beats again does not wait for the answer to the last time.
        self.give_way(ask.member);
        let id = match (self.group.hard.consumers().member(ask.member), ask.member) {
            (Some((id, _)), _) => id.clone(),
            (None, "") => fresh_id(call.client.id, &call.fresh),
            (None, named) => MemberId::from(named),
        };
        let subscribed = self.subscribe_consumer(call, ask, &id, &place, upgraded)?;
        let index = self.renew_target(subscribed.index);
        let owned = ask.owned.as_ref().map(slots);
        let step = self.advance(&id, ask.standing, owned.as_ref(), subscribed.is_changed, index);
        self.hear_consumer(&id, call);
        let is_news = step.changes_hands && !probe::has(Fault::CoordinatorTellsNobody);
        let tells = is_full(ask) || is_news || !matches!(place, Place::Known);
        let has_moved = step.is_taken || subscribed.is_changed;
        let settles = call.client.patience.hold_max.is_some() && !step.changes_hands;
        let has_news = subscribed.is_changed || step.changes_hands;
        let is_idle = matches!(place, Place::Known) && !has_news;
        self.motion().pulse(&id).patience = call.client.patience;
        if is_idle && self.hold_consumer(call, ask, &id, step.is_taken) {
            return Ok(None);
        }
        let interval = self.next_beat(&id, has_moved, settles);
        Ok(Some(self.beat(&id, interval, tells)))
    }

    /// Moves a member one step towards the target.
    pub(super) fn advance(
        &mut self,
        id: &MemberId,
        standing: Standing,
        owned: Option<&BTreeSet<Slot>>,
        is_changed: bool,
        with: Option<Index>,
    ) -> Step {
        let next = self.next_position(id, standing, owned, is_changed);
        let Some((next, changes_hands)) = next else { return Step::default() };
        self.move_to(id, &next, with);
        Step { is_taken: true, changes_hands }
    }

    /// A member's next position, and whether it may own other partitions in it.
    pub(super) fn next_position(
        &self,
        id: &str,
        standing: Standing,
        owned: Option<&BTreeSet<Slot>>,
        is_changed: bool,
    ) -> Option<(Position, bool)> {
        let consumers = self.group.hard.consumers();
        let (id, member) = consumers.member(id)?;
        let epoch = consumers.target_epoch();
        let position = member.position();
        if position.is_at(epoch) && !is_changed {
            return None;
        }
        let is_back = position.state == State::Away && standing == Standing::Joining;
        let back = is_back.then(|| revived(position));
        let topics = consumers.topics_of(member.says());
        let view = self.services.topics.as_deref();
        let wants = |topic: TopicId| match view {
            Some(view) => {
                view.topic_by_id(topic).is_some_and(|t| topics.binary_search(&t.name).is_ok())
            }
            None => true,
        };
        let forgets = probe::has(Fault::CoordinatorForgetsHolders);
        let is_free = |slot: Slot| forgets || consumers.owner(slot).is_none_or(|owner| owner == id);
        let target = member.target();
        let goal = Goal { epoch, target, owned, wants: &wants, is_free: &is_free };
        let next = reconcile(back.as_ref().unwrap_or(position), &goal).or(back)?;
        let changes_hands = !next.assigned.keys().eq(position.assigned.keys());
        Some((next, changes_hands))
    }

    /// Writes a member's next position, and watches over its revocation if it owes one.
    fn move_to(&mut self, id: &MemberId, next: &Position, with: Option<Index>) {
        let record = next.to_record(&self.group.id, id);
        self.decide_also(with, alloc::vec![record]);
        self.stir(Stir::Freed);
        let now = self.now.mono;
        if next.is_at(self.group.hard.consumers().target_epoch()) {
            self.motion().arrivals.note(id, now);
        }
        if self.is_classic(id) {
            // What it owes depends on what it was told.
            self.tell_classics();
            return self.note_arrival();
        }
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
        self.tell_classics();
        self.note_arrival();
    }

    /// If everyone is where the target wants them, the journal is told how long it took.
    pub(super) fn note_arrival(&mut self) {
        let consumers = self.group.hard.consumers();
        let is_settled = consumers.epoch() == consumers.target_epoch() && consumers.has_arrived();
        let now = self.now.mono;
        let Group { hard, motion, journal, .. } = &mut *self.group;
        let Some(motion) = motion.as_mut().filter(|_| is_settled) else { return };
        let Some(since) = motion.moving_since.take() else { return };
        let arrived = journal.arrived(hard.consumers(), &motion.arrivals, since, now);
        if let Some(generation) = arrived {
            self.rewrite_journal(generation);
        }
    }

    pub(super) fn revocation_timeout(&self, id: &MemberId) -> Duration {
        let member = self.group.hard.consumers().member(id);
        let own = member.and_then(|(_, member)| member.says().rebalance_timeout);
        own.unwrap_or(self.services.config.consumer_session_timeout)
    }

    /// When the member is to come back: soon while it owes or awaits something, twice as late each
    /// time nothing happened, where its client bears that; else when its group is asked to.
    ///
    /// One that `settles`, whose answers may be kept but which has nothing to acknowledge now, goes
    /// on to be told twice as much: were it told all at once, it would not be heard of until then.
    /// One that rests after each answer is told little for as long as its answers are kept.
    pub(super) fn next_beat(&mut self, id: &MemberId, has_moved: bool, settles: bool) -> Duration {
        let interval = self.interval_for(id, has_moved, settles);
        self.motion().pulse(id).told = Some(interval);
        interval
    }

    fn interval_for(&mut self, id: &MemberId, has_moved: bool, settles: bool) -> Duration {
        let (longest, now) = (self.consumer_heartbeat_interval(), self.now.mono);
        let patience = self.motion().pulse(id).patience;
        let Some(shortest) = patience.interval_min else { return longest };
        let consumers = self.group.hard.consumers();
        let epoch = consumers.epoch();
        let position = consumers.member(id).map(|(_, member)| member.position());
        let waits = position.is_some_and(|position| !position.is_at(epoch));
        let owes = position.is_some_and(|it| matches!(it.state, State::Unrevoked { .. }));
        if owes && patience.acks_at_once && patience.hold_max.is_some() {
            // What it says then can be kept all the longer.
            return longest;
        }
        let pulse = self.motion().pulse(id);
        let kept_for = pulse.kept_since.take().map_or(Duration::ZERO, |since| now.since(since));
        let rests = patience.rests_after_answer && patience.hold_max.is_some();
        // One that rests is kept instead: that makes for as few heartbeats.
        let is_idle = !(has_moved || rests && kept_for >= longest / 2);
        let waits = waits || rests || (settles && pulse.told.is_some_and(|told| told < longest));
        pulse.idle_beats = if waits && is_idle { pulse.idle_beats.saturating_add(1) } else { 0 };
        let times = 1_u32.checked_shl(pulse.idle_beats.into()).unwrap_or(u32::MAX);
        match waits {
            true => shortest.max(INTERVAL_MIN).saturating_mul(times).min(longest),
            false => longest,
        }
    }

    /// How a member stands now, and what it may own if it is to be told.
    pub(super) fn beat(&self, id: &MemberId, interval: Duration, tells: bool) -> Beat {
        let member = self.group.hard.consumers().member(id);
        let position = member.map(|(_, member)| member.position());
        let assigned = position.into_iter().flat_map(|position| position.assigned.keys());
        Beat {
            member: id.clone(),
            standing: Standing::Member(position.map_or(Generation(0), |position| position.epoch)),
            interval,
            assignment: tells.then(|| partitions_of(assigned.copied())),
        }
    }
}

/// What a heartbeat's last step did.
#[derive(Clone, Copy, Default)]
pub(super) struct Step {
    /// Whether there was one.
    pub(super) is_taken: bool,
    /// Whether the member may own other partitions now.
    pub(super) changes_hands: bool,
}

/// Whether a heartbeat names all that a member ever says, which it does when it is not sure what
/// was heard.
pub(super) fn is_full(ask: &Heartbeat<'_>) -> bool {
    let subscribes = ask.topics.is_some() || ask.regex.is_some();
    ask.standing == Standing::Joining
        || (ask.rebalance_timeout.is_some() && subscribes && ask.owned.is_some())
}

/// Whatever a client bears, it is not asked to come back sooner.
const INTERVAL_MIN: Duration = Duration::from_millis(100);
