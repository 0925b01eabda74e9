//! The folder of a log at its opening: which files there are, whose it is.

use std::io;
use std::path::Path;

use ottla_model::{Offset, TopicId};

use crate::error::OpenError;
use crate::fs::{Fs, Listed};
use crate::metadata;
use crate::segment::names;

/// The files of a folder by segment.
pub(super) struct Files<'a>(pub(super) &'a [Listed]);

impl Files<'_> {
    pub(super) fn bases(&self) -> Vec<Offset> {
        let bases = self.0.iter().filter_map(|file| names::offset(&file.name, names::LOG));
        let mut bases: Vec<Offset> = bases.collect();
        bases.sort_unstable();
        bases
    }

    pub(super) fn size(&self, base: Offset, suffix: &str) -> Option<u64> {
        let of = |file: &&Listed| names::offset(&file.name, suffix) == Some(base);
        self.0.iter().find(of).map(|file| file.size)
    }
}

/// The folder's files; the folder is created if it is not there. Its own name and the names in it
/// are durable afterwards: a process that was killed may have left them to the kernel, and
/// where none did it costs little.
pub(super) fn enter(fs: &dyn Fs, dir: &Path) -> io::Result<Vec<Listed>> {
    fs.create_dir(dir)?;
    if let Some(parent) = dir.parent() {
        fs.sync_dir(parent)?;
    }
    fs.sync_dir(dir)?;
    fs.list(dir)
}

pub(super) fn check_topic(fs: &dyn Fs, dir: &Path, expected: TopicId) -> Result<(), OpenError> {
    let failed = |what| move |error| OpenError::Io { what, dir: dir.to_owned(), error };
    let found = metadata::read_topic_id(fs, dir).map_err(failed("read partition.metadata"))?;
    match found {
        Some(found) if found == expected => Ok(()),
        Some(found) => Err(OpenError::OtherTopic { dir: dir.to_owned(), expected, found }),
        None => {
            metadata::write_topic_id(fs, dir, expected).map_err(failed("write partition.metadata"))
        }
    }
}
