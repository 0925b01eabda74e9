//! `leaders/<topic id>/<partition>`: the reign of a partition's leader. Absent while the first
//! replica leads in epoch 0, so that a topic of many partitions is one small transaction.

use super::parse_uuid;
use crate::store::Key;
use ottla_model::{PartitionId, TopicId};
use serde::{Deserialize, Serialize};

/// A reign.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeaderRecord {
    /// The leading broker's id.
    pub node: i32,
    /// The leader epoch.
    pub epoch: i32,
}

pub(crate) fn key(topic: TopicId, partition: PartitionId) -> Key {
    format!("leaders/{topic}/{partition}").into()
}

pub(crate) fn parse_name(name: &str) -> Option<(TopicId, PartitionId)> {
    let (topic, partition) = name.split_once('/')?;
    Some((TopicId(parse_uuid(topic)?), PartitionId(partition.parse().ok()?)))
}
