//! How far a log's batches are known to be on the disk, in a small file of our own.
//!
//! After a failed fsync Linux may keep bytes that read well, count as written and are not on the
//! disk; if then only the process dies, the next one would find them, sync nothing and take them
//! for safe. So every sync that succeeds is noted here, and a start writes again whatever lies
//! past the note. The note itself is never synced: a power loss, which may take it back to an
//! older one, also takes what it warns of.
//!
//! ```text
//! version 0
//! synced_offset 00000000000000001234
//! crc 89abcdef
//! ```

use std::io;
use std::path::Path;

use ottla_model::Offset;

use crate::fs::{self, Fs, OpenMode};

/// What the file tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Note {
    /// No log of ours was open here: whoever wrote what there is saw to its safety.
    Absent,
    /// The file is not whole: nothing past the checkpoint is known to be safe.
    Unreadable,
    /// Every batch below is on the disk.
    Synced(Offset),
}

impl Note {
    /// Whether all of a log that ends at `end` is known to be on the disk, its length too.
    pub(crate) fn is_of_end(self, end: Offset) -> bool {
        self == Self::Absent || self == Self::Synced(end)
    }

    /// Whether a batch that ends before `next` is known to be on the disk.
    pub(crate) fn covers(self, next: Offset) -> bool {
        match self {
            Self::Absent => true,
            Self::Unreadable => false,
            Self::Synced(offset) => next <= offset,
        }
    }
}

/// Reads the note of the log in `dir`.
pub(crate) fn read(fs: &dyn Fs, dir: &Path) -> io::Result<Note> {
    let found = fs::read_small(fs, &dir.join(FILE), SIZE_MAX)?;
    Ok(found.map_or(Note::Absent, |text| from_text(&text).map_or(Note::Unreadable, Note::Synced)))
}

/// Notes that every batch below `synced` is on the disk. The text is always as long, so that
/// overwriting it takes no room.
pub(crate) fn write(fs: &dyn Fs, dir: &Path, synced: Offset) -> io::Result<()> {
    fs.open(&dir.join(FILE), OpenMode::Create)?.write_at(0, to_text(synced).as_bytes())
}

/// Takes the note back: whoever opens the log now must see to the safety of all past the
/// checkpoint, also of where it ends.
pub(crate) fn withdraw(fs: &dyn Fs, dir: &Path) -> io::Result<()> {
    let len = to_text(Offset(0)).len();
    fs.open(&dir.join(FILE), OpenMode::Create)?.write_at(0, &vec![b'-'; len])
}

fn to_text(synced: Offset) -> String {
    let body = format!("version 0\nsynced_offset {:020}\n", synced.0);
    let crc = crc32c::crc32c(body.as_bytes());
    format!("{body}crc {crc:08x}\n")
}

fn from_text(text: &[u8]) -> Option<Offset> {
    let line = std::str::from_utf8(text).ok()?.lines().nth(1)?;
    let offset = Offset(line.strip_prefix("synced_offset ")?.parse().ok()?);
    (to_text(offset).as_bytes() == text).then_some(offset)
}

/// The file's name in the log's folder.
pub(crate) const FILE: &str = "synced-offset";
const SIZE_MAX: u64 = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_is_read_as_it_was_written_and_never_torn() {
        let (old, new) = (to_text(Offset(99)), to_text(Offset(1_234_567)));
        assert_eq!(from_text(new.as_bytes()), Some(Offset(1_234_567)));
        for at in 1..new.len() {
            let torn = [&new.as_bytes()[..at], &old.as_bytes()[at..]].concat();
            let read = from_text(&torn);
            assert!(read.is_none() || torn == new.as_bytes() || torn == old.as_bytes(), "{at}");
            assert_eq!(from_text(&new.as_bytes()[..at]), None, "{at}");
        }
    }
}
