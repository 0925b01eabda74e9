//! Held heartbeats: the answer to a member that has nothing to hear is kept until it has, so that
//! news reach it at once instead of with its next heartbeat (issue 4).
//!
//! A kept answer is given as soon as something changes for its member, another request waits
//! behind it on its connection, or its time is up. What a member is then told is its front's
//! knowledge; who bears being kept waiting is the shell's ([`Patience`]). One answer is kept for
//! each member, and no more than [`Config::held_max`](super::Config::held_max) over a shard.

use super::group::Group;
use super::timers::{Deadline, Due, Timer};
use super::turn::{Call, Turn};
use crate::message::admin::GroupKind;
use crate::message::{GroupError, Patience, Reply, Token};
use crate::probe::{self, Fault, Mark};
use alloc::vec::Vec;
use core::time::Duration;
use ottla_model::{Instant, MemberId};

/// A member's place for one kept answer.
#[derive(Debug)]
pub(super) struct Hold {
    kept: Option<Kept>,
    end: Deadline,
}

/// A kept answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kept {
    token: Token,
    asked: Asked,
}

/// In which protocol an answer is awaited, and what it takes to give it.
#[derive(Clone, Copy, Debug)]
pub(super) enum Asked {
    /// Heartbeat.
    Classic,
    /// ConsumerGroupHeartbeat.
    Consumer {
        /// Whether it is to be told its assignment, changed or not.
        is_full: bool,
        /// Whether it took a step that its client has not heard of. A second one must wait: if its
        /// answer got lost, the client would be two epochs behind, and fenced.
        is_behind: bool,
    },
}

/// Who may have something to hear.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub(super) enum Stir {
    /// Nobody.
    #[default]
    None,
    /// Members that await partitions: some may be free now.
    Freed,
    /// Everybody: there is another target.
    Target,
}

/// For how long an answer may be kept from a member of this patience: so short that, if it is the
/// last one to reach the member, two more heartbeats fit into the `timeout` after which it may have
/// lost what it owns, its session's or a rebalance's. `None`: not at all.
pub(super) fn hold_time(patience: Patience, timeout: Duration) -> Option<Duration> {
    let time = patience.hold_max?.min(timeout / TIMEOUT_SHARE);
    (time >= HOLD_MIN).then_some(time)
}

impl Default for Hold {
    fn default() -> Self {
        Self { kept: None, end: Deadline::unarmed() }
    }
}

impl Hold {
    /// Whether an answer is kept.
    pub(super) fn is_kept(&self) -> bool {
        self.kept.is_some()
    }
}

impl Turn<'_> {
    /// Keeps the answer to a heartbeat of a member that has nothing to hear; false where it is to
    /// be given now.
    pub(super) fn hold(&mut self, call: &Call<'_>, id: &str, timeout: Duration) -> bool {
        let time = hold_time(call.client.patience, timeout);
        time.is_some_and(|time| self.keep(call.token, id, time, Asked::Classic))
    }

    /// Keeps an answer for so long; false where there is no room.
    pub(super) fn keep(&mut self, token: Token, id: &str, time: Duration, asked: Asked) -> bool {
        if self.services.held.len() >= self.services.config.held_max {
            return false;
        }
        let group = self.group.id.clone();
        let Some((id, hold)) = place(self.group, id) else { return false };
        let timer = || Timer::Hold(group.clone(), id.clone());
        self.services.timers.arm(&mut hold.end, self.now.mono, time, timer);
        hold.kept = Some(Kept { token, asked });
        self.services.held.insert(token, (group, id));
        true
    }

    /// Takes a member's kept answer, to give it.
    fn unhold(&mut self, id: &str) -> Option<Kept> {
        if self.services.held.is_empty() {
            return None;
        }
        let (_, hold) = place(self.group, id)?;
        let kept = hold.kept.take()?;
        hold.end.disarm();
        self.services.held.remove(&kept.token);
        Some(kept)
    }

    /// Gives a kept answer because waiting longer would be for nothing: its client wants something
    /// else.
    pub(super) fn give_way(&mut self, id: &str) {
        let Some(kept) = self.unhold(id) else { return };
        let reply = match kept.asked {
            Asked::Classic => Reply::Heartbeat(Ok(())),
            Asked::Consumer { is_full, .. } => {
                Reply::ConsumerHeartbeat(Ok(self.consumer_as_it_stands(id, is_full)))
            }
        };
        self.reply(kept.token, reply);
    }

    /// Gives a kept answer with whatever there is to tell.
    pub(super) fn tell(&mut self, id: &str) {
        let Some(kept) = self.unhold(id) else { return };
        let reply = match kept.asked {
            Asked::Classic => Reply::Heartbeat(Ok(())),
            Asked::Consumer { is_full, is_behind: true } => {
                Reply::ConsumerHeartbeat(Ok(self.consumer_as_it_stands(id, is_full)))
            }
            Asked::Consumer { is_full, is_behind: false } => {
                Reply::ConsumerHeartbeat(Ok(self.consumer_moved(id, is_full)))
            }
        };
        self.reply(kept.token, reply);
    }

    /// Refuses a heartbeat whose answer was kept.
    pub(super) fn refuse_held(&mut self, id: &str, error: GroupError) {
        let Some(kept) = self.unhold(id) else { return };
        let reply = match kept.asked {
            Asked::Classic => Reply::Heartbeat(Err(error)),
            Asked::Consumer { .. } => Reply::ConsumerHeartbeat(Err(error)),
        };
        self.reply(kept.token, reply);
    }

    /// Refuses every heartbeat of this group whose answer was kept: something happened to all.
    pub(super) fn refuse_all_held(&mut self, error: GroupError) {
        if self.services.held.is_empty() || probe::has(Fault::CoordinatorKeepsNews) {
            return;
        }
        for id in self.holders() {
            probe::hit(Mark::CoordinatorToldHeld);
            self.refuse_held(&id, error);
        }
    }

    /// A hold's heap entry surfaced. A process that stood still gives no reason to keep an answer
    /// longer.
    pub(super) fn hold_surfaced(&mut self, id: &MemberId, queued: Instant) -> Due {
        let now = self.now.mono;
        let Some((_, hold)) = place(self.group, id) else { return Due::Never };
        let due = hold.end.passed(queued, now);
        if due == Due::Now {
            probe::hit(Mark::CoordinatorHeldInFull);
            self.tell(id);
        }
        due
    }

    /// Members whose heartbeat's answer is kept, in an order that does not vary.
    pub(super) fn holders(&self) -> Vec<MemberId> {
        let mut holders = self.group.roster.ids_where(|member| member.hold.is_kept());
        let pulses = self.group.motion.iter().flat_map(|motion| &motion.pulses);
        let first = holders.len();
        holders.extend(pulses.filter(|(_, pulse)| pulse.hold.is_kept()).map(|(id, _)| id.clone()));
        holders[first..].sort_unstable();
        holders
    }
}

/// A member's place, and its own copy of its id.
fn place<'g>(group: &'g mut Group, id: &str) -> Option<(MemberId, &'g mut Hold)> {
    match group.kind {
        GroupKind::Classic => {
            let (id, member) = group.roster.entry_mut(id)?;
            Some((id.clone(), &mut member.hold))
        }
        GroupKind::Consumer => {
            let (id, pulse) = group.motion.as_mut()?.pulses.get_key_value_mut(id)?;
            Some((id.clone(), &mut pulse.hold))
        }
        GroupKind::Register => None,
    }
}

/// Of a timeout, what an answer may be kept.
const TIMEOUT_SHARE: u32 = 3;
/// Keeping an answer for less is not worth the work.
pub(super) const HOLD_MIN: Duration = Duration::from_millis(100);
