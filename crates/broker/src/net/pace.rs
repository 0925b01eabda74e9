//! How long a peer may take over what it began.

use ottla_model::Instant;
use std::time::Duration;

/// Watches one transfer (a frame on its way in, replies on their way out) and says by when it must
/// be through or have come a good piece further. A peer that trickles a byte now and then does
/// not move the deadline.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pace {
    running: Option<Leg>,
}

/// The stretch of a transfer that is watched now.
#[derive(Clone, Copy, Debug)]
struct Leg {
    /// When the transfer began.
    begun: Instant,
    since: Instant,
    /// Bytes the connection had moved in this direction when it began.
    from: u64,
}

impl Pace {
    /// The transfer is under way, and the connection has moved `moved` bytes in this direction in
    /// all. Starts the watch unless it runs already.
    pub(super) fn run(&mut self, now: Instant, moved: u64) {
        let leg = self.running.get_or_insert(Leg { begun: now, since: now, from: moved });
        if moved - leg.from >= LEG_BYTES {
            (leg.since, leg.from) = (now, moved);
        }
    }

    /// It is through, or has not begun.
    pub(super) fn stop(&mut self) {
        self.running = None;
    }

    /// The moment after which the peer is too slow, while the watch runs.
    pub(super) fn deadline(&self, grace: Duration) -> Option<Instant> {
        self.running.map(|leg| leg.since + grace)
    }

    /// The same for a transfer that others wait for, which must also be through in a time that is
    /// the same for all: else one piece at a time would keep them waiting for hours.
    pub(super) fn whole_deadline(&self, grace: Duration) -> Option<Instant> {
        let leg = self.running?;
        Some((leg.since + grace).min(leg.begun + grace * WHOLE_GRACES))
    }
}

/// A good piece.
const LEG_BYTES: u64 = 64 * 1024;
/// What others wait for may take this many times as long as a piece.
const WHOLE_GRACES: u32 = 4;

#[cfg(test)]
mod tests {
    use super::*;

    /// A slow-loris peer gains nothing by sending something before each deadline.
    #[test]
    fn trickling_does_not_move_the_deadline_and_progress_does() {
        let grace = Duration::from_secs(30);
        let at = Instant::from_millis;
        let mut pace = Pace::default();
        assert_eq!(pace.deadline(grace), None);
        pace.run(at(1_000), 7);
        pace.run(at(25_000), 7 + LEG_BYTES - 1);
        assert_eq!(pace.deadline(grace), Some(at(31_000)));
        pace.run(at(26_000), 7 + LEG_BYTES);
        assert_eq!(pace.deadline(grace), Some(at(56_000)));
        assert_eq!(pace.whole_deadline(grace), Some(at(56_000)));
        pace.run(at(120_000), 7 + 2 * LEG_BYTES);
        assert_eq!(pace.deadline(grace), Some(at(150_000)));
        assert_eq!(pace.whole_deadline(grace), Some(at(121_000)), "120 s after it began");
        pace.stop();
        assert_eq!(pace.deadline(grace), None);
    }
}
