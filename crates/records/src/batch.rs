//! Whole batches, one after another, in a run of bytes: a segment's, a request's, a response's.
//!
//! Framing and checksum only. Where the bytes come from and what the offsets mean is the
//! caller's; what the records say is [`crate::Records`]'.

use crate::header::{CRC_FROM, at};
use crate::{HEADER_LEN, Header, LOG_OVERHEAD, MAGIC, Records, RecordsError};

/// Iterates the batches of a run of bytes, borrowing them. Ends after the first error.
///
/// Costs nothing per record and reads no checksum: see [`Batch::verify_crc`].
#[derive(Clone, Debug)]
pub struct Batches<'a> {
    bytes: &'a [u8],
    position: usize,
    failed: bool,
}

/// One whole batch of magic 2, its records as yet unread.
#[derive(Clone, Copy)]
pub struct Batch<'a> {
    header: Header<'a>,
    bytes: &'a [u8],
}

/// Why no (further) batch can be read. `position` counts bytes from the start of the run, and
/// everything before it was whole: it is where the last good batch ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BatchError {
    /// The run ends inside a batch: a write that was cut off, or a fetch's last, partial batch.
    #[error("the bytes end inside the batch at byte {position}: {present} of {needed} are there")]
    Torn {
        /// Where the last good byte ends and the cut batch begins.
        position: usize,
        /// Bytes of the cut batch that are there.
        present: usize,
        /// Bytes it needs; 17, the reach of the magic byte, while its own length is cut off.
        needed: usize,
    },
    /// The length field is below the header's own length.
    #[error("the batch at byte {position} says it is {length} long, less than its own header")]
    Length {
        /// Where the batch begins.
        position: usize,
        /// The length field as it stands.
        length: i32,
    },
    /// Not a batch of magic 2. Magics 0 and 1 are the message sets that Kafka 4 dropped (KIP-724).
    #[error("the batch at byte {position} has magic {magic}, only 2 is supported")]
    Magic {
        /// Where the batch begins.
        position: usize,
        /// The magic byte as it stands.
        magic: i8,
    },
}

impl BatchError {
    /// How many bytes of the run are whole batches.
    pub fn position(self) -> usize {
        match self {
            Self::Torn { position, .. }
            | Self::Length { position, .. }
            | Self::Magic { position, .. } => position,
        }
    }

    /// The same error in a run that begins `before` bytes earlier.
    pub(crate) fn after(mut self, before: usize) -> Self {
        match &mut self {
            Self::Torn { position, .. }
            | Self::Length { position, .. }
            | Self::Magic { position, .. } => *position += before,
        }
        self
    }
}

/// The stored checksum is not that of the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("batch is corrupt: its CRC-32C says {stored:#010x}, its bytes have {computed:#010x}")]
pub struct CrcMismatch {
    /// What the header says.
    pub stored: u32,
    /// What the bytes have.
    pub computed: u32,
}

impl<'a> Batches<'a> {
    /// The batches of `bytes`, which begins with one.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, position: 0, failed: false }
    }

    /// Bytes of the batches yielded so far: where the next one begins.
    pub fn position(&self) -> usize {
        self.position
    }
}

impl<'a> Iterator for Batches<'a> {
    type Item = Result<Batch<'a>, BatchError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed || self.position == self.bytes.len() {
            return None;
        }
        let next = Batch::first(&self.bytes[self.position..]);
        match &next {
            Ok(batch) => self.position += batch.bytes.len(),
            Err(_) => self.failed = true,
        }
        Some(next.map_err(|error| error.after(self.position)))
    }
}

impl std::iter::FusedIterator for Batches<'_> {}

impl<'a> Batch<'a> {
    /// The batch that `bytes` begins with.
    pub fn first(bytes: &'a [u8]) -> Result<Self, BatchError> {
        let torn = |needed| BatchError::Torn { position: 0, present: bytes.len(), needed };
        let length = bytes.get(at::BATCH_LENGTH..).and_then(|from| from.first_chunk());
        // Magic stands at the same place in every format there ever was, so it is asked first: an
        // old message set is shorter than a header and must not look torn.
        let (Some(length), Some(magic)) = (length, bytes.get(at::MAGIC)) else {
            return Err(torn(at::MAGIC + 1));
        };
        let (length, magic) = (i32::from_be_bytes(*length), i8::from_be_bytes([*magic]));
        if magic != MAGIC {
            return Err(BatchError::Magic { position: 0, magic });
        }
        let size = usize::try_from(length).ok().and_then(|length| length.checked_add(LOG_OVERHEAD));
        let Some(size) = size.filter(|&size| size >= HEADER_LEN) else {
            return Err(BatchError::Length { position: 0, length });
        };
        let bytes = bytes.get(..size).ok_or_else(|| torn(size))?;
        let header = Header::new(bytes).ok_or_else(|| torn(size))?;
        Ok(Self { header, bytes })
    }

    /// The fixed fields.
    pub fn header(&self) -> Header<'a> {
        self.header
    }

    /// The whole batch, header included.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// What follows the header: the records, compressed if the attributes say so.
    pub fn body(&self) -> &'a [u8] {
        &self.bytes[HEADER_LEN..]
    }

    /// Checks the checksum, which covers all but base offset, length, leader epoch and magic.
    pub fn verify_crc(&self) -> Result<(), CrcMismatch> {
        let stored = self.header.crc();
        let computed = crc32c::crc32c(&self.bytes[CRC_FROM..]);
        if stored == computed { Ok(()) } else { Err(CrcMismatch { stored, computed }) }
    }

    /// The records, decompressed if need be to at most `bytes_max` bytes.
    ///
    /// An uncompressed batch is borrowed and read as the iteration goes. A compressed one is
    /// unpacked here, into memory that grows only as output comes: one that unpacks to more than
    /// `bytes_max` is an error, found after unpacking that much.
    pub fn records(&self, bytes_max: usize) -> Result<Records<'a>, RecordsError> {
        Records::owned(self, bytes_max)
    }

    /// As [`Batch::records`], unpacking into `scratch`, for whoever reads many batches.
    pub fn records_in<'s>(
        &self,
        bytes_max: usize,
        scratch: &'s mut Vec<u8>,
    ) -> Result<Records<'s>, RecordsError>
    where
        'a: 's,
    {
        Records::borrowed(self, bytes_max, scratch)
    }
}

impl std::fmt::Debug for Batch<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.header.fmt(f)
    }
}
