//! The engine for a broker on its own: one file, one writer thread, nothing else installed.
//!
//! The file is a `redb` database (a copy-on-write B-tree: a crash leaves the last commit, whole).
//! All questions queue up for one thread, which answers transactions that wait together with one
//! commit, so that a burst of them costs one fsync. A session lives until it is closed or the
//! process ends: nobody else can open the file meanwhile (see [`super::DirLock`]), so there is no
//! one to tell that a holder is silent. Whatever sessions left behind goes when the file is
//! opened next.

mod engine;
mod reserve;
mod table;
mod watchers;

use super::{
    DirLock, Event, Outcome, Reply, Revision, Session, SessionId, Snapshot, Store, StoreError, Txn,
    Watch,
};
use engine::{Engine, Question, Reopen};
use futures_channel::oneshot;
use reserve::Reserve;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::task::{Context, Poll};
use std::thread::JoinHandle;
use std::time::Duration;
use table::Table;

/// A store in one file. Dropping it waits until what was asked is done and the file is closed.
#[derive(Debug)]
pub struct Embedded {
    /// Only `None` while being dropped.
    questions: Option<Sender<Question>>,
    thread: Option<JoinHandle<()>>,
}

impl Embedded {
    /// Opens (or creates) `meta/cluster.redb` in the locked directory and keeps the lock for as
    /// long as the store lives.
    ///
    /// # Errors
    /// [`OpenError`] where the file cannot be read, is damaged, or was written by a newer version.
    pub fn open(lock: DirLock) -> Result<Self, OpenError> {
        let dir = lock.dir().join(META_DIR);
        let path = dir.join(META_FILE);
        let fail = |reason: String| OpenError { path: path.clone(), reason };
        let reserve = Reserve::give_back(&dir);
        let table = open_or_create(&dir, lock.dir()).map_err(|error| fail(error.to_string()))?;
        let again = path.clone();
        let reopen = Box::new(move || Table::open(&again));
        Self::start(table, reopen, Some((lock, reserve))).map_err(|error| fail(error.to_string()))
    }

    /// Opens a store over any `redb` backend: memory for tests, or one that loses what was not
    /// synced.
    ///
    /// # Errors
    /// As [`Embedded::open`].
    #[cfg(any(test, feature = "conformance"))]
    pub fn open_backend(backend: impl redb::StorageBackend) -> Result<Self, OpenError> {
        let fail = |error: redb::Error| OpenError {
            path: PathBuf::from("(backend)"),
            reason: error.to_string(),
        };
        let table = Table::open_backend(backend).map_err(fail)?;
        let gone = || Err(redb::Error::Io(std::io::ErrorKind::StorageFull.into()));
        Self::start(table, Box::new(gone), None).map_err(fail)
    }

    fn start(
        table: Table,
        reopen: Reopen,
        place: Option<(DirLock, Reserve)>,
    ) -> Result<Self, redb::Error> {
        let (questions, inbox) = channel();
        let (lock, reserve) = place.unzip();
        let engine = Engine::new(table, reopen, reserve)?;
        let run = move || {
            engine.run(&inbox);
            drop(lock);
        };
        let builder = std::thread::Builder::new().name("ottla-meta".into());
        let thread = builder.spawn(run).map_err(redb::Error::Io)?;
        Ok(Self { questions: Some(questions), thread: Some(thread) })
    }

    /// Sets room aside for the next start, which opening the store gave back: to be said once this
    /// start has written what it must. If the disk is full then, what room there is serves.
    pub fn reserve_room(&self) {
        if let Some(questions) = &self.questions {
            // If the engine has stopped there is nothing to keep room for.
            let _ = questions.send(Question::Reserve);
        }
    }

    fn ask<T, Q>(&self, question: Q) -> Reply<Result<T, StoreError>>
    where
        T: Send + 'static,
        Q: FnOnce(oneshot::Sender<Result<T, StoreError>>) -> Question,
    {
        let (answer, reply) = oneshot::channel();
        if let Some(questions) = &self.questions {
            // A failed send drops the answer's sender, which the reply reports.
            let _ = questions.send(question(answer));
        }
        Box::pin(async move { reply.await.unwrap_or_else(|_| Err(stopped())) })
    }
}

impl Store for Embedded {
    fn read(&self, prefix: &str) -> Reply<Result<Snapshot, StoreError>> {
        let prefix = prefix.to_owned();
        self.ask(|answer| Question::Read { prefix, answer })
    }

    fn commit(&self, txn: Txn) -> Reply<Result<Outcome, StoreError>> {
        if let Err(refused) = super::check(&txn) {
            return Box::pin(std::future::ready(Err(refused)));
        }
        self.ask(|answer| Question::Commit { txn, answer })
    }

    fn watch(&self, prefix: &str, after: Revision) -> Box<dyn Watch> {
        let (feed, watch) = watchers::pair(prefix);
        let question = Question::Watch { feed, after };
        let sent = self.questions.as_ref().is_some_and(|asked| asked.send(question).is_ok());
        if sent { Box::new(watch) } else { Box::new(Stopped) }
    }

    fn open_session(&self, ttl: Duration) -> Reply<Result<Session, StoreError>> {
        self.ask(|answer| Question::OpenSession { ttl, answer })
    }

    fn keep_alive(&self, session: SessionId) -> Reply<Result<Duration, StoreError>> {
        self.ask(|answer| Question::KeepAlive { session, answer })
    }

    fn close_session(&self, session: SessionId) -> Reply<Result<(), StoreError>> {
        self.ask(|answer| Question::CloseSession { session, answer })
    }
}

impl Drop for Embedded {
    fn drop(&mut self) {
        self.questions = None;
        if let Some(thread) = self.thread.take() {
            // A panic of the engine was already seen by everyone who asked it something.
            let _ = thread.join();
        }
    }
}

/// The store's file cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("the metadata store {} cannot be opened: {reason}", .path.display())]
pub struct OpenError {
    path: PathBuf,
    reason: String,
}

/// A watch on an engine that is not there any more.
struct Stopped;

impl Watch for Stopped {
    fn poll_next(&mut self, _: &mut Context<'_>) -> Poll<Event> {
        Poll::Ready(Event::Closed(Arc::from("the store was closed")))
    }
}

fn stopped() -> StoreError {
    StoreError::Unavailable("it has stopped".into())
}

/// A database that a power loss caught half made would be refused for ever, so a new one gets its
/// name only when it is whole; the name in turn survives a power loss.
fn open_or_create(dir: &Path, parent: &Path) -> Result<Table, redb::Error> {
    let path = dir.join(META_FILE);
    std::fs::create_dir_all(dir)?;
    if path.try_exists()? {
        return Table::open(&path);
    }
    let unborn = dir.join(UNBORN_FILE);
    if unborn.try_exists()? {
        std::fs::remove_file(&unborn)?;
    }
    let table = Table::open(&unborn)?;
    table.begin()?;
    std::fs::rename(&unborn, &path)?;
    sync_dir(dir)?;
    sync_dir(parent)?;
    Ok(table)
}

fn sync_dir(dir: &Path) -> std::io::Result<()> {
    std::fs::File::open(dir)?.sync_all()
}

const META_DIR: &str = "meta";
const META_FILE: &str = "cluster.redb";
const UNBORN_FILE: &str = "cluster.redb.new";

#[cfg(test)]
mod tests;
