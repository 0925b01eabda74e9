//! How many bytes the primitives take. `flexible` picks the compact form of lengths (KIP-482).

use crate::Records;

/// A variable-length integer.
#[inline]
pub fn varint(value: u32) -> usize {
    match value {
        0..0x80 => 1,
        0x80..0x4000 => 2,
        0x4000..0x20_0000 => 3,
        0x20_0000..0x1000_0000 => 4,
        _ => 5,
    }
}

/// The length of an array or of bytes, without its content.
#[inline]
pub fn length(flexible: bool, length: usize) -> usize {
    if flexible { compact(length) } else { 4 }
}

/// Text with its length.
#[inline]
pub fn string(flexible: bool, text: &str) -> usize {
    (if flexible { compact(text.len()) } else { 2 }) + text.len()
}

/// Text with its length, or null.
#[inline]
pub fn nullable_string(flexible: bool, text: Option<&str>) -> usize {
    string(flexible, text.unwrap_or_default())
}

/// Bytes with their length.
#[inline]
pub fn bytes(flexible: bool, bytes: &[u8]) -> usize {
    length(flexible, bytes.len()) + bytes.len()
}

/// Bytes with their length, or null.
#[inline]
pub fn nullable_bytes(flexible: bool, bytes: Option<&[u8]>) -> usize {
    self::bytes(flexible, bytes.unwrap_or_default())
}

/// Record batches with their length.
#[inline]
pub fn records(flexible: bool, records: &Records<'_>) -> usize {
    let len = records.len();
    length(flexible, len) + len
}

/// Record batches with their length, or null.
#[inline]
pub fn nullable_records(flexible: bool, records: Option<&Records<'_>>) -> usize {
    records.map_or(length(flexible, 0), |records| self::records(flexible, records))
}

/// A tagged field of this tag and content size.
#[inline]
pub fn tag(tag: u32, size: usize) -> usize {
    varint(tag) + varint(clamp(size)) + size
}

#[inline]
fn compact(length: usize) -> usize {
    varint(clamp(length.saturating_add(1)))
}

/// Lengths beyond 32 bits are refused when they are written; here they only must not wrap.
#[inline]
fn clamp(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}
