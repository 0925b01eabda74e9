//! The one place where scenarios and swarm touch the coordinator: a broker's driver in miniature,
//! and the log it appends to.
//!
//! Decisions become durable one by one, when the test says so; replies that wait are held here,
//! as a broker would hold them. Nothing in here knows what any request means.

// Each test binary uses its part of this.
#![allow(dead_code)]

use ottla_group::coordinator::record::Record;
use ottla_group::coordinator::{
    Append, Config, Index, Lifecycle, Outgoing, RecordAt, SettingsView, Shard,
};
use ottla_group::message::{GroupError, Reply, Request, Token};
use ottla_model::{
    ConnectionId, Instant, Now, Offset, OwnershipEpoch, PartitionId, Timestamp, TopicsView,
};
use std::collections::VecDeque;
use std::sync::Arc;

/// The offsets partition: what is in it cannot be lost.
#[derive(Default)]
pub struct Log {
    pub batches: Vec<(Vec<Record>, Timestamp)>,
    /// Appends of an older owner are refused.
    pub fence: OwnershipEpoch,
}

/// One would-be coordinator and what its driver keeps for it.
pub struct Broker {
    pub shard: Shard,
    pub epoch: OwnershipEpoch,
    /// Decided, not yet durable.
    pub undurable: VecDeque<Append>,
    /// Waiting for one of those.
    held: Vec<Outgoing>,
    durable: Index,
    until: Instant,
}

/// What came out of a shard, in the contract's order.
pub enum Emitted {
    /// A decision, now the last of [`Broker::undurable`].
    Append(Index),
    /// A reply that may leave.
    Reply(Token, Reply),
    /// A reply that waits.
    Held(Token, Reply, Index),
    /// A connection to close, once this is durable.
    Close(ConnectionId, Option<Index>),
}

/// An append by a deposed owner.
pub struct Fenced;

impl Broker {
    pub fn new(config: Config) -> Self {
        Self {
            shard: Shard::new(config, PartitionId(0)),
            epoch: OwnershipEpoch(0),
            undurable: VecDeque::new(),
            held: Vec::new(),
            durable: Index::default(),
            until: Instant::ZERO,
        }
    }

    pub fn own(&mut self, epoch: OwnershipEpoch, until: Instant, now: Now) {
        (self.epoch, self.until) = (epoch, until);
        self.shard.handle_owned(epoch, until, now);
    }

    /// The end of a reign: whatever waits is refused.
    pub fn disown(&mut self) -> Vec<(Token, Reply)> {
        self.undurable.clear();
        self.shard.handle_disowned();
        self.refuse_held()
    }

    /// Reads the log from batch `from` on; returns where to go on.
    pub fn replay(&mut self, log: &Log, from: usize) -> usize {
        let before: usize = log.batches[..from].iter().map(|(records, _)| records.len()).sum();
        let mut offset = before as i64;
        for (records, appended_at) in &log.batches[from..] {
            for record in records {
                let at = RecordAt { offset: Offset(offset), appended_at: *appended_at };
                self.shard.replay(record.clone(), at);
                offset += 1;
            }
        }
        log.batches.len()
    }

    pub fn loaded(&mut self, now: Now) {
        self.shard.handle_loaded(now);
    }

    pub fn is_active(&self) -> bool {
        matches!(self.shard.lifecycle(), Lifecycle::Active(_))
    }

    pub fn is_failed(&self) -> bool {
        self.shard.lifecycle() == Lifecycle::Failed
    }

    pub fn request(&mut self, request: Request<'_>) {
        self.shard.handle_request(request);
    }

    pub fn topics(&mut self, topics: Arc<TopicsView>, now: Now) {
        self.shard.handle_topics(topics, now);
    }

    pub fn settings(&mut self, settings: Arc<SettingsView>, now: Now) {
        self.shard.handle_settings(settings, now);
    }

    pub fn closed(&mut self, connection: ConnectionId, now: Now) {
        self.shard.handle_connection_closed(connection, now);
    }

    pub fn waiting_behind(&mut self, token: Token, now: Now) {
        self.shard.handle_waiting_behind(token, now);
    }

    pub fn timeout(&mut self, now: Now) {
        self.shard.handle_timeout(now);
    }

    pub fn deadline(&self) -> Option<Instant> {
        self.shard.poll_timeout()
    }

    /// Everything the shard has to say.
    pub fn drain(&mut self, emitted: &mut Vec<Emitted>) {
        while let Some(append) = self.shard.poll_append() {
            emitted.push(Emitted::Append(append.index));
            self.undurable.push_back(append);
        }
        while let Some(outgoing) = self.shard.poll_reply() {
            let waits_for = outgoing.after.filter(|after| *after > self.durable);
            match waits_for {
                Some(after) => {
                    let reply = outgoing.reply.clone();
                    emitted.push(Emitted::Held(outgoing.token, reply, after));
                    self.held.push(outgoing);
                }
                None => emitted.push(Emitted::Reply(outgoing.token, outgoing.reply)),
            }
        }
        while let Some(closing) = self.shard.poll_close() {
            emitted.push(Emitted::Close(closing.connection, closing.after));
        }
    }

    /// The oldest decision becomes durable; replies that waited for it leave. Past the end of
    /// the ownership they are refused, as every driver must.
    pub fn make_durable(&mut self, log: &mut Log, now: Now) -> Result<Vec<(Token, Reply)>, Fenced> {
        if self.epoch < log.fence {
            return Err(Fenced);
        }
        let Some(append) = self.undurable.pop_front() else { return Ok(Vec::new()) };
        log.batches.push((append.records, now.wall));
        self.durable = append.index;
        self.shard.handle_durable(append.index);
        let is_late = now.mono >= self.until;
        let is_free = |held: &mut Outgoing| held.after.is_none_or(|after| after <= append.index);
        let free: Vec<_> = self.held.extract_if(.., is_free).collect();
        for held in &free {
            if let Reply::Register(Ok(registered)) = &held.reply {
                self.shard.handle_answered(&registered.group, &registered.member, now);
            }
        }
        let end = |held: Outgoing| match is_late {
            true => (held.token, held.reply.refused(GroupError::NotCoordinator)),
            false => (held.token, held.reply),
        };
        Ok(free.into_iter().map(end).collect())
    }

    /// The oldest decision could not be appended: nothing that waits for it, or was decided
    /// after it, may be said.
    pub fn fail(&mut self) -> Vec<(Token, Reply)> {
        self.undurable.clear();
        self.shard.handle_append_failed();
        self.refuse_held()
    }

    fn refuse_held(&mut self) -> Vec<(Token, Reply)> {
        let refused = |held: Outgoing| (held.token, held.reply.refused(GroupError::NotCoordinator));
        self.held.drain(..).map(refused).collect()
    }
}
