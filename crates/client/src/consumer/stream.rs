//! A consumer's records as a `Stream`.

use super::{Consumer, ConsumerRecord};
use crate::Result;
use futures_core::Stream;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

/// A consumer's records, one by one, without end. Dropping it loses no record: the consumer goes
/// on where the stream was.
///
/// After an error the stream goes on; whoever wants to stop at one, does.
pub struct RecordStream<'a> {
    state: State<'a>,
}

type Next<'a> =
    Pin<Box<dyn Future<Output = (&'a mut Consumer, Result<ConsumerRecord>)> + Send + 'a>>;

enum State<'a> {
    /// Records are at hand, or nobody has asked yet.
    Idle(&'a mut Consumer),
    Waiting(Next<'a>),
    /// In between, within one call.
    Moving,
}

impl<'a> RecordStream<'a> {
    pub(super) fn new(consumer: &'a mut Consumer) -> Self {
        Self { state: State::Idle(consumer) }
    }
}

impl Stream for RecordStream<'_> {
    type Item = Result<ConsumerRecord>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let mut next = match std::mem::replace(&mut self.state, State::Moving) {
            // One allocation per wait would be one per record: what is at hand needs none.
            State::Idle(consumer) => match consumer.at_hand() {
                Some(record) => {
                    self.state = State::Idle(consumer);
                    return Poll::Ready(Some(Ok(record)));
                }
                None => Box::pin(async move {
                    let record = consumer.next().await;
                    (consumer, record)
                }),
            },
            State::Waiting(next) => next,
            State::Moving => return Poll::Ready(None),
        };
        let polled = next.as_mut().poll(context);
        if polled.is_pending() {
            self.state = State::Waiting(next);
            return Poll::Pending;
        }
        let (consumer, record) = ready!(polled);
        self.state = State::Idle(consumer);
        Poll::Ready(Some(record))
    }
}

impl fmt::Debug for RecordStream<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RecordStream")
    }
}
