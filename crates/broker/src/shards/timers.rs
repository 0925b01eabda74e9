//! One sleeper for the deadlines of all shards.

use super::Cell;
use crate::clock;
use ottla_model::Instant;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use tokio::sync::Notify;

/// Each shard's next deadline, and whoever sleeps until the first of them.
#[derive(Debug, Default)]
pub(super) struct Timers {
    deadlines: RwLock<Vec<AtomicU64>>,
    /// When the sleeper will wake by itself.
    wakes: AtomicU64,
    earlier: Notify,
}

impl Timers {
    /// There are that many shards now.
    pub(super) fn resize(&self, cells: &[Arc<Cell>]) {
        let mut deadlines = self.deadlines.write().unwrap_or_else(PoisonError::into_inner);
        deadlines.resize_with(cells.len(), || AtomicU64::new(NEVER));
    }

    /// A shard's next deadline is this.
    pub(super) fn set(&self, shard: usize, deadline: Option<Instant>) {
        let nanos = deadline.map_or(NEVER, Instant::as_nanos);
        let deadlines = self.deadlines.read().unwrap_or_else(PoisonError::into_inner);
        let Some(slot) = deadlines.get(shard) else { return };
        // Both orders are total, so either the sleeper sees the new deadline before it sleeps, or
        // it is seen here that it would wake too late.
        if slot.swap(nanos, Ordering::SeqCst) != nanos && nanos < self.wakes.load(Ordering::SeqCst)
        {
            self.earlier.notify_one();
        }
    }

    /// Sleeps until a deadline has come; the shards it came for.
    pub(super) async fn sleep(&self) -> Vec<usize> {
        loop {
            self.wakes.store(NEVER, Ordering::SeqCst);
            let first = self.first();
            self.wakes.store(first, Ordering::SeqCst);
            if self.first() < first {
                continue;
            }
            let at = clock::tokio_instant(Instant::from_nanos(first));
            tokio::select! {
                () = tokio::time::sleep_until(at) => {}
                () = self.earlier.notified() => {}
            }
            let due = self.take_due(clock::mono());
            if !due.is_empty() {
                return due;
            }
        }
    }

    fn first(&self) -> u64 {
        let deadlines = self.deadlines.read().unwrap_or_else(PoisonError::into_inner);
        deadlines.iter().map(|slot| slot.load(Ordering::SeqCst)).min().unwrap_or(NEVER)
    }

    fn take_due(&self, now: Instant) -> Vec<usize> {
        let deadlines = self.deadlines.read().unwrap_or_else(PoisonError::into_inner);
        let due = |slot: &AtomicU64| slot.load(Ordering::SeqCst) <= now.as_nanos();
        let due = deadlines.iter().enumerate().filter(|(_, slot)| due(slot));
        due.map(|(index, _)| index).collect()
    }
}

const NEVER: u64 = u64::MAX;
