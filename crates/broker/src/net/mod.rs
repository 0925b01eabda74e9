//! Sockets: listeners, connections, their limits and their drain.
//!
//! This module moves frames and keeps order, time limits and memory bounds. It never knows what a
//! request means: that is [`crate::api`], which it calls with one whole request at a time.

mod admission;
mod complaints;
mod connection;
mod inbox;
mod lifeline;
mod line;
pub(crate) mod listener;
mod outbox;
mod pace;
mod replies;
mod session;
mod tally;
mod turn;

pub(crate) use admission::{Admission, Pass};
pub(crate) use complaints::Complaints;
pub(crate) use lifeline::{Lifeline, Shutdown};
pub(crate) use line::Lines;
pub use listener::Listener;
pub(crate) use session::Session;

use std::time::Duration;

/// What one connection may do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// `socket.request.max.bytes`.
    pub(crate) request_bytes_max: usize,
    /// `connections.max.idle.ms`.
    pub(crate) idle_max: Duration,
    /// `connection.in.flight.requests.max`: requests decided and not answered yet.
    pub(crate) in_flight_max: usize,
    /// `connection.transfer.grace.ms`: how long each 64 KiB of a request or reply may take.
    pub(crate) transfer_grace: Duration,
}
