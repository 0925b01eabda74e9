//! The real file system. The only place of this crate that makes system calls.

use std::fs;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use rustix::buffer::spare_capacity;

use super::{File, Fs, Listed, OpenMode};

/// The machine's own file system.
#[derive(Clone, Copy, Debug, Default)]
pub struct Disk;

impl Fs for Disk {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        let file = fs::OpenOptions::new()
            .read(true)
            .write(true)
            .create(mode != OpenMode::Existing)
            .truncate(mode == OpenMode::Fresh)
            .open(path)?;
        Ok(Arc::new(DiskFile(file)))
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<Listed>> {
        let mut listed = Vec::new();
        for entry in fs::read_dir(dir)? {
            let entry = entry?;
            let Ok(name) = entry.file_name().into_string() else { continue };
            let metadata = entry.metadata()?;
            if metadata.is_file() {
                listed.push(Listed { name, size: metadata.len() });
            }
        }
        Ok(listed)
    }

    fn folders(&self, dir: &Path) -> io::Result<Vec<String>> {
        let mut folders = Vec::new();
        for entry in fs::read_dir(dir)? {
            let entry = entry?;
            let Ok(name) = entry.file_name().into_string() else { continue };
            if entry.file_type()?.is_dir() {
                folders.push(name);
            }
        }
        Ok(folders)
    }

    fn create_dir(&self, dir: &Path) -> io::Result<()> {
        match fs::create_dir(dir) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            done => done,
        }
    }

    fn remove_dir(&self, dir: &Path) -> io::Result<()> {
        fs::remove_dir(dir)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        fs::File::open(dir)?.sync_all()
    }
}

#[derive(Debug)]
struct DiskFile(fs::File);

impl File for DiskFile {
    fn size(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    fn read_at(&self, offset: u64, len: usize, into: &mut Vec<u8>) -> io::Result<()> {
        let end = into.len() + len;
        into.reserve_exact(len);
        while into.len() < end {
            let at = offset + (len - (end - into.len())) as u64;
            match rustix::io::pread(&self.0, spare_capacity(into), at) {
                Ok(0) => break,
                Ok(_) => {}
                Err(rustix::io::Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
        // The allocator may have given more room than was asked for, and the read filled it.
        into.truncate(end);
        Ok(())
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.0.write_all_at(bytes, offset)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }

    fn sync(&self) -> io::Result<()> {
        self.0.sync_data()
    }
}
