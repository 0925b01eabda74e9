//! The way to the coordinator: finding it, pausing between tries, and requests under way.
//!
//! Knows nothing of what the requests mean.

use super::config::Config;
use super::verdict::Kind;
use alloc::vec::Vec;
use core::time::Duration;
use ottla_model::{Generation, Instant, NodeId};

/// Names one request of one member; the shell hands it back with the answer.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct CallId(pub u64);

/// Which of the two connections to the coordinator a request takes.
///
/// A broker answers one connection's requests in order and keeps joins and syncs until the whole
/// group is there. Whatever must not wait for that long takes the side lane; the shell opens it
/// when it is first used and may close it when it is idle.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Lane {
    /// Everything, as long as no join or sync is under way.
    Main,
    /// What is sent while a join or sync is under way on the main lane.
    Side,
}

/// Whether the coordinator is known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Link {
    /// Not known; asked for when something needs it, not before the pause is over.
    Unknown {
        /// No earlier than this.
        retry_at: Instant,
    },
    /// Asked for.
    Finding {
        /// The question.
        call: CallId,
        /// When it counts as lost.
        deadline: Instant,
    },
    /// Known, as far as anybody knows.
    Known(NodeId),
}

/// One request under way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Call {
    pub(super) id: CallId,
    pub(super) kind: Kind,
    pub(super) lane: Lane,
    pub(super) sent_at: Instant,
    pub(super) deadline: Instant,
    /// The generation it was sent in, if any.
    pub(super) generation: Option<Generation>,
}

/// The requests under way; few at any time.
#[derive(Debug, Default)]
pub(super) struct Calls {
    last: u64,
    open: Vec<Call>,
}

impl Calls {
    /// A number no request had before.
    pub(super) fn fresh_id(&mut self) -> CallId {
        self.last += 1;
        CallId(self.last)
    }

    pub(super) fn open(&mut self, call: Call) {
        self.open.push(call);
    }

    /// Takes out the request `id`; `None` where it was given up.
    pub(super) fn close(&mut self, id: CallId) -> Option<Call> {
        let at = self.open.iter().position(|call| call.id == id)?;
        Some(self.open.swap_remove(at))
    }

    pub(super) fn has(&self, kind: Kind) -> bool {
        self.open.iter().any(|call| call.kind == kind)
    }

    /// Gives up every request of `kind`: a late answer means nothing.
    pub(super) fn forget(&mut self, kind: Kind) {
        self.open.retain(|call| call.kind != kind);
    }

    pub(super) fn is_using(&self, lane: Lane) -> bool {
        self.open.iter().any(|call| call.lane == lane)
    }

    /// Takes out everything.
    pub(super) fn take_all(&mut self) -> Vec<Call> {
        core::mem::take(&mut self.open)
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        self.open.iter().map(|call| call.deadline).min()
    }

    /// The lane a request of `kind` takes now.
    pub(super) fn lane(&self, kind: Kind) -> Lane {
        let parks = |kind| matches!(kind, Kind::Join | Kind::Sync);
        let is_parked = self.open.iter().any(|call| parks(call.kind));
        if is_parked && !parks(kind) { Lane::Side } else { Lane::Main }
    }
}

/// Pauses between retries: doubling, bounded, and jittered so that a thousand members that lost
/// one coordinator do not come back in one millisecond.
#[derive(Debug)]
pub(super) struct Backoff {
    attempts: u32,
    random: u64,
}

impl Backoff {
    pub(super) fn new(seed: u64) -> Self {
        Self { attempts: 0, random: seed }
    }

    /// Something worked.
    pub(super) fn reset(&mut self) {
        self.attempts = 0;
    }

    /// The next pause, between 0.8 and 1.2 of its nominal length (KIP-580).
    pub(super) fn next(&mut self, config: &Config) -> Duration {
        const ATTEMPTS_MAX: u32 = 20;
        let nominal = config.retry_backoff_min.saturating_mul(1 << self.attempts);
        self.attempts = (self.attempts + 1).min(ATTEMPTS_MAX);
        let share = 800 + (self.draw() % 401) as u32;
        nominal.min(config.retry_backoff_max).saturating_mul(share) / 1000
    }

    /// SplitMix64: a shuffle, not a secret.
    fn draw(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.random;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }
}
