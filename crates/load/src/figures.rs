//! What a scene found out: named numbers in the order in which they were found, printed as one JSON
//! object on the last line, and remarks before it for whoever watches.

use crate::Outcome;
use hdrhistogram::Histogram;
use serde_json::{Value, json};
use std::io::Write as _;
use std::time::Duration;

/// Named numbers. A name ends with its unit.
#[derive(Debug, Default)]
pub(crate) struct Figures(Vec<(String, f64)>);

impl Figures {
    /// Adds one.
    pub(crate) fn add(&mut self, name: impl Into<String>, figure: f64) {
        self.0.push((name.into(), figure));
    }

    /// Adds another scene's.
    pub(crate) fn append(&mut self, mut other: Self) {
        self.0.append(&mut other.0);
    }

    /// Adds a time in milliseconds.
    pub(crate) fn add_time(&mut self, name: impl Into<String>, time: Duration) {
        self.add(format!("{}, ms", name.into()), time.as_secs_f64() * 1e3);
    }

    /// Adds the middle and the tail of latencies kept in microseconds.
    pub(crate) fn add_latencies(&mut self, name: &str, micros: &Histogram<u64>) {
        for (percentile, quantile) in [("p50", 0.5), ("p99", 0.99), ("p99.9", 0.999)] {
            self.add(format!("{name} {percentile}, us"), micros.value_at_quantile(quantile) as f64);
        }
    }

    /// Prints them as the last line.
    pub(crate) fn print(&self) -> Outcome<()> {
        let pairs: Vec<Value> = self.0.iter().map(|(name, figure)| json!([name, figure])).collect();
        say(&json!({ "figures": pairs }).to_string());
        Ok(())
    }
}

/// Latencies in microseconds, up to ten minutes, to three digits.
pub(crate) fn latencies() -> Histogram<u64> {
    Histogram::new_with_bounds(1, 600_000_000, 3).expect("the bounds are those of the crate")
}

/// Counts a latency.
pub(crate) fn count(histogram: &mut Histogram<u64>, latency: Duration) {
    let micros = u64::try_from(latency.as_micros()).unwrap_or(u64::MAX);
    histogram.saturating_record(micros.max(1));
}

/// A line for whoever watches. A closed pipe ends nothing.
pub(crate) fn say(line: &str) {
    let _ = writeln!(std::io::stdout(), "{line}");
}
