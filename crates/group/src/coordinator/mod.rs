//! The broker's side of every group protocol: one [`Shard`] per partition of
//! `__consumer_offsets`.
//!
//! A shard is a value. Requests, durability, topics, ownership and time come in through
//! `handle_*`; records to append, replies and the next deadline go out through `poll_*`. It never
//! knows a wire format, a file, a socket, a task, a clock or a source of randomness. The contract
//! is written on [`Shard`].

pub mod record;

mod admin;
mod barrier;
mod chores;
mod config;
mod consumers;
mod digest;
mod front;
mod group;
mod holds;
mod journal;
mod lifelines;
mod map;
mod matching;
mod motion;
mod notes;
mod offsets;
mod output;
mod pattern;
mod reconcile;
mod replay;
mod roster;
mod settings;
mod shard;
mod target;
mod timers;
mod turn;
mod view;
mod watch;

#[cfg(test)]
mod tests;

pub use config::{Config, MAX_BATCH_BYTES, MigrationPolicy};
pub use output::{Append, Closing, Index, Outgoing};
pub use settings::{GroupSettings, SettingsView};
pub use shard::{Lifecycle, RecordAt, Shard};
pub use view::{
    BlockedOn, Blocker, Caller, Cause, CommittedView, GroupView, JournalEntry, MemberTimes,
    Migration, Move, Note, Noted, Observed, Obstacle, Outcome, StateCounts, Trigger, Waiting, Who,
};
