//! What opening a log found and did, as values fit for a log line. It decides nothing.

use std::fmt;

use ottla_model::{LeaderEpoch, Offset};

use crate::segment::Damage;

/// What opening a log found and did. Its text is fit for one log line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recovery {
    /// The first offset there is to read.
    pub start: Offset,
    /// The log's end.
    pub end: Offset,
    /// Bytes past the checkpoint that were read and checked.
    pub checked_bytes: u64,
    /// What was cut off, in the log's order.
    pub cuts: Vec<Cut>,
    /// The leader epoch that was begun because something was, or may have been, lost.
    pub epoch_raised: Option<LeaderEpoch>,
    /// What was mended or could not be, in words.
    pub notes: Vec<String>,
}

/// One file, or its end, that was cut off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cut {
    /// Base offset of the segment.
    pub segment: Offset,
    /// Where in its file the cut is; zero if the whole file went.
    pub position: u64,
    /// Bytes that went.
    pub bytes: u64,
    /// Why.
    pub why: CutReason,
}

/// Why bytes were cut off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CutReason {
    /// This is not what an append writes.
    Damage(Damage),
    /// It follows a cut.
    Follows,
    /// The log lost it after it was synced; the end went back to the last one synced.
    NotSynced,
}

impl fmt::Display for Recovery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "offsets {} to {}", self.start, self.end)?;
        if self.checked_bytes > 0 {
            write!(f, ", {} bytes past the checkpoint checked", self.checked_bytes)?;
        }
        for cut in &self.cuts {
            write!(f, "; {cut}")?;
        }
        if let Some(epoch) = self.epoch_raised {
            write!(f, "; leader epoch raised to {epoch}")?;
        }
        for note in &self.notes {
            write!(f, "; {note}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Cut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { segment, position, bytes, why } = self;
        write!(f, "{bytes} bytes cut from segment {segment} at byte {position}, as {why}")
    }
}

impl fmt::Display for CutReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Damage(damage) => damage.fmt(f),
            Self::Follows => f.write_str("they follow a cut"),
            Self::NotSynced => f.write_str("they were not synced"),
        }
    }
}
