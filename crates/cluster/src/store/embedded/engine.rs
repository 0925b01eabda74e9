//! The thread that owns the file: takes questions in order, commits what waits together.

use super::super::{Outcome, Revision, Session, SessionId, Snapshot, StoreError, Txn};
use super::reserve::Reserve;
use super::table::{Applied, Table};
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
    Reserve,
}

/// The engine's state.
pub(super) struct Engine {
    table: Option<Table>,
    reopen: Reopen,
    reserve: Option<Reserve>,
    watchers: Watchers,
    sessions: Sessions,
    /// Why nothing can be trusted any more: a write failed, so the file may be ahead of us.
    failed: Option<Failure>,
}

/// Opens the file once more, after the first handle on it was dropped.
pub(super) type Reopen = Box<dyn FnMut() -> Result<Table, redb::Error> + Send>;

struct Failure {
    reason: String,
    /// The disk was full: what the file holds is what was written, so that opening it anew tells
    /// the truth. After any other failure the kernel may show what the disk never got.
    passes: bool,
}

struct Sessions {
    openings: u64,
    opened: u64,
    live: HashSet<SessionId>,
    ttl: Duration,
}

impl Engine {
    pub(super) fn new(
        table: Table,
        reopen: Reopen,
        reserve: Option<Reserve>,
    ) -> Result<Self, redb::Error> {
        let (openings, revision) = table.begin()?;
        let live = HashSet::new();
        let sessions = Sessions { openings, opened: 0, live, ttl: Duration::ZERO };
        let (table, watchers) = (Some(table), Watchers::new(revision));
        Ok(Self { table, reopen, reserve, watchers, sessions, failed: None })
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
                let _ = answer.send(self.on_table(|table| table.read(&prefix)));
            }
            Question::Commit { txn, answer } => self.commit(vec![(txn, answer)]),
            Question::Watch { feed, after } => self.watchers.add(feed, after),
            Question::OpenSession { ttl, answer } => {
                let _ = answer.send(self.usable().map(|()| self.sessions.open(ttl)));
            }
            Question::KeepAlive { session, answer } => {
                // It lives as long as the process: a full disk must not depose coordinators.
                let _ = answer.send(self.sessions.renew(session));
            }
            Question::Reserve => {
                if let Some(reserve) = &self.reserve {
                    reserve.take();
                }
            }
            Question::CloseSession { session, answer } => {
                let _ = answer.send(self.usable().and_then(|()| self.close_session(session)));
            }
        }
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
        match self.try_apply(txns) {
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
                let unknown = |_| Outcome::Unknown(error.to_string());
                txns.iter().map(unknown).collect()
            }
        }
    }

    fn try_apply(&mut self, txns: &[Txn]) -> Result<Vec<Applied>, StoreError> {
        self.on_table(|table| table.apply(txns))
    }

    fn close_session(&mut self, session: SessionId) -> Result<(), StoreError> {
        if !self.sessions.live.remove(&session) {
            return Err(StoreError::SessionEnded(session));
        }
        let farewell = self.on_table(|table| table.farewell(session))?;
        match &self.apply(&[farewell])[..] {
            [Outcome::Committed(_)] => Ok(()),
            _ => self.usable(),
        }
    }

    fn on_table<T>(
        &mut self,
        act: impl FnOnce(&Table) -> Result<T, redb::Error>,
    ) -> Result<T, StoreError> {
        self.usable()?;
        let table = self.table.as_ref().ok_or_else(|| unavailable(LOST))?;
        act(table).map_err(|error| self.fail(&error))
    }

    /// Whether the file can be asked; after a full disk each question tries to open it anew.
    fn usable(&mut self) -> Result<(), StoreError> {
        match &self.failed {
            None => Ok(()),
            Some(failure) if failure.passes => self.heal(),
            Some(failure) => Err(unavailable(&failure.reason)),
        }
    }

    /// What became of the last transaction only a new opening knows: watchers have to read anew.
    fn heal(&mut self) -> Result<(), StoreError> {
        // The file cannot be opened twice.
        self.table = None;
        let opened = (self.reopen)().and_then(|table| Ok((table.revision()?, table)));
        let (revision, table) = opened.map_err(|error| unavailable(&error.to_string()))?;
        self.table = Some(table);
        self.watchers.restart(revision);
        self.failed = None;
        Ok(())
    }

    fn fail(&mut self, error: &redb::Error) -> StoreError {
        let passes = is_disk_full(error);
        let advice = if passes { "make room on the disk" } else { RESTART };
        let reason = format!("{error}; {advice}");
        if !passes {
            self.watchers.close(&reason);
        }
        let unavailable = unavailable(&reason);
        self.failed = Some(Failure { reason, passes });
        unavailable
    }
}

fn is_disk_full(error: &redb::Error) -> bool {
    use std::io::ErrorKind::{QuotaExceeded, StorageFull};
    matches!(error, redb::Error::Io(error) if [StorageFull, QuotaExceeded].contains(&error.kind()))
}

fn unavailable(reason: &str) -> StoreError {
    StoreError::Unavailable(reason.to_owned())
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
const RESTART: &str = "restart the broker once the disk is well";
const LOST: &str = "the file is not open";
