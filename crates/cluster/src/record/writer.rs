//! `writers/<node>`: a token of the last transaction of one broker. It makes an unknown outcome
//! decidable: see [`crate::store::Txn`].

use crate::store::Key;
use ottla_model::NodeId;
use serde::{Deserialize, Serialize};

/// The last transaction's token.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WriterRecord {
    /// 128 random bits, as text; never used before.
    pub token: String,
}

pub(crate) fn key(node: NodeId) -> Key {
    format!("writers/{node}").into()
}
