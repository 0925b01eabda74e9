//! The sparse index that Kafka keeps beside each segment, in both its kinds.
//!
//! Entries are written to the file a page at a time; the newest wait in memory, where a reader
//! at the log's end finds them. An index is a hint: whoever follows it checks what is there.
//!
//! A restart takes the file of a sealed segment by its size, and of the newest one as far as the
//! checkpoint says. So a file is only ever added to, and one that is made anew takes the old
//! one's place whole and synced: on the disk it is the old one, the new one, or not there.
//!
//! ```text
//! .index      last offset of a batch, from the segment's base i32 | where it begins i32
//! .timeindex  greatest timestamp so far i64 | last offset of its batch, from the base i32
//! ```

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use parking_lot::RwLock;

use crate::fs::{self, File, Fs, OpenMode};

/// What an index holds: fixed bytes, ordered by a key.
pub(crate) trait Entry: Copy {
    /// Its bytes on disk.
    const LEN: usize;
    /// What entries are ordered by, strictly.
    fn key(&self) -> i64;
    /// Appends its bytes.
    fn write(&self, into: &mut Vec<u8>);
    /// Reads it from exactly [`Entry::LEN`] bytes.
    fn read(bytes: &[u8]) -> Self;
}

/// Where a batch lies in its segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OffsetEntry {
    /// Last offset of the batch, from the segment's base offset.
    pub(crate) delta: i32,
    /// Where the batch begins.
    pub(crate) position: i32,
}

/// How far time had come at an offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TimeEntry {
    /// The greatest timestamp up to there.
    pub(crate) timestamp: i64,
    /// Last offset of the batch that has it, from the segment's base offset.
    pub(crate) delta: i32,
}

/// One index file and the entries that are not in it yet. One writer, the log; many readers.
#[derive(Debug)]
pub(crate) struct Index<E> {
    fs: Arc<dyn Fs>,
    path: PathBuf,
    state: RwLock<State<E>>,
}

#[derive(Debug)]
struct State<E> {
    /// Opened, and created, when first needed: most indexes never are.
    file: Option<Arc<dyn File>>,
    written: u32,
    tail: Vec<E>,
    last: Option<E>,
    /// Made anew: whatever lies at the path is to be replaced, not written over.
    anew: bool,
}

impl<E: Entry> Index<E> {
    /// The index of a new segment: empty, the file not there yet.
    pub(crate) fn new(fs: Arc<dyn Fs>, path: PathBuf) -> Self {
        let state = State { file: None, written: 0, tail: Vec::new(), last: None, anew: false };
        Self { fs, path, state: RwLock::new(state) }
    }

    /// Takes the first `entries` of the file as true. False if there are fewer, or if they
    /// cannot be: then the index is as it was, and must be rebuilt.
    pub(crate) fn adopt(&self, entries: u32) -> io::Result<bool> {
        if entries == 0 {
            return Ok(true);
        }
        let file = match self.fs.open(&self.path, OpenMode::Existing) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(error),
        };
        let Some(last) = read_entry::<E>(&*file, entries - 1)? else { return Ok(false) };
        let before = if entries > 1 { read_entry::<E>(&*file, entries - 2)? } else { None };
        if before.is_some_and(|before| before.key() >= last.key()) {
            return Ok(false);
        }
        let mut state = self.state.write();
        (state.written, state.last) = (entries, Some(last));
        Ok(true)
    }

    /// How many entries there are.
    pub(crate) fn entries(&self) -> u32 {
        let state = self.state.read();
        state.written + state.tail.len() as u32
    }

    /// The newest entry.
    pub(crate) fn last(&self) -> Option<E> {
        self.state.read().last
    }

    /// Adds an entry, unless its key does not exceed the last one's.
    pub(crate) fn push(&self, entry: E) {
        let mut state = self.state.write();
        if state.last.is_some_and(|last| last.key() >= entry.key()) {
            return;
        }
        state.last = Some(entry);
        state.tail.push(entry);
    }

    /// How many entries wait in memory.
    pub(crate) fn unwritten(&self) -> usize {
        self.state.read().tail.len()
    }

    /// Writes what waits in memory to the file, creating it even if that is nothing. After
    /// [`Index::clear`] that is a whole new file, durable at once, in the place of the old one.
    pub(crate) fn write_out(&self) -> io::Result<()> {
        let mut state = self.state.write();
        if state.tail.is_empty() && state.written > 0 {
            return Ok(());
        }
        let mut bytes = Vec::with_capacity(state.tail.len() * E::LEN);
        for entry in &state.tail {
            entry.write(&mut bytes);
        }
        if state.anew {
            fs::replace(&*self.fs, &self.path, &bytes)?;
            (state.anew, state.file) = (false, None);
        } else if bytes.is_empty() && state.file.is_none() {
            // It is there for whoever looks. A process may have only so many files open, and most
            // partitions are small: none of them is one of an index without entries.
            self.fs.open(&self.path, OpenMode::Create)?;
        } else {
            let file = self.file(&mut state)?;
            if !bytes.is_empty() {
                file.write_at(u64::from(state.written) * E::LEN as u64, &bytes)?;
            }
        }
        state.written += state.tail.len() as u32;
        state.tail.clear();
        Ok(())
    }

    /// Cuts the file to its written entries: nothing of an older life follows them.
    pub(crate) fn trim(&self) -> io::Result<()> {
        let mut state = self.state.write();
        let file = self.file(&mut state)?;
        let len = u64::from(state.written) * E::LEN as u64;
        if file.size()? == len { Ok(()) } else { file.set_len(len) }
    }

    /// Opens the file if entries are in it.
    pub(crate) fn hold(&self) -> io::Result<()> {
        let mut state = self.state.write();
        if state.written > 0 { self.file(&mut state).map(drop) } else { Ok(()) }
    }

    /// Makes the written entries durable.
    pub(crate) fn sync(&self) -> io::Result<()> {
        let file = self.state.read().file.clone();
        file.map_or(Ok(()), |file| file.sync())
    }

    /// Takes every written entry back, to be written again: a failed sync may have lost some.
    pub(crate) fn take_back(&self) -> io::Result<()> {
        let mut state = self.state.write();
        if state.written == 0 {
            return Ok(());
        }
        let file = self.file(&mut state)?;
        let mut bytes = Vec::new();
        file.read_at(0, state.written as usize * E::LEN, &mut bytes)?;
        let mut entries: Vec<E> = bytes.chunks_exact(E::LEN).map(E::read).collect();
        entries.append(&mut state.tail);
        (state.written, state.tail) = (0, entries);
        Ok(())
    }

    /// Every entry, for tests that hold them against the batches.
    #[cfg(test)]
    pub(crate) fn all(&self) -> Vec<E> {
        self.take_back().unwrap();
        self.state.read().tail.clone()
    }

    /// The last entry whose key is at most `key`.
    pub(crate) fn floor(&self, key: i64) -> io::Result<Option<E>> {
        let state = self.state.read();
        if state.last.is_some_and(|last| last.key() <= key) {
            return Ok(state.last);
        }
        let after = state.tail.partition_point(|entry| entry.key() <= key);
        if after > 0 {
            return Ok(Some(state.tail[after - 1]));
        }
        let written = state.written;
        let file = state.file.clone();
        drop(state);
        if written == 0 {
            return Ok(None);
        }
        let file = match file {
            Some(file) => file,
            None => self.file(&mut self.state.write())?,
        };
        floor_in_file(&*file, written, key)
    }

    /// Forgets every entry, to be filled anew. The file is replaced when that is written out.
    pub(crate) fn clear(&self) {
        let mut state = self.state.write();
        (state.written, state.last, state.anew) = (0, None, true);
        state.tail.clear();
    }

    fn file(&self, state: &mut State<E>) -> io::Result<Arc<dyn File>> {
        if let Some(file) = &state.file {
            return Ok(file.clone());
        }
        let file = self.fs.open(&self.path, OpenMode::Create)?;
        state.file = Some(file.clone());
        Ok(file)
    }
}

impl Entry for OffsetEntry {
    const LEN: usize = 8;

    fn key(&self) -> i64 {
        i64::from(self.delta)
    }

    fn write(&self, into: &mut Vec<u8>) {
        into.extend_from_slice(&self.delta.to_be_bytes());
        into.extend_from_slice(&self.position.to_be_bytes());
    }

    fn read(bytes: &[u8]) -> Self {
        Self { delta: be_i32(&bytes[..4]), position: be_i32(&bytes[4..]) }
    }
}

impl Entry for TimeEntry {
    const LEN: usize = 12;

    fn key(&self) -> i64 {
        self.timestamp
    }

    fn write(&self, into: &mut Vec<u8>) {
        into.extend_from_slice(&self.timestamp.to_be_bytes());
        into.extend_from_slice(&self.delta.to_be_bytes());
    }

    fn read(bytes: &[u8]) -> Self {
        let mut timestamp = [0; 8];
        timestamp.copy_from_slice(&bytes[..8]);
        Self { timestamp: i64::from_be_bytes(timestamp), delta: be_i32(&bytes[8..]) }
    }
}

fn be_i32(bytes: &[u8]) -> i32 {
    let mut field = [0; 4];
    field.copy_from_slice(bytes);
    i32::from_be_bytes(field)
}

fn read_entry<E: Entry>(file: &dyn File, at: u32) -> io::Result<Option<E>> {
    let mut bytes = Vec::with_capacity(E::LEN);
    file.read_at(u64::from(at) * E::LEN as u64, E::LEN, &mut bytes)?;
    Ok((bytes.len() == E::LEN).then(|| E::read(&bytes)))
}

fn floor_in_file<E: Entry>(file: &dyn File, written: u32, key: i64) -> io::Result<Option<E>> {
    let after = partition_in_file(file, written, &|entry: &E| entry.key() <= key)?;
    if after == 0 { Ok(None) } else { read_entry(file, after - 1) }
}

/// How many of the file's first `written` entries satisfy `holds`, which they do up to a point.
/// Halves by single reads while far apart, then reads the page that is left at once.
fn partition_in_file<E: Entry>(
    file: &dyn File,
    written: u32,
    holds: &dyn Fn(&E) -> bool,
) -> io::Result<u32> {
    let (mut low, mut high) = (0, written);
    while (high - low) as usize > PAGE_ENTRIES {
        let middle = low + (high - low) / 2;
        match read_entry(file, middle)? {
            Some(entry) if holds(&entry) => low = middle + 1,
            _ => high = middle,
        }
    }
    let mut page = Vec::new();
    let len = (high - low) as usize * E::LEN;
    file.read_at(u64::from(low) * E::LEN as u64, len, &mut page)?;
    let entries: Vec<E> = page.chunks_exact(E::LEN).map(E::read).collect();
    Ok(low + entries.partition_point(holds) as u32)
}

/// Entries read at once at the end of a search, and written at once by an append.
pub(crate) const PAGE_ENTRIES: usize = 256;
