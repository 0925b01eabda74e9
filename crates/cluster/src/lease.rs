//! How long a broker may act as owner: one session for the whole broker, its end known in
//! advance.
//!
//! A coordinator that lost its shard must fall silent *before* another one speaks. It cannot be
//! told in time, so it counts: a session granted or renewed for `ttl` lives at least until the
//! question was *sent* plus `ttl`, and everything owned under it is owned until then, less a
//! margin for clocks that run apart ([`Tenure::until`]). The engine meanwhile counts from when it
//! *received* the question, which is later. [`Tenure`] is that reckoning as a value: it reads no
//! clock and sends nothing; a driver renews when [`Tenure::renew_at`] comes and reports what the
//! store said. [`Grant`] is what a shard is told: you own this, epoch E, until T.
//!
//! On the embedded engine a session lives as long as the process and every renewal succeeds; the
//! reckoning is the same.

use crate::store::{Session, SessionId};
use ottla_model::{Instant, OwnershipEpoch, PartitionId};
use std::time::Duration;

/// Leave to act as a shard's coordinator.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Grant {
    /// The offsets partition.
    pub partition: PartitionId,
    /// The reign; appends carry it, and an older one is refused. Durable before it is granted.
    pub epoch: OwnershipEpoch,
    /// The first moment at which it must not act any more, unless renewed.
    pub until: Instant,
}

/// The session of a broker that is in office.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tenure {
    session: SessionId,
    asked_at: Instant,
    ttl: Duration,
    margin: Duration,
}

impl Tenure {
    /// The tenure that `session` gives, asked for at `asked_at`. The margin is a tenth of its
    /// time, at least a millisecond.
    pub fn new(session: Session, asked_at: Instant) -> Self {
        let margin = margin(session.ttl);
        Self { session: session.id, asked_at, ttl: session.ttl, margin }
    }

    /// The session.
    pub fn session(&self) -> SessionId {
        self.session
    }

    /// The first moment at which the broker must not act as owner any more. Saturates: a time
    /// beyond the clock's end never comes.
    pub fn until(&self) -> Instant {
        self.asked_at + self.ttl.saturating_sub(self.margin)
    }

    /// When to renew: a third of the time after it was last asked for, so that two lost renewals
    /// are survived.
    pub fn renew_at(&self) -> Instant {
        self.asked_at + self.ttl / 3
    }

    /// Whether the broker may act as owner at `now`.
    pub fn holds(&self, now: Instant) -> bool {
        now < self.until()
    }

    /// The store renewed the session when asked at `asked_at`. An answer to an older question
    /// than the last one changes nothing.
    pub fn renewed(&mut self, asked_at: Instant, ttl: Duration) {
        if asked_at + ttl >= self.asked_at + self.ttl {
            (self.asked_at, self.ttl, self.margin) = (asked_at, ttl, margin(ttl));
        }
    }

    /// What a shard is told that was won in `epoch` under this tenure.
    pub fn grant(&self, partition: PartitionId, epoch: OwnershipEpoch) -> Grant {
        Grant { partition, epoch, until: self.until() }
    }
}

fn margin(ttl: Duration) -> Duration {
    (ttl / 10).max(Duration::from_millis(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tenure(asked_at: u64, ttl: u64) -> Tenure {
        let session = Session { id: SessionId(1), ttl: Duration::from_millis(ttl) };
        Tenure::new(session, Instant::from_millis(asked_at))
    }

    /// The holder counts from before the engine can have started counting.
    #[test]
    fn a_tenure_ends_before_the_session_can() {
        let tenure = tenure(1000, 10_000);
        assert_eq!(tenure.until(), Instant::from_millis(10_000));
        assert!(tenure.holds(Instant::from_millis(9_999)));
        assert!(!tenure.holds(Instant::from_millis(10_000)));
        let grant = tenure.grant(PartitionId(3), OwnershipEpoch(7));
        assert_eq!(grant.until, tenure.until());
    }

    #[test]
    fn renewal_starts_anew_and_a_late_answer_does_not_shorten() {
        let mut tenure = tenure(0, 9_000);
        assert_eq!(tenure.renew_at(), Instant::from_millis(3_000));
        tenure.renewed(Instant::from_millis(3_000), Duration::from_millis(9_000));
        assert_eq!(tenure.until(), Instant::from_millis(11_100));
        tenure.renewed(Instant::from_millis(1_000), Duration::from_millis(9_000));
        assert_eq!(tenure.until(), Instant::from_millis(11_100));
    }

    #[test]
    fn a_session_for_ever_never_ends() {
        let session = Session { id: SessionId(1), ttl: Duration::MAX };
        let tenure = Tenure::new(session, Instant::from_millis(5));
        assert!(tenure.holds(Instant::from_millis(u64::MAX / 2_000_000)));
    }
}
