//! A partition's log on disk, in Kafka's own format.
//!
//! A [`Log`] is a folder of segments with indexes, leader epochs and producer state, byte for
//! byte what Kafka keeps (decision 2), plus a checkpoint of our own that makes restarts short.
//! This crate knows neither topics nor groups nor requests, runs no thread and reads no clock.
//!
//! # How the methods work together
//!
//! ```text
//! Log::open -> (Log, Recovery)        says what it cut and why; all of it is safe and readable
//!
//! under the partition's lock          beside it, no lock
//!   append(bytes, context)              Reader::read(from, bytes_max, up_to, first_max)
//!   start_sync() -> SyncJob    ------>  SyncJob::run() -> Synced         (fdatasync)
//!   finish_sync(Synced)        <------
//!   start_retain(now, committed) ---->  RaiseJob::run() -> Raised        (fsync of a small file)
//!   finish_retain(Raised, now) <------
//!   start_raise(offset)        ------>  the same, for DeleteRecords
//!   finish_raise(Raised)       <------
//!   start_clean(now, committed) ----->  CleanJob::run() -> Cleaned       (compaction)
//!   finish_clean(Cleaned)      <------
//!   due_removal(now)           ------>  Removal::run()                   (rename, unlink)
//!   recover(now)               when state() is Poisoned
//!   close()                    at shutdown
//! ```
//!
//! - An append is readable at once and safe when [`Log::synced_offset`] is past it. The caller
//!   bounds reads by the high watermark, which never passes [`Log::safe_offset`].
//! - One sync covers every append before it. Appends and rolls go on while it runs; there is one
//!   at a time.
//! - A failed write or sync poisons the log: appends are refused until [`Log::recover`] has cut
//!   it to what is safe. A full disk does not: the append is undone and can be tried again.
//! - [`Log::reader`] gives a handle that many threads may hold; it never waits for an append.
//!
//! Invariants: an fsync that failed is never tried again in place; bytes that a crash could take
//! back are never returned below the synced offset; nothing read from a file makes this crate
//! panic, or allocate more than the file has.

mod bytes_in;
mod checkpoint;
mod clean;
mod closed_file;
mod config;
mod epochs;
mod error;
mod frames;
pub mod fs;
mod log;
mod metadata;
mod offsets_file;
mod producers;
mod segment;
mod synced_file;

#[cfg(test)]
mod tests;

pub use clean::CleanError;
pub use config::{CleanupPolicy, Durability, LogConfig};
pub use error::{AppendError, ChangeError, Malformed, OpenError, Poison, ReadError};
pub use frames::{Frames, ReplaceJob, Replaced};
pub use log::{
    AppendContext, Appended, CleanJob, CleanReport, Cleaned, Cut, CutReason, Log, Origin, RaiseJob,
    Raised, Read, Reader, Recovery, Removal, Retained, State, SyncJob, Synced, TimedOffset,
};
pub use metadata::read_topic_id;
pub use producers::{Producer, ProducerBatch, SequenceError};
pub use segment::Damage;
