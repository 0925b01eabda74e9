//! Reading primitives from bytes that nobody vouches for. Strings and byte arrays are borrowed from
//! the input; an array's length is checked against what is really there, and against [`Limits`],
//! before anything is allocated. It knows types, no messages.

mod limits;
mod tagged;

use crate::{DecodeError, DecodeErrorKind, Records, Uuid};
pub use limits::{ELEMENTS_MAX, Limits, MEMORY_MAX};

/// The longest text of a message, in either form.
pub(crate) const TEXT_BYTES_MAX: usize = i16::MAX as usize;

/// A cursor over the bytes of one message. Each method reads one field, whose name goes into the
/// error; `flexible` picks the compact form of lengths (KIP-482). Numbers are returned; all else is
/// read into its place, because handing it back inside a `Result` costs more than reading it.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
    /// The offset at which `rest` ends.
    end: usize,
    left: Limits,
}

type Result<T> = std::result::Result<T, DecodeError>;

impl<'a> Reader<'a> {
    /// Starts at the first of these bytes, with the default limits.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self::with_limits(bytes, Limits::default())
    }

    /// Starts at the first of these bytes.
    pub fn with_limits(bytes: &'a [u8], limits: Limits) -> Self {
        Self { rest: bytes, end: bytes.len(), left: limits }
    }

    /// Bytes read so far.
    pub fn offset(&self) -> usize {
        self.end - self.rest.len()
    }

    /// The bytes not yet read.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Errs if bytes are left: a message must fill its frame.
    pub fn finish(&self, message: &'static str) -> Result<()> {
        match self.rest.len() {
            0 => Ok(()),
            left => Err(self.error(message, DecodeErrorKind::Trailing(left))),
        }
    }

    /// An error at the current offset.
    #[cold]
    #[inline(never)]
    pub fn error(&self, field: &'static str, kind: DecodeErrorKind) -> DecodeError {
        DecodeError { field, offset: self.offset(), kind }
    }

    #[cold]
    #[inline(never)]
    fn truncated(&self, field: &'static str, needed: usize) -> DecodeError {
        self.error(field, DecodeErrorKind::Truncated { needed, left: self.rest.len() })
    }

    #[inline]
    fn chunk<const N: usize>(&mut self, field: &'static str) -> Result<[u8; N]> {
        match self.rest.split_first_chunk() {
            Some((head, rest)) => {
                self.rest = rest;
                Ok(*head)
            }
            None => Err(self.truncated(field, N)),
        }
    }

    #[inline(always)]
    fn take(&mut self, len: usize, field: &'static str) -> Result<&'a [u8]> {
        match self.rest.split_at_checked(len) {
            Some((head, rest)) => {
                self.rest = rest;
                Ok(head)
            }
            None => Err(self.truncated(field, len)),
        }
    }

    /// One byte, 0 or 1.
    #[inline]
    pub fn bool(&mut self, field: &'static str) -> Result<bool> {
        let [byte] = self.chunk(field)?;
        match byte {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(self.error(field, DecodeErrorKind::Bool(byte))),
        }
    }

    /// One byte.
    #[inline]
    pub fn i8(&mut self, field: &'static str) -> Result<i8> {
        self.chunk(field).map(i8::from_be_bytes)
    }

    /// Two bytes.
    #[inline]
    pub fn i16(&mut self, field: &'static str) -> Result<i16> {
        self.chunk(field).map(i16::from_be_bytes)
    }

    /// Two bytes, unsigned.
    #[inline]
    pub fn u16(&mut self, field: &'static str) -> Result<u16> {
        self.chunk(field).map(u16::from_be_bytes)
    }

    /// Four bytes.
    #[inline]
    pub fn i32(&mut self, field: &'static str) -> Result<i32> {
        self.chunk(field).map(i32::from_be_bytes)
    }

    /// Eight bytes.
    #[inline]
    pub fn i64(&mut self, field: &'static str) -> Result<i64> {
        self.chunk(field).map(i64::from_be_bytes)
    }

    /// Eight bytes, IEEE 754.
    #[inline]
    pub fn f64(&mut self, field: &'static str) -> Result<f64> {
        self.chunk(field).map(f64::from_be_bytes)
    }

    /// Sixteen bytes.
    #[inline]
    pub fn uuid(&mut self, field: &'static str) -> Result<Uuid> {
        self.chunk(field).map(Uuid)
    }

    /// One to five bytes, seven bits each, lowest first; only the shortest form is accepted.
    #[inline]
    pub fn varint(&mut self, field: &'static str) -> Result<u32> {
        match self.rest {
            [byte @ 0..=0x7f, rest @ ..] => {
                self.rest = rest;
                Ok(u32::from(*byte))
            }
            [low, high @ 1..=0x7f, rest @ ..] => {
                self.rest = rest;
                Ok(u32::from(low & 0x7f) | u32::from(*high) << 7)
            }
            _ => self.long_varint(field),
        }
    }

    fn long_varint(&mut self, field: &'static str) -> Result<u32> {
        let mut value = 0;
        for shift in [0, 7, 14, 21, 28] {
            let [byte] = self.chunk(field)?;
            let overflows = shift == 28 && byte > 0x0f;
            let overlong = shift > 0 && byte == 0;
            if overflows || overlong {
                return Err(self.error(field, DecodeErrorKind::Varint));
            }
            value |= u32::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                break;
            }
        }
        Ok(value)
    }

    /// A length with four bytes in the old form; `None` is null.
    #[inline(always)]
    fn length(&mut self, flexible: bool, field: &'static str) -> Result<Option<usize>> {
        if flexible {
            return Ok((self.varint(field)? as usize).checked_sub(1));
        }
        let length = self.i32(field)?;
        self.signed_length(length, field)
    }

    #[inline(always)]
    fn signed_length(&mut self, length: i32, field: &'static str) -> Result<Option<usize>> {
        match usize::try_from(length) {
            Ok(length) => Ok(Some(length)),
            Err(_) if length == -1 => Ok(None),
            Err(_) => Err(self.error(field, DecodeErrorKind::NegativeLength(length))),
        }
    }

    #[inline]
    fn required<T>(&self, value: Option<T>, field: &'static str) -> Result<T> {
        value.ok_or_else(|| self.error(field, DecodeErrorKind::Null))
    }

    /// Text that may be null; two bytes of length in the old form.
    #[inline]
    pub fn nullable_string(
        &mut self,
        flexible: bool,
        field: &'static str,
        place: &mut Option<&'a str>,
    ) -> Result<()> {
        *place = match self.text_length(flexible, field)? {
            Some(length) => Some(self.text(length, field)?),
            None => None,
        };
        Ok(())
    }

    /// Text.
    #[inline]
    pub fn string(
        &mut self,
        flexible: bool,
        field: &'static str,
        place: &mut &'a str,
    ) -> Result<()> {
        let length = self.text_length(flexible, field)?;
        let length = self.required(length, field)?;
        *place = self.text(length, field)?;
        Ok(())
    }

    #[inline(always)]
    fn text_length(&mut self, flexible: bool, field: &'static str) -> Result<Option<usize>> {
        if flexible {
            return self.length(true, field);
        }
        let length = self.i16(field)?;
        self.signed_length(length.into(), field)
    }

    /// Kafka holds both forms to the length that the old one can say, and so do its stored records.
    #[inline(always)]
    fn text(&mut self, length: usize, field: &'static str) -> Result<&'a str> {
        if length > TEXT_BYTES_MAX {
            return Err(self.error(field, DecodeErrorKind::TooLong(length)));
        }
        let bytes = self.take(length, field)?;
        text(bytes).ok_or_else(|| self.error(field, DecodeErrorKind::Utf8))
    }

    /// Bytes that may be null; four bytes of length in the old form.
    #[inline]
    pub fn nullable_bytes(
        &mut self,
        flexible: bool,
        field: &'static str,
        place: &mut Option<&'a [u8]>,
    ) -> Result<()> {
        *place = match self.length(flexible, field)? {
            Some(length) => Some(self.take(length, field)?),
            None => None,
        };
        Ok(())
    }

    /// Bytes.
    #[inline]
    pub fn bytes(
        &mut self,
        flexible: bool,
        field: &'static str,
        place: &mut &'a [u8],
    ) -> Result<()> {
        let length = self.length(flexible, field)?;
        let length = self.required(length, field)?;
        *place = self.take(length, field)?;
        Ok(())
    }

    /// Record batches that may be null. Their content is not looked at.
    #[inline]
    pub fn nullable_records(
        &mut self,
        flexible: bool,
        field: &'static str,
        place: &mut Option<Records<'a>>,
    ) -> Result<()> {
        *place = match self.length(flexible, field)? {
            Some(length) => Some(Records::Borrowed(self.take(length, field)?)),
            None => None,
        };
        Ok(())
    }

    /// Record batches. Their content is not looked at.
    #[inline]
    pub fn records(
        &mut self,
        flexible: bool,
        field: &'static str,
        place: &mut Records<'a>,
    ) -> Result<()> {
        let mut bytes: &[u8] = &[];
        self.bytes(flexible, field, &mut bytes)?;
        *place = Records::Borrowed(bytes);
        Ok(())
    }

    /// An array that may be null; `element_min` is the fewest bytes an element takes, and `read`
    /// reads one into its place.
    #[inline]
    pub fn nullable_array<T: Default>(
        &mut self,
        flexible: bool,
        element_min: usize,
        field: &'static str,
        place: &mut Option<Vec<T>>,
        read: impl FnMut(&mut Self, &mut T) -> Result<()>,
    ) -> Result<()> {
        match self.length(flexible, field)? {
            Some(count) => {
                let elements = place.insert(Vec::new());
                self.elements(count, element_min, field, elements, read)
            }
            None => {
                *place = None;
                Ok(())
            }
        }
    }

    /// An array; `element_min` is the fewest bytes an element takes, and `read` reads one into its
    /// place.
    #[inline]
    pub fn array<T: Default>(
        &mut self,
        flexible: bool,
        element_min: usize,
        field: &'static str,
        place: &mut Vec<T>,
        read: impl FnMut(&mut Self, &mut T) -> Result<()>,
    ) -> Result<()> {
        let count = self.length(flexible, field)?;
        let count = self.required(count, field)?;
        self.elements(count, element_min, field, place, read)
    }

    #[inline]
    fn elements<T: Default>(
        &mut self,
        count: usize,
        element_min: usize,
        field: &'static str,
        place: &mut Vec<T>,
        mut read: impl FnMut(&mut Self, &mut T) -> Result<()>,
    ) -> Result<()> {
        self.charge(count, element_min, size_of::<T>(), field)?;
        *place = Vec::with_capacity(count);
        place.resize_with(count, T::default);
        place.iter_mut().try_for_each(|element| read(self, element))
    }

    /// An array of numbers of `N` bytes each that may be null.
    #[inline]
    pub fn nullable_numbers<T, const N: usize>(
        &mut self,
        flexible: bool,
        field: &'static str,
        place: &mut Option<Vec<T>>,
        number: impl Fn([u8; N]) -> T,
    ) -> Result<()> {
        *place = match self.length(flexible, field)? {
            Some(count) => Some(self.collect(count, field, number)?),
            None => None,
        };
        Ok(())
    }

    /// An array of numbers of `N` bytes each.
    #[inline]
    pub fn numbers<T, const N: usize>(
        &mut self,
        flexible: bool,
        field: &'static str,
        place: &mut Vec<T>,
        number: impl Fn([u8; N]) -> T,
    ) -> Result<()> {
        let count = self.length(flexible, field)?;
        let count = self.required(count, field)?;
        *place = self.collect(count, field, number)?;
        Ok(())
    }

    #[inline]
    fn collect<T, const N: usize>(
        &mut self,
        count: usize,
        field: &'static str,
        number: impl Fn([u8; N]) -> T,
    ) -> Result<Vec<T>> {
        self.charge(count, N, size_of::<T>(), field)?;
        let (numbers, _) = self.take(count * N, field)?.as_chunks();
        Ok(numbers.iter().map(|bytes| number(*bytes)).collect())
    }

    /// Takes `count` elements of `size` bytes of memory off the limits, unless they cannot all be
    /// there.
    fn charge(
        &mut self,
        count: usize,
        element_min: usize,
        size: usize,
        field: &'static str,
    ) -> Result<()> {
        let needed = count.saturating_mul(element_min);
        if needed > self.rest.len() {
            return Err(self.truncated(field, needed));
        }
        let elements = self.left.elements.checked_sub(count);
        let memory = self.left.memory.checked_sub(count.saturating_mul(size));
        let (Some(elements), Some(memory)) = (elements, memory) else {
            return Err(self.error(field, DecodeErrorKind::TooMany(count)));
        };
        self.left = Limits { elements, memory };
        Ok(())
    }
}

/// The text these bytes are, if they are any. Most are ASCII, which is told at a fraction of the
/// price, and on this path a copied `Result<&str, _>` is half of the cost of a short string.
#[inline]
#[allow(unsafe_code)]
fn text(bytes: &[u8]) -> Option<&str> {
    if bytes.is_ascii() {
        // SAFETY: each byte below 0x80 is by itself a valid UTF-8 sequence.
        return Some(unsafe { std::str::from_utf8_unchecked(bytes) });
    }
    std::str::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests;
