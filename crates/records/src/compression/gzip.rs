//! Gzip, as `java.util.zip` reads and writes it: one member or several.

use std::io::Write;

use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;

use super::{UnpackError, read_bounded};

pub(super) fn unpack(
    packed: &[u8],
    bytes_max: usize,
    out: &mut Vec<u8>,
) -> Result<(), UnpackError> {
    read_bounded(MultiGzDecoder::new(packed), bytes_max, out)
}

pub(super) fn pack(plain: &[u8], out: &mut Vec<u8>) -> std::io::Result<()> {
    let mut encoder = GzEncoder::new(out, flate2::Compression::default());
    encoder.write_all(plain)?;
    encoder.finish().map(drop)
}
