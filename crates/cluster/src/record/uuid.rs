//! 128-bit ids as Kafka writes them: 22 characters of URL-safe base64.

use ottla_model::TopicId;

/// The bytes of a 22-character id; `None` where it is none.
pub fn parse_uuid(text: &str) -> Option<[u8; 16]> {
    if text.len() != 22 {
        return None;
    }
    let (head, last) = text.split_at_checked(21)?;
    let mut bits: u128 = 0;
    for byte in head.bytes() {
        bits = bits << 6 | u128::from(sextet(byte)?);
    }
    // The last character carries two bits; the four below them must be clear, or two texts
    // would name one id.
    let tail = sextet(last.bytes().next()?)?;
    (tail & 15 == 0).then(|| (bits << 2 | u128::from(tail >> 4)).to_be_bytes())
}

/// A random (version 4) id that Kafka's tools take as an argument: its text never starts with a
/// dash (KAFKA-10734), and it is none of the reserved ones.
///
/// `fresh` draws 128 random bits.
pub fn random_uuid(fresh: &mut dyn FnMut() -> [u8; 16]) -> [u8; 16] {
    loop {
        let mut bytes = fresh();
        bytes[6] = bytes[6] & 0x0f | 0x40;
        bytes[8] = bytes[8] & 0x3f | 0x80;
        if !TopicId(bytes).to_string().starts_with('-') {
            return bytes;
        }
    }
}

fn sextet(byte: u8) -> Option<u8> {
    Some(match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'-' => 62,
        b'_' => 63,
        _ => return None,
    })
}
