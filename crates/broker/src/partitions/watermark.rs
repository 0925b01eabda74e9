//! A partition's high watermark, and everybody who waits for it to rise.
//!
//! Nothing at or above the watermark is shown to a consumer or acknowledged to a producer
//! (decision 4). Waiters are woken by whoever raises it; nobody polls.

use ottla_model::Offset;
use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use thiserror::Error;

/// The watermark. It only rises, except through [`Watermark::set_back`].
#[derive(Debug, Default)]
pub(crate) struct Watermark {
    offset: AtomicI64,
    setbacks: AtomicU64,
    waiting: Mutex<Waiting>,
}

/// Waiters by the offset they want the watermark to pass, then by their number.
#[derive(Debug, Default)]
struct Waiting {
    next: u64,
    wakers: BTreeMap<(Offset, u64), Waker>,
}

/// What was waited for will not come: the log lost its unsynced end, or is gone. Whether the
/// records will be there later is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the partition's log was set back or closed")]
pub(crate) struct SetBack;

impl Watermark {
    /// A watermark at `offset`.
    pub(super) fn new(offset: Offset) -> Self {
        Self { offset: AtomicI64::new(offset.0), ..Self::default() }
    }

    /// Everything below may be seen.
    pub(crate) fn offset(&self) -> Offset {
        Offset(self.offset.load(Ordering::Acquire))
    }

    /// Raises it; wakes whoever waited for that.
    pub(super) fn raise(&self, to: Offset) {
        if self.offset.fetch_max(to.0, Ordering::AcqRel) >= to.0 {
            return;
        }
        let mut waiting = self.lock();
        let rest = waiting.wakers.split_off(&(to, 0));
        let passed = std::mem::replace(&mut waiting.wakers, rest);
        drop(waiting);
        passed.into_values().for_each(Waker::wake);
    }

    /// The log's end went back, or the log is gone: whoever waits is told so.
    pub(super) fn set_back(&self, to: Offset) {
        self.offset.store(to.0, Ordering::Release);
        self.setbacks.fetch_add(1, Ordering::AcqRel);
        let passed = std::mem::take(&mut self.lock().wakers);
        passed.into_values().for_each(Waker::wake);
    }

    /// Completes once the watermark has passed the record at `offset`.
    pub(crate) fn passes(self: &Arc<Self>, offset: Offset) -> Passes {
        self.passes_since(offset, self.setbacks())
    }

    /// The same, for whoever began to count on it when there had been `setbacks` setbacks.
    pub(super) fn passes_since(self: &Arc<Self>, offset: Offset, setbacks: u64) -> Passes {
        Passes { watermark: Arc::clone(self), offset, setbacks, place: None }
    }

    /// How often it was set back.
    pub(super) fn setbacks(&self) -> u64 {
        self.setbacks.load(Ordering::Acquire)
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        // The map is whole after every statement.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// See [`Watermark::passes`]. Dropping it leaves no trace.
#[derive(Debug)]
pub(crate) struct Passes {
    watermark: Arc<Watermark>,
    offset: Offset,
    setbacks: u64,
    place: Option<(u64, Waker)>,
}

impl Passes {
    /// The outcome, if it is there.
    pub(crate) fn outcome(&self) -> Option<Result<(), SetBack>> {
        if self.watermark.setbacks.load(Ordering::Acquire) != self.setbacks {
            return Some(Err(SetBack));
        }
        (self.watermark.offset() > self.offset).then_some(Ok(()))
    }

    fn register(&mut self, waker: &Waker) -> Option<Result<(), SetBack>> {
        let mut waiting = self.watermark.lock();
        // Whoever raises it does so before taking the lock, so nothing slips through between.
        if let Some(outcome) = self.outcome() {
            return Some(outcome);
        }
        let number = match self.place.take() {
            Some((number, _)) => number,
            None => {
                waiting.next += 1;
                waiting.next
            }
        };
        waiting.wakers.insert((self.offset, number), waker.clone());
        drop(waiting);
        self.place = Some((number, waker.clone()));
        None
    }
}

impl Future for Passes {
    type Output = Result<(), SetBack>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if let Some(outcome) = self.outcome() {
            return Poll::Ready(outcome);
        }
        if self.place.as_ref().is_some_and(|(_, waker)| waker.will_wake(cx.waker())) {
            return Poll::Pending;
        }
        self.register(cx.waker()).map_or(Poll::Pending, Poll::Ready)
    }
}

impl Drop for Passes {
    fn drop(&mut self) {
        if let Some((number, _)) = self.place.take() {
            self.watermark.lock().wakers.remove(&(self.offset, number));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::pin::pin;

    fn poll(passes: &mut Pin<&mut Passes>) -> Poll<Result<(), SetBack>> {
        passes.as_mut().poll(&mut Context::from_waker(Waker::noop()))
    }

    /// Decision 4: an acknowledgement waits until the watermark is past its last record.
    #[test]
    fn a_waiter_for_an_offset_is_done_when_it_is_passed_not_reached() {
        let watermark = Arc::new(Watermark::new(Offset(5)));
        let mut early = pin!(watermark.passes(Offset(7)));
        let mut late = pin!(watermark.passes(Offset(8)));
        assert!(poll(&mut early).is_pending() && poll(&mut late).is_pending());
        watermark.raise(Offset(7));
        assert!(poll(&mut early).is_pending());
        watermark.raise(Offset(8));
        assert_eq!(poll(&mut early), Poll::Ready(Ok(())));
        assert!(poll(&mut late).is_pending());
        assert_eq!(watermark.lock().wakers.len(), 1);
    }

    #[test]
    fn a_setback_fails_those_who_wait_and_nobody_after() {
        let watermark = Arc::new(Watermark::new(Offset(5)));
        let mut before = pin!(watermark.passes(Offset(9)));
        assert!(poll(&mut before).is_pending());
        watermark.set_back(Offset(5));
        let mut after = pin!(watermark.passes(Offset(9)));
        watermark.raise(Offset(10));
        assert_eq!(poll(&mut before), Poll::Ready(Err(SetBack)));
        assert_eq!(poll(&mut after), Poll::Ready(Ok(())));
    }

    #[test]
    fn a_dropped_waiter_leaves_nothing_behind() {
        let watermark = Arc::new(Watermark::new(Offset(0)));
        {
            let mut passes = pin!(watermark.passes(Offset(3)));
            assert!(poll(&mut passes).is_pending());
        }
        assert!(watermark.lock().wakers.is_empty());
    }
}
