//! What all connections of one broker share.

use crate::clock;
use crate::config::Config;
use crate::fetching;
use crate::metrics::Metrics;
use crate::net::{Admission, Complaints, Lifeline, Limits, Lines, Listener, Session};
use crate::partitions::Partitions;
use crate::patience::Patiences;
use crate::shards::Shards;
use ottla_cluster::Cluster;
use ottla_model::NodeId;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use tokio::sync::Semaphore;

/// The broker's shared state. It holds no socket and no task; those hold it.
pub(crate) struct Broker {
    /// Its settings, as of its start.
    pub(crate) config: Config,
    /// Which client bears being kept waiting.
    pub(crate) patiences: Patiences,
    /// Who it is.
    pub(crate) node: NodeId,
    /// Every listener, with what it advertises.
    pub(crate) listeners: Vec<Arc<Listener>>,
    /// What one connection may do.
    pub(crate) limits: Limits,
    /// How many connections there may be.
    pub(crate) admission: Admission,
    /// Requests that take long have their turns by this, so that they leave processors to others.
    pub(crate) long_turns: Arc<Semaphore>,
    /// Memory for large requests on their way in, in bytes.
    pub(crate) request_room: Arc<Semaphore>,
    /// Every open connection.
    pub(crate) lines: Arc<Lines>,
    /// What is counted.
    pub(crate) metrics: Metrics,
    /// Topics, brokers, owners and dynamic settings.
    pub(crate) cluster: Cluster,
    /// The partitions it leads.
    pub(crate) partitions: Arc<Partitions>,
    /// The coordinator shards it owns.
    pub(crate) shards: Arc<Shards>,
    /// Sessions of clients that fetch.
    pub(crate) fetch_sessions: fetching::Sessions,
    /// Fetches that wait for records.
    pub(crate) fetches: fetching::Waiting,
    /// Tells when the broker shuts down.
    pub(crate) lifeline: Lifeline,
    /// The cluster is lost to this broker, which must be started anew.
    pub(crate) detached: AtomicBool,
    complaints: Complaints,
}

/// What a broker is made of.
pub(crate) struct Parts {
    /// Its settings.
    pub(crate) config: Config,
    /// Its bound listeners.
    pub(crate) listeners: Vec<Arc<Listener>>,
    /// The cluster it is part of.
    pub(crate) cluster: Cluster,
    /// Its partitions.
    pub(crate) partitions: Arc<Partitions>,
    /// Tells when it shuts down.
    pub(crate) lifeline: Lifeline,
}

impl Broker {
    /// The broker of these parts.
    pub(crate) fn new(parts: Parts) -> Self {
        let Parts { config, listeners, cluster, partitions, lifeline } = parts;
        let limits = Limits {
            request_bytes_max: config.socket_request_max_bytes,
            idle_max: config.connections_max_idle,
            in_flight_max: config.connection_in_flight_requests_max,
            transfer_grace: config.connection_transfer_grace,
        };
        let admission = Admission::new(config.max_connections, config.max_connections_per_ip);
        Self {
            patiences: Patiences::new(&config),
            node: NodeId(config.node_id),
            listeners,
            limits,
            admission,
            request_room: Arc::new(Semaphore::new(request_room(&config))),
            long_turns: Arc::new(Semaphore::new(long_turns())),
            lines: Arc::default(),
            metrics: Metrics::default(),
            cluster,
            partitions,
            shards: Arc::new(Shards::new(&config)),
            fetch_sessions: fetching::Sessions::new(
                config.max_incremental_fetch_session_cache_slots,
            ),
            fetches: fetching::Waiting::default(),
            lifeline,
            detached: AtomicBool::new(false),
            complaints: Complaints::default(),
            config,
        }
    }

    /// Writes a line that a peer can cause at will, unless there have been many of late; `line` is
    /// told how many were left out since the last one, if any were.
    pub(crate) fn complain(&self, line: impl FnOnce(Option<u64>)) {
        let second = clock::mono().as_nanos() / 1_000_000_000;
        if let Some(left_out) = self.complaints.admit(second) {
            line((left_out > 0).then_some(left_out));
        }
    }

    /// A connection is gone: whoever keeps something for it may forget it.
    pub(crate) fn connection_closed(&self, session: &Session) {
        self.lines.forget(session.id);
        for shard in &session.shards {
            self.shards.connection_closed(*shard, session.id);
        }
    }
}

/// How many requests that take long are decided at once: half of the processors, so that as many
/// are left to all others.
fn long_turns() -> usize {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    (processors / 2).max(1)
}

/// Bytes, or as many as can be counted where there is no bound.
fn request_room(config: &Config) -> usize {
    let bytes = usize::try_from(config.queued_max_request_bytes).unwrap_or(usize::MAX);
    bytes.min(Semaphore::MAX_PERMITS)
}
