//! What the store holds: one file per kind of entry, each a key and a JSON value.
//!
//! JSON because an operator reads it with the engine's own tools and because a field added later
//! is skipped by an older broker. Names of keys and fields are persisted: they are kept, not
//! renamed. [`Row::parse`] is the only reader, `put` the only writer.

mod broker;
mod cluster;
mod configs;
mod deleted;
mod feature;
mod leader;
mod producer_ids;
mod shard;
mod topic;
mod uuid;
mod writer;

pub use broker::{BrokerRecord, ListenerRecord};
pub use cluster::{ClusterRecord, FORMAT};
pub use configs::{ConfigResource, ResourceKind};
pub use deleted::DeletedRecord;
pub use leader::LeaderRecord;
pub use producer_ids::ProducerIdsRecord;
pub use shard::{ShardLockRecord, ShardRecord};
pub use topic::TopicRecord;
pub use uuid::{parse_uuid, random_uuid};
pub use writer::WriterRecord;

pub(crate) use broker::key as broker_key;
pub(crate) use cluster::key as cluster_key;
pub(crate) use configs::{key as configs_key, parse_name as parse_resource};
pub(crate) use deleted::key as deleted_key;
pub(crate) use feature::key as feature_key;
pub(crate) use leader::{key as leader_key, parse_name as parse_leader};
pub(crate) use producer_ids::key as producer_ids_key;
pub(crate) use shard::{key as shard_key, lock_key as shard_lock_key};
pub(crate) use topic::key as topic_key;
pub(crate) use writer::key as writer_key;

use crate::store::{Key, Op, SessionId};
use ottla_model::{NodeId, PartitionId, TopicId, TopicName};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One entry of the store, understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Row {
    /// The cluster's identity.
    Cluster(ClusterRecord),
    /// A topic.
    Topic(TopicName, TopicRecord),
    /// The reign of a partition's leader, once it is not the first.
    Leader(TopicId, PartitionId, LeaderRecord),
    /// A topic being deleted.
    Deleted(TopicId, DeletedRecord),
    /// Dynamic settings of one resource.
    Configs(ConfigResource, BTreeMap<String, String>),
    /// A live broker.
    Broker(NodeId, BrokerRecord),
    /// A finalized feature's level.
    Feature(String, i16),
    /// The next free producer id.
    ProducerIds(ProducerIdsRecord),
    /// The reign of a coordinator shard's owner.
    Shard(PartitionId, ShardRecord),
    /// Who holds a coordinator shard, for as long as its session lives.
    ShardLock(PartitionId, ShardLockRecord),
    /// The last transaction of one broker.
    Writer(NodeId, WriterRecord),
}

/// An entry that cannot be understood: written by something else, or damaged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the metadata store's entry {key} cannot be understood: {reason}")]
pub struct Corrupt {
    key: String,
    reason: String,
}

impl Row {
    /// Reads one entry; `Ok(None)` for a kind this version does not know.
    ///
    /// # Errors
    /// [`Corrupt`] where key or value break the kind's form.
    pub fn parse(key: &str, value: &[u8]) -> Result<Option<Self>, Corrupt> {
        let corrupt = |reason: String| Corrupt { key: key.into(), reason };
        Self::read(key, value).map_err(corrupt)
    }

    fn read(key: &str, value: &[u8]) -> Result<Option<Self>, String> {
        let (kind, name) = key.split_once('/').unwrap_or((key, ""));
        Ok(Some(match kind {
            "cluster" => Self::Cluster(json(value)?),
            "topics" => Self::Topic(name.into(), json(value)?),
            "leaders" => {
                let (topic, partition) = leader::parse_name(name).ok_or("bad key")?;
                Self::Leader(topic, partition, json(value)?)
            }
            "deleted" => Self::Deleted(TopicId(parse_uuid(name).ok_or("bad id")?), json(value)?),
            "configs" => Self::Configs(configs::parse_name(name).ok_or("bad key")?, json(value)?),
            "brokers" => Self::Broker(NodeId(number(name)?), json(value)?),
            "features" => Self::Feature(name.into(), json(value)?),
            "producer-ids" => Self::ProducerIds(json(value)?),
            "shards" => Self::Shard(PartitionId(number(name)?), json(value)?),
            "shard-locks" => Self::ShardLock(PartitionId(number(name)?), json(value)?),
            "writers" => Self::Writer(NodeId(number(name)?), json(value)?),
            _ => return Ok(None),
        }))
    }
}

/// The operation that writes `value` under `key`.
pub(crate) fn put(key: Key, value: &impl Serialize) -> Op {
    put_for(key, value, None)
}

/// Likewise, for as long as `session` lives.
pub(crate) fn put_for(key: Key, value: &impl Serialize, session: Option<SessionId>) -> Op {
    let value = serde_json::to_vec(value).expect("our records are plain structs");
    Op::Put { key, value: value.into(), session }
}

fn json<'a, T: Deserialize<'a>>(value: &'a [u8]) -> Result<T, String> {
    serde_json::from_slice(value).map_err(|error| error.to_string())
}

fn number(text: &str) -> Result<i32, String> {
    text.parse().map_err(|_| format!("{text:?} is not a number"))
}

#[cfg(test)]
mod tests;
