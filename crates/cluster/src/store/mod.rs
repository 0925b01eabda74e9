//! The metadata store: a small ordered map with revisions, which an engine keeps for us.
//!
//! This is the only thing the cluster ever asks of an engine, and it is what etcd and ZooKeeper
//! can both serve: compare-and-swap transactions over a few keys, a consistent read of a prefix,
//! a watch from a revision on, and sessions whose keys vanish with them. [`embedded`] serves it
//! from one file for a broker on its own; `conformance` is the suite every engine must pass.
//! Nothing here knows a topic or a broker.
//!
//! # Why futures, and whose
//!
//! A remote engine answers over the network, the embedded one after an fsync. Neither may hold
//! up its caller's thread, so every question returns a plain [`Reply`]: a boxed `std` future that
//! owns what it needs, is woken by whoever answers, and needs no particular runtime. The
//! embedded engine answers from a thread of its own; a remote one will answer from its client's
//! task. A dropped reply does not take the question back: the transaction may still happen.

#[cfg(any(test, feature = "conformance"))]
pub mod conformance;
pub mod embedded;
mod lock;

pub use lock::{DirLock, LockError};

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

/// An answer on its way.
pub type Reply<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// An engine that keeps the cluster's metadata.
///
/// All clones and all processes that open the same store see one order of transactions, counted
/// by [`Revision`]. Reads are linearizable: a [`Store::read`] asked after a commit was answered
/// sees that commit.
pub trait Store: Send + Sync + 'static {
    /// Every entry whose key starts with `prefix`, as of one revision.
    fn read(&self, prefix: &str) -> Reply<Result<Snapshot, StoreError>>;

    /// Applies `txn` as a whole or not at all.
    ///
    /// An `Err` means it surely did not happen and never will. [`Outcome::Unknown`] means nobody
    /// can tell yet, also that it may still happen later; see [`Txn`] for how to find out.
    fn commit(&self, txn: Txn) -> Reply<Result<Outcome, StoreError>>;

    /// Changes to keys that start with `prefix`, from the first revision after `after`.
    fn watch(&self, prefix: &str, after: Revision) -> Box<dyn Watch>;

    /// Opens a session that ends when it is not kept alive for about `ttl`.
    ///
    /// The engine may grant another time than asked; the holder counts it from the moment it
    /// *sent* the question (see [`crate::lease`]).
    fn open_session(&self, ttl: Duration) -> Reply<Result<Session, StoreError>>;

    /// Renews a session; the time it now has, counted from when this question was sent.
    fn keep_alive(&self, session: SessionId) -> Reply<Result<Duration, StoreError>>;

    /// Ends a session now; its keys go in one transaction.
    fn close_session(&self, session: SessionId) -> Reply<Result<(), StoreError>>;
}

/// A stream of changes.
pub trait Watch: Send {
    /// The next event; after [`Event::Lagged`] or [`Event::Closed`] the watch yields no more.
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Event>;
}

/// What a watch says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// All changes of one transaction that lie under the watched prefix, never split.
    Changes {
        /// The transaction's revision.
        revision: Revision,
        /// The changes, in the transaction's order.
        changes: Arc<[Change]>,
    },
    /// The engine no longer remembers what came after the last event: read and watch anew.
    Lagged,
    /// The engine is gone; the text says why.
    Closed(Arc<str>),
}

/// One key's change. Its last value is what counts: keys carry no history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// The key has this entry now.
    Put(Entry),
    /// The key is gone.
    Deleted(Key),
}

/// A key: a path such as `topics/orders`. At most [`KEY_BYTES_MAX`] bytes.
pub type Key = Arc<str>;

/// Counts a store's transactions, from 1. As an expectation 0 says "there is no such key".
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct Revision(pub u64);

impl Revision {
    /// Before the first transaction; of a key: absent.
    pub const NONE: Self = Self(0);
}

/// One key with its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The key.
    pub key: Key,
    /// Its value; at most [`VALUE_BYTES_MAX`] bytes.
    pub value: Arc<[u8]>,
    /// The transaction that wrote it.
    pub revision: Revision,
    /// The session it goes with, if it belongs to one.
    pub session: Option<SessionId>,
}

/// A consistent read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// The last transaction it contains; a watch continues after it.
    pub revision: Revision,
    /// The entries in the order of their keys.
    pub entries: Vec<Entry>,
}

/// A transaction: if every expectation holds, every operation happens.
///
/// Whoever must survive [`Outcome::Unknown`] lets each of its transactions expect *and* write one
/// key of its own with a value never used before (here `writers/<node>`): reading that key tells
/// whether the transaction happened, and a late one fails its expectation once a successor wrote.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Txn {
    /// Keys and the revision each must have.
    pub expects: Vec<(Key, Revision)>,
    /// What to do; at most [`OPS_MAX`], no key twice.
    pub ops: Vec<Op>,
}

/// One operation of a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Op {
    /// Set a key.
    Put {
        /// The key.
        key: Key,
        /// Its new value.
        value: Arc<[u8]>,
        /// The session whose end removes it.
        session: Option<SessionId>,
    },
    /// Remove a key; not an error if it is absent.
    Delete {
        /// The key.
        key: Key,
    },
}

impl Op {
    /// The key it touches.
    pub fn key(&self) -> &Key {
        match self {
            Self::Put { key, .. } | Self::Delete { key } => key,
        }
    }
}

/// How a transaction ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It happened and is durable.
    Committed(Revision),
    /// An expectation did not hold; nothing happened.
    Conflict,
    /// It may have happened, or may yet (a lost connection, a failed fsync). The text says why.
    Unknown(String),
}

/// A session's name, never used again.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct SessionId(pub u64);

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}", self.0)
    }
}

/// An open session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Session {
    /// Its name.
    pub id: SessionId,
    /// How long it lives without being kept alive, counted from when it was asked for.
    pub ttl: Duration,
}

/// Why the engine did not do what it was asked. Nothing has happened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// The engine cannot be reached or has stopped: try again later.
    #[error("the metadata store cannot be reached: {0}")]
    Unavailable(String),
    /// The session named has ended: open a new one.
    #[error("session {0} of the metadata store has ended")]
    SessionEnded(SessionId),
    /// The transaction breaks a bound of this module, or names a key twice: our mistake.
    #[error("the transaction was refused: {0}")]
    Refused(String),
}

/// Checks the bounds every engine shares, so that what the embedded one takes, etcd takes too.
///
/// # Errors
/// [`StoreError::Refused`], naming the bound.
pub fn check(txn: &Txn) -> Result<(), StoreError> {
    let refuse = |why: String| Err(StoreError::Refused(why));
    if txn.ops.len() > OPS_MAX || txn.expects.len() > OPS_MAX {
        return refuse(format!("more than {OPS_MAX} operations or expectations"));
    }
    let mut bytes = 0;
    let mut keys: Vec<&str> = Vec::with_capacity(txn.ops.len());
    for op in &txn.ops {
        let size = if let Op::Put { value, .. } = op { value.len() } else { 0 };
        if op.key().len() > KEY_BYTES_MAX || size > VALUE_BYTES_MAX {
            return refuse(format!("key or value of {} is too long", op.key()));
        }
        bytes += op.key().len() + size;
        keys.push(op.key());
    }
    if bytes > TXN_BYTES_MAX {
        return refuse(format!("more than {TXN_BYTES_MAX} bytes"));
    }
    keys.sort_unstable();
    if keys.windows(2).any(|pair| pair[0] == pair[1]) {
        return refuse("a key twice".into());
    }
    Ok(())
}

/// Operations in one transaction: etcd's default `--max-txn-ops`.
pub const OPS_MAX: usize = 128;

/// Bytes of one key.
pub const KEY_BYTES_MAX: usize = 512;

/// Bytes of one value: half of what ZooKeeper moves in one packet (`jute.maxbuffer`).
pub const VALUE_BYTES_MAX: usize = 512 * 1024;

/// Bytes of one transaction, likewise.
pub const TXN_BYTES_MAX: usize = 768 * 1024;
