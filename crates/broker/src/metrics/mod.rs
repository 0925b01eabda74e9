//! What the broker counts about itself. It is written on the hot path and read by the HTTP side;
//! nothing decides anything by it.

mod counters;

pub(crate) use counters::{Counter, Latency};

use ottla_wire::{ApiKey, ErrorCode};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// Everything that is counted as it happens. What can be asked for instead is not here.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    /// Answered requests by API, and how long each took from its arrival until its reply went to
    /// the socket.
    pub(crate) requests: PerKey<Latency>,
    /// Errors in replies, by API and code.
    pub(crate) errors: Errors,
    /// Bytes read from clients.
    pub(crate) bytes_in: Counter,
    /// Bytes written to clients.
    pub(crate) bytes_out: Counter,
    /// Connections closed at once because a bound was reached.
    pub(crate) connections_refused: Counter,
    /// Connections closed because of what the peer sent or how slow it was.
    pub(crate) connections_cut: Counter,
}

/// One `T` for each API key.
#[derive(Debug)]
pub(crate) struct PerKey<T>([T; SLOTS]);

impl<T: Default> Default for PerKey<T> {
    fn default() -> Self {
        Self(std::array::from_fn(|_| T::default()))
    }
}

impl<T> PerKey<T> {
    /// That of `key`.
    pub(crate) fn of(&self, key: ApiKey) -> &T {
        &self.0[slot(key)]
    }
}

/// Errors by API and code. They are rare, so a lock does.
#[derive(Debug, Default)]
pub(crate) struct Errors(Mutex<BTreeMap<(i16, i16), u64>>);

impl Errors {
    /// One more; [`ErrorCode::None`] is none.
    pub(crate) fn count(&self, key: ApiKey, code: ErrorCode) {
        self.count_number(key, code.number());
    }

    /// One more of the code with this number; 0 is none.
    pub(crate) fn count_number(&self, key: ApiKey, code: i16) {
        if code != ErrorCode::None.number() {
            let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            *counts.entry((key.number(), code)).or_default() += 1;
        }
    }

    /// All so far.
    pub(crate) fn snapshot(&self) -> BTreeMap<(i16, i16), u64> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Kafka's keys are small; ours start at 32000 and are few.
fn slot(key: ApiKey) -> usize {
    let key = key.number() as usize;
    let slot = if key >= OURS_FROM { KAFKA_SLOTS + (key - OURS_FROM) } else { key };
    slot.min(SLOTS - 1)
}

const OURS_FROM: usize = 32_000;
const KAFKA_SLOTS: usize = 128;
const SLOTS: usize = KAFKA_SLOTS + 32;
