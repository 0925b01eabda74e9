//! The one task that changes the cluster: takes commands in order, lets each decide from the
//! newest image, commits, and folds the store's changes into new images.
//!
//! A command's own changes come back through the watch like everybody else's, so there is one way
//! by which an image comes about. Every transaction expects and writes this broker's key
//! `writers/<node>`: that makes an unknown outcome decidable (see [`crate::store::Txn`]).

use crate::changes::Current;
use crate::cluster::ChangeError;
use crate::command::{Command, Limits, Means, Plan};
use crate::image::Image;
use crate::record::{self, Corrupt, WriterRecord, writer_key};
use crate::store::{
    Change, Entry, Event, Key, Op, Outcome, Revision, Snapshot, Store, StoreError, Txn, Watch,
};
use futures_channel::{mpsc, oneshot};
use futures_core::Stream;
use ottla_model::TopicId;
use std::collections::HashMap;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// Drives a cluster; see [`Driver::run`].
pub struct Driver {
    store: Arc<dyn Store>,
    current: Arc<Current>,
    inbox: mpsc::Receiver<Box<dyn Task>>,
    watch: Box<dyn Watch>,
    /// The revision of every entry of the image.
    revisions: HashMap<Key, Revision>,
    /// The token of this broker's last transaction that the image shows.
    last_token: String,
    /// Why the image may lack changes, if it may: the store could not be read when it should.
    /// Nothing is decided from it until it was.
    behind: Option<String>,
    limits: Limits,
    fresh: Box<dyn FnMut() -> [u8; 16] + Send>,
}

/// However a driver ends, whoever waits for images is told.
impl Drop for Driver {
    fn drop(&mut self) {
        self.current.end();
    }
}

/// Why a driver ended.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DriverError {
    /// The store is lost: the broker must stop.
    #[error("the metadata store is lost: {0}")]
    StoreLost(String),
    /// Somebody wrote what cannot be understood: the broker must stop.
    #[error(transparent)]
    Corrupt(#[from] Corrupt),
}

impl Driver {
    pub(crate) fn new(
        store: Arc<dyn Store>,
        current: Arc<Current>,
        inbox: mpsc::Receiver<Box<dyn Task>>,
        watch: Box<dyn Watch>,
        revisions: HashMap<Key, Revision>,
        limits: Limits,
        fresh: Box<dyn FnMut() -> [u8; 16] + Send>,
    ) -> Self {
        let (last_token, behind) = (String::new(), None);
        Self { store, current, inbox, watch, revisions, last_token, behind, limits, fresh }
    }

    /// Runs until every [`crate::Cluster`] is dropped. Waiting for commands and watching the
    /// store happen in this one future, on whatever runtime polls it.
    ///
    /// # Errors
    /// [`DriverError`]: the image is no longer kept up; every later change is answered
    /// [`ChangeError::Stopped`].
    pub async fn run(mut self) -> Result<(), DriverError> {
        self.serve().await
    }

    async fn serve(&mut self) -> Result<(), DriverError> {
        loop {
            match poll_fn(|cx| self.poll_input(cx)).await {
                Input::Event(event) => self.handle_event(event).await?,
                Input::Task(Some(task)) => self.perform(task).await?,
                Input::Task(None) => return Ok(()),
            }
        }
    }

    fn poll_input(&mut self, cx: &mut Context<'_>) -> Poll<Input> {
        // Events first: a command decided from a newer image conflicts less.
        if let Poll::Ready(event) = self.watch.poll_next(cx) {
            return Poll::Ready(Input::Event(event));
        }
        Pin::new(&mut self.inbox).poll_next(cx).map(Input::Task)
    }

    async fn handle_event(&mut self, event: Event) -> Result<(), DriverError> {
        match event {
            Event::Changes { revision, changes } => self.fold(revision, &changes),
            Event::Lagged => self.reload().await,
            Event::Closed(reason) => Err(DriverError::StoreLost(reason.to_string())),
        }
    }

    fn fold(&mut self, revision: Revision, changes: &[Change]) -> Result<(), DriverError> {
        for change in changes {
            match change {
                Change::Put(Entry { key, .. }) => self.revisions.insert(key.clone(), revision),
                Change::Deleted(key) => self.revisions.remove(key),
            };
        }
        self.note_writer(changes.iter().filter_map(|change| match change {
            Change::Put(entry) => Some(entry),
            Change::Deleted(_) => None,
        }));
        let image = self.current.image().after(revision, changes)?;
        self.current.publish(Arc::new(image));
        Ok(())
    }

    /// Learns what others did: from the watch if it has something to say, else by reading.
    async fn refresh(&mut self) -> Result<(), DriverError> {
        let mut news = false;
        while let Poll::Ready(event) = poll_fn(|cx| Poll::Ready(self.watch.poll_next(cx))).await {
            self.handle_event(event).await?;
            news = true;
        }
        if news { Ok(()) } else { self.reload().await }
    }

    /// Reads everything anew, where changes were missed. A store that cannot be reached is asked
    /// again for the next command.
    async fn reload(&mut self) -> Result<(), DriverError> {
        let snapshot = match self.store.read("").await {
            Ok(snapshot) => snapshot,
            Err(error @ StoreError::Unavailable(_)) => {
                self.behind = Some(error.to_string());
                return Ok(());
            }
            Err(error) => return Err(DriverError::StoreLost(error.to_string())),
        };
        self.behind = None;
        self.watch = self.store.watch("", snapshot.revision);
        self.revisions = Self::revisions(&snapshot);
        self.note_writer(snapshot.entries.iter());
        let now = self.current.image();
        let image = Image::load(now.node(), now.registry().clone(), snapshot)?;
        self.current.publish(Arc::new(image));
        Ok(())
    }

    pub(crate) fn revisions(snapshot: &Snapshot) -> HashMap<Key, Revision> {
        snapshot.entries.iter().map(|entry| (entry.key.clone(), entry.revision)).collect()
    }

    async fn perform(&mut self, mut task: Box<dyn Task>) -> Result<(), DriverError> {
        let mut tries = Tries::default();
        for _ in 0..ATTEMPTS {
            if self.behind.is_some() {
                self.reload().await?;
            }
            if let Some(reason) = &self.behind {
                task.finish(Err(tries.failure(ChangeError::Unavailable(reason.clone()))));
                return Ok(());
            }
            // A try whose fate was not known may have happened, as has just been read.
            if let Some(happened) = tries.index_of(&self.last_token) {
                task.finish(Ok(happened));
                return Ok(());
            }
            let mut means = Means { limits: &self.limits, fresh: &mut *self.fresh };
            let plan = task.decide(&self.current.image(), &mut means);
            if plan.ops.is_empty() {
                task.finish(Ok(tries.tokens.len()));
                return Ok(());
            }
            let token = TopicId((self.fresh)()).to_string();
            let txn = self.txn(plan, &token);
            tries.tokens.push(token);
            match self.store.commit(txn).await {
                Ok(Outcome::Committed(revision)) => {
                    self.catch_up(revision).await?;
                    tries.unknown = self.behind.clone();
                }
                Ok(Outcome::Conflict) => self.refresh().await?,
                Ok(Outcome::Unknown(reason)) => {
                    tries.unknown = Some(reason);
                    self.reload().await?;
                }
                Err(error) => {
                    task.finish(Err(tries.failure(error.into())));
                    return Ok(());
                }
            }
            // Also an earlier try than the last may have arrived by now. One that has not cannot
            // any more once a later one has: all expect the same writer's entry.
            if let Some(happened) = tries.index_of(&self.last_token) {
                task.finish(Ok(happened));
                return Ok(());
            }
        }
        task.finish(Err(tries.failure(ChangeError::Contended)));
        Ok(())
    }

    /// Every key the plan writes or relies on must be as the image shows it.
    fn txn(&self, plan: Plan<()>, token: &str) -> Txn {
        let writer = writer_key(self.current.image().node());
        let record = WriterRecord { token: token.into() };
        let mut ops = plan.ops;
        ops.push(record::put(writer, &record));
        let written = ops.iter().map(Op::key).cloned();
        let mut expects: Vec<_> = written
            .chain(plan.relies_on)
            .map(|key| {
                let revision = self.revisions.get(&key).copied().unwrap_or_default();
                (key, revision)
            })
            .collect();
        expects.sort_unstable();
        expects.dedup();
        Txn { expects, ops }
    }

    /// Waits until the image shows `revision`.
    async fn catch_up(&mut self, revision: Revision) -> Result<(), DriverError> {
        while self.behind.is_none() && self.current.image().revision() < revision {
            let event = poll_fn(|cx| self.watch.poll_next(cx)).await;
            self.handle_event(event).await?;
        }
        Ok(())
    }

    /// Remembers this broker's last transaction, as the store tells it.
    fn note_writer<'a>(&mut self, mut entries: impl Iterator<Item = &'a Entry>) {
        let key = writer_key(self.current.image().node());
        if let Some(entry) = entries.find(|entry| entry.key == key)
            && let Ok(record) = serde_json::from_slice::<WriterRecord>(&entry.value)
        {
            self.last_token = record.token;
        }
    }
}

/// What was tried for one command.
#[derive(Default)]
struct Tries {
    /// The token of each try's transaction.
    tokens: Vec<String>,
    /// Why it is not known how one of them ended.
    unknown: Option<String>,
}

impl Tries {
    fn index_of(&self, token: &str) -> Option<usize> {
        self.tokens.iter().position(|tried| tried == token)
    }

    /// The answer where no try is known to have happened.
    fn failure(self, error: ChangeError) -> ChangeError {
        self.unknown.map_or(error, ChangeError::OutcomeUnknown)
    }
}

enum Input {
    Event(Event),
    Task(Option<Box<dyn Task>>),
}

/// A command on its way, whatever its answer's type.
pub(crate) trait Task: Send {
    fn decide(&mut self, image: &Image, means: &mut Means<'_>) -> Plan<()>;
    /// Answers; `Ok` names the decision, counted from 0, that happened.
    fn finish(self: Box<Self>, outcome: Result<usize, ChangeError>);
}

/// A command, its answer by each of its decisions so far, and who waits for one.
pub(crate) struct Errand<C: Command> {
    command: C,
    replies: Vec<C::Reply>,
    answer: oneshot::Sender<Result<C::Reply, ChangeError>>,
}

impl<C: Command> Errand<C> {
    pub(crate) fn new(command: C, answer: oneshot::Sender<Result<C::Reply, ChangeError>>) -> Self {
        Self { command, replies: Vec::new(), answer }
    }
}

impl<C: Command> Task for Errand<C> {
    fn decide(&mut self, image: &Image, means: &mut Means<'_>) -> Plan<()> {
        let Plan { ops, relies_on, reply } = self.command.decide(image, means);
        self.replies.push(reply);
        Plan { ops, relies_on, reply: () }
    }

    fn finish(mut self: Box<Self>, outcome: Result<usize, ChangeError>) {
        let reply = outcome.map(|index| self.replies.swap_remove(index));
        // Nobody waiting any more is no error: the change happened all the same.
        let _ = self.answer.send(reply);
    }
}

/// How often a command is decided before its caller is told that others are in the way.
const ATTEMPTS: usize = 16;

#[cfg(test)]
mod tests;
