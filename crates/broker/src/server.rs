//! Starting a broker and stopping it: the order in which its parts come up and go down.

use crate::broker::Broker;
use crate::config::{Config, ConfigError, HostPort, ListenerSpec};
use crate::net::listener::{bind, serve};
use crate::net::{Listener, Shutdown};
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use thiserror::Error;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

/// A broker at work. Dropping it stops it hard; [`Server::stop`] drains it first.
pub struct Server {
    broker: Arc<Broker>,
    shutdown: Shutdown,
    listeners: JoinSet<()>,
    grace: Duration,
}

/// Why a broker cannot start. Each says what the operator can do.
#[derive(Debug, Error)]
pub enum StartError {
    /// The settings make no sense together.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A listener's address cannot be bound.
    #[error("cannot listen on {host}:{port}: {error}")]
    Bind {
        /// The host as configured.
        host: String,
        /// The port as configured.
        port: u16,
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
        let mut sockets = Vec::new();
        for spec in config.listener_specs()? {
            sockets.push(open(spec).await?);
        }
        let grace = config.shutdown_grace;
        let listeners = sockets.iter().map(|(_, listener)| Arc::clone(listener)).collect();
        let broker = Arc::new(Broker::new(config, listeners));
        let shutdown = Shutdown::new();
        let mut tasks = JoinSet::new();
        for (socket, listener) in sockets {
            tasks.spawn(serve(socket, listener, Arc::clone(&broker), shutdown.lifeline()));
        }
        Ok(Self { broker, shutdown, listeners: tasks, grace })
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
        Path::new(&self.broker.config.log_dirs)
    }

    /// Where it serves metrics and health, if anywhere.
    pub fn http_address(&self) -> Option<SocketAddr> {
        None
    }

    /// Stops: accepts nobody any more, answers what is in flight, closes. Returns whether that was
    /// done within `shutdown.grace.ms`; what was not is cut.
    pub async fn stop(mut self) -> bool {
        self.shutdown.drain();
        let drained = async { while self.listeners.join_next().await.is_some() {} };
        tokio::time::timeout(self.grace, drained).await.is_ok()
    }
}

async fn open(spec: ListenerSpec) -> Result<(TcpListener, Arc<Listener>), StartError> {
    let HostPort { host, port } = spec.bind;
    let failed = |error| StartError::Bind { host: host.clone(), port, error };
    let socket = bind(&host, port).await.map_err(failed)?;
    let bound = socket.local_addr().map_err(failed)?;
    let (advertised_host, advertised_port) = match spec.advertise {
        // Port 0 behind an advertised host means whichever port was picked.
        Some(HostPort { host, port: 0 }) => (host, bound.port()),
        Some(HostPort { host, port }) => (host, port),
        None => (reachable(&host), bound.port()),
    };
    let listener = Listener {
        name: spec.name.into(),
        bound,
        advertised_host: advertised_host.into(),
        advertised_port,
    };
    Ok((socket, Arc::new(listener)))
}

/// What a host that means "every address" advertises: this machine, as it sees itself.
fn reachable(host: &str) -> String {
    match host {
        "0.0.0.0" | "::" => "localhost".into(),
        host => host.into(),
    }
}
