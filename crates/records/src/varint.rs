//! Zigzag varints as records write them (Protocol Buffers' `sint32` and `sint64`).

/// Takes an `i32` off the front of `bytes`; none if it is cut off or does not fit.
#[inline]
pub(crate) fn take_i32(bytes: &mut &[u8]) -> Option<i32> {
    let raw = match take_short(bytes) {
        Some(raw) => raw,
        None => u32::try_from(take_raw(bytes, 5)?).ok()?,
    };
    Some(unzigzag(u64::from(raw)) as i32)
}

/// Takes an `i64` off the front of `bytes`; none if it is cut off or does not fit.
#[inline]
pub(crate) fn take_i64(bytes: &mut &[u8]) -> Option<i64> {
    let raw = match take_short(bytes) {
        Some(raw) => u64::from(raw),
        None => take_raw(bytes, 10)?,
    };
    Some(unzigzag(raw))
}

/// Takes one of at most three bytes, as all but the rarest lengths, deltas and counts are; none if
/// it is longer or cut off.
#[inline(always)]
fn take_short(bytes: &mut &[u8]) -> Option<u32> {
    let (raw, rest) = match **bytes {
        [a, ref rest @ ..] if a < 0x80 => (u32::from(a), rest),
        [a, b, ref rest @ ..] if b < 0x80 => (u32::from(a & 0x7f) | u32::from(b) << 7, rest),
        [a, b, c, ref rest @ ..] if c < 0x80 => {
            (u32::from(a & 0x7f) | u32::from(b & 0x7f) << 7 | u32::from(c) << 14, rest)
        }
        _ => return None,
    };
    *bytes = rest;
    Some(raw)
}

/// Appends `value`.
pub(crate) fn put_i64(out: &mut Vec<u8>, value: i64) {
    let mut raw = zigzag(value);
    while raw >= 0x80 {
        out.push(raw as u8 | 0x80);
        raw >>= 7;
    }
    out.push(raw as u8);
}

/// Appends `value`.
pub(crate) fn put_i32(out: &mut Vec<u8>, value: i32) {
    put_i64(out, i64::from(value));
}

/// Bytes that [`put_i64`] appends for `value`.
pub(crate) fn len_i64(value: i64) -> usize {
    let bits = 64 - (zigzag(value) | 1).leading_zeros() as usize;
    bits.div_ceil(7)
}

/// Bytes that [`put_i32`] appends for `value`.
pub(crate) fn len_i32(value: i32) -> usize {
    len_i64(i64::from(value))
}

#[cold]
fn take_raw(bytes: &mut &[u8], bytes_max: usize) -> Option<u64> {
    let mut raw = 0u64;
    for (index, &byte) in bytes.iter().take(bytes_max).enumerate() {
        let bits = u64::from(byte & 0x7f);
        // The tenth byte has room for one bit only.
        if index == 9 && bits > 1 {
            return None;
        }
        raw |= bits << (7 * index);
        if byte < 0x80 {
            *bytes = &bytes[index + 1..];
            return Some(raw);
        }
    }
    None
}

fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

fn unzigzag(raw: u64) -> i64 {
    (raw >> 1) as i64 ^ -((raw & 1) as i64)
}
