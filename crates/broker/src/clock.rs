//! The only place of the broker that reads a clock.
//!
//! Everything below takes [`Now`] as an argument. The monotonic side counts suspend, so that a
//! lease does not outlive a laptop's sleep.

use ottla_model::{Instant, Now, Timestamp};
use rustix::time::{ClockId, clock_gettime};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Both clocks, now.
pub(crate) fn now() -> Now {
    Now { mono: mono(), wall: wall() }
}

/// The monotonic clock that counts suspend.
pub(crate) fn mono() -> Instant {
    let time = clock_gettime(ClockId::Boottime);
    Instant::from_nanos((time.tv_sec as u64) * 1_000_000_000 + time.tv_nsec as u64)
}

/// The instant of the runtime's timers at which `deadline` is reached, as far as can be foretold.
pub(crate) fn tokio_instant(deadline: Instant) -> tokio::time::Instant {
    // A deadline that never comes must not overflow the runtime's clock.
    let wait = deadline.since(mono()).min(LONGEST_SLEEP);
    tokio::time::Instant::now() + wait
}

fn wall() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(since.as_millis() as i64)
}

/// Whoever sleeps looks at its deadline again after at most this long.
const LONGEST_SLEEP: Duration = Duration::from_secs(86_400);
