//! What a handler is given, and what it may hand back.

use crate::broker::Broker;
use crate::net::Session;
use ottla_model::Now;
use ottla_wire::{ApiKey, EncodeError, ErrorCode, Message, Output, frame};
use std::fmt;
use std::future::Future;
use std::panic::resume_unwind;
use std::pin::Pin;
use std::sync::Arc;
use tokio::task::JoinError;

/// One request's surroundings.
pub(crate) struct Context<'a> {
    /// The broker.
    pub(crate) broker: &'a Arc<Broker>,
    /// The connection it came on.
    pub(crate) session: &'a mut Session,
    /// The client id of the request's header; empty where it sent none.
    pub(crate) client_id: &'a str,
    /// When it arrived.
    pub(crate) now: Now,
    /// How to address the reply.
    pub(crate) to: ReplyTo,
    /// How much of a processor's time it may take.
    pub(crate) pace: Pace,
    /// The connection's buffer for encoding.
    pub(super) scratch: &'a mut Vec<u8>,
}

/// Addresses a reply: which request it answers and in which version.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReplyTo {
    /// The API.
    pub(crate) key: ApiKey,
    /// The version of request and reply.
    pub(crate) version: i16,
    /// The client's number for the request.
    pub(crate) correlation_id: i32,
}

/// How much of a processor's time a request may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pace {
    /// Little: other connections wait meanwhile. What takes long is answered with [`Answer::Long`].
    Quick,
    /// As much as it takes: nobody waits but those whose turn comes next.
    Long,
}

/// An encoded reply with its length prefix, or the reason why its version cannot carry it.
pub(crate) type Reply = Result<Output, EncodeError>;

/// A reply that is waited for. The decision is taken; the future owns all it needs.
pub(crate) type Later = Pin<Box<dyn Future<Output = Reply> + Send>>;

/// What a handler hands back.
pub(crate) enum Answer {
    /// The reply.
    Now(Reply),
    /// The reply, once something has happened.
    Later(Later),
    /// The same, held back on purpose: whoever holds it wants to know if another request waits.
    Held(Later, Held),
    /// No reply was asked for (Produce with acks=0).
    Silent,
    /// Nothing was decided, for that would take long: the request is to come again as
    /// [`Pace::Long`].
    Long,
    /// None was asked for and this went wrong: the connection closes, as the only way to say so.
    Close(ErrorCode),
}

/// Tells the holder of a reply that another request waits behind it on the same connection.
pub(crate) struct Held(Box<dyn FnOnce() + Send>);

impl Context<'_> {
    /// The version asked for.
    pub(crate) fn version(&self) -> i16 {
        self.to.version
    }

    /// Answers at once.
    pub(crate) fn reply<'m>(&mut self, response: &impl Message<'m>) -> Answer {
        Answer::Now(self.to.encode_into(response, std::mem::take(self.scratch)))
    }

    /// Counts an error that goes into the reply; [`ErrorCode::None`] counts nothing.
    pub(crate) fn count(&self, code: ErrorCode) -> ErrorCode {
        self.broker.metrics.errors.count(self.to.key, code);
        code
    }
}

/// Does what may wait for the disk on a thread of its own. If that panics so does this, and the
/// connection ends as after any panic: no answer can be taken for one that says nothing was found.
pub(super) async fn aside<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await.map_err(JoinError::try_into_panic) {
        Ok(done) => done,
        Err(Ok(panic)) => resume_unwind(panic),
        // The runtime is going down, and whoever waits goes with it.
        Err(Err(_)) => std::future::pending().await,
    }
}

impl ReplyTo {
    /// Encodes a reply: length, header, body.
    pub(crate) fn encode<'m>(self, response: &impl Message<'m>) -> Reply {
        self.encode_into(response, Vec::new())
    }

    /// Encodes a reply into a buffer that is free.
    pub(super) fn encode_into<'m>(self, response: &impl Message<'m>, buffer: Vec<u8>) -> Reply {
        let mut out = Output::reusing(buffer);
        frame::write_response(&mut out, self.key, self.version, self.correlation_id, response)?;
        Ok(out)
    }
}

impl Held {
    /// Calls `told` if another request comes to wait behind.
    pub(crate) fn new(told: impl FnOnce() + Send + 'static) -> Self {
        Self(Box::new(told))
    }

    /// Another request waits behind.
    pub(crate) fn someone_waits(self) {
        (self.0)();
    }
}

impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Now(_) => "Now",
            Self::Later(_) => "Later",
            Self::Held(..) => "Held",
            Self::Silent => "Silent",
            Self::Long => "Long",
            Self::Close(_) => "Close",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_is_done_aside_comes_back() {
        assert_eq!(aside(|| 7).await, 7);
    }

    #[tokio::test]
    #[should_panic(expected = "a test's")]
    async fn a_panic_aside_is_no_answer() {
        aside(|| panic!("a test's")).await
    }
}
