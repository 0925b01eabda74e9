//! The one retry policy: how long to pause before the next try.
//!
//! Doubling, bounded, and jittered, so that a thousand members that lost one broker do not come
//! back in one millisecond (KIP-580). Whoever drives a member uses it for its other connections
//! too. It does not know what may be retried at all.

use core::time::Duration;

/// The pauses of one sequence of tries.
#[derive(Clone, Debug)]
pub struct Backoff {
    min: Duration,
    max: Duration,
    attempts: u32,
    random: u64,
}

impl Backoff {
    /// Pauses from `min` to `max`; `seed` tells one's jitter from another's.
    pub fn new(min: Duration, max: Duration, seed: u64) -> Self {
        Self { min, max, attempts: 0, random: seed }
    }

    /// Something worked: the next pause is the shortest again.
    pub fn reset(&mut self) {
        self.attempts = 0;
    }

    /// The next pause, between 0.8 and 1.2 of its nominal length.
    pub fn pause(&mut self) -> Duration {
        let nominal = self.min.saturating_mul(1 << self.attempts).min(self.max);
        self.attempts = (self.attempts + 1).min(ATTEMPTS_MAX);
        let share = 800 + (self.draw() % 401) as u32;
        nominal.saturating_mul(share) / 1000
    }

    /// SplitMix64: a shuffle, not a secret.
    pub(super) fn draw(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.random;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }
}

/// Beyond so many doublings no pause is still below its bound.
const ATTEMPTS_MAX: u32 = 20;

#[cfg(test)]
mod tests {
    use super::*;

    /// KIP-580: each pause is about twice the one before, up to the bound, and starts over.
    #[test]
    fn pauses_double_up_to_the_bound() {
        let (min, max) = (Duration::from_millis(100), Duration::from_secs(1));
        let mut backoff = Backoff::new(min, max, 7);
        for nominal in [100, 200, 400, 800, 1000, 1000] {
            let pause = backoff.pause().as_millis();
            assert!((nominal * 8 / 10..=nominal * 12 / 10).contains(&pause), "{pause}");
        }
        backoff.reset();
        assert!(backoff.pause() <= Duration::from_millis(120));
    }

    #[test]
    fn two_clients_pause_differently() {
        let pauses = |seed| {
            let mut backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(9), seed);
            [backoff.pause(), backoff.pause(), backoff.pause()]
        };
        assert_ne!(pauses(1), pauses(2));
    }
}
