//! `cluster`: the cluster's identity, written once.

use crate::store::Key;
use serde::{Deserialize, Serialize};

/// The cluster's identity.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterRecord {
    /// The version of these entries' form; see [`FORMAT`].
    pub format: u32,
    /// 22 characters of URL-safe base64, as Kafka prints a UUID.
    pub id: String,
}

pub(crate) fn key() -> Key {
    "cluster".into()
}

/// The form this version writes. A store with a higher one is not opened.
pub const FORMAT: u32 = 1;
