//! Room set aside for a start on a full disk: registering a broker writes to the store, whose file
//! grows by copies, and without that its logs could not even be read.
//!
//! An opening gives the room back; once a start is done it is set aside again, as much as there is.
//! So a full disk that sees many starts loses no more of it than the store grew by.

use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// The file that holds the room.
#[derive(Debug)]
pub(super) struct Reserve {
    path: PathBuf,
}

impl Reserve {
    /// Gives the room back to whoever writes next.
    pub(super) fn give_back(dir: &Path) -> Self {
        let path = dir.join(FILE);
        // Not being there is what is wanted, and a disk with room needs none of it.
        let _ = fs::remove_file(&path);
        Self { path }
    }

    /// Sets the room aside again, or as much of it as there is.
    pub(super) fn take(&self) {
        // Without it only a start on a full disk fails, and says why.
        let _ = self.fill();
    }

    fn fill(&self) -> io::Result<()> {
        let file = OpenOptions::new().create(true).truncate(false).write(true).open(&self.path)?;
        let mut at = file.metadata()?.len();
        while at < BYTES {
            file.write_all_at(&[0; PAGE], at)?;
            at += PAGE as u64;
        }
        file.sync_all()
    }
}

const FILE: &str = "reserve";
/// Many times what a start writes to the store of a cluster with thousands of topics.
const BYTES: u64 = 256 * 1024;
const PAGE: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    /// Issue 3: what is set aside is whole once a broker has started, and gone while it starts.
    #[test]
    fn room_is_set_aside_between_starts() {
        let dir = tempfile::tempdir().unwrap();
        let len = || fs::metadata(dir.path().join(FILE)).map(|file| file.len()).ok();
        let reserve = Reserve::give_back(dir.path());
        assert_eq!(len(), None);
        reserve.take();
        assert_eq!(len(), Some(BYTES));
        fs::write(dir.path().join(FILE), [0; PAGE]).unwrap();
        reserve.take();
        assert_eq!(len(), Some(BYTES), "what a full disk kept short is made whole");
        Reserve::give_back(dir.path());
        assert_eq!(len(), None);
    }
}
