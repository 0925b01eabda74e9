//! The last offset of each key, in memory that has a bound.

use std::collections::HashMap;

use ottla_model::Offset;

/// Key -> the offset of its last record. Whole keys, not hashes of them: two keys that were taken
/// for one would lose a record.
#[derive(Debug)]
pub(crate) struct Keys {
    last: HashMap<Box<[u8]>, Offset>,
    bytes: usize,
    bytes_max: usize,
}

impl Keys {
    /// No keys yet, and room for as many as fit `bytes_max`.
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self { last: HashMap::new(), bytes: 0, bytes_max }
    }

    /// Whether no more keys should come. What is in stays right.
    pub(crate) fn is_full(&self) -> bool {
        self.bytes >= self.bytes_max
    }

    /// Notes a record of `key`. Offsets only rise.
    pub(crate) fn note(&mut self, key: &[u8], offset: Offset) {
        if let Some(last) = self.last.get_mut(key) {
            *last = offset;
            return;
        }
        self.bytes += key.len() + ENTRY_BYTES;
        self.last.insert(key.into(), offset);
    }

    /// Whether a record is superseded by a later one of its key.
    pub(crate) fn supersedes(&self, key: &[u8], offset: Offset) -> bool {
        self.last.get(key).is_some_and(|last| *last > offset)
    }
}

/// What an entry takes beside the key's own bytes: its slot at the table's mean fill, and the
/// allocator's share.
const ENTRY_BYTES: usize = 56;
