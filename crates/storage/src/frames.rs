//! A file of small checksummed frames that are appended without a sync: for what is good to have
//! after a crash and can be done without. Knows nothing of what is in them.
//!
//! ```text
//! frame = int32 length, int32 CRC-32C of the bytes, bytes
//! ```
//!
//! What was appended survives the end of the process, not of the machine: reading stops at the
//! first frame that is not whole, and the file is cut there.

use crate::fs::{self, File, Fs, OpenMode};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The file, open for appending.
#[derive(Debug)]
pub struct Frames {
    fs: Arc<dyn Fs>,
    path: PathBuf,
    /// Made with the first frame: most of such files stay empty.
    file: Option<Arc<dyn File>>,
    end: u64,
    /// While a replacement is being written, what was appended since: it goes behind that.
    since: Option<Vec<u8>>,
}

/// Frames to be written beside the file, outside of whatever lock the file is kept under.
#[derive(Debug)]
pub struct ReplaceJob {
    fs: Arc<dyn Fs>,
    path: PathBuf,
    bytes: Vec<u8>,
}

/// How that went. Give it back to [`Frames::finish_replace`].
#[derive(Debug)]
#[must_use = "the file keeps what is appended until it hears of it"]
pub struct Replaced {
    path: PathBuf,
    written: io::Result<(Arc<dyn File>, u64)>,
}

impl Frames {
    /// Opens the file; hands back its frames, oldest first. Of a file larger than 64 MiB nothing is
    /// read, and it begins anew. One that is not there is made, with its folder, when the first
    /// frame comes.
    ///
    /// # Errors
    /// If the file system refuses.
    pub fn open(fs: Arc<dyn Fs>, path: &Path) -> io::Result<(Self, Vec<Vec<u8>>)> {
        let file = match fs.open(path, OpenMode::Existing) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let path = path.to_owned();
                return Ok((Self { fs, path, file: None, end: 0, since: None }, Vec::new()));
            }
            Err(error) => return Err(error),
        };
        let size = file.size()?;
        let mut bytes = Vec::new();
        if size <= SIZE_MAX {
            file.read_at(0, usize::try_from(size).unwrap_or(0), &mut bytes)?;
        }
        let (frames, end) = split(&bytes);
        if end < size {
            file.set_len(end)?;
        }
        Ok((Self { fs, path: path.to_owned(), file: Some(file), end, since: None }, frames))
    }

    /// Appends a frame; it is not synced.
    ///
    /// # Errors
    /// If the file system refuses. Frames appended later are whole all the same.
    pub fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let frame = framed(bytes);
        let file = match &self.file {
            Some(file) => file,
            None => self.file.insert(self.make()?),
        };
        file.write_at(self.end, &frame)?;
        self.end += frame.len() as u64;
        if let Some(since) = &mut self.since {
            since.extend(&frame);
        }
        Ok(())
    }

    fn make(&self) -> io::Result<Arc<dyn File>> {
        if let Some(folder) = self.path.parent() {
            self.fs.create_dir(folder)?;
        }
        self.fs.open(&self.path, OpenMode::Create)
    }

    /// Puts these frames in the place of all there are, all or none. Blocks on the disk.
    ///
    /// # Errors
    /// If the file system refuses; the file is then as it was.
    pub fn replace(&mut self, frames: &[Vec<u8>]) -> io::Result<()> {
        if self.file.is_none() {
            self.file = Some(self.make()?);
        }
        let replaced = self.start_replace(frames).run();
        self.finish_replace(replaced)
    }

    /// The same in three steps, of which the middle one blocks on the disk. What is appended
    /// meanwhile comes behind these frames.
    pub fn start_replace(&mut self, frames: &[Vec<u8>]) -> ReplaceJob {
        self.since = Some(Vec::new());
        let bytes = frames.iter().flat_map(|frame| framed(frame)).collect();
        ReplaceJob { fs: self.fs.clone(), path: self.path.clone(), bytes }
    }

    /// Whether that is under way.
    pub fn is_being_replaced(&self) -> bool {
        self.since.is_some()
    }

    /// Takes the outcome. Without waiting for the disk: should power be lost, the one file is there
    /// or the other.
    ///
    /// # Errors
    /// If the file system refuses; the file is then as it was.
    pub fn finish_replace(&mut self, replaced: Replaced) -> io::Result<()> {
        let since = self.since.take().unwrap_or_default();
        let (file, end) = replaced.written?;
        file.write_at(end, &since)?;
        self.fs.rename(&replaced.path, &self.path)?;
        (self.file, self.end) = (Some(file), end + since.len() as u64);
        Ok(())
    }

    /// Bytes of the file.
    pub fn size(&self) -> u64 {
        self.end
    }
}

impl ReplaceJob {
    /// Writes and syncs the frames. Blocks on the disk.
    pub fn run(self) -> Replaced {
        let path = fs::beside(&self.path);
        let write = || -> io::Result<(Arc<dyn File>, u64)> {
            let file = self.fs.open(&path, OpenMode::Fresh)?;
            file.write_at(0, &self.bytes)?;
            file.sync()?;
            Ok((file, self.bytes.len() as u64))
        };
        Replaced { written: write(), path }
    }
}

/// The whole frames that `bytes` begin with, and where they end.
fn split(bytes: &[u8]) -> (Vec<Vec<u8>>, u64) {
    let mut frames = Vec::new();
    let mut rest = bytes;
    while let Some((frame, after)) = first(rest) {
        frames.push(frame.to_vec());
        rest = after;
    }
    (frames, (bytes.len() - rest.len()) as u64)
}

fn first(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk()?;
    let (crc, rest) = rest.split_first_chunk()?;
    let (frame, rest) = rest.split_at_checked(u32::from_be_bytes(*length) as usize)?;
    // A hole reads as zeros, which would pass for a frame of nothing.
    let is_whole = !frame.is_empty() && crc32c::crc32c(frame) == u32::from_be_bytes(*crc);
    is_whole.then_some((frame, rest))
}

fn framed(bytes: &[u8]) -> Vec<u8> {
    let mut frame = Vec::with_capacity(bytes.len() + 8);
    // Nobody keeps frames of gigabytes.
    frame.extend(u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_be_bytes());
    frame.extend(crc32c::crc32c(bytes).to_be_bytes());
    frame.extend(bytes);
    frame
}

/// What is read of such a file at most.
const SIZE_MAX: u64 = 64 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    fn file() -> (Vec<Vec<u8>>, Vec<u8>) {
        let frames = vec![b"one".to_vec(), b"two, longer".to_vec(), vec![0; 300]];
        let bytes = frames.iter().flat_map(|frame| framed(frame)).collect();
        (frames, bytes)
    }

    #[test]
    fn a_file_cut_anywhere_keeps_its_whole_frames() {
        let (frames, bytes) = file();
        for cut in 0..=bytes.len() {
            let (read, end) = split(&bytes[..cut]);
            assert_eq!(read, frames[..read.len()]);
            assert!(end as usize <= cut);
            assert_eq!(split(&bytes[..end as usize]).0, read);
        }
        assert_eq!(split(&bytes).0, frames);
    }

    #[test]
    fn a_file_is_made_with_its_first_frame() {
        let fs = crate::fs::sim::SimFs::new(1);
        let path = Path::new("/folder/file");
        let (mut file, kept) = Frames::open(Arc::new(fs.clone()), path).unwrap();
        assert!(kept.is_empty() && fs.contents(path).is_none());
        file.append(b"one").unwrap();
        file.append(b"two").unwrap();
        let (mut file, kept) = Frames::open(Arc::new(fs.clone()), path).unwrap();
        assert_eq!(kept, [b"one", b"two"]);
        file.replace(&kept[1..]).unwrap();
        let (_, kept) = Frames::open(Arc::new(fs.clone()), path).unwrap();
        assert_eq!(kept, [b"two"]);
        let (mut other, _) = Frames::open(Arc::new(fs), Path::new("/other/file")).unwrap();
        other.replace(&kept).unwrap();
        assert_eq!(other.size(), 11);
    }

    /// Issue 3: a file is written anew while frames are appended to it, and none is lost.
    #[test]
    fn a_file_is_appended_to_while_it_is_replaced() {
        let fs = crate::fs::sim::SimFs::new(1);
        let path = Path::new("/folder/file");
        let kept = || Frames::open(Arc::new(fs.clone()), path).unwrap().1;
        let (mut file, _) = Frames::open(Arc::new(fs.clone()), path).unwrap();
        file.append(b"one").unwrap();
        file.append(b"two").unwrap();
        let job = file.start_replace(&[b"two".to_vec()]);
        file.append(b"three").unwrap();
        let replaced = job.run();
        file.append(b"four").unwrap();
        assert_eq!(kept(), [&b"one"[..], b"two", b"three", b"four"]);
        file.finish_replace(replaced).unwrap();
        assert!(!file.is_being_replaced());
        file.append(b"five").unwrap();
        assert_eq!(kept(), [&b"two"[..], b"three", b"four", b"five"]);
    }

    #[test]
    fn a_hole_or_a_flipped_bit_ends_the_file() {
        let (_, mut bytes) = file();
        bytes.extend([0; 64]);
        assert_eq!(split(&bytes).0.len(), 3);
        bytes[12 + 3] ^= 1;
        assert!(split(&bytes).0.len() <= 1);
    }
}
