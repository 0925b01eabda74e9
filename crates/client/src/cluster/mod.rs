//! The cluster as one client knows it: brokers, leaders, coordinators, and the way to each.
//!
//! A task keeps the [`Snapshot`] fresh: at its age, and whenever somebody asks. Everything else is
//! calls that try once; whether to try again, and for how long, is the caller's [`Retry`].

mod coordinator;
mod keeper;
mod link;
mod lookup;
mod metadata;
mod patience;
mod pool;

pub(crate) use link::Link;
pub(crate) use lookup::leader;
pub use lookup::{FoundOffset, OffsetSpec};
pub use metadata::{Broker, PartitionInfo, TopicInfo};
pub(crate) use metadata::{Interest, Snapshot};
use patience::Patience;
pub(crate) use pool::Purpose;

use crate::config::ClientConfig;
use crate::connection::Connection;
use crate::{Error, ErrorKind, Result, clock};
use ottla_group::member::Backoff;
use ottla_model::{Instant, NodeId, TopicName};
use parking_lot::Mutex;
use pool::Pool;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::{Notify, watch};

/// A handle to what is known of the cluster. The task behind it ends with the last handle.
#[derive(Clone, Debug)]
pub(crate) struct Cluster {
    state: Arc<State>,
    _keeper: Arc<EndWithMe>,
}

#[derive(Debug)]
pub(crate) struct State {
    config: ClientConfig,
    pool: Pool,
    interest: Mutex<Interest>,
    may_create: AtomicBool,
    chases_missing: AtomicBool,
    snapshot: watch::Sender<Arc<Snapshot>>,
    /// The number of the last question.
    asked: AtomicU64,
    wake: Notify,
}

/// A task that is stopped when nobody needs it.
#[derive(Debug)]
pub(crate) struct EndWithMe(pub(crate) tokio::task::AbortHandle);

impl Drop for EndWithMe {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Cluster {
    /// Knows nothing yet and connects to nobody: that is done when first needed.
    pub(crate) fn new(config: ClientConfig) -> Self {
        let state = Arc::new(State {
            config,
            pool: Pool::default(),
            interest: Mutex::new(Interest::Topics(BTreeSet::new())),
            may_create: AtomicBool::new(false),
            chases_missing: AtomicBool::new(false),
            snapshot: watch::Sender::new(Arc::default()),
            asked: AtomicU64::new(0),
            wake: Notify::new(),
        });
        let keeper = tokio::spawn(keeper::run(Arc::downgrade(&state))).abort_handle();
        Self { state, _keeper: Arc::new(EndWithMe(keeper)) }
    }

    pub(crate) fn config(&self) -> &ClientConfig {
        &self.state.config
    }

    /// What is known now.
    pub(crate) fn snapshot(&self) -> Arc<Snapshot> {
        self.state.snapshot.borrow().clone()
    }

    /// Tells of every new snapshot.
    pub(crate) fn subscribe(&self) -> watch::Receiver<Arc<Snapshot>> {
        self.state.snapshot.subscribe()
    }

    /// Whether asking for a topic may create it, where the broker allows that.
    pub(crate) fn allow_topic_creation(&self, allowed: bool) {
        self.state.may_create.store(allowed, Ordering::Relaxed);
    }

    /// Topics that are not there (yet) are asked for again soon, and not only at the snapshot's
    /// age.
    pub(crate) fn chase_missing_topics(&self) {
        self.state.chases_missing.store(true, Ordering::Relaxed);
    }

    /// From now on exactly these topics are kept known. Does not wait for them.
    pub(crate) fn set_interest(&self, interest: Interest) {
        let mut current = self.state.interest.lock();
        if *current != interest {
            *current = interest;
            drop(current);
            self.ask();
        }
    }

    /// From now on this topic is kept known, too; whether it was not before.
    pub(crate) fn add_interest(&self, topic: &TopicName) -> bool {
        match &mut *self.state.interest.lock() {
            Interest::All => false,
            Interest::Topics(names) => names.insert(topic.clone()),
        }
    }

    /// Has what is known asked again soon; the number of the question.
    pub(crate) fn ask(&self) -> u64 {
        let question = self.state.asked.fetch_add(1, Ordering::AcqRel) + 1;
        self.state.wake.notify_one();
        question
    }

    /// A snapshot that is asked for after this call. Cancel safe.
    ///
    /// # Errors
    /// The last reason why there is none, when `retry`'s time is over.
    pub(crate) async fn refreshed(&self, retry: &Retry) -> Result<Arc<Snapshot>> {
        let mut snapshots = self.subscribe();
        let question = self.ask();
        let wait = async {
            let found = snapshots.wait_for(|snapshot| snapshot.answered >= question).await;
            found.map(|snapshot| snapshot.clone()).map_err(|_| Error::closed())
        };
        let left = retry.left();
        tokio::time::timeout(left, wait).await.unwrap_or_else(|_| {
            let late = || Error::new(ErrorKind::Retriable, "no broker told of the cluster in time");
            Err(self.snapshot().error.clone().unwrap_or_else(late))
        })
    }

    /// The connection to a broker for a purpose.
    ///
    /// # Errors
    /// `Retriable`, if the broker is not known or cannot be reached.
    pub(crate) async fn connection(&self, node: NodeId, purpose: Purpose) -> Result<Connection> {
        let address = self.address(node)?;
        self.state.pool.connection(&self.state.config, &address, purpose).await
    }

    /// A connection to a broker that nobody shares.
    pub(crate) async fn private_connection(&self, node: NodeId) -> Result<Connection> {
        Connection::open(&self.state.config, &self.address(node)?).await
    }

    fn address(&self, node: NodeId) -> Result<String> {
        let broker = self.snapshot().brokers.get(&node).map(Broker::address);
        broker.ok_or_else(|| {
            self.ask();
            Error::new(ErrorKind::Retriable, format!("broker {node} is not known"))
        })
    }

    /// A connection to whatever broker answers.
    pub(crate) async fn any(&self) -> Result<Connection> {
        self.state.any().await
    }

    /// A connection to the controller, or to any broker where none is named.
    pub(crate) async fn controller(&self, retry: &Retry) -> Result<Connection> {
        let mut snapshot = self.snapshot();
        if snapshot.answered == 0 {
            snapshot = self.refreshed(retry).await?;
        }
        match snapshot.controller {
            Some(node) => self.connection(node, Purpose::General).await,
            None => self.any().await,
        }
    }

    /// Tries within the time that a call may take.
    pub(crate) fn retry(&self) -> Retry {
        self.retry_for(self.state.config.default_api_timeout)
    }

    /// Tries within `timeout`.
    pub(crate) fn retry_for(&self, timeout: Duration) -> Retry {
        let config = &self.state.config;
        let (min, max) = (config.retry_backoff, config.retry_backoff_max);
        let backoff = Backoff::new(min, max, clock::seed());
        Retry { backoff, deadline: clock::now() + timeout }
    }
}

impl State {
    /// The known brokers, those with an open connection first, then those of the bootstrap.
    async fn any(&self) -> Result<Connection> {
        let snapshot = self.snapshot.borrow().clone();
        let mut addresses: Vec<String> = snapshot.brokers.values().map(Broker::address).collect();
        shuffle(&mut addresses);
        let open = addresses.iter().find_map(|address| self.pool.open_connection(address));
        if let Some(connection) = open {
            return Ok(connection);
        }
        let mut bootstrap = self.config.bootstrap_servers.clone();
        shuffle(&mut bootstrap);
        bootstrap.retain(|server| !addresses.contains(server));
        addresses.extend(bootstrap);
        let mut failed = None;
        for address in &addresses {
            match self.pool.connection(&self.config, address, Purpose::General).await {
                Ok(connection) => return Ok(connection),
                Err(error) => failed = Some(error),
            }
        }
        let none = || Error::new(ErrorKind::Config, "`bootstrap.servers` names no broker");
        Err(failed.unwrap_or_else(none))
    }

    /// Notes where a broker is, unless that is known.
    fn learn(&self, broker: Broker) {
        self.snapshot.send_if_modified(|snapshot| {
            let known = snapshot.brokers.get(&broker.id);
            if known.is_some_and(|known| known.address() == broker.address()) {
                return false;
            }
            *snapshot = Arc::new(snapshot.with_broker(broker));
            true
        });
    }
}

/// How long a call goes on trying.
#[derive(Debug)]
pub(crate) struct Retry {
    backoff: Backoff,
    deadline: Instant,
}

impl Retry {
    /// Tries until it works, the error is final or the time is over, with a pause between tries:
    /// for what may be carried out twice. Cancel safe as far as a try is.
    ///
    /// # Errors
    /// The last try's; `TimedOut`, if that was cut short.
    pub(crate) async fn run<T, F>(&mut self, tried: impl FnMut() -> F) -> Result<T>
    where
        F: Future<Output = Result<T>>,
    {
        self.until(|_| false, tried).await
    }

    /// The same for what must not be carried out twice: a try that was sent and not answered is
    /// the last one.
    ///
    /// # Errors
    /// The last try's; `TimedOut`, if it may have been carried out.
    pub(crate) async fn run_once<T, F>(&mut self, tried: impl FnMut() -> F) -> Result<T>
    where
        F: Future<Output = Result<T>>,
    {
        self.until(|error| error.kind() == ErrorKind::TimedOut, tried).await
    }

    async fn until<T, F>(
        &mut self,
        is_last: impl Fn(&Error) -> bool,
        mut tried: impl FnMut() -> F,
    ) -> Result<T>
    where
        F: Future<Output = Result<T>>,
    {
        loop {
            match self.bound(tried()).await {
                Ok(value) => return Ok(value),
                Err(error) if is_last(&error) => return Err(error),
                Err(error) => self.pause(error).await?,
            }
        }
    }

    /// Pauses before the next try. Cancel safe.
    ///
    /// # Errors
    /// `error` itself, if it is not worth a retry or the time is over.
    pub(crate) async fn pause(&mut self, error: Error) -> Result<()> {
        if !error.is_retriable() {
            return Err(error);
        }
        let pause = self.backoff.pause();
        if clock::now() + pause >= self.deadline {
            return Err(error);
        }
        tokio::time::sleep(pause).await;
        Ok(())
    }

    /// One try, for as long as there is time.
    ///
    /// # Errors
    /// Its own; `TimedOut`, if it was cut short: it may have been carried out.
    pub(crate) async fn bound<T>(&self, tried: impl Future<Output = Result<T>>) -> Result<T> {
        tokio::time::timeout(self.left(), tried).await.unwrap_or_else(|_| {
            let message = "no answer came within the time that the call may take";
            Err(Error::new(ErrorKind::TimedOut, message))
        })
    }

    /// How much time is left.
    pub(crate) fn left(&self) -> Duration {
        self.deadline.since(clock::now())
    }
}

fn shuffle(items: &mut [String]) {
    if items.len() > 1 {
        let by = clock::seed() as usize % items.len();
        items.rotate_left(by);
    }
}

#[cfg(test)]
mod tests;
