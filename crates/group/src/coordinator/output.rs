//! What a shard hands to its driver, and the queues it waits in until it is polled.

use crate::coordinator::record::Record;
use crate::message::{Reply, Token};
use alloc::vec::Vec;

/// Numbers a shard's decisions in the order they were taken, from 1. It is the shard's own
/// counter, not an offset in the log, and starts over with each new shard.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Index(pub u64);

/// One decision to make durable: a batch of the log, all of it or nothing.
#[derive(Clone, Debug, PartialEq)]
pub struct Append {
    /// Its number, for [`handle_durable`](super::Shard::handle_durable).
    pub index: Index,
    /// Its records, in order; never empty.
    pub records: Vec<Record>,
}

/// One reply on its way out.
#[derive(Clone, Debug, PartialEq)]
pub struct Outgoing {
    /// Which request it answers.
    pub token: Token,
    /// The answer.
    pub reply: Reply,
    /// Send it only once this decision is durable; `None` when nothing is awaited.
    pub after: Option<Index>,
}
