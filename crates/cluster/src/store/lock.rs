//! One process per data directory. The operating system holds the lock, so it ends with the
//! process however that dies; a lock file left behind means nothing.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};

/// Exclusive use of a directory until dropped.
#[derive(Debug)]
pub struct DirLock {
    /// Closing the file releases the lock.
    _file: File,
    dir: PathBuf,
}

impl DirLock {
    /// Takes the lock, creating `dir` and its lock file where missing, and leaves this process's
    /// id in the file for whoever is refused.
    ///
    /// # Errors
    /// [`LockError::Held`] if another process has it; [`LockError::Io`] if the directory cannot
    /// be used at all.
    pub fn acquire(dir: &Path) -> Result<Self, LockError> {
        let io = |source| LockError::Io { dir: dir.to_owned(), source };
        std::fs::create_dir_all(dir).map_err(io)?;
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(dir.join(LOCK_FILE))
            .map_err(io)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(LockError::Held { dir: dir.to_owned(), pid: read_pid(&mut file) });
            }
            Err(TryLockError::Error(source)) => return Err(io(source)),
        }
        write_pid(&mut file).map_err(io)?;
        Ok(Self { _file: file, dir: dir.to_owned() })
    }

    /// The locked directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }
}

/// Why a directory could not be locked.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another process uses it: stop that one, or choose another directory.
    #[error(
        "the data directory {} is in use by {}: stop it, or choose another directory",
        .dir.display(), holder(*.pid)
    )]
    Held {
        /// The directory.
        dir: PathBuf,
        /// The process that holds it, where it could be told.
        pid: Option<u32>,
    },
    /// The directory or its lock file cannot be created or opened.
    #[error("the data directory {} cannot be used: {source}", .dir.display())]
    Io {
        /// The directory.
        dir: PathBuf,
        /// What the operating system says.
        source: io::Error,
    },
}

fn holder(pid: Option<u32>) -> String {
    pid.map_or_else(|| "another process".into(), |pid| format!("another process (pid {pid})"))
}

fn read_pid(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    file.take(16).read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}

fn write_pid(file: &mut File) -> io::Result<()> {
    file.set_len(0)?;
    file.rewind()?;
    writeln!(file, "{}", std::process::id())
}

/// Kafka's name for the same file.
const LOCK_FILE: &str = ".lock";

#[cfg(test)]
mod tests {
    use super::*;

    /// Issue 3: a second broker on the same data directory is refused with a clear message.
    #[test]
    fn a_second_holder_is_told_who_has_it() {
        let dir = tempfile::tempdir().unwrap();
        let first = DirLock::acquire(dir.path()).unwrap();
        let refused = DirLock::acquire(dir.path()).unwrap_err().to_string();
        assert!(refused.contains(&dir.path().display().to_string()), "{refused}");
        assert!(refused.contains(&format!("(pid {})", std::process::id())), "{refused}");
        drop(first);
        DirLock::acquire(dir.path()).unwrap();
    }

    #[test]
    fn a_lock_file_left_by_a_dead_process_is_no_obstacle() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join(LOCK_FILE), "4194304\n").unwrap();
        let lock = DirLock::acquire(dir.path()).unwrap();
        assert_eq!(lock.dir(), dir.path());
        let text = std::fs::read_to_string(dir.path().join(LOCK_FILE)).unwrap();
        assert_eq!(text, format!("{}\n", std::process::id()));
    }
}
