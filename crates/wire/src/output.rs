//! Where messages are written: contiguous bytes, with shared chunks of records spliced in by
//! reference, so that a connection can write them all with one vectored call and no copy.

use crate::{EncodeError, Records, Uuid};
use bytes::{Buf, Bytes};
use std::collections::VecDeque;
use std::io::IoSlice;

/// Shared chunks shorter than this are copied: counting a reference up and down, and an entry more
/// in a vectored write, cost as much as copying about this many bytes.
pub const SHARE_MIN: usize = 2048;

/// Bytes being written. `u8`, `i32`, `string`, ... append one field each; `flexible` picks the
/// compact form of lengths (KIP-482) and `field` goes into the error.
#[derive(Clone, Debug, Default)]
pub struct Output {
    bytes: Vec<u8>,
    splices: Vec<Splice>,
    spliced: usize,
}

/// A chunk that belongs before `bytes[at]`.
#[derive(Clone, Debug)]
struct Splice {
    at: usize,
    chunk: Bytes,
}

/// A place in an [`Output`] to come back to.
#[derive(Clone, Copy, Debug)]
pub struct Mark {
    bytes: usize,
    splices: usize,
    spliced: usize,
}

type Result<T> = std::result::Result<T, EncodeError>;

impl Output {
    /// Nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Nothing yet, in a buffer that is already there; its content is dropped.
    pub fn reusing(mut buffer: Vec<u8>) -> Self {
        buffer.clear();
        Self { bytes: buffer, ..Self::default() }
    }

    /// Forgets everything but keeps the room.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.splices.clear();
        self.spliced = 0;
    }

    /// Bytes written, shared ones included.
    pub fn len(&self) -> usize {
        self.bytes.len() + self.spliced
    }

    /// Whether nothing has been written.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Makes room for that many more contiguous bytes.
    pub fn reserve(&mut self, additional: usize) {
        self.bytes.reserve(additional);
    }

    /// Where the output stands now.
    pub fn mark(&self) -> Mark {
        Mark { bytes: self.bytes.len(), splices: self.splices.len(), spliced: self.spliced }
    }

    /// Forgets what was written since `mark`.
    pub fn rewind(&mut self, mark: Mark) {
        self.bytes.truncate(mark.bytes);
        self.splices.truncate(mark.splices);
        self.spliced = mark.spliced;
    }

    /// Starts a tagged field of this content size.
    #[inline]
    pub fn tag(&mut self, tag: u32, size: usize) {
        self.varint(tag);
        // A size beyond 32 bits has a length inside that is refused on its own.
        self.varint(u32::try_from(size).unwrap_or(u32::MAX));
    }

    /// What was written, in order, as it lies in memory.
    pub fn chunks(&self) -> impl Iterator<Item = &[u8]> {
        let mut from = 0;
        let spliced = self.splices.iter().flat_map(move |splice| {
            let before = &self.bytes[from..splice.at];
            from = splice.at;
            [before, &*splice.chunk]
        });
        let last = self.splices.last().map_or(0, |splice| splice.at);
        spliced.chain([&self.bytes[last..]]).filter(|chunk| !chunk.is_empty())
    }

    /// What was written as one vector; shared chunks are copied into it.
    pub fn into_vec(self) -> Vec<u8> {
        if self.splices.is_empty() {
            return self.bytes;
        }
        let mut whole = Vec::with_capacity(self.len());
        self.chunks().for_each(|chunk| whole.extend_from_slice(chunk));
        whole
    }

    /// What was written as a [`Buf`], for a vectored write that may stop half-way.
    pub fn into_buf(self) -> OutputBuf {
        let mut own = Bytes::from(self.bytes);
        let mut chunks = VecDeque::with_capacity(2 * self.splices.len() + 1);
        let mut from = 0;
        for splice in self.splices {
            chunks.push_back(own.split_to(splice.at - from));
            chunks.push_back(splice.chunk);
            from = splice.at;
        }
        chunks.push_back(own);
        chunks.retain(|chunk| !chunk.is_empty());
        OutputBuf { chunks }
    }

    /// One byte, 0 or 1.
    #[inline]
    pub fn bool(&mut self, value: bool) {
        self.bytes.push(value.into());
    }

    /// One byte.
    #[inline]
    pub fn i8(&mut self, value: i8) {
        self.bytes.extend_from_slice(&value.to_be_bytes());
    }

    /// Two bytes.
    #[inline]
    pub fn i16(&mut self, value: i16) {
        self.bytes.extend_from_slice(&value.to_be_bytes());
    }

    /// Two bytes, unsigned.
    #[inline]
    pub fn u16(&mut self, value: u16) {
        self.bytes.extend_from_slice(&value.to_be_bytes());
    }

    /// Four bytes.
    #[inline]
    pub fn i32(&mut self, value: i32) {
        self.bytes.extend_from_slice(&value.to_be_bytes());
    }

    /// Eight bytes.
    #[inline]
    pub fn i64(&mut self, value: i64) {
        self.bytes.extend_from_slice(&value.to_be_bytes());
    }

    /// Eight bytes, IEEE 754.
    #[inline]
    pub fn f64(&mut self, value: f64) {
        self.bytes.extend_from_slice(&value.to_be_bytes());
    }

    /// Sixteen bytes.
    #[inline]
    pub fn uuid(&mut self, value: Uuid) {
        self.bytes.extend_from_slice(&value.0);
    }

    /// One to five bytes, seven bits each, lowest first.
    #[inline]
    pub fn varint(&mut self, mut value: u32) {
        while value >= 0x80 {
            self.bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.bytes.push(value as u8);
    }

    /// Bytes as they are, without a length.
    #[inline]
    pub fn raw(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// The length of an array or of bytes; four bytes in the old form.
    #[inline]
    pub fn length(&mut self, flexible: bool, length: usize, field: &'static str) -> Result<()> {
        let Ok(signed) = i32::try_from(length) else {
            return Err(EncodeError::too_long(field, length));
        };
        if flexible {
            self.varint(signed as u32 + 1)
        } else {
            self.i32(signed)
        }
        Ok(())
    }

    /// The length that stands for null; four bytes in the old form.
    #[inline]
    pub fn null(&mut self, flexible: bool) {
        if flexible { self.varint(0) } else { self.i32(-1) }
    }

    /// Text; two bytes of length in the old form.
    #[inline]
    pub fn string(&mut self, flexible: bool, text: &str, field: &'static str) -> Result<()> {
        // The compact form could say more, but Kafka reads no more.
        let length = i16::try_from(text.len());
        let length = length.map_err(|_| EncodeError::too_long(field, text.len()))?;
        if flexible {
            self.varint(length as u32 + 1)
        } else {
            self.i16(length)
        }
        self.raw(text.as_bytes());
        Ok(())
    }

    /// Text or null; two bytes of length in the old form.
    #[inline]
    pub fn nullable_string(
        &mut self,
        flexible: bool,
        text: Option<&str>,
        field: &'static str,
    ) -> Result<()> {
        match text {
            Some(text) => return self.string(flexible, text, field),
            None if flexible => self.varint(0),
            None => self.i16(-1),
        }
        Ok(())
    }

    /// Bytes; four bytes of length in the old form.
    #[inline]
    pub fn bytes(&mut self, flexible: bool, bytes: &[u8], field: &'static str) -> Result<()> {
        self.length(flexible, bytes.len(), field)?;
        self.raw(bytes);
        Ok(())
    }

    /// Bytes or null; four bytes of length in the old form.
    #[inline]
    pub fn nullable_bytes(
        &mut self,
        flexible: bool,
        bytes: Option<&[u8]>,
        field: &'static str,
    ) -> Result<()> {
        match bytes {
            Some(bytes) => return self.bytes(flexible, bytes, field),
            None => self.null(flexible),
        }
        Ok(())
    }

    /// An array of numbers of `N` bytes each; four bytes of length in the old form.
    #[inline]
    pub fn numbers<T: Copy, const N: usize>(
        &mut self,
        flexible: bool,
        numbers: &[T],
        field: &'static str,
        bytes: impl Fn(T) -> [u8; N],
    ) -> Result<()> {
        self.length(flexible, numbers.len(), field)?;
        let from = self.bytes.len();
        self.bytes.resize(from + N * numbers.len(), 0);
        let (places, _) = self.bytes[from..].as_chunks_mut();
        places.iter_mut().zip(numbers).for_each(|(place, number)| *place = bytes(*number));
        Ok(())
    }

    /// Record batches; shared ones go in by reference.
    pub fn records(
        &mut self,
        flexible: bool,
        records: &Records<'_>,
        field: &'static str,
    ) -> Result<()> {
        self.length(flexible, records.len(), field)?;
        match records {
            Records::Borrowed(bytes) => self.raw(bytes),
            Records::Shared(chunk) => self.share(chunk),
            Records::Chunks(chunks) => chunks.iter().for_each(|chunk| self.share(chunk)),
        }
        Ok(())
    }

    /// Record batches or null; shared ones go in by reference.
    pub fn nullable_records(
        &mut self,
        flexible: bool,
        records: Option<&Records<'_>>,
        field: &'static str,
    ) -> Result<()> {
        match records {
            Some(records) => return self.records(flexible, records, field),
            None => self.null(flexible),
        }
        Ok(())
    }

    fn share(&mut self, chunk: &Bytes) {
        if chunk.len() < SHARE_MIN {
            return self.raw(chunk);
        }
        self.spliced += chunk.len();
        self.splices.push(Splice { at: self.bytes.len(), chunk: chunk.clone() });
    }
}

/// A finished [`Output`] on its way to a socket.
#[derive(Clone, Debug, Default)]
pub struct OutputBuf {
    chunks: VecDeque<Bytes>,
}

impl Buf for OutputBuf {
    fn remaining(&self) -> usize {
        self.chunks.iter().map(Bytes::len).sum()
    }

    fn chunk(&self) -> &[u8] {
        self.chunks.front().map_or(&[], |chunk| chunk)
    }

    fn advance(&mut self, mut count: usize) {
        while count > 0 {
            let first = self.chunks.front_mut().expect("advances within what remains");
            if count < first.len() {
                return first.advance(count);
            }
            count -= first.len();
            self.chunks.pop_front();
        }
    }

    fn chunks_vectored<'a>(&'a self, slices: &mut [IoSlice<'a>]) -> usize {
        let used = slices.len().min(self.chunks.len());
        for (slice, chunk) in slices.iter_mut().zip(&self.chunks) {
            *slice = IoSlice::new(chunk);
        }
        used
    }
}

#[cfg(test)]
mod tests;
