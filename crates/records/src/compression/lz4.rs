//! LZ4 frames within what Kafka's Java client reads, which is less than the format allows: blocks
//! that do not depend on each other, and no content checksum over more than one block.

use std::io::Write;

use lz4_flex::frame::{BlockMode, BlockSize, FrameDecoder, FrameEncoder, FrameInfo};

use super::{UnpackError, read_bounded};

pub(super) fn unpack(
    packed: &[u8],
    bytes_max: usize,
    out: &mut Vec<u8>,
) -> Result<(), UnpackError> {
    // The decoder takes the end of the input for the end of the frame, and dependent blocks for
    // good; the Java client takes neither, so storing such a frame would poison its consumers.
    if !is_whole_frame(packed) {
        return Err(UnpackError::Corrupt("not a whole frame of independent blocks".to_owned()));
    }
    read_bounded(FrameDecoder::new(packed), bytes_max, out)
}

pub(super) fn pack(plain: &[u8], out: &mut Vec<u8>) -> std::io::Result<()> {
    let frame = FrameInfo::new().block_mode(BlockMode::Independent).block_size(BlockSize::Max64KB);
    let mut encoder = FrameEncoder::with_frame_info(frame, out);
    encoder.write_all(plain)?;
    encoder.finish().map(drop).map_err(std::io::Error::other)
}

/// Whether `frame` has the blocks to its end mark, none depending on another.
fn is_whole_frame(frame: &[u8]) -> bool {
    let Some([flags, _, rest @ ..]) = frame.strip_prefix(&FRAME_MAGIC) else { return false };
    let when = |flag: u8, bytes: usize| if flags & flag == 0 { 0 } else { bytes };
    let fields = when(HAS_CONTENT_SIZE, 8) + when(HAS_DICTIONARY, 4) + 1;
    let Some(mut blocks) = rest.get(fields..) else { return false };
    while let Some((length, after)) = blocks.split_first_chunk() {
        let length = u32::from_le_bytes(*length);
        if length == END_MARK {
            return flags & BLOCKS_INDEPENDENT != 0;
        }
        let stored = (length & !NOT_PACKED) as usize + when(HAS_BLOCK_CHECKSUM, 4);
        let Some(next) = after.get(stored..) else { return false };
        blocks = next;
    }
    false
}

const FRAME_MAGIC: [u8; 4] = 0x184D_2204_u32.to_le_bytes();
const HAS_DICTIONARY: u8 = 1;
const HAS_CONTENT_SIZE: u8 = 1 << 3;
const HAS_BLOCK_CHECKSUM: u8 = 1 << 4;
const BLOCKS_INDEPENDENT: u8 = 1 << 5;
/// A block whose bytes stand as they are has this bit in its length.
const NOT_PACKED: u32 = 1 << 31;
const END_MARK: u32 = 0;
