//! That a log was closed in order, by an empty file of our own.
//!
//! Where appends are not synced, a power loss takes the end of a log without a trace, and the next
//! start must take it that this has happened. Closing syncs everything and says so here; opening
//! takes the file away, durably, before anything is appended.

use std::io;
use std::path::Path;

use crate::fs::{Fs, OpenMode};

/// Says that all of the log in `dir` is on the disk and stays so until it is opened.
pub(crate) fn set(fs: &dyn Fs, dir: &Path) -> io::Result<()> {
    fs.open(&dir.join(FILE), OpenMode::Fresh)?.sync()?;
    fs.sync_dir(dir)
}

/// Takes that back. Whether it was said.
pub(crate) fn take(fs: &dyn Fs, dir: &Path) -> io::Result<bool> {
    match fs.remove(&dir.join(FILE)) {
        Ok(()) => fs.sync_dir(dir).map(|()| true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// The file's name in the log's folder.
pub(crate) const FILE: &str = "closed";
