//! Two clocks, two types. Mixing them up does not compile.

use core::fmt;
use core::ops::{Add, Sub};
use core::time::Duration;

/// A reading of a monotonic clock that counts suspend, in nanoseconds from an arbitrary start.
/// Only the shells read the clock; everything below takes an `Instant` as an argument.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Instant(u64);

impl Instant {
    /// The earliest instant there is.
    pub const ZERO: Self = Self(0);

    /// The instant `nanos` after the clock's start.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// The instant `millis` after the clock's start.
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis * 1_000_000)
    }

    /// Nanoseconds since the clock's start.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// How long after `earlier` this is; zero if it is not after.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Instant {
    type Output = Self;
    /// Saturates: a deadline past the clock's end never comes.
    fn add(self, span: Duration) -> Self {
        let nanos = u64::try_from(span.as_nanos()).unwrap_or(u64::MAX);
        Self(self.0.saturating_add(nanos))
    }
}

impl Sub<Duration> for Instant {
    type Output = Self;
    /// Saturates at the clock's start.
    fn sub(self, span: Duration) -> Self {
        let nanos = u64::try_from(span.as_nanos()).unwrap_or(u64::MAX);
        Self(self.0.saturating_sub(nanos))
    }
}

impl fmt::Debug for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "+{:?}", Duration::from_nanos(self.0))
    }
}

/// Wall-clock time: milliseconds since 1970-01-01 UTC, as Kafka's records carry it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// The wire's "no timestamp".
    pub const NONE: Self = Self(-1);

    /// This time plus `span`, saturating, rounded down to milliseconds.
    pub fn plus(self, span: Duration) -> Self {
        let millis = i64::try_from(span.as_millis()).unwrap_or(i64::MAX);
        Self(self.0.saturating_add(millis))
    }
}

/// Both clocks, read at the same moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Now {
    /// For timers.
    pub mono: Instant,
    /// For what is written down.
    pub wall: Timestamp,
}
