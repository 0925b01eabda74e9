//! The requests that wait for an answer, in the order they were sent. A broker answers in that
//! order, so an answer that names another request is nonsense.

use crate::{Error, Result};
use bytes::Bytes;
use ottla_model::Instant;
use std::collections::VecDeque;
use tokio::sync::oneshot;

/// One of them.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) id: i32,
    pub(super) deadline: Instant,
    pub(super) reply: oneshot::Sender<Result<Bytes>>,
}

/// All of them.
#[derive(Debug, Default)]
pub(super) struct Pending(VecDeque<Waiting>);

impl Pending {
    pub(super) fn push(&mut self, waiting: Waiting) {
        self.0.push_back(waiting);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// What an answer that has only begun to arrive says it is to.
    ///
    /// # Errors
    /// `Protocol`, if that is not the first of them: the rest need not be waited for.
    pub(super) fn begun(&self, id: i32) -> Result<()> {
        match self.0.front() {
            Some(first) if first.id == id => Ok(()),
            _ => Err(Error::protocol(format!("an answer to request {id}, which is not next"))),
        }
    }

    /// Hands the answer `frame` to whoever waits for it.
    ///
    /// # Errors
    /// `Protocol`, if it is not the answer to the first of them.
    pub(super) fn answer(&mut self, frame: Bytes) -> Result<()> {
        let Some(id) = frame.first_chunk().map(|id| i32::from_be_bytes(*id)) else {
            return Err(Error::protocol("an answer without a header"));
        };
        match self.0.pop_front() {
            Some(first) if first.id == id => {
                // Whoever asked may have lost interest.
                let _ = first.reply.send(Ok(frame));
                Ok(())
            }
            Some(first) => {
                let message = format!("an answer to request {id}, where {} is next", first.id);
                self.0.push_front(first);
                Err(Error::protocol(message))
            }
            None => Err(Error::protocol(format!("an answer to request {id}, which none is"))),
        }
    }

    /// When the first of them is too late. They may differ in patience, and no answer can overtake
    /// another.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.0.iter().map(|waiting| waiting.deadline).min()
    }

    /// Tells all of them that no answer will come.
    pub(super) fn fail(&mut self, error: &Error) {
        for waiting in self.0.drain(..) {
            let _ = waiting.reply.send(Err(error.clone()));
        }
    }
}
