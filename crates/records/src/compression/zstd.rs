//! Zstandard, one frame or several.
//!
//! Unpacked in one call into the output itself: streaming would have the library allocate the
//! window that the frame asks for, whatever the frame then holds. The library's contexts are kept
//! for each thread, since making one takes longer than a small batch does.

use std::cell::RefCell;

use zstd::zstd_safe::zstd_sys::ZSTD_ErrorCode::ZSTD_error_dstSize_tooSmall as TOO_SMALL;
use zstd::zstd_safe::{self, CCtx, DCtx};

use super::UnpackError;

pub(super) fn unpack(
    packed: &[u8],
    bytes_max: usize,
    out: &mut Vec<u8>,
) -> Result<(), UnpackError> {
    let bytes_max = bytes_max.min(packed.len().saturating_mul(RATIO_MAX));
    let mut guess = first_guess(packed).min(bytes_max);
    loop {
        out.clear();
        out.reserve_exact(guess);
        match UNPACKING.with_borrow_mut(|context| context.decompress(out, packed)) {
            Ok(_) if out.len() > bytes_max => return Err(UnpackError::TooLarge),
            Ok(_) => return Ok(()),
            Err(code) if !zstd_safe::is_error_kind(code, TOO_SMALL) => {
                return Err(UnpackError::Corrupt(zstd_safe::get_error_name(code).to_owned()));
            }
            Err(_) if guess >= bytes_max => return Err(UnpackError::TooLarge),
            Err(_) => guess = guess.saturating_mul(2).max(GUESS_MIN).min(bytes_max),
        }
    }
}

pub(super) fn pack(plain: &[u8], out: &mut Vec<u8>) -> std::io::Result<()> {
    let from = out.len();
    out.resize(from + zstd_safe::compress_bound(plain.len()), 0);
    let level = zstd::DEFAULT_COMPRESSION_LEVEL;
    let length = PACKING
        .with_borrow_mut(|context| context.compress(&mut out[from..], plain, level))
        .map_err(|code| std::io::Error::other(zstd_safe::get_error_name(code)))?;
    out.truncate(from + length);
    Ok(())
}

thread_local! {
    static UNPACKING: RefCell<DCtx<'static>> = RefCell::new(DCtx::create());
    static PACKING: RefCell<CCtx<'static>> = RefCell::new(CCtx::create());
}

/// The size the first frame tells, if it does (a stream's does not), else what text packs to.
fn first_guess(packed: &[u8]) -> usize {
    let told = zstd_safe::get_frame_content_size(packed).ok().flatten();
    let told = told.and_then(|size| usize::try_from(size).ok());
    told.unwrap_or_else(|| packed.len().saturating_mul(4).max(GUESS_MIN))
}

/// The least to try first: below this, trying twice costs more than the memory.
const GUESS_MIN: usize = 16 * 1024;
/// A block of 128 KiB of one byte takes four bytes.
const RATIO_MAX: usize = 32 * 1024;
