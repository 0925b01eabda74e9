//! Counts a connection's answered requests in runs, so that a batch of heartbeats touches the
//! shared counters once.

use crate::metrics::Metrics;
use ottla_model::Instant;
use ottla_wire::ApiKey;

/// Requests answered since the last flush.
#[derive(Debug, Default)]
pub(super) struct Tally {
    runs: Vec<Run>,
}

#[derive(Debug)]
struct Run {
    key: ApiKey,
    arrived: Instant,
    count: u64,
}

impl Tally {
    /// One more was answered, which had arrived then.
    pub(super) fn add(&mut self, key: ApiKey, arrived: Instant) {
        match self.runs.last_mut() {
            Some(run) if run.key == key && run.arrived == arrived => run.count += 1,
            _ => self.runs.push(Run { key, arrived, count: 1 }),
        }
    }

    /// Whether there is nothing to flush.
    pub(super) fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// Adds all to the broker's counters: their replies went to the socket now.
    pub(super) fn flush(&mut self, now: Instant, metrics: &Metrics) {
        for run in self.runs.drain(..) {
            metrics.requests.of(run.key).record(now.since(run.arrived), run.count);
        }
    }
}
