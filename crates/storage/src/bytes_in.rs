//! Takes big-endian fields off the front of bytes that may end too early.

/// The next `N` bytes; none, and `from` as it was, if there are fewer.
pub(crate) fn take<const N: usize>(from: &mut &[u8]) -> Option<[u8; N]> {
    let (field, rest) = from.split_first_chunk()?;
    *from = rest;
    Some(*field)
}

/// The next 16-bit number.
pub(crate) fn take_i16(from: &mut &[u8]) -> Option<i16> {
    take(from).map(i16::from_be_bytes)
}

/// The next 32-bit number.
pub(crate) fn take_i32(from: &mut &[u8]) -> Option<i32> {
    take(from).map(i32::from_be_bytes)
}

/// The next 32-bit number, unsigned.
pub(crate) fn take_u32(from: &mut &[u8]) -> Option<u32> {
    take(from).map(u32::from_be_bytes)
}

/// The next 64-bit number.
pub(crate) fn take_i64(from: &mut &[u8]) -> Option<i64> {
    take(from).map(i64::from_be_bytes)
}

/// The next 64-bit number, unsigned.
pub(crate) fn take_u64(from: &mut &[u8]) -> Option<u64> {
    take(from).map(u64::from_be_bytes)
}
