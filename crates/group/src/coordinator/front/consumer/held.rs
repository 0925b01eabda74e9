//! ConsumerGroupHeartbeat whose answer is kept: a member that has nothing to hear is told of a
//! revocation, or of partitions that became free, the moment there is something to tell (issue 4).
//!
//! Only those are told whose share changes. A new epoch that leaves a member all it has can wait
//! for the end of its hold: an answer given early leaves a member unheard of until its interval has
//! passed, and another change would then reach it late.

use super::heartbeat::is_full;
use super::place::slots;
use crate::coordinator::holds::{Asked, HOLD_MIN, Stir, hold_time};
use crate::coordinator::reconcile::State;
use crate::coordinator::turn::{Call, Turn};
use crate::message::Patience;
use crate::message::consumer::{Beat, Heartbeat, Standing};
use crate::probe::{self, Fault, Mark};
use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use core::time::Duration;
use ottla_model::{Generation, MemberId};

impl Turn<'_> {
    /// Keeps the answer to a known member that may own what it owned (it `has_moved` if its epoch
    /// is another now); false where it is to be given now: its client may be in doubt about where
    /// it stands, or is to act.
    pub(super) fn hold_consumer(
        &mut self,
        call: &Call<'_>,
        ask: &Heartbeat<'_>,
        id: &MemberId,
        has_moved: bool,
    ) -> bool {
        let Some(time) = self.consumer_hold_time(call.client.patience, id) else { return false };
        let member = self.group.hard.consumers().member(id);
        let Some((_, member)) = member.filter(|(_, member)| !member.is_classic()) else {
            return false;
        };
        let position = member.position();
        let is_where = match ask.standing {
            Standing::Member(epoch) if epoch == position.epoch => true,
            // One that is further behind missed an answer; missing the next it would be fenced.
            Standing::Member(epoch) if has_moved && epoch == position.previous_epoch => {
                call.client.patience.acks_at_once
            }
            _ => false,
        };
        let owned = ask.owned.as_ref().map(slots);
        let is_sure = is_where && owned.is_none_or(|it| it.iter().eq(position.assigned.keys()));
        let owes = matches!(position.state, State::Unrevoked { .. } | State::Away);
        let awaits = !member.target().iter().eq(position.assigned.keys());
        if !is_sure || owes {
            return false;
        }
        let asked = Asked::Consumer { is_full: is_full(ask), is_behind: has_moved };
        let is_kept = self.keep(call.token, id, time, asked);
        if is_kept {
            let now = self.now.mono;
            self.motion().pulse(id).kept_since = Some(now);
        }
        if is_kept && awaits {
            self.motion().waiting.insert(id.clone());
        }
        is_kept
    }

    /// For how long: always less than the interval last told, for a client that misses an answer
    /// for that long drops its connection (librdkafka) or spins (Java); one that rests after an
    /// answer has no such limit.
    fn consumer_hold_time(&self, patience: Patience, id: &MemberId) -> Option<Duration> {
        let told = self.group.motion.as_ref()?.pulses.get(&**id)?.told?;
        // Without a word for so long it may have lost what it owns.
        let timeout = self.consumer_session_timeout().min(self.revocation_timeout(id));
        let time = hold_time(patience, timeout)?;
        if patience.rests_after_answer {
            return Some(time);
        }
        let overdue = told.saturating_sub(MARGIN_MIN.max(told / MARGIN_SHARE));
        Some(time.min(overdue)).filter(|time| *time >= HOLD_MIN)
    }

    /// Somebody whose answer is kept may have something to hear.
    pub(in crate::coordinator) fn stir(&mut self, who: Stir) {
        let motion = self.motion();
        motion.stir = motion.stir.max(who);
    }

    /// At the end of a turn: gives their answers to those members who may own other partitions now
    /// than they were told.
    pub(in crate::coordinator) fn tell_consumers(&mut self) {
        let Some(motion) = &mut self.group.motion else { return };
        let stir = core::mem::take(&mut motion.stir);
        if self.services.held.is_empty() || probe::has(Fault::CoordinatorKeepsNews) {
            return;
        }
        let candidates: Vec<MemberId> = match stir {
            Stir::None => return,
            Stir::Freed => motion.waiting.iter().cloned().collect(),
            Stir::Target => self.holders(),
        };
        let mut waiting = BTreeSet::new();
        for id in candidates {
            match self.news_for(&id) {
                News::None => {}
                News::Awaited => drop(waiting.insert(id)),
                News::Other => {
                    probe::hit(Mark::CoordinatorToldHeldConsumer);
                    self.tell(&id);
                }
            }
        }
        // Telling frees nothing: who gives up something owns it until it says so.
        let motion = self.motion();
        (motion.waiting, motion.stir) = (waiting, Stir::None);
    }

    fn news_for(&self, id: &MemberId) -> News {
        let member = self.group.hard.consumers().member(id);
        let is_kept = self.group.motion.as_ref().and_then(|motion| motion.pulses.get(id));
        let (Some((_, member)), Some(true)) = (member, is_kept.map(|pulse| pulse.hold.is_kept()))
        else {
            return News::None;
        };
        let standing = Standing::Member(member.position().epoch);
        match self.next_position(id, standing, None, false) {
            _ if member.is_classic() => News::None,
            Some((next, changes_hands)) => match next.state {
                _ if changes_hands => News::Other,
                State::Unrevoked { .. } => News::Other,
                State::Unreleased => News::Awaited,
                State::Stable | State::Away => News::None,
            },
            None if member.position().state == State::Unreleased => News::Awaited,
            None => News::None,
        }
    }

    /// What a member is told that takes whatever step it has to take.
    pub(in crate::coordinator) fn consumer_moved(&mut self, id: &str, is_full: bool) -> Beat {
        let member = self.group.hard.consumers().member(id);
        let epoch = member.map_or(Generation(0), |(_, member)| member.position().epoch);
        let id = member.map_or_else(|| MemberId::from(id), |(id, _)| id.clone());
        let step = self.advance(&id, Standing::Member(epoch), None, false, None);
        let interval = self.next_beat(&id, step.is_taken, !step.changes_hands);
        let is_news = step.changes_hands && !probe::has(Fault::CoordinatorTellsNobody);
        self.beat(&id, interval, is_full || is_news)
    }

    /// What a member is told that stays where it is.
    pub(in crate::coordinator) fn consumer_as_it_stands(
        &mut self,
        id: &str,
        is_full: bool,
    ) -> Beat {
        let id = MemberId::from(id);
        let interval = self.next_beat(&id, false, true);
        self.beat(&id, interval, is_full)
    }
}

/// What there is to tell a member whose answer is kept.
enum News {
    /// Nothing that could not wait.
    None,
    /// Nothing, but it awaits partitions.
    Awaited,
    /// It may own other partitions than it was told.
    Other,
}

/// Of the interval a client was last told, what is left when its answer is given. While it waits
/// for its next turn, nothing reaches it.
const MARGIN_SHARE: u32 = 20;
/// At least so much: the answer's way, and the time that a busy machine takes to give it.
const MARGIN_MIN: Duration = Duration::from_millis(50);
