//! `brokers/<node>`: a live broker, gone with its session.

use crate::store::Key;
use ottla_model::NodeId;
use serde::{Deserialize, Serialize};

/// A live broker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BrokerRecord {
    /// What it listens on, by name, as clients should reach it.
    pub listeners: Vec<ListenerRecord>,
    /// The rack it stands in, if it says.
    pub rack: Option<String>,
}

/// One advertised address.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListenerRecord {
    /// The listener's name, such as `PLAINTEXT` or `EXTERNAL`.
    pub name: String,
    /// The host clients are told.
    pub host: String,
    /// The port clients are told.
    pub port: u16,
}

pub(crate) fn key(node: NodeId) -> Key {
    format!("brokers/{node}").into()
}
