//! Unpacking and packing of batch bodies, one codec each. Knows bytes only.

use std::borrow::Cow;

use crate::{Compression, Header, RecordsError};

/// The body as records: itself if it is not compressed, else unpacked to at most `bytes_max`.
pub(crate) fn unpack<'a>(
    header: Header<'_>,
    body: &'a [u8],
    _bytes_max: usize,
) -> Result<Cow<'a, [u8]>, RecordsError> {
    match header.attributes().compression()? {
        Compression::None => Ok(Cow::Borrowed(body)),
        other => Err(RecordsError::Unpack { codec: other.name(), reason: "not yet".to_owned() }),
    }
}
