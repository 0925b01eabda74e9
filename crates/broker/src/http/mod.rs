//! What people and monitoring see: `/metrics`, `/healthz`, `/readyz`, `/groups`.
//!
//! Read only, and apart from the clients' listeners. It decides nothing; what it shows of groups
//! obeys the same rule as every reply: nothing that could still be lost.

mod groups;
mod metrics;
mod snapshot;

use crate::broker::Broker;
use crate::net::Lifeline;
use crate::shards::views::Absent;
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use snapshot::Snapshot;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

/// Serves until the broker shuts down.
pub(crate) async fn serve(socket: TcpListener, broker: Arc<Broker>, lifeline: Lifeline) {
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            () = lifeline.draining() => return,
            Some(_) = connections.join_next() => {}
            accepted = socket.accept() => {
                let Ok((stream, _)) = accepted else {
                    tokio::time::sleep(ACCEPT_RETRY).await;
                    continue;
                };
                // Beyond the bound a connection is closed at once.
                if let Ok(place) = Arc::clone(&places).try_acquire_owned() {
                    let broker = Arc::clone(&broker);
                    connections.spawn(async move {
                        serve_one(stream, broker).await;
                        drop(place);
                    });
                }
            }
        }
    }
}

async fn serve_one(stream: TcpStream, broker: Arc<Broker>) {
    let service = service_fn(move |request: Request<Incoming>| {
        let broker = Arc::clone(&broker);
        async move { Ok::<_, Infallible>(answer(&broker, &request).await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_MAX)
        .max_buf_size(REQUEST_BYTES_MAX)
        .serve_connection(TokioIo::new(stream), service);
    // A peer that misbehaves has its connection closed; there is nothing to tell anyone.
    let _ = connection.await;
}

async fn answer(broker: &Broker, request: &Request<Incoming>) -> Response<Full<Bytes>> {
    if request.method() != Method::GET {
        return text(StatusCode::METHOD_NOT_ALLOWED, "only GET\n".into());
    }
    match request.uri().path() {
        "/metrics" => {
            let snapshot = Snapshot::take(broker).await;
            let mut response = text(StatusCode::OK, metrics::encode(snapshot));
            let kind = HeaderValue::from_static(OPEN_METRICS);
            response.headers_mut().insert(CONTENT_TYPE, kind);
            response
        }
        "/healthz" if broker.detached.load(Ordering::Acquire) => {
            text(StatusCode::SERVICE_UNAVAILABLE, format!("{DETACHED}\n"))
        }
        "/healthz" => text(StatusCode::OK, "ok\n".into()),
        "/readyz" => match unready(&State::of(broker)) {
            None => text(StatusCode::OK, "ready\n".into()),
            Some(why) => text(StatusCode::SERVICE_UNAVAILABLE, format!("{why}\n")),
        },
        "/groups" => json(groups::list(broker).await),
        path => match path.strip_prefix("/groups/").map(group_of) {
            Some(Some((group, false))) => json(groups::one(broker, &group).await),
            Some(Some((group, true))) => json(groups::journal(broker, &group).await),
            _ => text(StatusCode::NOT_FOUND, PATHS.into()),
        },
    }
}

/// The group that the rest of a path names, and whether its journal is meant.
fn group_of(rest: &str) -> Option<(String, bool)> {
    match rest.split_once('/') {
        None => Some((groups::unescaped(rest)?, false)),
        Some((group, "journal")) => Some((groups::unescaped(group)?, true)),
        Some(_) => None,
    }
}

fn json(answer: Result<serde_json::Value, Absent>) -> Response<Full<Bytes>> {
    match answer {
        Ok(value) => {
            let mut response = text(StatusCode::OK, format!("{value:#}\n"));
            let kind = HeaderValue::from_static("application/json");
            response.headers_mut().insert(CONTENT_TYPE, kind);
            response
        }
        Err(Absent::Unknown) => text(StatusCode::NOT_FOUND, "no such group\n".into()),
        Err(Absent::NotYet) => {
            text(StatusCode::SERVICE_UNAVAILABLE, "not safe to tell yet: ask again\n".into())
        }
    }
}

/// What readiness depends on.
struct State {
    draining: bool,
    detached: bool,
    shards: usize,
    loading: usize,
}

impl State {
    fn of(broker: &Broker) -> Self {
        let shards = broker.shards.all();
        Self {
            draining: broker.lifeline.is_draining(),
            detached: broker.detached.load(Ordering::Acquire),
            shards: shards.len(),
            loading: shards.iter().filter(|shard| !shard.is_active()).count(),
        }
    }
}

/// Why the broker should not be sent clients, if it should not.
fn unready(state: &State) -> Option<String> {
    let State { draining, detached, shards, loading } = *state;
    if draining {
        return Some("shutting down".into());
    }
    if detached {
        return Some(DETACHED.into());
    }
    (loading > 0).then(|| format!("{loading} of {shards} coordinator shards are loading"))
}

fn text(status: StatusCode, body: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body.into()));
    *response.status_mut() = status;
    let kind = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}

const DETACHED: &str = "the metadata store is lost: restart";
const PATHS: &str = "there are /metrics, /healthz, /readyz, /groups, /groups/ID and \
     /groups/ID/journal\n";
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const CONNECTIONS_MAX: usize = 64;
const REQUEST_BYTES_MAX: usize = 16 * 1024;
const HEADER_MAX: Duration = Duration::from_secs(10);
const ACCEPT_RETRY: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests {
    use super::*;

    /// Whoever has lost the metadata store cannot create a topic or keep its shards.
    #[test]
    fn readiness_needs_the_store_and_every_shard() {
        let ready = State { draining: false, detached: false, shards: 50, loading: 0 };
        assert_eq!(unready(&ready), None);
        for state in [
            State { draining: true, ..ready },
            State { detached: true, ..ready },
            State { loading: 1, ..ready },
        ] {
            assert!(unready(&state).is_some());
        }
    }
}
