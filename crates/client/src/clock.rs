//! The only place of the client that reads a clock or draws entropy.
//!
//! Everything else takes [`Instant`] as an argument. The clock counts suspend, so that a member
//! whose laptop slept through its session knows that it did (decision 27).

use ottla_model::{Instant, Timestamp};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The monotonic clock that counts suspend.
#[cfg(target_os = "linux")]
pub(crate) fn now() -> Instant {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    Instant::from_nanos((time.tv_sec as u64) * 1_000_000_000 + time.tv_nsec as u64)
}

/// The monotonic clock.
#[cfg(not(target_os = "linux"))]
pub(crate) fn now() -> Instant {
    use std::sync::LazyLock;
    static START: LazyLock<std::time::Instant> = LazyLock::new(std::time::Instant::now);
    Instant::from_nanos(u64::try_from(START.elapsed().as_nanos()).unwrap_or(u64::MAX))
}

/// The wall clock.
pub(crate) fn wall() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

/// Returns at or after `deadline`; never, if there is none.
pub(crate) async fn sleep_until(deadline: Option<Instant>) {
    let Some(deadline) = deadline else { return std::future::pending().await };
    loop {
        let now = now();
        if now >= deadline {
            return;
        }
        tokio::time::sleep(deadline.since(now).min(LONGEST_SLEEP)).await;
    }
}

/// Bits to jitter pauses with and to pick brokers by; not for secrets.
pub(crate) fn seed() -> u64 {
    use std::hash::{BuildHasher, Hasher, RandomState};
    let mut hasher = RandomState::new().build_hasher();
    hasher.write_u64(now().as_nanos());
    hasher.finish()
}

/// Whoever sleeps looks at the clock again after at most this long: the runtime's own does not
/// count suspend.
const LONGEST_SLEEP: Duration = Duration::from_secs(10);
