//! Starting a broker and stopping it: the order in which its parts come up and go down.
//!
//! Up: the data directory's lock, the metadata store, the cluster's image, the listeners' ports,
//! the logs, the broker's own registration, its coordinator shards; only then are connections
//! accepted. Down: the same in reverse.

use crate::broker::{Broker, Parts};
use crate::clock;
use crate::config::{Config, ConfigError, HostPort, ListenerSpec, bad_listener};
use crate::entropy;
use crate::http;
use crate::identity::{self, IdentityError};
use crate::net::listener::{bind, serve};
use crate::net::{Listener, Shutdown};
use crate::partitions::{Partitions, Syncer, Upkeep};
use crate::stewards;
use ottla_cluster::command::Limits;
use ottla_cluster::record::{BrokerRecord, ListenerRecord};
use ottla_cluster::store::embedded::Embedded;
use ottla_cluster::store::{DirLock, LockError, SessionId, Store};
use ottla_cluster::{Cluster, Driver, JoinError, Setup};
use ottla_model::NodeId;
use ottla_storage::fs::Disk;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use thiserror::Error;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

/// A broker at work. Dropping it stops it hard; [`Server::stop`] drains it first.
pub struct Server {
    broker: Arc<Broker>,
    shutdown: Shutdown,
    listeners: JoinSet<()>,
    stewards: JoinSet<()>,
    session: SessionId,
    http: Option<SocketAddr>,
    syncer: Syncer,
    upkeep: Upkeep,
}

/// Why a broker cannot start. Each says what the operator can do.
#[derive(Debug, Error)]
pub enum StartError {
    /// The settings make no sense together.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The data directory is another broker's or cannot be used.
    #[error(transparent)]
    Data(#[from] LockError),
    /// The data directory is another broker's, or cannot be written.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// The metadata in the data directory cannot be used.
    #[error("the metadata cannot be used: {0}")]
    Metadata(String),
    /// The cluster does not take this broker.
    #[error("cannot join the cluster: {0}")]
    Join(#[from] JoinError),
    /// A listener's address cannot be bound.
    #[error(
        "cannot listen on {host}:{port} ({setting}): {error}; free the address or name another"
    )]
    Bind {
        /// The setting that asks for it.
        setting: &'static str,
        /// The host as configured.
        host: String,
        /// The port as configured.
        port: u16,
        /// What the system says.
        error: io::Error,
    },
    /// The system refuses something else.
    #[error("cannot {what}: {error}")]
    System {
        /// What was tried.
        what: &'static str,
        /// What the system says.
        error: io::Error,
    },
}

impl Server {
    /// Starts a broker; once this returns, clients can connect.
    ///
    /// # Errors
    /// The settings, the addresses or the data directory cannot be used.
    pub async fn start(config: Config) -> Result<Self, StartError> {
        config.check()?;
        let specs = config.listener_specs()?;
        let lock = DirLock::acquire(&config.log_dirs)?;
        let mut stewards = JoinSet::new();
        let store = Arc::new(Embedded::open(lock).map_err(|error| unusable(&error))?);
        let (cluster, driver) = open_cluster(Arc::clone(&store) as Arc<dyn Store>, &config).await?;
        let image = cluster.image();
        identity::check(&config.log_dirs, image.cluster_id(), image.node())?;
        stewards.spawn(stewards::drive(driver));
        let mut sockets = Vec::new();
        for spec in specs {
            sockets.push(open(spec).await?);
        }
        let http = open_http(&config).await?;
        let syncer = Syncer::start().map_err(system("start the sync threads"))?;
        let partitions = Arc::new(Partitions::new(config.clone(), Arc::new(Disk), syncer.queue()));
        let shutdown = Shutdown::new();
        let listeners: Vec<_> = sockets.iter().map(|(_, listener)| Arc::clone(listener)).collect();
        let lifeline = shutdown.lifeline();
        let parts = Parts { config, listeners, cluster, partitions, lifeline };
        let (broker, session) = take_office(parts, &mut stewards).await?;
        store.reserve_room();
        let upkeep =
            Upkeep::start(&broker.partitions).map_err(system("start the upkeep threads"))?;
        let mut tasks = JoinSet::new();
        let (http, address) = http.unzip();
        if let Some(socket) = http {
            tasks.spawn(http::serve(socket, Arc::clone(&broker), shutdown.lifeline()));
        }
        for (socket, listener) in sockets {
            tasks.spawn(serve(socket, listener, Arc::clone(&broker), shutdown.lifeline()));
        }
        Ok(Self {
            broker,
            shutdown,
            listeners: tasks,
            stewards,
            session,
            http: address,
            syncer,
            upkeep,
        })
    }

    /// Where it listens and what it advertises.
    pub fn listeners(&self) -> impl Iterator<Item = &Listener> {
        self.broker.listeners.iter().map(|listener| &**listener)
    }

    /// Its settings.
    pub fn config(&self) -> &Config {
        &self.broker.config
    }

    /// The directory that holds its data.
    pub fn data_dir(&self) -> &Path {
        &self.broker.config.log_dirs
    }

    /// Where it serves metrics and health, if anywhere.
    pub fn http_address(&self) -> Option<SocketAddr> {
        self.http
    }

    /// How many fetches wait for records now.
    pub fn waiting_fetches(&self) -> usize {
        self.broker.fetches.count()
    }

    /// How many heartbeats have an answer that is kept until there is something to tell.
    pub fn held_heartbeats(&self) -> usize {
        self.broker.shards.held_heartbeats()
    }

    /// Stops: accepts nobody any more, answers what is in flight, closes everything. Returns
    /// whether that was done within `shutdown.grace.ms`; what was not is cut.
    pub async fn stop(mut self) -> bool {
        self.shutdown.drain();
        self.broker.shards.resign();
        let listeners = &mut self.listeners;
        let drained = async { while listeners.join_next().await.is_some() {} };
        let in_time =
            tokio::time::timeout(self.broker.config.shutdown_grace, drained).await.is_ok();
        self.listeners.shutdown().await;
        // Its going is a courtesy to the others; its session would end by itself.
        let left = self.broker.cluster.leave(self.session);
        let _ = tokio::time::timeout(LEAVE_MAX, left).await;
        let Self { broker, syncer, upkeep, mut stewards, .. } = self;
        stewards.shutdown().await;
        let closing = tokio::task::spawn_blocking(move || {
            upkeep.stop();
            syncer.stop();
            broker.partitions.all().iter().for_each(|partition| partition.close());
        });
        closing.await.is_ok() && in_time
    }
}

/// The cluster that a store keeps.
///
/// # Errors
/// The settings make no sense, or the metadata cannot be read.
pub(crate) async fn open_cluster(
    store: Arc<dyn Store>,
    config: &Config,
) -> Result<(Cluster, Driver), StartError> {
    let setup = Setup {
        node: NodeId(config.node_id),
        registry: config.registry()?,
        limits: Limits::default(),
        fresh: Box::new(entropy::bits),
    };
    Cluster::open(store, setup).await.map_err(|error| unusable(&error))
}

/// Opens the logs, registers the broker, claims its shards, and keeps all that up by tasks among
/// `stewards`: what a broker does between its metadata and its first connection.
///
/// # Errors
/// The data directory cannot be used, or the cluster does not take this broker.
pub(crate) async fn take_office(
    parts: Parts,
    stewards: &mut JoinSet<()>,
) -> Result<(Arc<Broker>, SessionId), StartError> {
    let seen = parts.cluster.image();
    let opened = stewards::reconcile(&parts.cluster, &parts.partitions).await;
    opened.map_err(system("open the logs"))?;
    let (listeners, now) = (record(&parts.listeners), clock::mono());
    let tenure = parts.cluster.join(listeners, SESSION, now).await?;
    let broker = Arc::new(Broker::new(parts));
    let session = tenure.session();
    let tenure = Arc::new(Mutex::new(tenure));
    stewards::claim(&broker, &tenure).await;
    broker.shards.told(seen.revision());
    stewards.spawn(stewards::follow(Arc::clone(&broker), Arc::clone(&tenure), seen));
    stewards.spawn(stewards::keep_session(Arc::clone(&broker), tenure));
    let shards = Arc::clone(&broker.shards);
    stewards.spawn(async move { shards.keep_time().await });
    let shards = Arc::clone(&broker.shards);
    stewards.spawn(async move { shards.watch_hangs().await });
    let (shards, lines) = (Arc::clone(&broker.shards), Arc::clone(&broker.lines));
    stewards.spawn(shards.break_lines(lines));
    Ok((broker, session))
}

fn unusable(error: &dyn std::fmt::Display) -> StartError {
    StartError::Metadata(error.to_string())
}

fn record(listeners: &[Arc<Listener>]) -> BrokerRecord {
    let listeners = listeners.iter().map(|listener| ListenerRecord {
        name: listener.name.to_string(),
        host: listener.advertised_host.to_string(),
        port: listener.advertised_port,
    });
    BrokerRecord { listeners: listeners.collect(), rack: None }
}

async fn open(spec: ListenerSpec) -> Result<(TcpListener, Arc<Listener>), StartError> {
    let HostPort { host, port } = spec.bind;
    let failed = |error| StartError::Bind { setting: "listeners", host: host.clone(), port, error };
    let socket = bind(&host, port).await.map_err(failed)?;
    let bound = socket.local_addr().map_err(failed)?;
    let (advertised_host, advertised_port) = match spec.advertise {
        // Port 0 behind an advertised host means whichever port was picked.
        Some(HostPort { host, port: 0 }) => (host, bound.port()),
        Some(HostPort { host, port }) => (host, port),
        None => (host, bound.port()),
    };
    let listener = Listener {
        name: spec.name.into(),
        bound,
        advertised_host: advertised_host.into(),
        advertised_port,
    };
    Ok((socket, Arc::new(listener)))
}

async fn open_http(config: &Config) -> Result<Option<(TcpListener, SocketAddr)>, StartError> {
    if config.http_listen.is_empty() {
        return Ok(None);
    }
    let HostPort { host, port } =
        config.http_listen.parse().map_err(bad_listener("http.listen"))?;
    let failed =
        |error| StartError::Bind { setting: "http.listen", host: host.clone(), port, error };
    let socket = bind(&host, port).await.map_err(failed)?;
    let address = socket.local_addr().map_err(failed)?;
    Ok(Some((socket, address)))
}

fn system(what: &'static str) -> impl FnOnce(io::Error) -> StartError {
    move |error| StartError::System { what, error }
}

/// How long the cluster waits for a broker that does not renew its session.
const SESSION: Duration = Duration::from_secs(9);
/// How long a stopping broker tries to say goodbye to the cluster.
const LEAVE_MAX: Duration = Duration::from_secs(2);
