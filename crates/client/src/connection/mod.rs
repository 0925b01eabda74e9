//! One connection to one broker: requests go out in order, answers come back in that order.
//!
//! A task per connection owns the socket ([`io`]); handles are cheap and talk to it. A broker that
//! answers nonsense, or not at all in time, loses the connection and nothing else: every request
//! under way fails, and whoever asked decides whether to try again. This module knows frames,
//! headers and versions; it knows no API but ApiVersions.

mod io;
mod pending;
mod versions;

use crate::config::ClientConfig;
use crate::{Error, ErrorKind, Result, security};
use bytes::Bytes;
use ottla_wire::generated::{ApiVersionsRequest, ApiVersionsResponse};
use ottla_wire::{ApiKey, ErrorCode, Message, Output, Reader, Request, frame};
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use versions::Negotiated;

/// A handle to a connection. The connection closes when the last handle is gone and the last
/// answer has come.
#[derive(Clone, Debug)]
pub(crate) struct Connection {
    to_task: mpsc::Sender<Outgoing>,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    address: String,
    client_id: String,
    request_timeout: Duration,
    next_id: AtomicI32,
    versions: Negotiated,
    task: tokio::task::AbortHandle,
}

/// A request on its way to the socket.
#[derive(Debug)]
pub(crate) struct Outgoing {
    frame: Output,
    id: i32,
    timeout: Duration,
    /// None for the one request that has no answer: a produce with `acks=0`.
    reply: Option<oneshot::Sender<Result<Bytes>>>,
}

/// A response, still as bytes.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    /// Behind the response header.
    body: Bytes,
    version: i16,
}

/// An answer that has not come yet. Dropping it forgets the answer, not the request.
#[derive(Debug)]
pub(crate) struct Awaited {
    reply: oneshot::Receiver<Result<Bytes>>,
    key: ApiKey,
    version: i16,
    shared: Arc<Shared>,
}

impl Connection {
    /// Connects to `address` (`host:port`) and learns what its broker speaks.
    ///
    /// # Errors
    /// `Retriable` if that could not be done in time, `Unsupported` if it speaks nothing known.
    pub(crate) async fn open(config: &ClientConfig, address: &str) -> Result<Self> {
        let limit = config.socket_connection_setup_timeout;
        let opened = tokio::time::timeout(limit, Self::open_unbounded(config, address)).await;
        opened.unwrap_or_else(|_| {
            let message = format!("cannot connect to {address}: no answer within {limit:?}");
            Err(Error::new(ErrorKind::Retriable, message))
        })
    }

    async fn open_unbounded(config: &ClientConfig, address: &str) -> Result<Self> {
        let stream = security::open(config.security_protocol, address).await;
        let stream = stream.map_err(|error| {
            let message = format!("cannot connect to {address}: {error}");
            Error::new(ErrorKind::Retriable, message)
        })?;
        let (to_task, from_handles) = mpsc::channel(IN_FLIGHT_MAX);
        let task = io::Task::new(stream, from_handles, config.connections_max_idle, address);
        let shared = Shared {
            address: address.to_owned(),
            client_id: config.client_id.clone(),
            request_timeout: config.request_timeout,
            next_id: AtomicI32::new(0),
            versions: Negotiated::default(),
            task: tokio::spawn(task.run()).abort_handle(),
        };
        let mut connection = Self { to_task, shared: Arc::new(shared) };
        let versions = connection.negotiate().await?;
        let shared = Arc::get_mut(&mut connection.shared);
        shared.expect("nobody else has seen the connection").versions = versions;
        Ok(connection)
    }

    /// Asks in the newest version, and as a broker that does not know it says to (KIP-511).
    async fn negotiate(&self) -> Result<Negotiated> {
        let request = ApiVersionsRequest {
            client_software_name: "ottla",
            client_software_version: env!("CARGO_PKG_VERSION"),
            ..Default::default()
        };
        let timeout = self.shared.request_timeout;
        let mut answer = self.start(ASKED_FIRST, &request, timeout)?.answer().await?;
        let refused = Reader::new(&answer.body).i16("ApiVersionsResponse.ErrorCode")?;
        if refused == ErrorCode::UnsupportedVersion.number() {
            answer = self.start(0, &ApiVersionsRequest::default(), timeout)?.answer().await?;
        }
        let response: ApiVersionsResponse<'_> = answer.read()?;
        Error::check(response.error_code, || "cannot learn the broker's versions".into())?;
        let versions = Negotiated::new(&response);
        match versions.missing() {
            None => Ok(versions),
            Some(key) => Err(self.lacks(key)),
        }
    }

    /// The newest version of a request that both sides speak.
    ///
    /// # Errors
    /// `Unsupported`, if there is none.
    pub(crate) fn version(&self, key: ApiKey) -> Result<i16> {
        self.shared.versions.newest(key).ok_or_else(|| self.lacks(key))
    }

    fn lacks(&self, key: ApiKey) -> Error {
        let message = format!(
            "the broker at {} has no {key} in a version that this client speaks",
            self.shared.address
        );
        Error::new(ErrorKind::Unsupported, message)
    }

    /// Sends a request in the newest common version and waits for its answer.
    pub(crate) async fn call<'a, R: Request<'a>>(&self, request: &R) -> Result<Answer> {
        self.call_at(self.version(R::KEY)?, request).await
    }

    /// Sends a request in this version and waits for its answer.
    pub(crate) async fn call_at<'a, R: Request<'a>>(
        &self,
        version: i16,
        request: &R,
    ) -> Result<Answer> {
        self.start(version, request, self.shared.request_timeout)?.answer().await
    }

    /// Queues a request behind those before it; its answer is awaited apart. The answer must come
    /// within `timeout` of the sending, or the connection is closed.
    pub(crate) fn start<'a, R: Request<'a>>(
        &self,
        version: i16,
        request: &R,
        timeout: Duration,
    ) -> Result<Awaited> {
        let (reply, awaited) = oneshot::channel();
        self.queue(version, request, timeout, Some(reply))?;
        Ok(Awaited { reply: awaited, key: R::KEY, version, shared: self.shared.clone() })
    }

    /// Queues a request that has no answer.
    pub(crate) fn post<'a, R: Request<'a>>(&self, version: i16, request: &R) -> Result<()> {
        self.queue(version, request, self.shared.request_timeout, None)
    }

    fn queue<'a, R: Request<'a>>(
        &self,
        version: i16,
        request: &R,
        timeout: Duration,
        reply: Option<oneshot::Sender<Result<Bytes>>>,
    ) -> Result<()> {
        let id = self.shared.next_id.fetch_add(1, Ordering::Relaxed);
        let mut out = Output::new();
        frame::write_request(&mut out, version, id, Some(&self.shared.client_id), request)?;
        let outgoing = Outgoing { frame: out, id, timeout, reply };
        self.to_task.try_send(outgoing).map_err(|refused| match refused {
            mpsc::error::TrySendError::Closed(_) => self.shared.lost(ErrorKind::Retriable),
            mpsc::error::TrySendError::Full(_) => {
                let message = format!("too many requests wait for {}", self.shared.address);
                Error::new(ErrorKind::Retriable, message)
            }
        })
    }

    /// Whether it can still be used, as far as anybody knows.
    pub(crate) fn is_open(&self) -> bool {
        !self.to_task.is_closed()
    }

    /// Returns when the connection is closed, by whomever.
    pub(crate) async fn closed(&self) {
        self.to_task.closed().await;
    }

    /// Closes it at once; what is still queued is not sent.
    pub(crate) fn abort(&self) {
        self.shared.task.abort();
    }
}

impl Shared {
    fn lost(&self, kind: ErrorKind) -> Error {
        Error::new(kind, format!("the connection to {} is lost", self.address))
    }
}

impl Awaited {
    /// The answer. Cancel safe: the request stays sent, its answer is thrown away.
    pub(crate) async fn answer(self) -> Result<Answer> {
        let frame = self.reply.await;
        let frame = frame.map_err(|_| self.shared.lost(ErrorKind::TimedOut))??;
        let mut reader = Reader::new(&frame);
        ottla_wire::header::decode_response(&mut reader, self.key, self.version)?;
        let body = frame.slice(reader.offset()..);
        Ok(Answer { body, version: self.version })
    }
}

impl Answer {
    /// The response in it, borrowed.
    ///
    /// # Errors
    /// `Protocol`, if it is not such a response.
    pub(crate) fn read<'a, M: Message<'a>>(&'a self) -> Result<M> {
        Ok(M::decode_all(&self.body, self.version)?)
    }

    /// The version it came in.
    pub(crate) fn version(&self) -> i16 {
        self.version
    }

    /// The bytes a response borrows from.
    pub(crate) fn bytes(&self) -> &Bytes {
        &self.body
    }
}

/// The version ApiVersions is asked in first. Every broker since Kafka 2.4 answers it.
const ASKED_FIRST: i16 = 3;
/// Requests that may wait for one connection.
const IN_FLIGHT_MAX: usize = 256;

#[cfg(test)]
mod tests;
