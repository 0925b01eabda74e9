//! `deleted/<topic id>`: a topic that is gone for clients while something of it still lies about.

use crate::store::Key;
use ottla_model::TopicId;
use serde::{Deserialize, Serialize};

/// A topic being deleted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeletedRecord {
    /// The name it had. A topic of that name may exist again by now, with another id.
    pub name: String,
    /// How many partitions it had.
    pub partitions: i32,
    /// The brokers that have not yet removed what they kept of it.
    pub pending: Vec<i32>,
}

pub(crate) fn key(topic: TopicId) -> Key {
    format!("deleted/{topic}").into()
}
