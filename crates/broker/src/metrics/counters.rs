//! Counters cheap enough for the hot path: relaxed atomics, no locks, no allocation.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A number that only rises.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    /// One more.
    pub(crate) fn inc(&self) {
        self.add(1);
    }

    /// `count` more.
    pub(crate) fn add(&self, count: u64) {
        self.0.fetch_add(count, Ordering::Relaxed);
    }

    /// So many so far.
    pub(crate) fn value(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Durations in buckets, each twice as wide as the one before it, from [`FIRST_BUCKET`] up.
#[derive(Debug, Default)]
pub(crate) struct Latency {
    buckets: [AtomicU64; BUCKETS],
    sum_nanos: AtomicU64,
}

impl Latency {
    /// `count` more that took this long each.
    pub(crate) fn record(&self, took: Duration, count: u64) {
        let nanos = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        let bucket = (nanos / FIRST_BUCKET.as_nanos() as u64).checked_ilog2();
        let bucket = bucket.map_or(0, |log| log as usize + 1).min(BUCKETS - 1);
        self.buckets[bucket].fetch_add(count, Ordering::Relaxed);
        self.sum_nanos.fetch_add(nanos.saturating_mul(count), Ordering::Relaxed);
    }

    /// Each bucket's upper bound in seconds and its count, not cumulated; the last is unbounded.
    pub(crate) fn buckets(&self) -> impl Iterator<Item = (f64, u64)> {
        self.buckets.iter().enumerate().map(|(index, count)| {
            let bound = FIRST_BUCKET.as_secs_f64() * f64::from(1u32 << index.min(31));
            let bound = if index == BUCKETS - 1 { f64::INFINITY } else { bound };
            (bound, count.load(Ordering::Relaxed))
        })
    }

    /// All of them together, in seconds.
    pub(crate) fn sum(&self) -> f64 {
        Duration::from_nanos(self.sum_nanos.load(Ordering::Relaxed)).as_secs_f64()
    }
}

/// What the first bucket holds up to.
const FIRST_BUCKET: Duration = Duration::from_micros(64);
/// Up to about two minutes, and one for the rest.
const BUCKETS: usize = 22;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_fall_into_the_bucket_that_bounds_them() {
        let latency = Latency::default();
        for micros in [0, 63, 64, 127, 128, 1_000_000, 999_000_000_000] {
            latency.record(Duration::from_micros(micros), 1);
        }
        let counts: Vec<u64> = latency.buckets().map(|(_, count)| count).collect();
        assert_eq!(counts[..3], [2, 2, 1]);
        assert_eq!(counts[BUCKETS - 1], 1);
        for (index, (bound, _)) in latency.buckets().enumerate().take(BUCKETS - 1) {
            assert!((bound - 64e-6 * f64::powi(2.0, index as i32)).abs() < 1e-9);
        }
    }
}
