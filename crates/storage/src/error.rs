//! What can go wrong with a log, by operation, each saying who is at fault and what to do.

use std::fmt;
use std::io;
use std::path::PathBuf;

use ottla_model::{LeaderEpoch, Offset, TopicId};
use ottla_records::BatchError;

use crate::producers::SequenceError;
use crate::segment::Damage;

/// Why a log does not open. It stays offline; nothing was lost that was not lost before.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The folder belongs to another incarnation of the topic.
    #[error("{} belongs to topic id {found}, not {expected}", dir.display())]
    OtherTopic {
        /// The folder.
        dir: PathBuf,
        /// The id it should have.
        expected: TopicId,
        /// The id in its `partition.metadata`.
        found: TopicId,
    },
    /// The file system refused.
    #[error("cannot {what} in {}: {error}", dir.display())]
    Io {
        /// What was tried.
        what: &'static str,
        /// The folder.
        dir: PathBuf,
        /// What the file system said.
        #[source]
        error: io::Error,
    },
}

/// Why batches were not appended. None of them is in the log.
#[derive(Debug, thiserror::Error)]
pub enum AppendError {
    /// The bytes are not whole batches of magic 2, or there are none. The sender is at fault.
    #[error("not a run of record batches: {0}")]
    Malformed(#[from] Malformed),
    /// The append is larger than a segment may be. The sender must make smaller batches.
    #[error("{bytes} bytes do not fit a segment of {segment_bytes}")]
    TooLarge {
        /// Bytes of the append.
        bytes: usize,
        /// `segment.bytes`.
        segment_bytes: u64,
    },
    /// The idempotent producer's sequence or epoch is wrong.
    #[error(transparent)]
    Sequence(#[from] SequenceError),
    /// The writer was deposed: the log has seen a newer leader epoch. It must stop writing.
    #[error("leader epoch {given} is over, the log is in {current}")]
    Fenced {
        /// The writer's epoch.
        given: LeaderEpoch,
        /// The log's.
        current: LeaderEpoch,
    },
    /// The partition has no offset left for them.
    #[error("the log's offsets are used up at {end}")]
    OffsetsUsedUp {
        /// The log's end.
        end: Offset,
    },
    /// There is no room. The log is as before; when there is room an append works again.
    #[error("disk full: {0}")]
    DiskFull(io::Error),
    /// A write or sync failed; appends are refused until the log is recovered.
    #[error("{0}")]
    Poisoned(Poison),
}

/// What is wrong with the bytes of an append.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// There are no batches.
    #[error("it is empty")]
    Empty,
    /// The framing is broken.
    #[error(transparent)]
    Framing(#[from] BatchError),
    /// A batch says that its last record lies before its first.
    #[error("a batch's last offset delta is {0}")]
    OffsetDelta(i32),
    /// A client sends one batch per partition and request if it is idempotent.
    #[error("an idempotent producer sent more than one batch")]
    ManyIdempotent,
}

/// Why a log takes no appends: what failed. Its data up to the synced offset is safe and readable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Poison {
    /// What was tried.
    pub what: &'static str,
    /// What the file system said.
    pub error: String,
    /// Whether it was for want of room.
    pub disk_full: bool,
}

/// Why a read has no answer.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The log has no such offset. The reader must choose another (`auto.offset.reset`).
    #[error("offset {offset} is out of range: the log holds {start} to {end}")]
    OutOfRange {
        /// What was asked for.
        offset: Offset,
        /// The log's start.
        start: Offset,
        /// The log's end, exclusive.
        end: Offset,
    },
    /// The file does not hold what was once written there.
    #[error("segment {segment} is damaged at byte {position}: {damage}")]
    Damaged {
        /// Base offset of the segment.
        segment: Offset,
        /// Where.
        position: u64,
        /// What is wrong.
        damage: Damage,
    },
    /// A batch's records cannot be read, by a lookup that must look into it.
    #[error("the batch at offset {offset} of segment {segment} is damaged: {reason}")]
    Records {
        /// Base offset of the segment.
        segment: Offset,
        /// The batch's base offset.
        offset: Offset,
        /// What is wrong.
        reason: String,
    },
    /// The file system refused.
    #[error("cannot read: {0}")]
    Io(#[from] io::Error),
}

/// Why a change of the log's extent (start or end), or a recovery, did not come about.
#[derive(Debug, thiserror::Error)]
pub enum ChangeError {
    /// The offset lies outside the log.
    #[error("offset {offset} is out of range: the log holds {start} to {end}")]
    OutOfRange {
        /// What was asked for.
        offset: Offset,
        /// The log's start.
        start: Offset,
        /// The log's end, exclusive.
        end: Offset,
    },
    /// A sync is under way: finish it first.
    #[error("a sync is under way")]
    SyncUnderWay,
    /// The log's start is being raised: finish that first.
    #[error("the log's start is being raised")]
    RaiseUnderWay,
    /// A compaction is under way on what would be cut: finish it first.
    #[error("a compaction is under way")]
    CleaningUnderWay,
    /// The file system refused. The log is poisoned if it was being changed.
    #[error("cannot {what}: {error}")]
    Io {
        /// What was tried.
        what: &'static str,
        /// What the file system said.
        #[source]
        error: io::Error,
    },
}

impl Poison {
    pub(crate) fn new(what: &'static str, error: &io::Error) -> Self {
        Self { what, error: error.to_string(), disk_full: crate::fs::is_disk_full(error) }
    }
}

impl fmt::Display for Poison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, error, .. } = self;
        write!(f, "the log takes no appends until it is recovered: cannot {what}: {error}")
    }
}

impl ChangeError {
    pub(crate) fn io(what: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |error| Self::Io { what, error }
    }
}
