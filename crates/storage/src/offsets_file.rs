//! The two offsets of a log that its segments do not tell, in a small text file of our own.
//!
//! The start offset rises by retention and DeleteRecords (KIP-107) and may lie inside a segment;
//! up to the first dirty offset compaction has been. Kafka keeps both in one file per disk;
//! beside the log they move with it.
//!
//! ```text
//! version 0
//! log_start_offset 1234
//! first_dirty_offset 1000
//! ```

use ottla_model::Offset;

/// What stands in the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct KeptOffsets {
    /// The first offset a reader may have.
    pub(crate) log_start: Offset,
    /// The first offset that compaction has not read yet.
    pub(crate) first_dirty: Offset,
}

impl KeptOffsets {
    /// The higher of each.
    pub(crate) fn max_each(self, other: Self) -> Self {
        Self {
            log_start: self.log_start.max(other.log_start),
            first_dirty: self.first_dirty.max(other.first_dirty),
        }
    }

    /// The file's text.
    pub(crate) fn to_text(self) -> String {
        let Self { log_start, first_dirty } = self;
        format!("version 0\n{LOG_START} {log_start}\n{FIRST_DIRTY} {first_dirty}\n")
    }

    /// Reads it back; none if it is anything else.
    pub(crate) fn from_text(text: &[u8]) -> Option<Self> {
        let mut lines = std::str::from_utf8(text).ok()?.lines();
        if lines.next()? != "version 0" {
            return None;
        }
        let log_start = field(lines.next()?, LOG_START)?;
        let first_dirty = field(lines.next()?, FIRST_DIRTY)?;
        lines.next().is_none().then_some(Self { log_start, first_dirty })
    }
}

fn field(line: &str, name: &str) -> Option<Offset> {
    let value: i64 = line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok()?;
    (value >= 0).then_some(Offset(value))
}

/// The file's name in the log's folder.
pub(crate) const FILE: &str = "log-offsets";
const LOG_START: &str = "log_start_offset";
const FIRST_DIRTY: &str = "first_dirty_offset";
