//! How long a peer may take over what it began.

use ottla_model::Instant;
use std::time::Duration;

/// Watches one transfer (a frame on its way in, replies on their way out) and says by when it
/// must be through: a fixed grace plus the time its bytes take at the slowest acceptable speed.
/// A peer that trickles a byte now and then does not move the deadline.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pace {
    running: Option<(Instant, usize)>,
}

impl Pace {
    /// The transfer of `bytes` is under way; starts the watch unless it runs already. A transfer
    /// that has grown since counts with its larger size.
    pub(super) fn run(&mut self, now: Instant, bytes: usize) {
        let (since, most) = self.running.unwrap_or((now, 0));
        self.running = Some((since, most.max(bytes)));
    }

    /// It is through, or has not begun.
    pub(super) fn stop(&mut self) {
        self.running = None;
    }

    /// The moment after which the peer is too slow, while the watch runs.
    pub(super) fn deadline(&self, grace: Duration) -> Option<Instant> {
        self.running.map(|(since, bytes)| {
            since + grace + Duration::from_millis((bytes / BYTES_PER_MS_MIN) as u64)
        })
    }
}

/// The slowest acceptable speed: 16 KiB per second.
const BYTES_PER_MS_MIN: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    /// A slow-loris peer gains nothing by sending something before each deadline.
    #[test]
    fn trickling_does_not_move_the_deadline() {
        let grace = Duration::from_secs(30);
        let mut pace = Pace::default();
        assert_eq!(pace.deadline(grace), None);
        pace.run(Instant::from_millis(1_000), 16_000);
        pace.run(Instant::from_millis(25_000), 16_000);
        assert_eq!(pace.deadline(grace), Some(Instant::from_millis(32_000)));
        pace.stop();
        assert_eq!(pace.deadline(grace), None);
    }
}
