//! What a shard hands to its driver, and the queues it waits in until it is polled.

use super::record::Record;
use crate::message::{GroupError, Reply, Token};
use crate::probe::{self, Fault};
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use ottla_model::ConnectionId;

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

/// One connection to close: the register protocol breaks a dead member's socket (S19).
///
/// Other shards may have live members on it; whoever drives them must ask each
/// ([`Shard::speaks_on`](super::Shard::speaks_on)) before it carries this out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Closing {
    /// Which one.
    pub connection: ConnectionId,
    /// Close it only once this decision is durable; `None` when nothing is awaited.
    pub after: Option<Index>,
}

/// The queues between a shard's handlers and its driver's polls.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    appends: VecDeque<Append>,
    replies: VecDeque<Outgoing>,
    closes: VecDeque<Closing>,
    decided: Index,
    durable: Index,
}

impl Outbox {
    /// Queues one decision and numbers it.
    pub(super) fn append(&mut self, records: Vec<Record>) -> Index {
        debug_assert!(!records.is_empty(), "a decision without records is none");
        self.decided.0 += 1;
        self.appends.push_back(Append { index: self.decided, records });
        self.decided
    }

    /// Whether decision `index` can take these records too: it is the last one, was not polled yet
    /// and stays within the bound.
    pub(super) fn has_room(&self, index: Index, records: &[Record], bytes_max: usize) -> bool {
        let last = self.appends.back().filter(|last| last.index == index);
        let bytes = |records: &[Record]| records.iter().map(Record::estimated_bytes).sum::<usize>();
        last.is_some_and(|last| bytes(&last.records) + bytes(records) <= bytes_max)
    }

    /// Adds records to the last decision, which has room for them.
    pub(super) fn extend(&mut self, records: Vec<Record>) {
        if let Some(last) = self.appends.back_mut() {
            last.records.extend(records);
        }
    }

    /// Queues one reply that may leave once `after` is durable.
    pub(super) fn reply(&mut self, token: Token, reply: Reply, after: Index) {
        let after = self.pending(after).filter(|_| !probe::has(Fault::CoordinatorAnswersEarly));
        self.replies.push_back(Outgoing { token, reply, after });
    }

    /// Queues the end of a connection, once `after` is durable.
    pub(super) fn close(&mut self, connection: ConnectionId, after: Index) {
        let after = self.pending(after);
        self.closes.push_back(Closing { connection, after });
    }

    /// `index`, where it is not durable yet.
    pub(super) fn pending(&self, index: Index) -> Option<Index> {
        (index > self.durable).then_some(index)
    }

    /// The last decision.
    pub(super) fn decided(&self) -> Index {
        self.decided
    }

    /// Everything up to `index` is durable.
    pub(super) fn durable(&mut self, index: Index) {
        self.durable = self.durable.max(index.min(self.decided));
    }

    /// The last durable decision.
    pub(super) fn durable_index(&self) -> Index {
        self.durable
    }

    /// Turns every reply not polled yet into a refusal that waits for nothing; connections stay.
    pub(super) fn refuse_all(&mut self, error: GroupError) {
        self.closes.clear();
        for outgoing in &mut self.replies {
            outgoing.after = None;
            let reply = core::mem::replace(&mut outgoing.reply, Reply::Heartbeat(Ok(())));
            outgoing.reply = reply.refused(error);
        }
    }

    /// Drops decisions not polled yet and waits for none any more: the log will tell.
    pub(super) fn forget_appends(&mut self) {
        self.appends.clear();
        self.durable = self.decided;
    }

    pub(super) fn pop_append(&mut self) -> Option<Append> {
        self.appends.pop_front()
    }

    pub(super) fn pop_reply(&mut self) -> Option<Outgoing> {
        self.replies.pop_front()
    }

    pub(super) fn pop_close(&mut self) -> Option<Closing> {
        self.closes.pop_front()
    }
}
