//! The replies one connection owes, in the order its requests came.
//!
//! Kafka's clients match replies by order, so a reply that is ready waits for its elders. Only
//! the eldest is polled: what the others wait for happens without them.

use crate::api::{Answer, Held, Later, Reply};
use ottla_model::Instant;
use ottla_wire::ApiKey;
use std::collections::VecDeque;
use std::task::{Context, Poll};

/// Requests that were decided and whose replies have not left yet.
#[derive(Default)]
pub(super) struct Replies {
    slots: VecDeque<Slot>,
    /// Bytes of replies that are done and wait for their elders.
    bytes: usize,
}

/// One request that was decided: what it was and when it arrived, and its reply.
struct Slot {
    key: ApiKey,
    arrived: Instant,
    state: State,
}

enum State {
    Done(Reply),
    Waiting { later: Later, held: Option<Held> },
}

/// A reply that may leave, and the request it answers.
pub(super) struct Ready {
    pub(super) key: ApiKey,
    pub(super) arrived: Instant,
    /// `None` where no reply was asked for.
    pub(super) reply: Option<Reply>,
}

impl Replies {
    /// How many requests are unanswered.
    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    /// Bytes of replies that are done and wait for their elders.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether nothing is owed.
    pub(super) fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Queues the answer of the request that came last; returns it if it may leave at once. A reply
    /// that another party may hold back on purpose is told that someone waits behind it.
    pub(super) fn push(&mut self, key: ApiKey, arrived: Instant, answer: Answer) -> Option<Ready> {
        self.hurry();
        let state = match answer {
            // Closing and asking again are done before it comes to queueing.
            Answer::Silent | Answer::Close(_) | Answer::Long => {
                return Some(Ready { key, arrived, reply: None });
            }
            Answer::Now(reply) if self.slots.is_empty() => {
                return Some(Ready { key, arrived, reply: Some(reply) });
            }
            Answer::Now(reply) => {
                self.bytes += size(&reply);
                State::Done(reply)
            }
            Answer::Later(later) => State::Waiting { later, held: None },
            Answer::Held(later, held) => State::Waiting { later, held: Some(held) },
        };
        self.slots.push_back(Slot { key, arrived, state });
        None
    }

    /// Somebody waits behind the reply that came last: if it is held back, it is not any longer.
    pub(super) fn hurry(&mut self) {
        if let Some(Slot { state: State::Waiting { held, .. }, .. }) = self.slots.back_mut()
            && let Some(held) = held.take()
        {
            held.someone_waits();
        }
    }

    /// The eldest reply, once it is ready; pending where there is none.
    pub(super) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Ready> {
        let Some(Slot { key, arrived, state }) = self.slots.pop_front() else {
            return Poll::Pending;
        };
        let reply = match state {
            State::Done(reply) => {
                self.bytes -= size(&reply);
                reply
            }
            State::Waiting { mut later, held } => match later.as_mut().poll(cx) {
                Poll::Ready(reply) => reply,
                Poll::Pending => {
                    let state = State::Waiting { later, held };
                    self.slots.push_front(Slot { key, arrived, state });
                    return Poll::Pending;
                }
            },
        };
        Poll::Ready(Ready { key, arrived, reply: Some(reply) })
    }
}

fn size(reply: &Reply) -> usize {
    reply.as_ref().map_or(0, |output| output.len())
}
