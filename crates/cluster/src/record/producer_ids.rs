//! `producer-ids`: the first producer id no broker has taken yet. Only rises.

use crate::store::Key;
use serde::{Deserialize, Serialize};

/// The next free producer id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProducerIdsRecord {
    /// It and all above it are free.
    pub next: i64,
}

pub(crate) fn key() -> Key {
    "producer-ids".into()
}
