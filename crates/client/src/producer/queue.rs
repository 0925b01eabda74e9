//! The batches of one partition, and when each may be sent: where order and sequence numbers are
//! kept. Pure: what was sent and what was answered goes in, what may be sent next comes out.
//!
//! A partition's batches are sent in order, several at a time. When one comes back to be sent
//! again, the partition waits until every other one under way is answered, and then sends what
//! came back one by one, oldest first. So a broker never sees a later batch before an earlier one;
//! and it remembers the last five batches (KIP-98), of which one that it has already must still be
//! one, or it would be stored twice. Without numbers (no idempotence) nothing keeps a batch that
//! was under way from overtaking one that was refused.
//!
//! A gap (a batch that surely was not stored, with younger ones numbered behind it) is closed by
//! numbering from 0 again under a new epoch (KIP-360), and only once the broker itself has said of
//! the oldest left that it does not follow: then none of them was stored.

use super::batch::Batch;
use ottla_model::{Instant, ProducerEpoch, ProducerId};
use ottla_wire::ErrorCode;
use std::collections::{BTreeSet, VecDeque};

/// Who a broker takes the producer for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Identity {
    pub(super) id: ProducerId,
    pub(super) epoch: ProducerEpoch,
}

/// The batches of one partition.
#[derive(Debug, Default)]
pub(super) struct Queue {
    /// Oldest first. Those that were sent before stand in front; only the last one may be open.
    pub(super) waiting: VecDeque<Batch>,
    /// The numbers of those under way.
    flying: BTreeSet<u64>,
    identity: Option<Identity>,
    next_sequence: i32,
    retry_at: Instant,
    /// What is under way is one that came back, alone.
    is_probing: bool,
    /// The broker misses something before the oldest one.
    has_gap: bool,
}

/// What is to be done with a batch that was answered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Fate {
    /// It is stored.
    Stored,
    /// It is sent again.
    Again,
    /// It is not stored, and never will be.
    Failed,
}

/// When batches are sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    pub(super) linger: std::time::Duration,
    /// Batches of one partition that may be under way.
    pub(super) flying_max: usize,
    /// Whether to wait for nothing: somebody flushes, or for room.
    pub(super) is_urgent: bool,
}

impl Queue {
    /// Whether the oldest batch may be sent now.
    pub(super) fn is_ready(&self, pace: Pace, now: Instant) -> bool {
        self.ready_at(pace).is_some_and(|at| at <= now)
    }

    /// When the oldest batch may be sent, if time alone decides on that.
    pub(super) fn ready_at(&self, pace: Pace) -> Option<Instant> {
        let oldest = self.waiting.front()?;
        let is_alone = oldest.attempts > 0 || self.is_probing;
        let is_blocked = self.has_gap
            || is_alone && !self.flying.is_empty()
            || self.flying.len() >= pace.flying_max;
        if is_blocked {
            return None;
        }
        let is_full = oldest.is_sealed() || self.waiting.len() > 1 || pace.is_urgent;
        let lingers_until = if is_full { Instant::ZERO } else { oldest.created + pace.linger };
        Some(lingers_until.max(self.retry_at))
    }

    /// Takes the oldest batch to be sent, numbered for `identity` if the producer has one.
    pub(super) fn take(&mut self, identity: Option<Identity>) -> Option<Batch> {
        let mut batch = self.waiting.pop_front()?;
        if self.flying.is_empty() {
            self.is_probing = batch.attempts > 0;
            // Between two batches nobody notices; with some under way the old one goes on.
            if self.identity != identity && batch.sequence.is_none() {
                (self.identity, self.next_sequence) = (identity, 0);
            }
        }
        if batch.sequence.is_none()
            && let Some(identity) = self.identity
        {
            batch.sequence = Some((identity, self.next_sequence));
            self.next_sequence = self.next_sequence.wrapping_add(batch.count()) & i32::MAX;
        }
        batch.attempts += 1;
        self.flying.insert(batch.number);
        Some(batch)
    }

    /// What the broker's answer (or none: `None`) to batch `number` makes of it.
    pub(super) fn answered(&mut self, number: u64, code: Option<ErrorCode>) -> Fate {
        self.flying.remove(&number);
        let older_flies = self.flying.first().is_some_and(|first| *first < number);
        let older_waits = self.waiting.front().is_some_and(|first| first.number < number);
        let is_oldest = !older_flies && !older_waits;
        match code {
            Some(ErrorCode::None | ErrorCode::DuplicateSequenceNumber) => Fate::Stored,
            // Behind one that comes back, of course it does not follow.
            Some(ErrorCode::OutOfOrderSequenceNumber | ErrorCode::UnknownProducerId) => {
                if self.identity.is_none() {
                    return Fate::Failed;
                }
                self.has_gap |= is_oldest;
                Fate::Again
            }
            Some(code) if code.is_retriable() => Fate::Again,
            Some(_) => Fate::Failed,
            None => Fate::Again,
        }
    }

    /// Puts a batch that comes back where it belongs.
    pub(super) fn put_back(&mut self, batch: Batch, retry_at: Instant) {
        let at = self.waiting.iter().position(|waiting| waiting.number > batch.number);
        self.waiting.insert(at.unwrap_or(self.waiting.len()), batch);
        self.retry_at = self.retry_at.max(retry_at);
    }

    /// The identity that is of no more use here, once a new one is all it waits for.
    pub(super) fn worn_out(&self) -> Option<Identity> {
        self.identity.filter(|_| self.has_gap && self.flying.is_empty())
    }

    /// Closes the gap: everything that waits is numbered afresh for a new identity.
    pub(super) fn renumber(&mut self, identity: Identity) {
        if self.worn_out().is_some_and(|old| old != identity) {
            for batch in &mut self.waiting {
                batch.sequence = None;
            }
            (self.identity, self.next_sequence) = (Some(identity), 0);
            self.has_gap = false;
        }
    }

    /// Takes out the batches that wait since before `born`.
    pub(super) fn expire(&mut self, born: Instant) -> Vec<Batch> {
        let is_late = |batch: &Batch| batch.created <= born;
        let count = self.waiting.iter().take_while(|batch| is_late(batch)).count();
        self.waiting.drain(..count).collect()
    }

    /// Whether nothing waits and nothing is under way.
    pub(super) fn is_idle(&self) -> bool {
        self.waiting.is_empty() && self.flying.is_empty()
    }
}

#[cfg(test)]
mod tests;
