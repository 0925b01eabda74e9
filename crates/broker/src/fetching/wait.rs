//! Waiting until a fetch has enough: woken by watermarks, by the fetch's own time limit or by the
//! broker's shutdown; never polling. The number of fetches that wait is bounded.

use super::plan::{Outcome, Plan, read_once};
use crate::net::Lifeline;
use crate::partitions::Passes;
use bytes::Bytes;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

/// How many fetches wait.
#[derive(Debug, Default)]
pub(crate) struct Waiting {
    count: AtomicUsize,
}

/// A place among those who wait.
#[derive(Debug)]
pub(crate) struct Place<'a>(&'a Waiting);

impl Waiting {
    /// A place, unless `max` are taken.
    pub(crate) fn enter(&self, max: usize) -> Option<Place<'_>> {
        let enter = |count: usize| (count < max).then_some(count + 1);
        let entered = self.count.fetch_update(Ordering::Relaxed, Ordering::Relaxed, enter);
        entered.ok().map(|_| Place(self))
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.count.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Waits until `plan` finds enough, its time is up or the broker shuts down; then what there is.
pub(crate) async fn wait(plan: &Plan, mut first: Outcome, lifeline: &Lifeline) -> Outcome {
    let mut watch = Watch::new(plan, &first);
    // Whoever waits must not hold records meanwhile: they are read again, and cheaply.
    let had_some = first.bytes > 0;
    first.found.iter_mut().for_each(|found| found.records = Bytes::new());
    let mut draining = pin!(lifeline.draining());
    let mut alarm = pin!(tokio::time::sleep(plan.wait_max));
    poll_fn(|cx| {
        let over = alarm.as_mut().poll(cx).is_ready() || draining.as_mut().poll(cx).is_ready();
        if watch.poll_enough(cx).is_ready() || over { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    if watch.stirred || had_some { read_once(plan) } else { first }
}

/// The partitions of a fetch, watched for more records.
struct Watch<'p> {
    plan: &'p Plan,
    passes: Vec<(usize, Passes)>,
    /// Bytes the partitions had shown when they were read, less what was read then.
    base: u64,
    /// Whether anything has changed since.
    stirred: bool,
}

impl<'p> Watch<'p> {
    fn new(plan: &'p Plan, first: &Outcome) -> Self {
        let wants = plan.wants.iter().zip(&first.found).enumerate();
        let passes = wants.filter_map(|(index, (want, found))| {
            Some((index, want.partition.as_ref().ok()?.passes(found.high_watermark)))
        });
        let shown: u64 = first.found.iter().map(|found| found.bytes_passed).sum();
        Self {
            plan,
            passes: passes.collect(),
            base: shown.saturating_sub(first.bytes as u64),
            stirred: false,
        }
    }

    fn poll_enough(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let mut stirred = false;
        for (index, passes) in &mut self.passes {
            let Ok(partition) = &self.plan.wants[*index].partition else { continue };
            loop {
                match pin!(&mut *passes).poll(cx) {
                    Poll::Pending => break,
                    // The partition was cut or is gone: the reader should hear of it now.
                    Poll::Ready(Err(_)) => {
                        self.stirred = true;
                        return Poll::Ready(());
                    }
                    Poll::Ready(Ok(())) => {
                        stirred = true;
                        *passes = partition.passes(partition.high_watermark());
                    }
                }
            }
        }
        self.stirred |= stirred;
        let enough = || self.shown().saturating_sub(self.base) >= self.plan.bytes_min as u64;
        if stirred && enough() { Poll::Ready(()) } else { Poll::Pending }
    }

    fn shown(&self) -> u64 {
        let partitions = self.plan.wants.iter().filter_map(|want| want.partition.as_ref().ok());
        partitions.map(|partition| partition.bytes_passed()).sum()
    }
}
