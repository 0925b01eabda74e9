//! The simulated disk itself: names and bytes, each as programs see them and as the disk has them,
//! and what a crash makes of the difference.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Component, Path};

use super::{End, Fault, Op, Rng, SECTOR};

pub(super) struct World {
    pub(super) rng: Rng,
    dirs: BTreeMap<u64, Dir>,
    inodes: BTreeMap<u64, Inode>,
    node_next: u64,
    pub(super) faults: Vec<Fault>,
    pub(super) spared: &'static str,
    pub(super) room: Option<u64>,
    /// Handles of an earlier boot answer with an error.
    pub(super) boot: u64,
    /// How many changes are left until this boot ends, and how it ends.
    pub(super) end: Option<(u32, End)>,
}

#[derive(Default)]
pub(super) struct Dir {
    pub(super) live: BTreeMap<String, Node>,
    durable: BTreeMap<String, Node>,
    pending: Vec<DirOp>,
}

/// What a name stands for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Node {
    File(u64),
    Dir(u64),
}

enum DirOp {
    Link(String, Node),
    Unlink(String),
    Rename { from: String, to: String, node: Node },
}

#[derive(Default)]
pub(super) struct Inode {
    pub(super) live: Vec<u8>,
    durable: Vec<u8>,
    dirty: BTreeSet<usize>,
    /// How its length has changed since it was last the same on the disk.
    lengths: Vec<Lengths>,
}

/// The lengths that one change may leave on the disk.
#[derive(Clone, Copy)]
enum Lengths {
    /// Written past the end, which comes to the disk bit by bit.
    Grown { from: usize, to: usize },
    /// Set: file systems do that as one change of their journal, all or nothing.
    Set(usize),
}

impl World {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            rng: Rng(seed),
            dirs: BTreeMap::from([(ROOT, Dir::default())]),
            inodes: BTreeMap::new(),
            node_next: ROOT,
            faults: Vec::new(),
            spared: "\0",
            room: None,
            boot: 0,
            end: None,
        }
    }

    /// The file of that name.
    pub(super) fn find(&self, path: &Path) -> Option<u64> {
        match self.node(path)? {
            Node::File(id) => Some(id),
            Node::Dir(_) => None,
        }
    }

    /// A file that was found or is open.
    pub(super) fn inode(&mut self, id: u64) -> &mut Inode {
        self.inodes.get_mut(&id).expect("files are never forgotten")
    }

    /// A directory by its path.
    pub(super) fn dir(&self, path: &Path) -> io::Result<&Dir> {
        match self.node(path) {
            Some(Node::Dir(id)) => Ok(&self.dirs[&id]),
            _ => Err(missing(path)),
        }
    }

    /// The length of a file in a directory.
    pub(super) fn len(&self, node: Node) -> Option<u64> {
        match node {
            Node::File(id) => Some(self.inodes[&id].live.len() as u64),
            Node::Dir(_) => None,
        }
    }

    pub(super) fn create(&mut self, path: &Path) -> io::Result<u64> {
        self.strike(Op::Create, path)?;
        let id = self.fresh();
        self.inodes.insert(id, Inode::default());
        self.link(path, Node::File(id))?;
        Ok(id)
    }

    pub(super) fn create_dir(&mut self, path: &Path) -> io::Result<()> {
        if self.dir(path).is_ok() {
            return Ok(());
        }
        let id = self.fresh();
        self.dirs.insert(id, Dir::default());
        self.link(path, Node::Dir(id))
    }

    pub(super) fn remove_dir(&mut self, path: &Path) -> io::Result<()> {
        if !self.dir(path)?.live.is_empty() {
            return Err(io::Error::from(io::ErrorKind::DirectoryNotEmpty));
        }
        self.unlink(path)
    }

    pub(super) fn unlink(&mut self, path: &Path) -> io::Result<()> {
        let (dir, name) = self.parent(path)?;
        dir.live.remove(&name).ok_or_else(|| missing(path))?;
        dir.pending.push(DirOp::Unlink(name));
        Ok(())
    }

    /// Renames within a directory.
    pub(super) fn rename(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        self.strike(Op::Rename, from)?;
        let node = self.node(from).ok_or_else(|| missing(from))?;
        let (_, to) = split(to)?;
        let (dir, from) = self.parent(from)?;
        dir.live.remove(&from);
        dir.live.insert(to.clone(), node);
        dir.pending.push(DirOp::Rename { from, to, node });
        Ok(())
    }

    pub(super) fn sync_dir(&mut self, path: &Path) -> io::Result<()> {
        self.strike(Op::SyncDir, path)?;
        let Some(Node::Dir(id)) = self.node(path) else { return Err(missing(path)) };
        self.dirs.entry(id).or_default().sync();
        Ok(())
    }

    /// Puts a file there, and every directory above it, durably.
    pub(super) fn plant(&mut self, path: &Path, bytes: &[u8]) {
        let (parent, name) = split(path).expect("a file has a directory");
        let (mut dir, mut above) = (ROOT, std::path::PathBuf::from("/"));
        for part in parent.iter().skip(1) {
            above.push(part);
            self.create_dir(&above).expect("its parent is there");
            self.dirs.entry(dir).or_default().sync();
            let Some(Node::Dir(id)) = self.node(&above) else { panic!("a file is in the way") };
            dir = id;
        }
        let id = self.find(path).unwrap_or_else(|| self.fresh());
        let inode = self.inodes.entry(id).or_default();
        (inode.live, inode.durable) = (bytes.to_vec(), bytes.to_vec());
        inode.dirty.clear();
        inode.lengths.clear();
        let dir = self.dirs.entry(dir).or_default();
        dir.live.insert(name.clone(), Node::File(id));
        dir.durable.insert(name, Node::File(id));
    }

    /// Counts a change, and ends the boot or fails as was asked for.
    pub(super) fn strike(&mut self, op: Op, path: &Path) -> io::Result<()> {
        let text = path.to_string_lossy();
        if op != Op::Read {
            self.count()?;
        }
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

    /// Lets one change pass, unless the boot ends before it.
    pub(super) fn count(&mut self) -> io::Result<()> {
        match self.end {
            None => Ok(()),
            Some((0, end)) => {
                match end {
                    End::Kill => self.kill(),
                    End::Power => self.crash(),
                }
                Err(io::Error::other("the machine or the process has just ended"))
            }
            Some((left, end)) => {
                self.end = Some((left - 1, end));
                Ok(())
            }
        }
    }

    pub(super) fn write(&mut self, id: u64, offset: usize, bytes: &[u8]) -> io::Result<()> {
        let room = self.room;
        let inode = self.inode(id);
        let grows = (offset + bytes.len()).saturating_sub(inode.live.len());
        let taken = room.map_or(grows, |room| grows.min(room as usize));
        let part = &bytes[..bytes.len() - (grows - taken)];
        inode.write(offset, part);
        self.room = room.map(|room| room - taken as u64);
        if part.len() == bytes.len() {
            return Ok(());
        }
        Err(io::Error::new(io::ErrorKind::StorageFull, "no room left on the simulated disk"))
    }

    pub(super) fn set_len(&mut self, id: u64, len: usize) {
        let inode = self.inode(id);
        let freed = inode.live.len().saturating_sub(len);
        inode.set_len(len);
        self.room = self.room.map(|room| room + freed as u64);
    }

    pub(super) fn kill(&mut self) {
        self.boot += 1;
        self.end = None;
    }

    pub(super) fn crash(&mut self) {
        self.kill();
        self.faults.clear();
        let ids: Vec<u64> = self.inodes.keys().copied().collect();
        for id in ids {
            self.keep_some(id);
            let inode = self.inode(id);
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
    pub(super) fn keep_some(&mut self, id: u64) {
        let share = self.rng.share();
        let inode = self.inodes.get_mut(&id).expect("listed or open");
        let lengths = std::mem::take(&mut inode.lengths);
        let any = self.rng.below(lengths.len() as u64 + 1) as usize;
        let len = match self.rng.below(3) {
            0 => inode.durable.len(),
            1 => inode.live.len(),
            _ => lengths.get(any).map_or(inode.durable.len(), |it| it.pick(&mut self.rng)),
        };
        inode.durable.resize(len, 0);
        for sector in std::mem::take(&mut inode.dirty) {
            if self.rng.chance(share) && sector * SECTOR < len {
                inode.keep_sector(sector);
            }
        }
        inode.durable.truncate(len);
    }

    fn node(&self, path: &Path) -> Option<Node> {
        let mut node = Node::Dir(ROOT);
        for part in path.components() {
            let Node::Dir(dir) = node else { return None };
            match part {
                Component::RootDir => {}
                part => node = *self.dirs[&dir].live.get(part.as_os_str().to_str()?)?,
            }
        }
        Some(node)
    }

    fn parent(&mut self, path: &Path) -> io::Result<(&mut Dir, String)> {
        let (parent, name) = split(path)?;
        match self.node(&parent) {
            Some(Node::Dir(id)) => Ok((self.dirs.entry(id).or_default(), name)),
            _ => Err(missing(path)),
        }
    }

    fn link(&mut self, path: &Path, node: Node) -> io::Result<()> {
        let (dir, name) = self.parent(path)?;
        dir.live.insert(name.clone(), node);
        dir.pending.push(DirOp::Link(name, node));
        Ok(())
    }

    fn fresh(&mut self) -> u64 {
        self.node_next += 1;
        self.node_next
    }
}

impl Lengths {
    fn pick(self, rng: &mut Rng) -> usize {
        match self {
            Self::Grown { from, to } => from + rng.below((to - from) as u64 + 1) as usize,
            Self::Set(len) => len,
        }
    }
}

impl Dir {
    fn sync(&mut self) {
        self.pending.clear();
        self.durable.clone_from(&self.live);
    }
}

impl DirOp {
    fn apply(self, names: &mut BTreeMap<String, Node>) {
        match self {
            Self::Link(name, node) => {
                names.insert(name, node);
            }
            Self::Unlink(name) => {
                names.remove(&name);
            }
            Self::Rename { from, to, node } => {
                names.remove(&from);
                names.insert(to, node);
            }
        }
    }
}

impl Inode {
    /// Brings everything written to the disk.
    pub(super) fn sync(&mut self) {
        for sector in std::mem::take(&mut self.dirty) {
            self.keep_sector(sector);
        }
        self.durable.resize(self.live.len(), 0);
        self.lengths.clear();
    }

    fn write(&mut self, offset: usize, bytes: &[u8]) {
        let end = offset + bytes.len();
        if bytes.is_empty() {
            return;
        }
        if self.live.len() < end {
            self.grow(end);
        }
        self.live[offset..end].copy_from_slice(bytes);
        self.dirty.extend(offset / SECTOR..=(end - 1) / SECTOR);
    }

    fn grow(&mut self, end: usize) {
        let len = self.live.len();
        match self.lengths.last_mut() {
            Some(Lengths::Grown { to, .. }) if *to == len => *to = end,
            _ => self.lengths.push(Lengths::Grown { from: len, to: end }),
        }
        self.live.resize(end, 0);
    }

    fn set_len(&mut self, len: usize) {
        self.live.resize(len, 0);
        self.lengths.push(Lengths::Set(len));
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

fn split(path: &Path) -> io::Result<(std::path::PathBuf, String)> {
    let dir = path.parent().ok_or_else(|| missing(path))?;
    let name = path.file_name().and_then(|name| name.to_str()).ok_or_else(|| missing(path))?;
    Ok((dir.to_owned(), name.to_owned()))
}

pub(super) fn missing(path: &Path) -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, format!("{} is not there", path.display()))
}

const ROOT: u64 = 0;
