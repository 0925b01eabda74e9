//! Kafka's `partition.metadata`: which topic id a folder belongs to (KIP-516).
//!
//! A topic that was deleted and created again has another id; its old folders must never be
//! taken for the new ones.

use std::io;
use std::path::Path;

use ottla_model::TopicId;

use crate::fs::{self, Fs};

/// The topic id that the folder's file names; none if there is no file.
///
/// # Errors
/// [`io::ErrorKind::InvalidData`] if the file is not one of Kafka's.
pub fn read_topic_id(fs: &dyn Fs, dir: &Path) -> io::Result<Option<TopicId>> {
    let Some(text) = fs::read_small(fs, &dir.join(FILE), SIZE_MAX)? else { return Ok(None) };
    let id = std::str::from_utf8(&text).ok().and_then(parse);
    let bad = || io::Error::new(io::ErrorKind::InvalidData, format!("{FILE} is not Kafka's"));
    id.map(Some).ok_or_else(bad)
}

/// Writes the file, durably.
pub(crate) fn write_topic_id(fs: &dyn Fs, dir: &Path, id: TopicId) -> io::Result<()> {
    let text = format!("version: 0\ntopic_id: {id}");
    fs::replace(fs, &dir.join(FILE), text.as_bytes())
}

fn parse(text: &str) -> Option<TopicId> {
    let mut lines = text.lines();
    if lines.next()? != "version: 0" {
        return None;
    }
    from_base64(lines.next()?.strip_prefix("topic_id: ")?)
}

/// The reverse of the id's `Display`: URL-safe base64 without padding, 22 characters.
fn from_base64(text: &str) -> Option<TopicId> {
    if text.len() != 22 {
        return None;
    }
    let mut bits: u128 = 0;
    for (index, byte) in text.bytes().enumerate() {
        let sextet = u128::from(sextet(byte)?);
        // 21 whole sextets and the two upper bits of the last one make 128.
        bits = if index < 21 { bits << 6 | sextet } else { bits << 2 | sextet >> 4 };
    }
    Some(TopicId(bits.to_be_bytes()))
}

fn sextet(byte: u8) -> Option<u8> {
    match byte {
        b'A'..=b'Z' => Some(byte - b'A'),
        b'a'..=b'z' => Some(byte - b'a' + 26),
        b'0'..=b'9' => Some(byte - b'0' + 52),
        b'-' => Some(62),
        b'_' => Some(63),
        _ => None,
    }
}

const FILE: &str = "partition.metadata";
const SIZE_MAX: u64 = 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_survives_its_text() {
        let counted = TopicId(std::array::from_fn(|byte| 0xf3 ^ (byte as u8 * 17)));
        for id in [TopicId::ZERO, TopicId([0xff; 16]), counted] {
            assert_eq!(parse(&format!("version: 0\ntopic_id: {id}\n")), Some(id));
        }
        assert_eq!(parse("version: 1\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA"), None);
        assert_eq!(parse("version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAA="), None);
    }
}
