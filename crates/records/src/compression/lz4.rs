//! LZ4 frames, as far as Kafka's Java client reads them: blocks that do not depend on each other,
//! and an end mark. What it cannot read is refused, for a broker that stored it would poison its
//! consumers.
//!
//! The frame is walked here and the library unpacks each block into the output itself. Its own
//! reader would take a frame without an end for whole, and makes room for the largest block the
//! frame may have: 4 MiB, zeroed, for each small batch that a Go client sends.

use std::io::Write;

use lz4_flex::block::{DecompressError, decompress_into};
use lz4_flex::frame::{BlockMode, BlockSize, FrameEncoder, FrameInfo};
use twox_hash::XxHash32;

use super::UnpackError;

pub(super) fn unpack(
    packed: &[u8],
    bytes_max: usize,
    out: &mut Vec<u8>,
) -> Result<(), UnpackError> {
    let (frame, mut rest) = Frame::read(packed).ok_or_else(|| corrupt(UNREADABLE))?;
    while let Some((length, after)) = rest.split_first_chunk() {
        let length = u32::from_le_bytes(*length);
        if length == END_MARK {
            return frame.check_content(out, after);
        }
        let block = after.split_at_checked((length & !NOT_PACKED) as usize);
        let (block, after) = block.ok_or_else(|| corrupt("a block is cut off"))?;
        rest = frame.check_block(block, after)?;
        if length & NOT_PACKED == 0 {
            unpack_block(block, frame.block_bytes_max, bytes_max, out)?;
        } else if block.len() > bytes_max.saturating_sub(out.len()) {
            return Err(UnpackError::TooLarge);
        } else {
            out.extend_from_slice(block);
        }
    }
    Err(corrupt("the end mark is missing"))
}

pub(super) fn pack(plain: &[u8], out: &mut Vec<u8>) -> std::io::Result<()> {
    let frame = FrameInfo::new().block_mode(BlockMode::Independent).block_size(BlockSize::Max64KB);
    let mut encoder = FrameEncoder::with_frame_info(frame, out);
    encoder.write_all(plain)?;
    encoder.finish().map(drop).map_err(std::io::Error::other)
}

/// What a frame's header says that matters here.
struct Frame {
    flags: u8,
    block_bytes_max: usize,
}

impl Frame {
    /// Reads the header; none if it is cut off, corrupt, or asks for what Kafka does not do.
    fn read(packed: &[u8]) -> Option<(Self, &[u8])> {
        let descriptor = packed.strip_prefix(&MAGIC)?;
        let [flags, sizes, ..] = *descriptor else { return None };
        let len = if flags & HAS_CONTENT_SIZE == 0 { 2 } else { 2 + size_of::<u64>() };
        let (descriptor, after) = descriptor.split_at_checked(len)?;
        let (checksum, blocks) = after.split_first()?;
        let sound = XxHash32::oneshot(0, descriptor).to_le_bytes()[1] == *checksum;
        let known = flags & (VERSION | BLOCKS_INDEPENDENT | RESERVED) == KNOWN_FLAGS;
        let block_bytes_max = match sizes {
            0x40 => 64 << 10,
            0x50 => 256 << 10,
            0x60 => 1 << 20,
            0x70 => 4 << 20,
            _ => return None,
        };
        (sound && known).then_some((Self { flags, block_bytes_max }, blocks))
    }

    /// Checks a block's checksum, if it has one, and gives what follows.
    fn check_block<'a>(&self, block: &[u8], after: &'a [u8]) -> Result<&'a [u8], UnpackError> {
        if block.len() > self.block_bytes_max {
            return Err(corrupt("a block is longer than the frame allows"));
        }
        if self.flags & HAS_BLOCK_CHECKSUM == 0 { Ok(after) } else { check(block, after) }
    }

    /// Checks the checksum of all, if there is one. What follows the frame is ignored, as Kafka
    /// does.
    fn check_content(&self, out: &[u8], after: &[u8]) -> Result<(), UnpackError> {
        if self.flags & HAS_CONTENT_CHECKSUM == 0 { Ok(()) } else { check(out, after).map(drop) }
    }
}

/// Checks that `after` begins with the checksum of `bytes`, and gives what follows it.
fn check<'a>(bytes: &[u8], after: &'a [u8]) -> Result<&'a [u8], UnpackError> {
    match after.split_first_chunk() {
        Some((stored, rest)) if XxHash32::oneshot(0, bytes) == u32::from_le_bytes(*stored) => {
            Ok(rest)
        }
        _ => Err(corrupt("a checksum is wrong or missing")),
    }
}

/// Appends one block's plain bytes to `out`. How many they are, nothing tells: half a megabyte
/// that is all alike takes two kilobytes. So room for the usual is tried first.
fn unpack_block(
    block: &[u8],
    block_bytes_max: usize,
    bytes_max: usize,
    out: &mut Vec<u8>,
) -> Result<(), UnpackError> {
    let from = out.len();
    let left = bytes_max.saturating_sub(from);
    let room_max = block_bytes_max.min(block.len().saturating_mul(RATIO_MAX));
    let mut room = block.len().saturating_mul(RATIO_USUAL).min(room_max).min(left);
    loop {
        out.resize(from + room, 0);
        match decompress_into(block, &mut out[from..]) {
            Ok(length) => {
                out.truncate(from + length);
                return Ok(());
            }
            Err(DecompressError::OutputTooSmall { .. }) if room < room_max.min(left) => {
                room = room_max.min(left);
            }
            Err(DecompressError::OutputTooSmall { .. }) if left < room_max => {
                return Err(UnpackError::TooLarge);
            }
            Err(error) => return Err(UnpackError::Corrupt(error.to_string())),
        }
    }
}

fn corrupt(what: &str) -> UnpackError {
    UnpackError::Corrupt(what.to_owned())
}

const UNREADABLE: &str = "not a frame of independent blocks with a sound header";
const MAGIC: [u8; 4] = 0x184D_2204_u32.to_le_bytes();
const VERSION: u8 = 0b1100_0000;
const BLOCKS_INDEPENDENT: u8 = 1 << 5;
const HAS_BLOCK_CHECKSUM: u8 = 1 << 4;
const HAS_CONTENT_SIZE: u8 = 1 << 3;
const HAS_CONTENT_CHECKSUM: u8 = 1 << 2;
/// One reserved bit, and the dictionary that nobody in Kafka has.
const RESERVED: u8 = 0b11;
/// Version 1, independent blocks.
const KNOWN_FLAGS: u8 = 0b0110_0000;
/// A block whose bytes stand as they are has this bit in its length.
const NOT_PACKED: u32 = 1 << 31;
const END_MARK: u32 = 0;
const RATIO_USUAL: usize = 8;
/// A byte of a match's length stands for 255 bytes at most.
const RATIO_MAX: usize = 256;
