//! Zigzag varints as records write them (Protocol Buffers' `sint32` and `sint64`).

/// Takes an `i32` off the front of `bytes`; none if it is cut off or does not fit.
pub(crate) fn take_i32(bytes: &mut &[u8]) -> Option<i32> {
    // One byte holds all but the rarest lengths, deltas and counts.
    if let [byte, rest @ ..] = *bytes
        && *byte < 0x80
    {
        *bytes = rest;
        return Some(unzigzag(u64::from(*byte)) as i32);
    }
    let raw = take_raw(bytes, 5)?;
    u32::try_from(raw).ok().map(|raw| unzigzag(u64::from(raw)) as i32)
}

/// Takes an `i64` off the front of `bytes`; none if it is cut off or does not fit.
pub(crate) fn take_i64(bytes: &mut &[u8]) -> Option<i64> {
    take_raw(bytes, 10).map(unzigzag)
}

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

fn unzigzag(raw: u64) -> i64 {
    (raw >> 1) as i64 ^ -((raw & 1) as i64)
}
