//! `topics/<name>`: a topic, with all its partitions in one value.

use crate::store::Key;
use ottla_model::{NodeId, TopicId};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A topic.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TopicRecord {
    /// Its id, as text.
    #[serde(with = "id_text")]
    pub id: TopicId,
    /// Per partition the brokers that keep it, the preferred leader first.
    #[serde(with = "nodes")]
    pub replicas: Vec<Vec<NodeId>>,
}

pub(crate) fn key(name: &str) -> Key {
    format!("topics/{name}").into()
}

pub(super) mod id_text {
    use super::{Deserialize, Deserializer, Serializer, TopicId};

    pub(crate) fn serialize<S: Serializer>(id: &TopicId, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(id)
    }

    pub(crate) fn deserialize<'a, D: Deserializer<'a>>(from: D) -> Result<TopicId, D::Error> {
        let text = String::deserialize(from)?;
        let bytes = super::super::parse_uuid(&text);
        bytes.map(TopicId).ok_or_else(|| serde::de::Error::custom("not a topic id"))
    }
}

mod nodes {
    use super::{Deserialize, Deserializer, NodeId, Serializer};

    pub(crate) fn serialize<S: Serializer>(
        replicas: &[Vec<NodeId>],
        to: S,
    ) -> Result<S::Ok, S::Error> {
        let plain = |nodes: &Vec<NodeId>| nodes.iter().map(|node| node.0).collect::<Vec<i32>>();
        to.collect_seq(replicas.iter().map(plain))
    }

    pub(crate) fn deserialize<'a, D: Deserializer<'a>>(
        from: D,
    ) -> Result<Vec<Vec<NodeId>>, D::Error> {
        let plain = Vec::<Vec<i32>>::deserialize(from)?;
        Ok(plain.into_iter().map(|nodes| nodes.into_iter().map(NodeId).collect()).collect())
    }
}
