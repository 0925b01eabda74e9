//! Walks a segment's batches from a position on, by their headers, checking as much as asked.
//!
//! Memory is one window, whatever the bytes say: a checksum is computed piece by piece.

use std::fmt;
use std::io;

use ottla_model::Offset;
use ottla_records::{HEADER_LEN, Header, MAGIC};

use crate::fs::File;

/// Reads batch headers one after another.
#[derive(Debug)]
pub(crate) struct Scanner<'a> {
    file: &'a dyn File,
    position: u64,
    end: u64,
    window: Vec<u8>,
    window_from: u64,
    verify: bool,
}

/// One batch, by its header.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen {
    header: [u8; HEADER_LEN],
    /// Where it begins in its segment.
    pub(crate) position: u64,
    /// Bytes of the whole batch.
    pub(crate) size: u64,
}

/// What is wrong with the bytes at a position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Damage {
    /// The file ends inside a batch.
    Torn,
    /// Not the header of a batch of magic 2.
    NotABatch,
    /// The checksum is not that of the bytes.
    Crc,
    /// Its offsets do not follow those before it.
    Offsets {
        /// What its base offset should be (at least, in a log that may have gaps).
        expected: Offset,
        /// What it is.
        found: Offset,
    },
}

impl<'a> Scanner<'a> {
    /// Walks `file` between two positions, the first of which is where a batch begins.
    pub(crate) fn new(file: &'a dyn File, from: u64, end: u64) -> Self {
        Self { file, position: from, end, window: Vec::new(), window_from: 0, verify: false }
    }

    /// The same, checking each batch's checksum.
    pub(crate) fn verifying(self) -> Self {
        Self { verify: true, ..self }
    }

    /// The next batch; none at the end. After damage the scanner stays where it is.
    pub(crate) fn next(&mut self) -> io::Result<Option<Result<Seen, Damage>>> {
        if self.position >= self.end {
            return Ok(None);
        }
        let seen = match self.look()? {
            Ok(seen) => seen,
            Err(damage) => return Ok(Some(Err(damage))),
        };
        if self.verify && self.crc(&seen)? != seen.header().crc() {
            return Ok(Some(Err(Damage::Crc)));
        }
        self.position += seen.size;
        Ok(Some(Ok(seen)))
    }

    /// Where the next batch begins, or the damage.
    pub(crate) fn position(&self) -> u64 {
        self.position
    }

    fn look(&mut self) -> io::Result<Result<Seen, Damage>> {
        let window_min = if self.verify { WINDOW } else { HEADER_WINDOW };
        self.fill(self.position, HEADER_LEN, window_min)?;
        let at = (self.position - self.window_from) as usize;
        let Some(header) = self.window[at..].first_chunk::<HEADER_LEN>().copied() else {
            return Ok(Err(Damage::Torn));
        };
        let fields = Header::new(&header).expect("exactly a header's bytes");
        let Some(size) = fields.size().filter(|_| fields.magic() == MAGIC) else {
            return Ok(Err(Damage::NotABatch));
        };
        let base = fields.base_offset().0;
        let last = base.checked_add(i64::from(fields.last_offset_delta()));
        // The offset after the last one must be an offset too.
        let sound = base >= 0 && last.is_some_and(|last| last >= base && last < i64::MAX);
        if !sound || fields.record_count() < 0 {
            return Ok(Err(Damage::NotABatch));
        }
        let size = size as u64;
        if size > self.end - self.position {
            return Ok(Err(Damage::Torn));
        }
        Ok(Ok(Seen { header, position: self.position, size }))
    }

    /// The checksum of the batch's bytes as they are.
    fn crc(&mut self, seen: &Seen) -> io::Result<u32> {
        let (mut at, end) = (seen.position + CRC_FROM, seen.position + seen.size);
        let mut crc = 0;
        while at < end {
            self.fill(at, 1, WINDOW)?;
            let from = (at - self.window_from) as usize;
            let piece = &self.window[from..];
            let piece = &piece[..piece.len().min((end - at) as usize)];
            if piece.is_empty() {
                break;
            }
            crc = crc32c::crc32c_append(crc, piece);
            at += piece.len() as u64;
        }
        Ok(crc)
    }

    /// Makes the window hold `len` bytes from `from` on, if the file has them.
    fn fill(&mut self, from: u64, len: usize, window: usize) -> io::Result<()> {
        let held = self.window_from + self.window.len() as u64;
        if from >= self.window_from && from + len as u64 <= held {
            return Ok(());
        }
        self.window.clear();
        self.window_from = from;
        let want = (self.end - from).min(window as u64) as usize;
        self.file.read_at(from, want, &mut self.window)
    }
}

impl Seen {
    /// Its fixed fields.
    pub(crate) fn header(&self) -> Header<'_> {
        Header::new(&self.header).expect("exactly a header's bytes")
    }

    /// Where the next batch begins.
    pub(crate) fn end(&self) -> u64 {
        self.position + self.size
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Torn => f.write_str("the file ends inside a batch"),
            Self::NotABatch => f.write_str("the bytes are not a record batch"),
            Self::Crc => f.write_str("a batch's checksum is not that of its bytes"),
            Self::Offsets { expected, found } => {
                write!(f, "a batch begins at offset {found} where {expected} should follow")
            }
        }
    }
}

/// Bytes read at once when all of them are looked at.
const WINDOW: usize = 1 << 20;
/// Bytes read at once when only headers are.
const HEADER_WINDOW: usize = 16 << 10;
/// Where the bytes that a batch's checksum covers begin: the attributes.
const CRC_FROM: u64 = 21;
