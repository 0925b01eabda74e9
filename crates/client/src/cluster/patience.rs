//! How soon a task tries the way to a broker again. The client's one back-off, kept per way, so
//! that a broker that is unknown, or answers nonsense, costs a try now and then and no more.

use crate::clock;
use crate::config::ClientConfig;
use ottla_group::member::Backoff;
use std::time::Duration;

/// When the next try on one way comes.
#[derive(Debug)]
pub(crate) struct Patience {
    backoff: Backoff,
    pause: Duration,
}

impl Patience {
    /// The first try comes at once.
    pub(crate) fn new(config: &ClientConfig) -> Self {
        let (min, max) = (config.retry_backoff, config.retry_backoff_max);
        Self { backoff: Backoff::new(min, max, clock::seed()), pause: Duration::ZERO }
    }

    /// How long to wait before the next try.
    pub(crate) fn pause(&self) -> Duration {
        self.pause
    }

    /// The last try failed.
    pub(crate) fn failed(&mut self) {
        self.pause = self.backoff.pause();
    }

    /// The last try brought what it should: the next one comes at once.
    pub(crate) fn worked(&mut self) {
        self.backoff.reset();
        self.pause = Duration::ZERO;
    }
}
