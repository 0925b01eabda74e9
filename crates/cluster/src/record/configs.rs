//! `configs/<kind>/<name>`: the dynamic settings of one resource, a map of strings. Absent where
//! there are none.

use crate::store::Key;
use std::fmt;

/// What settings belong to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConfigResource {
    /// The kind.
    pub kind: ResourceKind,
    /// Its name: a topic, a node id, a group. An empty node id stands for every broker.
    pub name: String,
}

/// The kinds of resources that have settings. Kafka's numbers of them are the wire's business.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ResourceKind {
    /// A topic.
    Topic,
    /// A broker, or all of them.
    Broker,
    /// A consumer group.
    Group,
}

impl ConfigResource {
    /// The topic `name`.
    pub fn topic(name: impl Into<String>) -> Self {
        Self { kind: ResourceKind::Topic, name: name.into() }
    }

    /// Every broker (Kafka's "cluster default").
    pub fn every_broker() -> Self {
        Self { kind: ResourceKind::Broker, name: String::new() }
    }

    /// The broker `node`.
    pub fn broker(node: ottla_model::NodeId) -> Self {
        Self { kind: ResourceKind::Broker, name: node.to_string() }
    }

    /// The group `name`.
    pub fn group(name: impl Into<String>) -> Self {
        Self { kind: ResourceKind::Group, name: name.into() }
    }
}

impl fmt::Display for ResourceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Topic => "topic",
            Self::Broker => "broker",
            Self::Group => "group",
        })
    }
}

pub(crate) fn key(resource: &ConfigResource) -> Key {
    format!("configs/{}/{}", resource.kind, resource.name).into()
}

pub(crate) fn parse_name(name: &str) -> Option<ConfigResource> {
    let (kind, name) = name.split_once('/')?;
    let kind = match kind {
        "topic" => ResourceKind::Topic,
        "broker" => ResourceKind::Broker,
        "group" => ResourceKind::Group,
        _ => return None,
    };
    Some(ConfigResource { kind, name: name.into() })
}
