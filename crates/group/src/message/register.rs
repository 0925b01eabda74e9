//! The register protocol's words: find the coordinator's generation, register, heartbeat.
//!
//! It is the design document's own protocol (S1-S38): the coordinator assigns, all members move
//! together. Leaving and offsets use the words of [`classic`](super::classic) and
//! [`offsets`](super::offsets).

#[cfg(test)]
mod tests;

use super::GroupError;
use crate::assign::Partitions;
use alloc::vec::Vec;
use core::num::NonZeroU32;
use core::time::Duration;
use ottla_model::{Generation, GroupId, MemberId};

/// Ask a group's coordinator which generation it is in (ConsumerMetadata; decision 13).
#[derive(Clone, Copy, Debug)]
pub struct ConsumerMetadata<'a> {
    /// The group.
    pub group: &'a str,
}

/// Join a group, or join it again: with other topics, or because it rebalances
/// (RegisterConsumer).
#[derive(Clone, Debug)]
pub struct Register<'a> {
    /// The group.
    pub group: &'a str,
    /// The id the consumer was given; empty for a new one.
    pub member: &'a str,
    /// The host the consumer says it runs on; empty where it does not say.
    pub host: &'a str,
    /// How long the consumer waits for an answer, and the window its heartbeats are counted in.
    pub session_timeout: Duration,
    /// Heartbeats in one session timeout; at least 1.
    pub heartbeat_frequency: i32,
    /// Heartbeats that may fail before the consumer counts as dead; at least 1.
    pub failed_heartbeat_threshold: i32,
    /// The topics it wants, in any order.
    pub topics: Vec<&'a str>,
}

/// A registration that succeeded: a generation has begun, or goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registered {
    /// The group.
    pub group: GroupId,
    /// The generation.
    pub generation: Generation,
    /// The consumer's id.
    pub member: MemberId,
    /// What it owns from now on.
    pub partitions: Partitions,
}

/// I am alive and know this generation.
#[derive(Clone, Copy, Debug)]
pub struct Heartbeat<'a> {
    /// The group.
    pub group: &'a str,
    /// The consumer's generation.
    pub generation: Generation,
    /// The consumer.
    pub member: &'a str,
}

/// What a heartbeat is told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HeartbeatAnswer {
    /// The group's generation, also beside an error; [`NO_GENERATION`] where the coordinator
    /// knows no such group, or is none (decision 14).
    pub generation: Generation,
    /// Whether the consumer is still part of it.
    pub outcome: Result<(), GroupError>,
}

impl HeartbeatAnswer {
    /// The refusal of a coordinator that knows nothing of the group.
    pub const fn refused(error: GroupError) -> Self {
        Self { generation: NO_GENERATION, outcome: Err(error) }
    }
}

/// When a consumer beats and when it is taken for dead (S8, S10-S13, S15, S18).
///
/// Spans are exact to the microsecond and divided once, so that three intervals of a third of a
/// second are the document's one second and not 999 ms (decisions 4 and 20).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Detection {
    frequency: NonZeroU32,
    threshold: NonZeroU32,
}

impl Detection {
    /// `None` where one of the two is below 1.
    pub fn new(heartbeat_frequency: i32, failed_heartbeat_threshold: i32) -> Option<Self> {
        let positive = |number: i32| NonZeroU32::new(u32::try_from(number).ok()?);
        Some(Self {
            frequency: positive(heartbeat_frequency)?,
            threshold: positive(failed_heartbeat_threshold)?,
        })
    }

    /// Heartbeats in one session timeout.
    pub fn heartbeat_frequency(self) -> i32 {
        // It was made from an `i32`.
        i32::try_from(self.frequency.get()).unwrap_or(i32::MAX)
    }

    /// Heartbeats that may fail.
    pub fn failed_heartbeat_threshold(self) -> i32 {
        i32::try_from(self.threshold.get()).unwrap_or(i32::MAX)
    }

    /// From one heartbeat to the next: `session_timeout / frequency`.
    pub fn interval(self, session_timeout: Duration) -> Duration {
        self.spread(1, session_timeout)
    }

    /// The silence after which the consumer is dead: `threshold * session_timeout / frequency`.
    pub fn limit(self, session_timeout: Duration) -> Duration {
        self.spread(self.threshold.get(), session_timeout)
    }

    fn spread(self, intervals: u32, session_timeout: Duration) -> Duration {
        let micros = session_timeout.as_micros().saturating_mul(intervals.into());
        let micros = micros / u128::from(self.frequency.get());
        Duration::from_micros(u64::try_from(micros).unwrap_or(u64::MAX))
    }
}

/// The generation of a group nobody knows.
pub const NO_GENERATION: Generation = Generation(-1);
