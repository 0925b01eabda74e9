//! The few file operations that a log stands on, as a trait, so that tests can lose power below
//! the real code. Knows paths and bytes; never what is in them.

mod disk;
#[cfg(any(test, feature = "sim"))]
pub mod sim;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use disk::Disk;

/// A file system, as far as a log needs one.
///
/// The contract that crash safety rests on is POSIX's strict one: written bytes survive only a
/// finished [`File::sync`], a created, renamed or removed name only a finished
/// [`Fs::sync_dir`] of its directory, and nothing orders two files.
pub trait Fs: fmt::Debug + Send + Sync + 'static {
    /// Opens a file for reading and writing.
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>>;
    /// The files (not the folders) of a directory, in no particular order.
    fn list(&self, dir: &Path) -> io::Result<Vec<Listed>>;
    /// The folders (not the files) of a directory, in no particular order.
    fn folders(&self, dir: &Path) -> io::Result<Vec<String>>;
    /// Creates a directory; it may be there already. Its parent must exist.
    fn create_dir(&self, dir: &Path) -> io::Result<()>;
    /// Removes an empty directory.
    fn remove_dir(&self, dir: &Path) -> io::Result<()>;
    /// Renames a file, replacing whatever had the new name, or a folder to a name that is free.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Removes a file. Open handles go on reading it.
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// Makes the names in a directory durable.
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;
}

/// An open file.
pub trait File: fmt::Debug + Send + Sync {
    /// Its length in bytes.
    fn size(&self) -> io::Result<u64>;
    /// Appends up to `len` bytes from `offset` on to `into`; fewer only at the end of the file.
    fn read_at(&self, offset: u64, len: usize, into: &mut Vec<u8>) -> io::Result<()>;
    /// Writes all of `bytes` at `offset`. After an error any part of them may be there.
    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()>;
    /// Cuts or extends (by zeros) the file.
    fn set_len(&self, len: u64) -> io::Result<()>;
    /// Makes the bytes and the length durable. After an error, unsynced bytes may be lost for
    /// good although reads still show them.
    fn sync(&self) -> io::Result<()>;
}

/// What [`Fs::open`] does if the file is there or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenMode {
    /// It must be there.
    Existing,
    /// It is created if it is not there.
    Create,
    /// It is created, or emptied.
    Fresh,
}

/// One file of a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Its name; names that are not UTF-8 are not listed.
    pub name: String,
    /// Its length in bytes.
    pub size: u64,
}

/// Removes a folder and the files in it. What is not there is fine; folders in it are not.
///
/// # Errors
/// The file system refused; some of the files may be gone.
pub fn remove_folder(fs: &dyn Fs, dir: &Path) -> io::Result<()> {
    let files = match fs.list(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        listed => listed?,
    };
    for file in files {
        fs.remove(&dir.join(file.name))?;
    }
    fs.remove_dir(dir)?;
    dir.parent().map_or(Ok(()), |parent| fs.sync_dir(parent))
}

/// The whole of a small file; none if it is not there. Longer than `size_max` is an error.
pub(crate) fn read_small(fs: &dyn Fs, path: &Path, size_max: u64) -> io::Result<Option<Vec<u8>>> {
    let file = match fs.open(path, OpenMode::Existing) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let size = file.size()?;
    if size > size_max {
        let what = format!("{} has {size} bytes, more than {size_max}", path.display());
        return Err(io::Error::new(io::ErrorKind::InvalidData, what));
    }
    let mut bytes = Vec::new();
    file.read_at(0, size as usize, &mut bytes)?;
    Ok(Some(bytes))
}

/// Puts `bytes` at `path` so that a crash leaves the old content or the new: written beside it,
/// synced, renamed, and the name synced.
pub(crate) fn replace(fs: &dyn Fs, path: &Path, bytes: &[u8]) -> io::Result<()> {
    let beside = beside(path);
    let file = fs.open(&beside, OpenMode::Fresh)?;
    file.write_at(0, bytes)?;
    file.sync()?;
    fs.rename(&beside, path)?;
    fs.sync_dir(path.parent().unwrap_or(Path::new(".")))
}

/// The name a file has while [`replace`] writes it.
pub(crate) fn beside(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".tmp");
    PathBuf::from(name)
}

/// Whether an error says that there is no room: it passes when someone makes room.
pub fn is_disk_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}
