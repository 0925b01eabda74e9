//! How much one fetch of a session asks for. Pure.
//!
//! An answer that the processor's cache holds is copied, checked and read faster than one that it
//! does not, and while the application reads it the next one is on its way. So an answer is small
//! as long as the broker is near; where it takes long to come, larger ones make up for it.

use std::time::Duration;

/// What the next fetch may bring.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Share(i32);

impl Default for Share {
    fn default() -> Self {
        Self(LEAST)
    }
}

impl Share {
    /// Bytes to ask for: what `fetch.max.bytes` allows and `fetch.min.bytes` wants.
    pub(super) fn bytes(self, bytes_min: i32, bytes_max: i32) -> i32 {
        self.0.max(bytes_min).min(bytes_max)
    }

    /// An answer brought so many bytes, and took so long.
    pub(super) fn answered(&mut self, bytes: usize, took: Duration) {
        // One that could have brought more says nothing about how long more would take.
        if bytes < usize::try_from(self.0 / 2).unwrap_or(0) {
            return;
        }
        if took > SLOW {
            self.0 = self.0.saturating_mul(2);
        } else if took < SLOW / 4 {
            self.0 = (self.0 / 2).max(LEAST);
        }
    }
}

/// About what a core's second cache holds today. Twice of it and half of it were no better.
const LEAST: i32 = 2 << 20;
/// Waiting for so long is worth more bytes.
const SLOW: Duration = Duration::from_millis(10);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_grow_with_the_way_to_the_broker_and_shrink_again() {
        let (near, far) = (Duration::from_millis(1), Duration::from_millis(80));
        let mut share = Share::default();
        share.answered(usize::MAX, near);
        assert_eq!(share.bytes(1, 50 << 20), LEAST);
        for _ in 0..40 {
            share.answered(usize::MAX, far);
        }
        assert_eq!(share.bytes(1, 50 << 20), 50 << 20);
        for _ in 0..40 {
            share.answered(usize::MAX, near);
        }
        assert_eq!(share, Share::default());
    }

    #[test]
    fn an_idle_topic_asks_for_no_more() {
        let mut share = Share::default();
        share.answered(100, Duration::from_millis(500));
        assert_eq!(share, Share::default());
    }

    #[test]
    fn the_settings_have_the_last_word() {
        let share = Share::default();
        assert_eq!(share.bytes(3 << 20, 50 << 20), 3 << 20);
        assert_eq!(share.bytes(1, 1000), 1000);
        assert_eq!(share.bytes(5000, 1000), 1000);
    }
}
