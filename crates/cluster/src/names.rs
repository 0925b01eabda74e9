//! What a topic may be called, in Kafka's words, and which names are the brokers' own.

use crate::image::Image;

/// Whether `name` is a legal topic name.
///
/// # Errors
/// What is wrong with it, as Kafka says it after "Topic name is invalid: ".
pub fn check(name: &str) -> Result<(), String> {
    if name.is_empty() {
        return Err("the empty string is not allowed".into());
    }
    if name == "." || name == ".." {
        return Err(format!("'{name}' is not allowed"));
    }
    // Kafka counts UTF-16 units; only ASCII passes the next rule, so bytes are the same there.
    if name.encode_utf16().count() > LENGTH_MAX {
        return Err(format!(
            "the length of '{name}' is longer than the max allowed length {LENGTH_MAX}"
        ));
    }
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    if !name.bytes().all(legal) {
        return Err(format!(
            "'{name}' contains one or more characters other than ASCII alphanumerics, '.', '_' \
             and '-'"
        ));
    }
    Ok(())
}

/// A topic that exists and whose name differs from `name` only in `.` against `_`: both would
/// have the same metrics.
pub fn collision<'a>(image: &'a Image, name: &str) -> Option<&'a str> {
    if !name.contains(['.', '_']) {
        return None;
    }
    let wanted = name.replace('.', "_");
    let same = |other: &str| other.len() == name.len() && other.replace('.', "_") == wanted;
    // Names up to the first `.` or `_` are equal, so only a short stretch is looked at.
    let stem = name.split(['.', '_']).next().unwrap_or_default();
    image
        .topics_from(stem)
        .map(|topic| &*topic.name)
        .take_while(|other| other.starts_with(stem))
        .find(|other| *other != name && same(other))
}

/// Whether the topic belongs to the brokers. Clients see the mark in Metadata.
pub fn is_internal(name: &str) -> bool {
    matches!(name, OFFSETS_TOPIC | TRANSACTIONS_TOPIC | SHARE_TOPIC)
}

/// Where groups and their offsets are kept.
pub const OFFSETS_TOPIC: &str = "__consumer_offsets";

/// Kafka's controllers keep their metadata in a log of this name: no topic may have it.
pub const METADATA_TOPIC: &str = "__cluster_metadata";

const TRANSACTIONS_TOPIC: &str = "__transaction_state";
const SHARE_TOPIC: &str = "__share_group_state";

/// A name's length, so that `name-2147483647` still makes a folder.
const LENGTH_MAX: usize = 249;
