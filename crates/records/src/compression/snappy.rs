//! Snappy in its two forms: the Java library's stream (a header, then blocks with their length in
//! front) and one raw block, which librdkafka and others write. Java reads both, and so do we; we
//! write the stream, since it is what the most clients were tested with.

use super::UnpackError;

pub(super) fn unpack(
    packed: &[u8],
    bytes_max: usize,
    out: &mut Vec<u8>,
) -> Result<(), UnpackError> {
    if !packed.starts_with(&STREAM_MAGIC) {
        return unpack_block(packed, bytes_max, out);
    }
    let mut rest = skip_stream_header(packed)?;
    while let Some((length, after)) = rest.split_first_chunk() {
        // Streams may be concatenated. As a length, their magic would be negative.
        if rest.starts_with(&STREAM_MAGIC) {
            rest = skip_stream_header(rest)?;
            continue;
        }
        let length = usize::try_from(i32::from_be_bytes(*length)).ok();
        let block = length.and_then(|length| after.split_at_checked(length));
        let (block, after) = block.ok_or_else(|| corrupt("a block is cut off"))?;
        unpack_block(block, bytes_max, out)?;
        rest = after;
    }
    if rest.is_empty() { Ok(()) } else { Err(corrupt("a block's length is cut off")) }
}

pub(super) fn pack(plain: &[u8], out: &mut Vec<u8>) -> std::io::Result<()> {
    out.extend_from_slice(&STREAM_MAGIC);
    out.extend_from_slice(&STREAM_VERSION.to_be_bytes());
    out.extend_from_slice(&STREAM_VERSION.to_be_bytes());
    let mut encoder = snap::raw::Encoder::new();
    for block in plain.chunks(BLOCK_LEN) {
        let length_at = out.len();
        let packed_at = length_at + size_of::<i32>();
        out.resize(packed_at + snap::raw::max_compress_len(block.len()), 0);
        let length = encoder.compress(block, &mut out[packed_at..])?;
        out.truncate(packed_at + length);
        // A block packs to little more than its 32 KiB.
        out[length_at..packed_at].copy_from_slice(&(length as i32).to_be_bytes());
    }
    Ok(())
}

/// Appends one block's plain bytes to `out`.
fn unpack_block(block: &[u8], bytes_max: usize, out: &mut Vec<u8>) -> Result<(), UnpackError> {
    let length = snap::raw::decompress_len(block).map_err(std::io::Error::from)?;
    // The length is a claim; no block can be packed tighter than this.
    if length > block.len().saturating_mul(RATIO_MAX) {
        return Err(corrupt("a block claims to be longer than it can be"));
    }
    if length > bytes_max.saturating_sub(out.len()) {
        return Err(UnpackError::TooLarge);
    }
    let from = out.len();
    out.resize(from + length, 0);
    let unpacked = snap::raw::Decoder::new().decompress(block, &mut out[from..]);
    unpacked.map(drop).map_err(|error| UnpackError::from(std::io::Error::from(error)))
}

fn skip_stream_header(stream: &[u8]) -> Result<&[u8], UnpackError> {
    stream.get(STREAM_HEADER_LEN..).ok_or_else(|| corrupt("the stream header is cut off"))
}

fn corrupt(what: &str) -> UnpackError {
    UnpackError::Corrupt(what.to_owned())
}

const STREAM_MAGIC: [u8; 8] = *b"\x82SNAPPY\0";
const STREAM_VERSION: i32 = 1;
/// Magic, version, and the version a reader must have.
const STREAM_HEADER_LEN: usize = 16;
/// How the Java library cuts what it packs, and what its readers expect.
const BLOCK_LEN: usize = 32 * 1024;
/// A copy of 64 bytes takes three bytes or, if near, two.
const RATIO_MAX: usize = 32;
