//! Deadlines: one heap of typed timers per shard, made for timers that are put off far more often
//! than they fire.
//!
//! The truth about a timer is the [`Deadline`] beside the thing it is about; the heap only says
//! when to look. Putting a deadline off touches the `Deadline` alone: when its entry surfaces too
//! early, it is put back. So a heartbeat costs one store, and every timer has one live entry. A
//! deadline that was missed because the whole process stood still is put off once more: members
//! are not to pay for it.
//! Entries whose timer is gone stay until they surface; none is queued further ahead than
//! [`HORIZON`], so that a stranger who comes and goes cannot pile them up.

#[cfg(test)]
mod tests;

use crate::probe::{self, Mark};
use alloc::collections::BinaryHeap;
use core::cmp::{Ordering, Reverse};
use core::time::Duration;
use ottla_model::{GroupId, Instant, MemberId};

/// What may become due.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Timer {
    /// A group's rebalance: the members' time to join, or to sync, is over.
    Barrier(GroupId),
    /// A member was silent for its session timeout.
    Session(GroupId, MemberId),
    /// A member did not come back with the id it was given.
    Pending(GroupId, MemberId),
    /// Consumer protocol: a member did not give up what it was told to in its rebalance timeout.
    Revocation(GroupId, MemberId),
    /// A heartbeat's answer was kept long enough.
    Hold(GroupId, MemberId),
    /// Consumer protocol: a group's next target is to be computed.
    Assignment(GroupId),
    /// Patterns and topics are looked at further.
    Chores,
    /// Expired offsets are looked for.
    OffsetExpiry,
}

/// When something is due, and when the heap will next look at it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Deadline {
    at: Instant,
    queued: Instant,
}

/// What a surfaced entry means for its deadline.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Due {
    /// It is time.
    Now,
    /// It was put off: put the entry back for then.
    Later(Instant),
    /// It was disarmed, or an earlier entry stands in for this one: forget the entry.
    Never,
}

/// A deadline handled later than this was missed by a process that stood still.
const STALL: Duration = Duration::from_secs(1);
/// How much longer such a deadline lasts, at most.
const FORGIVEN_MAX: Duration = Duration::from_secs(3);
/// How far ahead an entry may lie.
const HORIZON: Duration = Duration::from_secs(30);
/// A moment that never comes.
const NEVER: Instant = Instant::from_nanos(u64::MAX);

impl Deadline {
    /// A deadline that is not armed.
    pub(super) const fn unarmed() -> Self {
        Self { at: NEVER, queued: NEVER }
    }

    /// Nothing is due any more.
    pub(super) fn disarm(&mut self) {
        self.at = NEVER;
    }

    /// Whether it comes due before `at`.
    pub(super) fn is_before(&self, at: Instant) -> bool {
        self.at < at
    }

    /// Whether it will come due.
    pub(super) fn is_armed(&self) -> bool {
        self.at != NEVER
    }

    /// Judges the heap entry that surfaced for `queued` while it is `now`, and disarms where due.
    pub(super) fn surfaced(&mut self, queued: Instant, now: Instant) -> Due {
        let due = self.passed(queued, now);
        let late = now.since(queued);
        if due == Due::Now && late > STALL {
            // Nobody looked at the time for a while, so perhaps nobody listened either: what
            // would put this off may be waiting to be read.
            probe::hit(Mark::CoordinatorForgaveStall);
            self.at = now + late.min(FORGIVEN_MAX);
            self.queued = self.at;
            return Due::Later(self.at);
        }
        due
    }

    /// The same for what is due however late it is noticed.
    pub(super) fn passed(&mut self, queued: Instant, now: Instant) -> Due {
        if queued != self.queued {
            return Due::Never;
        }
        self.queued = NEVER;
        if self.at == NEVER {
            return Due::Never;
        }
        if self.at > now {
            self.queued = self.at.min(now + HORIZON);
            return Due::Later(self.queued);
        }
        self.at = NEVER;
        Due::Now
    }
}

/// The heap.
#[derive(Debug, Default)]
pub(super) struct Timers {
    heap: BinaryHeap<Reverse<Entry>>,
    serial: u64,
}

#[derive(Debug)]
struct Entry {
    at: Instant,
    /// Makes the order total, so that equal deadlines fire in the order they were armed.
    serial: u64,
    timer: Timer,
}

impl Timers {
    /// Sets `deadline` to `after` from `now`. `timer` is made only where the heap needs a new
    /// entry.
    pub(super) fn arm(
        &mut self,
        deadline: &mut Deadline,
        now: Instant,
        after: Duration,
        timer: impl FnOnce() -> Timer,
    ) {
        deadline.at = now + after;
        let queue_at = now + after.min(HORIZON);
        if deadline.queued == NEVER || deadline.at < deadline.queued {
            deadline.queued = queue_at;
            self.push(queue_at, timer());
        }
    }

    /// Puts a surfaced entry back, as [`Due::Later`] says.
    pub(super) fn push(&mut self, at: Instant, timer: Timer) {
        self.serial += 1;
        self.heap.push(Reverse(Entry { at, serial: self.serial, timer }));
    }

    /// When the next entry surfaces.
    pub(super) fn next(&self) -> Option<Instant> {
        self.heap.peek().map(|entry| entry.0.at)
    }

    /// Takes the next entry that surfaces at or before `now`.
    pub(super) fn pop(&mut self, now: Instant) -> Option<(Instant, Timer)> {
        if self.next()? > now {
            return None;
        }
        self.heap.pop().map(|entry| (entry.0.at, entry.0.timer))
    }

    /// Forgets every entry. The deadlines they stood for must be forgotten too.
    pub(super) fn clear(&mut self) {
        self.heap.clear();
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Entry {}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.at, self.serial).cmp(&(other.at, other.serial))
    }
}
