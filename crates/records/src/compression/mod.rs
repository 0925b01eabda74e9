//! Packing and unpacking of batch bodies, one file per codec. Knows bytes, not records.
//!
//! Unpacking is where a few bytes of input may ask for gigabytes, so every codec obeys one rule:
//! memory grows with the output that really comes, and output beyond the caller's bound is an
//! error. What a codec needs besides (windows, tables, one block) is bounded by a constant.

mod gzip;
mod lz4;
mod snappy;
mod zstd;

use std::io::Read;

use crate::{Compression, RecordsError};

/// What a codec does not do for us.
#[derive(Debug)]
pub(crate) enum UnpackError {
    /// The output would pass the bound.
    TooLarge,
    /// The input is not what the codec writes.
    Corrupt(String),
}

impl From<std::io::Error> for UnpackError {
    fn from(error: std::io::Error) -> Self {
        Self::Corrupt(error.to_string())
    }
}

/// Unpacks `packed` into `out`, which it empties first, to at most `bytes_max` bytes.
pub(crate) fn unpack(
    codec: Compression,
    packed: &[u8],
    bytes_max: usize,
    out: &mut Vec<u8>,
) -> Result<(), RecordsError> {
    out.clear();
    let unpacked = match codec {
        Compression::None if packed.len() > bytes_max => Err(UnpackError::TooLarge),
        Compression::None => {
            out.extend_from_slice(packed);
            Ok(())
        }
        Compression::Gzip => gzip::unpack(packed, bytes_max, out),
        Compression::Snappy => snappy::unpack(packed, bytes_max, out),
        Compression::Lz4 => lz4::unpack(packed, bytes_max, out),
        Compression::Zstd => zstd::unpack(packed, bytes_max, out),
    };
    unpacked.map_err(|error| match error {
        UnpackError::TooLarge => RecordsError::TooLarge { bytes_max },
        UnpackError::Corrupt(reason) => RecordsError::Unpack { codec: codec.name(), reason },
    })
}

/// Appends `plain`, packed, to `out`. Errors are the codec's own: memory or a bug, not the input.
pub(crate) fn pack(codec: Compression, plain: &[u8], out: &mut Vec<u8>) -> std::io::Result<()> {
    match codec {
        Compression::None => {
            out.extend_from_slice(plain);
            Ok(())
        }
        Compression::Gzip => gzip::pack(plain, out),
        Compression::Snappy => snappy::pack(plain, out),
        Compression::Lz4 => lz4::pack(plain, out),
        Compression::Zstd => zstd::pack(plain, out),
    }
}

/// Reads a codec's stream to its end.
fn read_bounded(from: impl Read, bytes_max: usize, out: &mut Vec<u8>) -> Result<(), UnpackError> {
    let bound = u64::try_from(bytes_max).unwrap_or(u64::MAX).saturating_add(1);
    from.take(bound).read_to_end(out)?;
    if out.len() > bytes_max { Err(UnpackError::TooLarge) } else { Ok(()) }
}

#[cfg(test)]
mod tests;
