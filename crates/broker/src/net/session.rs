//! What the broker knows about a connection's peer, for handlers to read and add to.

use super::line::Line;
use super::listener::Listener;
use ottla_group::message::Patience;
use ottla_model::ConnectionId;
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;

/// One connection as handlers see it.
#[derive(Debug)]
pub(crate) struct Session {
    /// Names the connection for the life of the process.
    pub(crate) id: ConnectionId,
    /// The peer's address.
    pub(crate) peer: SocketAddr,
    /// The peer's host as Kafka's tools print it: a slash, then the address without port.
    pub(crate) host: Arc<str>,
    /// The listener it came in by; its advertised address is what this peer is told.
    pub(crate) listener: Arc<Listener>,
    /// What its client bears, once that has said what it is.
    pub(crate) patience: Option<Patience>,
    /// By which it can be broken.
    pub(super) line: Arc<Line>,
    /// Coordinator shards that hold something for this connection and must hear of its end.
    pub(crate) shards: BTreeSet<i32>,
}

impl Session {
    /// A fresh connection.
    pub(crate) fn new(
        id: ConnectionId,
        peer: SocketAddr,
        listener: Arc<Listener>,
        line: Arc<Line>,
    ) -> Self {
        let host = format!("/{}", peer.ip().to_canonical()).into();
        Self { id, peer, host, listener, line, patience: None, shards: BTreeSet::new() }
    }
}
