//! What all connections of one broker share.

use crate::clock;
use crate::config::Config;
use crate::metrics::Metrics;
use crate::net::{Admission, Complaints, Limits, Listener, Session};
use ottla_model::NodeId;
use std::sync::Arc;

/// The broker's shared state. It holds no socket and no task; those hold it.
pub(crate) struct Broker {
    /// Its settings.
    pub(crate) config: Config,
    /// Who it is.
    pub(crate) node: NodeId,
    /// Every listener, with what it advertises.
    pub(crate) listeners: Vec<Arc<Listener>>,
    /// What one connection may do.
    pub(crate) limits: Limits,
    /// How many connections there may be.
    pub(crate) admission: Admission,
    /// What is counted.
    pub(crate) metrics: Metrics,
    complaints: Complaints,
}

impl Broker {
    /// The broker of these settings, listening there.
    pub(crate) fn new(config: Config, listeners: Vec<Arc<Listener>>) -> Self {
        let limits = Limits {
            request_bytes_max: config.socket_request_max_bytes,
            idle_max: config.connections_max_idle,
            in_flight_max: config.connection_in_flight_requests_max,
            transfer_grace: config.connection_transfer_grace,
        };
        let admission = Admission::new(config.max_connections, config.max_connections_per_ip);
        Self {
            node: NodeId(config.node_id),
            listeners,
            limits,
            admission,
            metrics: Metrics::default(),
            complaints: Complaints::default(),
            config,
        }
    }

    /// Writes a line that a peer can cause at will, unless there have been many of late; `line` is
    /// told how many were left out since the last one.
    pub(crate) fn complain(&self, line: impl FnOnce(u64)) {
        let second = clock::mono().as_nanos() / 1_000_000_000;
        if let Some(left_out) = self.complaints.admit(second) {
            line(left_out);
        }
    }

    /// A connection is gone: whoever keeps something for it may forget it.
    pub(crate) fn connection_closed(&self, session: &Session) {
        let _ = session;
    }
}
