//! A file system in memory that loses what a crash may lose.
//!
//! Everything a strict reading of POSIX allows can happen to unsynced state: written sectors
//! survive one by one, in any order and of any file; lengths and names survive or not; a failed
//! sync drops what it should have written although reads go on showing it. One seed decides, so
//! a failing run can be run again. Knows nothing of logs.

mod rng;

pub use rng::Rng;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;

use super::{File, Fs, Listed, OpenMode};

/// What a disk writes as a whole or not at all, in bytes.
pub const SECTOR: usize = 512;

/// The simulated file system. Clones are the same one.
#[derive(Clone)]
pub struct SimFs(Arc<Mutex<World>>);

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

struct World {
    rng: Rng,
    dirs: BTreeMap<PathBuf, Dir>,
    inodes: BTreeMap<u64, Inode>,
    inode_next: u64,
    faults: Vec<Fault>,
    spared: &'static str,
    room: Option<u64>,
    /// Handles of an earlier boot answer with an error.
    boot: u64,
}

#[derive(Default)]
struct Dir {
    live: BTreeMap<String, u64>,
    durable: BTreeMap<String, u64>,
    pending: Vec<DirOp>,
}

enum DirOp {
    Link(String, u64),
    Unlink(String),
    Rename { from: String, to: String, inode: u64 },
}

#[derive(Default)]
struct Inode {
    live: Vec<u8>,
    durable: Vec<u8>,
    dirty: BTreeSet<usize>,
}

impl SimFs {
    /// An empty file system whose crashes are decided by `seed`. `/` exists.
    pub fn new(seed: u64) -> Self {
        let world = World {
            rng: Rng(seed),
            dirs: BTreeMap::from([(PathBuf::from("/"), Dir::default())]),
            inodes: BTreeMap::new(),
            inode_next: 0,
            faults: Vec::new(),
            spared: "\0",
            room: None,
            boot: 0,
        };
        Self(Arc::new(Mutex::new(world)))
    }

    /// Power is lost and comes back: open handles die, unsynced state survives in part.
    pub fn crash(&self) {
        self.0.lock().crash();
    }

    /// The process is killed: open handles die, everything written stays as it is.
    pub fn kill(&self) {
        self.0.lock().boot += 1;
    }

    /// A fault to come.
    pub fn inject(&self, fault: Fault) {
        self.0.lock().faults.push(fault);
    }

    /// Forgets faults that have not struck.
    pub fn heal(&self) {
        self.0.lock().faults.clear();
    }

    /// No fault strikes paths that end so.
    pub fn spare(&self, path_suffix: &'static str) {
        self.0.lock().spared = path_suffix;
    }

    /// How many faults have not struck yet.
    pub fn faults_left(&self) -> usize {
        self.0.lock().faults.len()
    }

    /// Bytes that all files together may still grow by; none is no limit.
    pub fn set_room(&self, bytes: Option<u64>) {
        self.0.lock().room = bytes;
    }

    /// A file's bytes as reads show them; none if it is not there.
    pub fn contents(&self, path: &Path) -> Option<Vec<u8>> {
        let world = self.0.lock();
        world.find(path).map(|id| world.inodes[&id].live.clone())
    }

    /// Puts a file there, durably, past all faults: how tests damage one.
    pub fn plant(&self, path: &Path, bytes: &[u8]) {
        let mut world = self.0.lock();
        let id = world.find(path).unwrap_or_else(|| world.new_inode());
        let inode = world.inodes.entry(id).or_default();
        (inode.live, inode.durable) = (bytes.to_vec(), bytes.to_vec());
        inode.dirty.clear();
        let (dir, name) = split(path).expect("a file has a directory");
        let dir = world.dirs.entry(dir).or_default();
        dir.live.insert(name.clone(), id);
        dir.durable.insert(name, id);
    }
}

impl Fs for SimFs {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        let mut world = self.0.lock();
        let id = match world.find(path) {
            Some(id) if mode == OpenMode::Fresh => {
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
        let world = self.0.lock();
        let entries = &world.dirs.get(dir).ok_or_else(|| missing(dir))?.live;
        let listed = entries.iter().map(|(name, id)| Listed {
            name: name.clone(),
            size: world.inodes[id].live.len() as u64,
        });
        Ok(listed.collect())
    }

    fn create_dir(&self, dir: &Path) -> io::Result<()> {
        // Directories themselves are durable at once: what is in them is the interesting part.
        self.0.lock().dirs.entry(dir.to_owned()).or_default();
        Ok(())
    }

    fn remove_dir(&self, dir: &Path) -> io::Result<()> {
        let mut world = self.0.lock();
        match world.dirs.get(dir) {
            None => Err(missing(dir)),
            Some(found) if !found.live.is_empty() => {
                Err(io::Error::from(io::ErrorKind::DirectoryNotEmpty))
            }
            Some(_) => {
                world.dirs.remove(dir);
                Ok(())
            }
        }
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut world = self.0.lock();
        world.strike(Op::Rename, from)?;
        let id = world.find(from).ok_or_else(|| missing(from))?;
        let ((dir, from), (_, to)) = (split(from)?, split(to)?);
        let dir = world.dirs.get_mut(&dir).expect("found in it");
        dir.live.remove(&from);
        dir.live.insert(to.clone(), id);
        dir.pending.push(DirOp::Rename { from, to, inode: id });
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut world = self.0.lock();
        world.find(path).ok_or_else(|| missing(path))?;
        let (dir, name) = split(path)?;
        let dir = world.dirs.get_mut(&dir).expect("found in it");
        dir.live.remove(&name);
        dir.pending.push(DirOp::Unlink(name));
        Ok(())
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        let mut world = self.0.lock();
        world.strike(Op::SyncDir, path)?;
        let dir = world.dirs.get_mut(path).ok_or_else(|| missing(path))?;
        dir.pending.clear();
        dir.durable.clone_from(&dir.live);
        Ok(())
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
        let world = self.fs.0.lock();
        if world.boot == self.boot {
            return Ok(world);
        }
        Err(io::Error::other(format!("{} was opened before the crash", self.path.display())))
    }
}

impl File for SimFile {
    fn size(&self) -> io::Result<u64> {
        Ok(self.world()?.inodes[&self.id].live.len() as u64)
    }

    fn read_at(&self, offset: u64, len: usize, into: &mut Vec<u8>) -> io::Result<()> {
        let mut world = self.world()?;
        world.strike(Op::Read, &self.path)?;
        let live = &world.inodes[&self.id].live;
        let from = live.len().min(offset as usize);
        let to = live.len().min(from.saturating_add(len));
        into.extend_from_slice(&live[from..to]);
        Ok(())
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let mut world = self.world()?;
        let struck = world.strike(Op::Write, &self.path);
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
            // Linux marks pages clean even if writing them failed: what did not reach the disk
            // now never will, unless it is written again.
            world.keep_some(self.id);
            return Err(error);
        }
        let inode = world.inodes.get_mut(&self.id).expect("open files keep their inode");
        for sector in std::mem::take(&mut inode.dirty) {
            inode.keep_sector(sector);
        }
        let live = inode.live.len();
        inode.durable.resize(live, 0);
        Ok(())
    }
}

impl World {
    fn find(&self, path: &Path) -> Option<u64> {
        let (dir, name) = split(path).ok()?;
        self.dirs.get(&dir)?.live.get(&name).copied()
    }

    fn create(&mut self, path: &Path) -> io::Result<u64> {
        self.strike(Op::Create, path)?;
        let (dir, name) = split(path)?;
        let id = self.new_inode();
        let dir = self.dirs.get_mut(&dir).ok_or_else(|| missing(path))?;
        dir.live.insert(name.clone(), id);
        dir.pending.push(DirOp::Link(name, id));
        Ok(id)
    }

    fn new_inode(&mut self) -> u64 {
        self.inode_next += 1;
        self.inodes.insert(self.inode_next, Inode::default());
        self.inode_next
    }

    fn strike(&mut self, op: Op, path: &Path) -> io::Result<()> {
        let text = path.to_string_lossy();
        if text.ends_with(self.spared) {
            return Ok(());
        }
        let hit = |fault: &Fault| fault.op == op && text.ends_with(fault.path_suffix);
        let Some(at) = self.faults.iter().position(hit) else { return Ok(()) };
        if self.faults[at].after > 0 {
            self.faults[at].after -= 1;
            return Ok(());
        }
        let fault = self.faults.remove(at);
        Err(io::Error::new(fault.kind, format!("injected into {op:?} of {text}")))
    }

    fn write(&mut self, id: u64, offset: usize, bytes: &[u8]) -> io::Result<()> {
        let inode = self.inodes.get_mut(&id).expect("open files keep their inode");
        let grows = (offset + bytes.len()).saturating_sub(inode.live.len());
        let room = self.room.map_or(grows, |room| grows.min(room as usize));
        if let Some(left) = &mut self.room {
            *left -= room as u64;
        }
        let part = &bytes[..bytes.len() - (grows - room)];
        inode.write(offset, part);
        if part.len() == bytes.len() {
            return Ok(());
        }
        Err(io::Error::new(io::ErrorKind::StorageFull, "no room left on the simulated disk"))
    }

    fn set_len(&mut self, id: u64, len: usize) {
        let inode = self.inodes.get_mut(&id).expect("open files keep their inode");
        let freed = inode.live.len().saturating_sub(len);
        self.room = self.room.map(|room| room + freed as u64);
        inode.set_len(len);
    }

    fn crash(&mut self) {
        self.boot += 1;
        self.faults.clear();
        let ids: Vec<u64> = self.inodes.keys().copied().collect();
        for id in ids {
            self.keep_some(id);
            let inode = self.inodes.get_mut(&id).expect("just listed");
            inode.live.clone_from(&inode.durable);
        }
        let share = self.rng.share();
        for dir in self.dirs.values_mut() {
            for op in std::mem::take(&mut dir.pending) {
                if self.rng.chance(share) {
                    op.apply(&mut dir.durable);
                }
            }
            dir.live.clone_from(&dir.durable);
        }
    }

    /// Writes a random part of a file's unsynced state to the disk and forgets the rest.
    fn keep_some(&mut self, id: u64) {
        let share = self.rng.share();
        let inode = self.inodes.get_mut(&id).expect("listed or open");
        let (durable, live) = (inode.durable.len(), inode.live.len());
        let len = match self.rng.below(3) {
            0 => durable,
            1 => live,
            _ => {
                let (low, high) = (durable.min(live), durable.max(live));
                low + self.rng.below((high - low) as u64 + 1) as usize
            }
        };
        inode.durable.resize(len, 0);
        for sector in std::mem::take(&mut inode.dirty) {
            if self.rng.chance(share) && sector * SECTOR < len {
                inode.keep_sector(sector);
            }
        }
        inode.durable.truncate(len);
    }
}

impl DirOp {
    fn apply(self, names: &mut BTreeMap<String, u64>) {
        match self {
            Self::Link(name, inode) => {
                names.insert(name, inode);
            }
            Self::Unlink(name) => {
                names.remove(&name);
            }
            Self::Rename { from, to, inode } => {
                names.remove(&from);
                names.insert(to, inode);
            }
        }
    }
}

impl Inode {
    fn write(&mut self, offset: usize, bytes: &[u8]) {
        let end = offset + bytes.len();
        if bytes.is_empty() {
            return;
        }
        if self.live.len() < end {
            self.live.resize(end, 0);
        }
        self.live[offset..end].copy_from_slice(bytes);
        self.dirty.extend(offset / SECTOR..=(end - 1) / SECTOR);
    }

    fn set_len(&mut self, len: usize) {
        self.live.resize(len, 0);
        self.dirty.retain(|&sector| sector * SECTOR < len);
        if !len.is_multiple_of(SECTOR) {
            // The kernel zeroes the rest of the last page, which so becomes dirty.
            self.dirty.insert(len / SECTOR);
        }
    }

    fn keep_sector(&mut self, sector: usize) {
        let from = sector * SECTOR;
        let to = (from + SECTOR).min(self.live.len());
        if from >= to {
            return;
        }
        if self.durable.len() < to {
            self.durable.resize(to, 0);
        }
        self.durable[from..to].copy_from_slice(&self.live[from..to]);
    }
}

fn split(path: &Path) -> io::Result<(PathBuf, String)> {
    let dir = path.parent().ok_or_else(|| missing(path))?;
    let name = path.file_name().and_then(|name| name.to_str()).ok_or_else(|| missing(path))?;
    Ok((dir.to_owned(), name.to_owned()))
}

fn missing(path: &Path) -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, format!("{} is not there", path.display()))
}
