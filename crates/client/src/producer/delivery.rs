//! Delivery reports: all records of a batch share one fate, and each has a future for it.

use super::record::RecordMetadata;
use crate::{Error, Result};
use ottla_model::{Offset, Timestamp, TopicPartition};
use parking_lot::Mutex;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

/// The report of one record: ready when it is known to be stored, or not.
///
/// Dropping it loses the report; the record is sent all the same. Cancel safe.
#[must_use = "a record that could not be stored is only told here"]
#[derive(Debug)]
pub struct Delivery {
    fate: Arc<Fate>,
    index: i32,
    slot: Option<usize>,
}

/// What becomes of one batch.
#[derive(Debug)]
pub(super) struct Fate {
    partition: TopicPartition,
    state: Mutex<State>,
}

#[derive(Debug)]
enum State {
    /// Not known yet; whoever waits has a slot.
    Open(Vec<Option<Waker>>),
    Known(Result<Stored>),
}

/// Where a batch was stored.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Stored {
    pub(super) base_offset: Option<Offset>,
    pub(super) append_time: Option<Timestamp>,
}

impl Fate {
    pub(super) fn new(partition: TopicPartition) -> Self {
        Self { partition, state: Mutex::new(State::Open(Vec::new())) }
    }

    /// It is known; the first word counts.
    pub(super) fn decide(&self, outcome: Result<Stored>) {
        let mut state = self.state.lock();
        if let State::Open(wakers) = &mut *state {
            let wakers = std::mem::take(wakers);
            *state = State::Known(outcome);
            drop(state);
            wakers.into_iter().flatten().for_each(Waker::wake);
        }
    }

    /// The report of the record at `index`.
    pub(super) fn delivery(self: &Arc<Self>, index: i32) -> Delivery {
        Delivery { fate: self.clone(), index, slot: None }
    }
}

impl Future for Delivery {
    type Output = Result<RecordMetadata>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Self { fate, index, slot } = &mut *self;
        match &mut *fate.state.lock() {
            State::Open(wakers) => {
                let at = *slot.get_or_insert_with(|| {
                    wakers.push(None);
                    wakers.len() - 1
                });
                wakers[at] = Some(context.waker().clone());
                Poll::Pending
            }
            State::Known(outcome) => Poll::Ready(outcome.clone().map(|stored| RecordMetadata {
                partition: fate.partition.clone(),
                offset: stored.base_offset.map(|base| Offset(base.0 + i64::from(*index))),
                append_time: stored.append_time,
            })),
        }
    }
}

impl Drop for Delivery {
    fn drop(&mut self) {
        if let (Some(slot), State::Open(wakers)) = (self.slot, &mut *self.fate.state.lock()) {
            wakers[slot] = None;
        }
    }
}

/// A batch that nobody will send any more has a fate, too.
#[derive(Debug)]
pub(super) struct Promise(pub(super) Arc<Fate>);

impl Drop for Promise {
    fn drop(&mut self) {
        self.0.decide(Err(Error::closed()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn every_record_of_a_batch_learns_its_own_offset() {
        let fate = Arc::new(Fate::new(TopicPartition::new("t", 3)));
        let (first, third) = (fate.delivery(0), fate.delivery(2));
        let waiting = tokio::spawn(first);
        tokio::task::yield_now().await;
        let base_offset = Some(Offset(40));
        fate.decide(Ok(Stored { base_offset, append_time: None }));
        fate.decide(Err(Error::closed()));
        assert_eq!(waiting.await.unwrap().unwrap().offset, Some(Offset(40)));
        assert_eq!(third.await.unwrap().offset, Some(Offset(42)));
    }

    #[tokio::test]
    async fn a_batch_that_is_dropped_tells_so() {
        let fate = Arc::new(Fate::new(TopicPartition::new("t", 3)));
        let delivery = fate.delivery(0);
        drop(Promise(fate));
        assert_eq!(delivery.await.unwrap_err().kind(), crate::ErrorKind::Closed);
    }
}
