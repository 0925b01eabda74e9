//! `shards/<partition>` and `shard-locks/<partition>`: a coordinator shard's reigns, and who
//! reigns. The reign outlives its owner, because the next epoch is counted from it; the lock goes
//! with the owner's session.

use crate::store::Key;
use ottla_model::PartitionId;
use serde::{Deserialize, Serialize};

/// The last reign.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShardRecord {
    /// Its ownership epoch; the first is 1.
    pub epoch: i32,
}

/// Who holds the shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShardLockRecord {
    /// The owner's id.
    pub node: i32,
}

pub(crate) fn key(partition: PartitionId) -> Key {
    format!("shards/{partition}").into()
}

pub(crate) fn lock_key(partition: PartitionId) -> Key {
    format!("shard-locks/{partition}").into()
}
