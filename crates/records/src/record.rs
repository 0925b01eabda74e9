//! The records of one batch: parsed as they are asked for, borrowed from the batch or from its
//! unpacked body. Knows nothing of where a batch came from.

use std::borrow::Cow;

use ottla_model::{Offset, Timestamp};

use crate::{Batch, Compression, Header, TimestampType, UnknownCompression, compression, varint};

/// A batch's records, unpacked and ready to iterate: `for record in &records`.
#[derive(Clone, Debug)]
pub struct Records<'a> {
    header: Header<'a>,
    body: Cow<'a, [u8]>,
}

/// Iterates [`Records`]; ends after the first error.
#[derive(Clone, Debug)]
pub struct Iter<'a> {
    base: Base,
    rest: &'a [u8],
    done: i32,
    end: i32,
    failed: bool,
}

/// What a batch's header says for all of its records.
#[derive(Clone, Copy, Debug)]
struct Base {
    offset: i64,
    timestamp: i64,
    /// The broker's time, if that is what counts.
    appended: Option<Timestamp>,
}

/// One record, its fields borrowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// Its offset in the partition (in a produced batch: from the batch's base).
    pub offset: Offset,
    /// The producer's time, or the broker's if the batch says so.
    pub timestamp: Timestamp,
    /// Its key.
    pub key: Option<&'a [u8]>,
    /// Its value; none is a tombstone.
    pub value: Option<&'a [u8]>,
    headers: Headers<'a>,
}

/// A record's headers (KIP-82), parsed as they are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Headers<'a> {
    left: i32,
    rest: &'a [u8],
}

/// One header of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordHeader<'a> {
    /// Its key, UTF-8 by convention. Not checked: a broker stores it as it came.
    pub key: &'a [u8],
    /// Its value.
    pub value: Option<&'a [u8]>,
}

/// Why a batch's records cannot be read. The batch, and so whoever wrote it, is at fault.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordsError {
    /// The codec's number means nothing to us.
    #[error(transparent)]
    Compression(#[from] UnknownCompression),
    /// The codec rejects the compressed bytes.
    #[error("the {codec} body cannot be unpacked: {reason}")]
    Unpack {
        /// The codec's name.
        codec: &'static str,
        /// What it says.
        reason: String,
    },
    /// The body unpacks to more than the caller allows.
    #[error("the body unpacks to more than {bytes_max} bytes")]
    TooLarge {
        /// The caller's bound.
        bytes_max: usize,
    },
    /// The header's count is negative or cannot fit the body.
    #[error("the batch says it has {count} records, its body of {body} bytes cannot hold them")]
    Count {
        /// The count field as it stands.
        count: i32,
        /// Bytes of the (unpacked) body.
        body: usize,
    },
    /// A record is cut off or its fields do not add up.
    #[error("record {index} of the batch is malformed: {what}")]
    Malformed {
        /// Which record, from 0.
        index: i32,
        /// What is wrong with it.
        what: &'static str,
    },
    /// Bytes are left when all records are read.
    #[error("{bytes} bytes follow the last record of the batch")]
    Trailing {
        /// How many.
        bytes: usize,
    },
}

impl<'a> Records<'a> {
    pub(crate) fn owned(batch: &Batch<'a>, bytes_max: usize) -> Result<Self, RecordsError> {
        let header = batch.header();
        let body = match header.attributes().compression()? {
            Compression::None => Cow::Borrowed(batch.body()),
            codec => {
                let mut out = Vec::new();
                compression::unpack(codec, batch.body(), bytes_max, &mut out)?;
                Cow::Owned(out)
            }
        };
        Self::new(header, body)
    }

    pub(crate) fn borrowed(
        batch: &Batch<'a>,
        bytes_max: usize,
        scratch: &'a mut Vec<u8>,
    ) -> Result<Self, RecordsError> {
        let header = batch.header();
        let body = match header.attributes().compression()? {
            Compression::None => batch.body(),
            codec => {
                compression::unpack(codec, batch.body(), bytes_max, scratch)?;
                scratch
            }
        };
        Self::new(header, Cow::Borrowed(body))
    }

    fn new(header: Header<'a>, body: Cow<'a, [u8]>) -> Result<Self, RecordsError> {
        let count = header.record_count();
        let fits = usize::try_from(count).is_ok_and(|count| count <= body.len() / RECORD_LEN_MIN);
        if !fits {
            return Err(RecordsError::Count { count, body: body.len() });
        }
        Ok(Self { header, body })
    }

    /// How many records there are, by the header; the body is long enough for so many.
    pub fn len(&self) -> usize {
        usize::try_from(self.header.record_count()).unwrap_or(0)
    }

    /// Whether the batch has no record, as compaction may leave one.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The unpacked body.
    pub fn body(&self) -> &[u8] {
        &self.body
    }

    /// The records in order. After the last one, bytes left over are an error.
    pub fn iter(&self) -> Iter<'_> {
        let end = self.header.record_count();
        Iter { base: Base::of(self.header), rest: &self.body, done: 0, end, failed: false }
    }

    /// The unpacked body, to be kept and iterated in parts: see [`Iter::part`].
    pub fn into_body(self) -> Cow<'a, [u8]> {
        self.body
    }
}

impl<'r> IntoIterator for &'r Records<'_> {
    type Item = Result<Record<'r>, RecordsError>;
    type IntoIter = Iter<'r>;

    fn into_iter(self) -> Iter<'r> {
        self.iter()
    }
}

impl Base {
    fn of(header: Header<'_>) -> Self {
        let is_appended = header.attributes().timestamp_type() == TimestampType::LogAppend;
        Self {
            offset: header.base_offset().0,
            timestamp: header.base_timestamp().0,
            appended: is_appended.then(|| header.max_timestamp()),
        }
    }
}

impl<'a> Iter<'a> {
    /// Some of a batch's records: `count` of them from the one at `first`, which `bytes` (a part
    /// of the unpacked body) begins with and holds exactly.
    pub fn part(header: Header<'a>, bytes: &'a [u8], first: i32, count: i32) -> Self {
        let end = first.saturating_add(count);
        Self { base: Base::of(header), rest: bytes, done: first, end, failed: false }
    }

    /// The bytes that are not read yet.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }
}

impl<'a> Iterator for Iter<'a> {
    type Item = Result<Record<'a>, RecordsError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        if self.done >= self.end {
            self.failed = !self.rest.is_empty();
            return self.failed.then_some(Err(RecordsError::Trailing { bytes: self.rest.len() }));
        }
        let next = take_record(&mut self.rest, self.base);
        self.failed = next.is_err();
        let index = self.done;
        self.done += 1;
        Some(next.map_err(|what| RecordsError::Malformed { index, what }))
    }
}

impl std::iter::FusedIterator for Iter<'_> {}

impl<'a> Record<'a> {
    /// Its headers.
    pub fn headers(&self) -> Headers<'a> {
        self.headers
    }
}

impl<'a> Headers<'a> {
    /// How many headers are left to iterate.
    pub fn count_left(&self) -> usize {
        usize::try_from(self.left).unwrap_or(0)
    }

    /// The headers left to iterate, as they stand in the record.
    pub(crate) fn bytes(&self) -> &'a [u8] {
        self.rest
    }
}

impl<'a> Iterator for Headers<'a> {
    type Item = RecordHeader<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.left <= 0 {
            return None;
        }
        self.left -= 1;
        // The record's own parsing walked these bytes already.
        take_header(&mut self.rest).ok()
    }
}

/// The least a record can take: seven fields of one byte each.
const RECORD_LEN_MIN: usize = 7;
/// The least a record's header can take: two lengths.
const HEADER_LEN_MIN: usize = 2;

/// Takes one record, its length in front, off `bytes`.
#[inline]
fn take_record<'a>(bytes: &mut &'a [u8], base: Base) -> Result<Record<'a>, &'static str> {
    let length = varint::take_i32(bytes).ok_or("its length is cut off")?;
    let length = usize::try_from(length).map_err(|_| "its length is negative")?;
    let (mut rest, after) = bytes.split_at_checked(length).ok_or("it is cut off")?;
    *bytes = after;
    // A record's own attributes have no meaning yet; Kafka ignores them too.
    rest = rest.get(1..).ok_or("its attributes are cut off")?;
    let timestamp = varint::take_i64(&mut rest).ok_or("its timestamp is cut off")?;
    let offset = varint::take_i32(&mut rest).ok_or("its offset is cut off")?;
    let key = take_bytes(&mut rest).ok_or("its key is cut off")?;
    let value = take_bytes(&mut rest).ok_or("its value is cut off")?;
    let headers = take_headers(&mut rest)?;
    let timestamp = Timestamp(base.timestamp.wrapping_add(timestamp));
    let timestamp = base.appended.unwrap_or(timestamp);
    let offset = Offset(base.offset.saturating_add(i64::from(offset)));
    Ok(Record { offset, timestamp, key, value, headers })
}

/// Takes the headers off `bytes`, which must end with them, and proves that each can be parsed.
#[inline]
fn take_headers<'a>(bytes: &mut &'a [u8]) -> Result<Headers<'a>, &'static str> {
    let count = varint::take_i32(bytes).ok_or("its header count is cut off")?;
    let fits = usize::try_from(count).is_ok_and(|count| count <= bytes.len() / HEADER_LEN_MIN);
    if !fits {
        return Err("its header count cannot be true");
    }
    let headers = Headers { left: count, rest: bytes };
    for _ in 0..count {
        take_header(bytes)?;
    }
    if bytes.is_empty() { Ok(headers) } else { Err("bytes follow its last header") }
}

fn take_header<'a>(bytes: &mut &'a [u8]) -> Result<RecordHeader<'a>, &'static str> {
    let key = take_bytes(bytes).flatten().ok_or("a header's key is missing or cut off")?;
    let value = take_bytes(bytes).ok_or("a header's value is cut off")?;
    Ok(RecordHeader { key, value })
}

/// Takes bytes with their length in front; the inner none is Kafka's null.
#[inline]
fn take_bytes<'a>(bytes: &mut &'a [u8]) -> Option<Option<&'a [u8]>> {
    let length = varint::take_i32(bytes)?;
    if length < 0 {
        return Some(None);
    }
    let (taken, rest) = bytes.split_at_checked(usize::try_from(length).ok()?)?;
    *bytes = rest;
    Some(Some(taken))
}
