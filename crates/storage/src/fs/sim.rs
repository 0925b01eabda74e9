//! A file system in memory that loses what a crash may lose.
//!
//! Everything a strict reading of POSIX allows can happen to unsynced state: written sectors
//! survive one by one, in any order and of any file; lengths and names survive or not, a length
//! that grew by writing also in part; a failed sync drops what it should have written although
//! reads go on showing it. One seed decides, so a failing run can be run again. Knows nothing of
//! logs.

mod rng;
mod world;

pub use rng::Rng;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;

use super::{File, Fs, Listed, OpenMode};
use world::{Node, World, missing};

/// What a disk writes as a whole or not at all, in bytes.
pub const SECTOR: usize = 512;

/// The simulated file system. Clones are the same one.
#[derive(Clone)]
pub struct SimFs {
    world: Arc<Mutex<World>>,
    /// The boot that this handle ends with; none serves the test, which sees all of them.
    boot: Option<u64>,
}

/// How a boot ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The process is killed: see [`SimFs::kill`].
    Kill,
    /// Power is lost: see [`SimFs::crash`].
    Power,
}

/// Which operation a fault hits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// [`File::write_at`].
    Write,
    /// [`File::sync`].
    Sync,
    /// [`Fs::sync_dir`].
    SyncDir,
    /// [`Fs::open`] that creates the file.
    Create,
    /// [`Fs::rename`].
    Rename,
    /// [`File::set_len`].
    SetLen,
    /// [`File::read_at`].
    Read,
}

/// One fault to come.
#[derive(Clone, Debug)]
pub struct Fault {
    /// The operation it hits.
    pub op: Op,
    /// Only paths that end so; empty is every path.
    pub path_suffix: &'static str,
    /// How many such operations pass before it strikes, once.
    pub after: u32,
    /// The error: ENOSPC is [`io::ErrorKind::StorageFull`].
    pub kind: io::ErrorKind,
}

impl SimFs {
    /// An empty file system whose crashes are decided by `seed`. `/` exists.
    pub fn new(seed: u64) -> Self {
        Self { world: Arc::new(Mutex::new(World::new(seed))), boot: None }
    }

    /// Power is lost and comes back: open handles die, unsynced state survives in part.
    pub fn crash(&self) {
        self.world.lock().crash();
    }

    /// The process is killed: open handles die, everything written stays as it is.
    pub fn kill(&self) {
        self.world.lock().kill();
    }

    /// The file system for a process that runs from now on: it dies with the next crash or kill,
    /// so that a thread that lives on changes nothing any more.
    pub fn boot(&self) -> Self {
        Self { world: self.world.clone(), boot: Some(self.world.lock().boot) }
    }

    /// Whether the process that this handle was made for has ended.
    pub fn is_over(&self) -> bool {
        self.boot.is_some_and(|boot| boot != self.world.lock().boot)
    }

    /// Ends the boot in the middle of what is done in it: after so many more changes.
    pub fn end_after(&self, changes: u32, end: End) {
        self.world.lock().end = Some((changes, end));
    }

    /// A fault to come.
    pub fn inject(&self, fault: Fault) {
        self.world.lock().faults.push(fault);
    }

    /// Forgets faults that have not struck.
    pub fn heal(&self) {
        self.world.lock().faults.clear();
    }

    /// No fault strikes paths that end so.
    pub fn spare(&self, path_suffix: &'static str) {
        self.world.lock().spared = path_suffix;
    }

    /// How many faults have not struck yet.
    pub fn faults_left(&self) -> usize {
        self.world.lock().faults.len()
    }

    /// Bytes that all files together may still grow by; none is no limit.
    pub fn set_room(&self, bytes: Option<u64>) {
        self.world.lock().room = bytes;
    }

    /// A file's bytes as reads show them; none if it is not there.
    pub fn contents(&self, path: &Path) -> Option<Vec<u8>> {
        let mut world = self.world.lock();
        world.find(path).map(|id| world.inode(id).live.clone())
    }

    /// Puts a file there, durably, past all faults: how tests damage one.
    pub fn plant(&self, path: &Path, bytes: &[u8]) {
        self.world.lock().plant(path, bytes);
    }

    fn world(&self) -> io::Result<parking_lot::MutexGuard<'_, World>> {
        let world = self.world.lock();
        match self.boot {
            Some(boot) if boot != world.boot => Err(io::Error::other("this process has ended")),
            _ => Ok(world),
        }
    }
}

impl Fs for SimFs {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        let mut world = self.world()?;
        let id = match world.find(path) {
            Some(id) if mode == OpenMode::Fresh => {
                world.count()?;
                world.set_len(id, 0);
                id
            }
            Some(id) => id,
            None if mode == OpenMode::Existing => return Err(missing(path)),
            None => world.create(path)?,
        };
        let (boot, path) = (world.boot, path.to_owned());
        Ok(Arc::new(SimFile { fs: self.clone(), id, boot, path }))
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<Listed>> {
        let world = self.world()?;
        let entries = &world.dir(dir)?.live;
        let listed = entries.iter().filter_map(|(name, node)| {
            Some(Listed { name: name.clone(), size: world.len(*node)? })
        });
        Ok(listed.collect())
    }

    fn folders(&self, dir: &Path) -> io::Result<Vec<String>> {
        let world = self.world()?;
        let entries = world.dir(dir)?.live.iter();
        let folders = entries.filter(|(_, node)| matches!(node, Node::Dir(_)));
        Ok(folders.map(|(name, _)| name.clone()).collect())
    }

    fn create_dir(&self, dir: &Path) -> io::Result<()> {
        let mut world = self.world()?;
        world.count()?;
        world.create_dir(dir)
    }

    fn remove_dir(&self, dir: &Path) -> io::Result<()> {
        let mut world = self.world()?;
        world.count()?;
        world.remove_dir(dir)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.world()?.rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut world = self.world()?;
        world.find(path).ok_or_else(|| missing(path))?;
        world.count()?;
        world.unlink(path)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        self.world()?.sync_dir(path)
    }
}

impl fmt::Debug for SimFs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SimFs")
    }
}

#[derive(Debug)]
struct SimFile {
    fs: SimFs,
    id: u64,
    boot: u64,
    path: PathBuf,
}

impl SimFile {
    fn world(&self) -> io::Result<parking_lot::MutexGuard<'_, World>> {
        let world = self.fs.world.lock();
        if world.boot == self.boot {
            return Ok(world);
        }
        Err(io::Error::other(format!("{} was opened before the crash", self.path.display())))
    }
}

impl File for SimFile {
    fn size(&self) -> io::Result<u64> {
        Ok(self.world()?.inode(self.id).live.len() as u64)
    }

    fn read_at(&self, offset: u64, len: usize, into: &mut Vec<u8>) -> io::Result<()> {
        let mut world = self.world()?;
        world.strike(Op::Read, &self.path)?;
        let live = &world.inode(self.id).live;
        let from = live.len().min(offset as usize);
        let to = live.len().min(from.saturating_add(len));
        into.extend_from_slice(&live[from..to]);
        Ok(())
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let mut world = self.world()?;
        let struck = world.strike(Op::Write, &self.path);
        if world.boot != self.boot {
            return struck;
        }
        let mut part = bytes.len();
        if struck.is_err() {
            part = world.rng.below(bytes.len() as u64 + 1) as usize;
        }
        let written = world.write(self.id, offset as usize, &bytes[..part]);
        struck.and(written)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut world = self.world()?;
        world.strike(Op::SetLen, &self.path)?;
        world.set_len(self.id, len as usize);
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        let mut world = self.world()?;
        if let Err(error) = world.strike(Op::Sync, &self.path) {
            if world.boot == self.boot {
                // Linux marks pages clean even if writing them failed: what did not reach the
                // disk now never will, unless it is written again.
                world.keep_some(self.id);
            }
            return Err(error);
        }
        world.inode(self.id).sync();
        Ok(())
    }
}
