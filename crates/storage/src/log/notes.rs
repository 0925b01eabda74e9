//! The two small files beside the segments that change while the log is in use: [`KeptOffsets`] and
//! [`Epochs`]. Knows nothing of when or why.
//!
//! Writing them waits for the disk, so who raises an offset does it outside the log's lock. A gate
//! lets one at a time write, and what is overtaken is not written.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::epochs::{self, Epochs};
use crate::fs::{self, Fs};
use crate::offsets_file::{self, KeptOffsets};

/// The files of one log.
#[derive(Debug)]
pub(super) struct Notes {
    fs: Arc<dyn Fs>,
    dir: PathBuf,
    written: Mutex<Written>,
}

#[derive(Debug, Default)]
struct Written {
    kept: KeptOffsets,
    /// The newest version of the epochs that was to be written.
    epochs: u64,
}

impl Notes {
    /// Those of a log that was opened with `kept`.
    pub(super) fn new(fs: Arc<dyn Fs>, dir: PathBuf, kept: KeptOffsets) -> Self {
        Self { fs, dir, written: Mutex::new(Written { kept, epochs: 0 }) }
    }

    /// Raises each offset that is lower, durably.
    pub(super) fn raise(&self, to: KeptOffsets) -> io::Result<()> {
        let mut written = self.written.lock();
        let kept = written.kept.max_each(to);
        if kept != written.kept {
            self.write_kept(kept)?;
            written.kept = kept;
        }
        Ok(())
    }

    /// Puts these offsets there, durably, higher or lower. Nobody may be raising them meanwhile.
    pub(super) fn set(&self, kept: KeptOffsets) -> io::Result<()> {
        let mut written = self.written.lock();
        self.write_kept(kept)?;
        written.kept = kept;
        Ok(())
    }

    /// Puts the epochs of a version there, durably, unless a newer one is there.
    pub(super) fn write_epochs(&self, epochs: &Epochs, version: u64) -> io::Result<()> {
        let mut written = self.written.lock();
        if version < written.epochs {
            return Ok(());
        }
        written.epochs = version;
        fs::replace(&*self.fs, &self.dir.join(epochs::FILE), epochs.to_text().as_bytes())
    }

    fn write_kept(&self, kept: KeptOffsets) -> io::Result<()> {
        let path = self.dir.join(offsets_file::FILE);
        fs::replace(&*self.fs, &path, kept.to_text().as_bytes())
    }
}
