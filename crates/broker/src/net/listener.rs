//! One named listener: where it binds, what it advertises, whom it lets in.

use super::Pass;
use super::connection::{Connection, End};
use super::lifeline::Lifeline;
use super::session::Session;
use crate::broker::Broker;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpSocket, TcpStream, lookup_host};
use tokio::task::JoinSet;

/// A listener after it was bound.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listener {
    /// Its name (`PLAINTEXT` where there is only one).
    pub name: Arc<str>,
    /// The address it is bound to, with the real port.
    pub bound: SocketAddr,
    /// The host clients of this listener are told to connect to.
    pub advertised_host: Arc<str>,
    /// The port clients of this listener are told to connect to.
    pub advertised_port: u16,
}

impl Listener {
    /// What clients of this listener are told to connect to, as one writes it.
    pub fn advertised(&self) -> String {
        let (host, port) = (&self.advertised_host, self.advertised_port);
        if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
    }
}

/// Binds `host:port`; port 0 picks a free one.
///
/// # Errors
/// The name does not resolve, or none of its addresses can be bound.
pub(crate) async fn bind(host: &str, port: u16) -> io::Result<TcpListener> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    for address in lookup_host((host, port)).await? {
        match bind_address(address) {
            Ok(listener) => return Ok(listener),
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn bind_address(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    socket.set_reuseaddr(true)?;
    // Accepted sockets inherit it: a peer that vanished without a word is noticed in the end.
    socket.set_keepalive(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// Accepts until the drain begins, then waits for the connections it has; whoever drops the
/// future cuts them.
pub(crate) async fn serve(
    socket: TcpListener,
    listener: Arc<Listener>,
    broker: Arc<Broker>,
    lifeline: Lifeline,
) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            biased;
            () = lifeline.draining() => break,
            Some(_) = connections.join_next() => {}
            accepted = socket.accept() => match accepted {
                Ok((stream, peer)) => {
                    if let Some(pass) = admit(&broker, peer) {
                        let line = broker.lines.open(pass.id);
                        let session = Session::new(pass.id, peer, Arc::clone(&listener), line);
                        let (broker, lifeline) = (Arc::clone(&broker), lifeline.clone());
                        connections.spawn(serve_one(stream, session, broker, lifeline, pass));
                    }
                }
                Err(error) => {
                    tracing::warn!(%error, listener = %listener.name, "cannot accept connections");
                    tokio::time::sleep(ACCEPT_RETRY).await;
                }
            },
        }
    }
    drop(socket);
    while connections.join_next().await.is_some() {}
}

fn admit(broker: &Broker, peer: SocketAddr) -> Option<Pass> {
    match broker.admission.admit(peer.ip()) {
        Ok(pass) => Some(pass),
        Err(limit) => {
            broker.metrics.connections_refused.inc();
            broker.complain(|lines_left_out| {
                tracing::warn!(%peer, %limit, lines_left_out, "refused a connection");
            });
            None
        }
    }
}

async fn serve_one(
    stream: TcpStream,
    session: Session,
    broker: Arc<Broker>,
    lifeline: Lifeline,
    _pass: Pass,
) {
    // Replies are written whole, so there is nothing to wait for before sending them.
    let _ = stream.set_nodelay(true);
    let (peer, listener) = (session.peer, Arc::clone(&session.listener));
    let limits = broker.limits;
    let end = Connection::new(stream, Arc::clone(&broker), session, limits).run(&lifeline).await;
    match end {
        End::PeerClosed | End::Drained | End::Idle | End::MemberDead | End::Io(_) => {
            tracing::debug!(%peer, listener = %listener.name, reason = %end, "connection ended");
        }
        End::Panicked | End::Unencodable(_) => {
            tracing::error!(%peer, reason = %end, "closed a connection through our own fault");
        }
        End::SlowSender | End::SlowReader | End::BadLength(_) | End::Cut(_) => {
            broker.metrics.connections_cut.inc();
            broker.complain(|lines_left_out| {
                tracing::warn!(%peer, reason = %end, lines_left_out, "closed a connection");
            });
        }
    }
}

/// Connections the system keeps until they are accepted.
const BACKLOG: u32 = 1_024;
/// After a failed accept (no file descriptors left, mostly) the next try comes this much later.
const ACCEPT_RETRY: Duration = Duration::from_millis(100);
