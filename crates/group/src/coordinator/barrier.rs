//! The barrier: how a group moves all its members together from one generation to the next.
//!
//! It serves every protocol whose members move at once. It knows when to wait and when to stop
//! waiting; who is missing is the roster's knowledge, what happens afterwards the front's.
//!
//! ```text
//!            first join                    all joined, or time is up
//!   Empty ---------------> Preparing ----------------------------> Completing
//!     ^                     |     ^                                    |
//!     +---------------------+     | join, leave, silence, metadata     | leader's sync
//!          nobody is left         +------------------------- Stable <--+
//! ```

use super::journal::Triggers;
use crate::message::admin::GroupState;
use core::time::Duration;
use ottla_model::{Instant, Now};

/// Where a group stands between two generations.
#[derive(Debug, Default)]
pub(super) enum Phase {
    /// No members. Joins begin the first rebalance; heartbeats and syncs are of strangers; offsets
    /// may be committed by anyone without a generation.
    #[default]
    Empty,
    /// Members are to join. Joins are parked; heartbeats and syncs are told so; offsets of the
    /// last generation may still be committed.
    Preparing(Barrier),
    /// Members have joined, the leader assigns. Syncs are parked; heartbeats are answered;
    /// commits are told to wait.
    Completing {
        /// When the barrier closed.
        closed: Instant,
    },
    /// Every member can have its assignment; it stands in the group's last record.
    Stable,
}

/// A rebalance that waits for members to join.
#[derive(Debug)]
pub(super) struct Barrier {
    /// When it began.
    pub(super) began: Now,
    /// Why.
    pub(super) triggers: Triggers,
    initial: Option<Initial>,
}

/// The first rebalance of an empty group: it waits a little for more members to come, so that a
/// group that starts up is not rebalanced once per member.
#[derive(Debug)]
struct Initial {
    /// Whether someone came since the delay was last extended.
    newcomer: bool,
    /// The delay that is running.
    delay: Duration,
    /// How much further it may be extended, counted as Kafka does.
    remaining: Duration,
}

impl Phase {
    /// The state Kafka's tools know it by.
    pub(super) fn state(&self) -> GroupState {
        match self {
            Self::Empty => GroupState::Empty,
            Self::Preparing(_) => GroupState::PreparingRebalance,
            Self::Completing { .. } => GroupState::CompletingRebalance,
            Self::Stable => GroupState::Stable,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        matches!(self, Self::Empty)
    }

    pub(super) fn is_stable(&self) -> bool {
        matches!(self, Self::Stable)
    }
}

impl Barrier {
    /// A rebalance of a group that has members.
    pub(super) fn new(began: Now, triggers: Triggers) -> Self {
        Self { began, triggers, initial: None }
    }

    /// The first rebalance of an empty group: it closes after `delay`, extended while members keep
    /// coming, but not past the `rebalance_timeout` of those who are there.
    pub(super) fn initial(
        began: Now,
        triggers: Triggers,
        delay: Duration,
        rebalance_timeout: Duration,
    ) -> Self {
        let remaining = rebalance_timeout.saturating_sub(delay);
        Self { began, triggers, initial: Some(Initial { newcomer: false, delay, remaining }) }
    }

    /// Whether it waits for its time rather than for members.
    pub(super) fn is_initial(&self) -> bool {
        self.initial.is_some()
    }

    /// A member came that was not there before.
    pub(super) fn newcomer(&mut self) {
        if let Some(initial) = &mut self.initial {
            initial.newcomer = true;
        }
    }

    /// Its time is up: by how much more it waits, or `None` to close it.
    pub(super) fn extend(&mut self, delay: Duration) -> Option<Duration> {
        let initial = self.initial.as_mut()?;
        if !initial.newcomer || initial.remaining.is_zero() {
            return None;
        }
        let next = delay.min(initial.remaining);
        initial.remaining = initial.remaining.saturating_sub(initial.delay);
        initial.newcomer = false;
        initial.delay = next;
        Some(next)
    }
}
