//! Carrying out what a shard decides: records go to its log, replies to whoever waits, and the
//! shard learns what is safe. Knows the log and the shard, nothing of connections or threads.

use super::Core;
use crate::partitions::Passes;
use crate::shards::closings::Closing;
use crate::shards::delivery::Settled;
use crate::shards::journal;
use ottla_group::coordinator::{Append, Index};
use ottla_group::message::Token;
use ottla_model::{Now, Offset};
use ottla_records::{BuildError, Builder, Compression, NewRecord};
use ottla_storage::{AppendError, Origin};
use ottla_wire::EncodeError;
use ottla_wire::convert::record;
use std::sync::Arc;
use std::time::Duration;
use thiserror::Error;

impl Core {
    /// Tells the shard which of its decisions are safe by now.
    pub(super) fn settle(&mut self) {
        let Some(owned) = &self.owned else { return };
        if owned.partition.setbacks() != owned.setbacks {
            self.fail();
            return;
        }
        let safe = owned.partition.high_watermark();
        let mut durable = None;
        while let Some((index, offset)) = self.appended.front()
            && *offset < safe
        {
            durable = Some(*index);
            self.appended.pop_front();
        }
        if let Some(index) = durable {
            self.shard.handle_durable(index);
        }
    }

    /// Carries out what the shard has decided; returns the reply to `mine`, if it is among them.
    pub(super) fn drain(&mut self, now: Now, mine: Option<Token>) -> Option<Settled> {
        while let Some(append) = self.shard.poll_append() {
            match self.append(&append, now) {
                Ok(base) => self.shard.handle_appended(append.index, base),
                Err(error) => {
                    tracing::error!(shard = %self.shard.partition(), %error, "cannot append");
                    self.fail();
                }
            }
        }
        while let Some(note) = self.shard.poll_note() {
            journal::keep(&mut self.journal, &note, &self.shard, &self.rebalances);
        }
        let mut own = None;
        while let Some(outgoing) = self.shard.poll_reply() {
            let after = outgoing.after.and_then(|index| self.passes(index));
            let settled = Settled { reply: outgoing.reply, after };
            if Some(outgoing.token) == mine {
                own = Some(settled);
            } else if let Some(sender) = self.parked.remove(&outgoing.token) {
                // A connection that is gone does not want it.
                let _ = sender.send(settled);
            }
        }
        while let Some(closing) = self.shard.poll_close() {
            let (closings, reign) = &self.closings;
            let after = closing.after.and_then(|index| self.passes(index));
            let (connection, reign) = (closing.connection, Arc::clone(reign));
            // Nobody listens any more when the broker stops, and every connection ends then.
            let _ = closings.send(Closing { connection, after, reign });
        }
        own
    }

    /// Appends one decision; says where its first record lies.
    fn append(&mut self, append: &Append, now: Now) -> Result<Offset, Failure> {
        let owned = self.owned.as_mut().ok_or(Failure::Disowned)?;
        let mut batch = Builder::new(Compression::None);
        batch.reserve(append.records.len() * RECORD_BYTES);
        for each in &append.records {
            let record::Encoded { key, value } = record::encode(each)?;
            batch.append(&NewRecord::new(now.wall, Some(&key), value.as_deref()))?;
        }
        let batch = batch.build()?;
        match owned.partition.append(&batch, now, Origin::Coordinator, |_| {}) {
            Ok((appended, _)) => {
                self.appended.push_back((append.index, appended.last));
                Ok(appended.first)
            }
            Err(error) => {
                if let AppendError::DiskFull(_) = error {
                    owned.full_until = now.mono + DISK_FULL_PAUSE;
                }
                Err(error.into())
            }
        }
    }

    /// What to wait for until a decision is safe; nothing if it is.
    pub(super) fn passes(&self, index: Index) -> Option<Passes> {
        let owned = self.owned.as_ref()?;
        let at = self.appended.binary_search_by_key(&index, |(index, _)| *index);
        // A decision that is no longer in the list was safe when it was taken off.
        let (_, offset) = self.appended[at.ok()?];
        let passes = owned.partition.passes_since(offset, owned.setbacks);
        (passes.outcome() != Some(Ok(()))).then_some(passes)
    }

    pub(super) fn fail(&mut self) {
        self.shard.handle_append_failed();
        self.failed = true;
    }

    pub(super) fn is_disk_full(&self, now: Now) -> bool {
        self.owned.as_ref().is_some_and(|owned| now.mono < owned.full_until)
    }
}

/// Why a decision could not be written down.
#[derive(Debug, Error)]
enum Failure {
    #[error("the shard is not ours")]
    Disowned,
    #[error(transparent)]
    Encode(#[from] EncodeError),
    #[error(transparent)]
    Build(#[from] BuildError),
    #[error(transparent)]
    Append(#[from] AppendError),
}

/// A committed offset and a little more, the commonest record.
const RECORD_BYTES: usize = 160;
/// While the disk is full, one append is tried this often; reading goes on meanwhile.
const DISK_FULL_PAUSE: Duration = Duration::from_secs(1);
