//! The thread that owns the file: takes questions in order, commits what waits together.

use super::super::{Outcome, Revision, Session, SessionId, Snapshot, StoreError, Txn};
use super::table::Table;
use super::watchers::{Feed, Watchers};
use futures_channel::oneshot;
use std::collections::HashSet;
use std::sync::mpsc::Receiver;
use std::time::Duration;

type Answer<T> = oneshot::Sender<Result<T, StoreError>>;

/// What can be asked.
pub(super) enum Question {
    Read { prefix: String, answer: Answer<Snapshot> },
    Commit { txn: Txn, answer: Answer<Outcome> },
    Watch { feed: Feed, after: Revision },
    OpenSession { ttl: Duration, answer: Answer<Session> },
    KeepAlive { session: SessionId, answer: Answer<Duration> },
    CloseSession { session: SessionId, answer: Answer<()> },
}

/// The engine's state.
pub(super) struct Engine {
    table: Table,
    watchers: Watchers,
    sessions: Sessions,
    /// Why nothing can be trusted any more: a write failed, so the file may be ahead of us.
    failed: Option<String>,
}

struct Sessions {
    openings: u64,
    opened: u64,
    live: HashSet<SessionId>,
    ttl: Duration,
}

impl Engine {
    pub(super) fn new(table: Table) -> Result<Self, redb::Error> {
        let (openings, revision) = table.begin()?;
        let live = HashSet::new();
        let sessions = Sessions { openings, opened: 0, live, ttl: Duration::ZERO };
        Ok(Self { table, watchers: Watchers::new(revision), sessions, failed: None })
    }

    /// Answers until everyone who could ask is gone.
    pub(super) fn run(mut self, inbox: &Receiver<Question>) {
        let mut next = inbox.recv().ok();
        while let Some(question) = next.take() {
            let Question::Commit { txn, answer } = question else {
                self.answer(question);
                next = inbox.recv().ok();
                continue;
            };
            let mut batch = vec![(txn, answer)];
            while batch.len() < BATCH_MAX {
                match inbox.try_recv() {
                    Ok(Question::Commit { txn, answer }) => batch.push((txn, answer)),
                    Ok(other) => {
                        next = Some(other);
                        break;
                    }
                    Err(_) => break,
                }
            }
            self.commit(batch);
            if next.is_none() {
                next = inbox.recv().ok();
            }
        }
        self.watchers.close("the store was closed");
    }

    fn answer(&mut self, question: Question) {
        match question {
            Question::Read { prefix, answer } => {
                let snapshot = self.usable().and_then(|()| self.read(&prefix));
                let _ = answer.send(snapshot);
            }
            Question::Commit { txn, answer } => self.commit(vec![(txn, answer)]),
            Question::Watch { feed, after } => self.watchers.add(feed, after),
            Question::OpenSession { ttl, answer } => {
                let _ = answer.send(self.usable().map(|()| self.sessions.open(ttl)));
            }
            Question::KeepAlive { session, answer } => {
                let _ = answer.send(self.usable().and_then(|()| self.sessions.renew(session)));
            }
            Question::CloseSession { session, answer } => {
                let _ = answer.send(self.usable().and_then(|()| self.close_session(session)));
            }
        }
    }

    fn read(&mut self, prefix: &str) -> Result<Snapshot, StoreError> {
        self.table.read(prefix).map_err(|error| self.fail(&error))
    }

    /// Commits a batch; each answer says how its own transaction ended.
    fn commit(&mut self, batch: Vec<(Txn, Answer<Outcome>)>) {
        let mut txns = Vec::with_capacity(batch.len());
        let mut answers = Vec::with_capacity(batch.len());
        for (txn, answer) in batch {
            match self.usable().and_then(|()| self.sessions.check(&txn)) {
                Ok(()) => {
                    txns.push(txn);
                    answers.push(answer);
                }
                Err(error) => {
                    let _ = answer.send(Err(error));
                }
            }
        }
        let outcomes = self.apply(&txns);
        for (answer, outcome) in answers.into_iter().zip(outcomes) {
            let _ = answer.send(Ok(outcome));
        }
    }

    fn apply(&mut self, txns: &[Txn]) -> Vec<Outcome> {
        if txns.is_empty() {
            return Vec::new();
        }
        match self.table.apply(txns) {
            Ok(applied) => {
                let tell = |(outcome, changes)| {
                    if let Outcome::Committed(revision) = outcome {
                        self.watchers.tell(revision, changes);
                    }
                    outcome
                };
                applied.into_iter().map(tell).collect()
            }
            Err(error) => {
                let reason = error.to_string();
                let _ = self.fail(&error);
                txns.iter().map(|_| Outcome::Unknown(reason.clone())).collect()
            }
        }
    }

    fn close_session(&mut self, session: SessionId) -> Result<(), StoreError> {
        if !self.sessions.live.remove(&session) {
            return Err(StoreError::SessionEnded(session));
        }
        let farewell = self.table.farewell(session).map_err(|error| self.fail(&error))?;
        match &self.apply(&[farewell])[..] {
            [Outcome::Committed(_)] => Ok(()),
            _ => self.usable(),
        }
    }

    fn usable(&self) -> Result<(), StoreError> {
        match &self.failed {
            Some(reason) => Err(StoreError::Unavailable(reason.clone())),
            None => Ok(()),
        }
    }

    /// No retry: after a failed write only a new opening knows what the file holds.
    fn fail(&mut self, error: &redb::Error) -> StoreError {
        let reason = format!("{error}; restart the broker once the disk is well");
        self.watchers.close(&reason);
        self.failed = Some(reason.clone());
        StoreError::Unavailable(reason)
    }
}

impl Sessions {
    fn open(&mut self, ttl: Duration) -> Session {
        self.opened += 1;
        self.ttl = ttl;
        let id = SessionId(self.openings << 32 | self.opened);
        self.live.insert(id);
        Session { id, ttl }
    }

    fn renew(&self, session: SessionId) -> Result<Duration, StoreError> {
        let live = self.live.contains(&session);
        live.then_some(self.ttl).ok_or(StoreError::SessionEnded(session))
    }

    fn check(&self, txn: &Txn) -> Result<(), StoreError> {
        for op in &txn.ops {
            if let super::super::Op::Put { session: Some(session), .. } = op {
                self.renew(*session)?;
            }
        }
        Ok(())
    }
}

/// Transactions committed with one fsync.
const BATCH_MAX: usize = 64;
