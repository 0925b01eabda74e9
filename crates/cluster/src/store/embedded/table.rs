//! The store's bytes: two `redb` tables. Knows expectations and operations, no threads.
//!
//! `entries` maps a key to (revision, session or 0, value); `counters` holds `revision` (the last
//! transaction) and `openings` (how often the file was opened, the upper half of session ids).

use super::super::{Change, Entry, Key, Op, Outcome, Revision, SessionId, Snapshot, Txn};
use redb::backends::FileBackend;
use redb::{
    Database, ReadableDatabase, ReadableTable, StorageBackend, Table as RedbTable, TableDefinition,
    WriteTransaction,
};
use std::fs::OpenOptions;
use std::path::Path;
use std::sync::Arc;

/// The open database.
#[derive(Debug)]
pub(super) struct Table {
    database: Database,
}

/// What one transaction of a batch came to; its changes where it happened.
pub(super) type Applied = (Outcome, Arc<[Change]>);

impl Table {
    pub(super) fn open(path: &Path) -> Result<Self, redb::Error> {
        let file =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
        Self::over(FileBackend::new(file)?)
    }

    #[cfg(any(test, feature = "conformance"))]
    pub(super) fn open_backend(backend: impl redb::StorageBackend) -> Result<Self, redb::Error> {
        Self::over(backend)
    }

    fn over(backend: impl StorageBackend) -> Result<Self, redb::Error> {
        make_durable(&backend)?;
        Ok(Self { database: builder().create_with_backend(backend)? })
    }

    /// Starts an opening: counts it and removes what sessions of earlier openings left.
    pub(super) fn begin(&self) -> Result<(u64, Revision), redb::Error> {
        let write = self.database.begin_write()?;
        let (openings, revision) = {
            let mut counters = write.open_table(COUNTERS)?;
            let openings = counter(&counters, "openings")? + 1;
            counters.insert("openings", openings)?;
            let mut revision = counter(&counters, "revision")?;
            let mut entries = write.open_table(ENTRIES)?;
            let stale = keys_of_sessions(&entries, |_| true)?;
            if !stale.is_empty() {
                revision += 1;
                counters.insert("revision", revision)?;
            }
            for key in stale {
                entries.remove(&*key)?;
            }
            (openings, Revision(revision))
        };
        write.commit()?;
        Ok((openings, revision))
    }

    /// The last transaction's.
    pub(super) fn revision(&self) -> Result<Revision, redb::Error> {
        let read = self.database.begin_read()?;
        Ok(Revision(counter(&read.open_table(COUNTERS)?, "revision")?))
    }

    pub(super) fn read(&self, prefix: &str) -> Result<Snapshot, redb::Error> {
        let read = self.database.begin_read()?;
        let revision = Revision(counter(&read.open_table(COUNTERS)?, "revision")?);
        let mut entries = Vec::new();
        for row in read.open_table(ENTRIES)?.range(prefix..)? {
            let (key, value) = row?;
            if !key.value().starts_with(prefix) {
                break;
            }
            entries.push(entry(key.value(), value.value()));
        }
        Ok(Snapshot { revision, entries })
    }

    /// Applies transactions one after the other, each seeing those before it, and makes them
    /// durable together. On an error nobody knows what is on disk.
    pub(super) fn apply(&self, txns: &[Txn]) -> Result<Vec<Applied>, redb::Error> {
        let write = self.database.begin_write()?;
        let mut applied = Vec::with_capacity(txns.len());
        for txn in txns {
            applied.push(apply_one(&write, txn)?);
        }
        let changed = applied.iter().any(|(outcome, _)| matches!(outcome, Outcome::Committed(_)));
        if changed {
            write.commit()?;
        } else {
            write.abort()?;
        }
        Ok(applied)
    }

    /// A transaction that removes every key of `session`.
    pub(super) fn farewell(&self, session: SessionId) -> Result<Txn, redb::Error> {
        let read = self.database.begin_read()?;
        let keys = keys_of_sessions(&read.open_table(ENTRIES)?, |owner| owner == session.0)?;
        let ops = keys.into_iter().map(|key| Op::Delete { key }).collect();
        Ok(Txn { expects: Vec::new(), ops })
    }
}

/// Writes what is there once more, and syncs it. A sync may have failed in a process that then was
/// killed: what it wrote reads well and counts as clean, but a commit that builds on it would be
/// the only half that is on the disk.
fn make_durable(backend: &impl StorageBackend) -> std::io::Result<()> {
    let (mut at, end) = (0, backend.len()?);
    let mut page = Vec::new();
    while at < end {
        page.resize(PAGE.min((end - at) as usize), 0);
        backend.read(at, &mut page)?;
        // A hole would take room, which a full disk does not have.
        if page.iter().any(|byte| *byte != 0) {
            backend.write(at, &page)?;
        }
        at += page.len() as u64;
    }
    backend.sync_data()
}

fn apply_one(write: &WriteTransaction, txn: &Txn) -> Result<Applied, redb::Error> {
    let mut entries = write.open_table(ENTRIES)?;
    for (key, expected) in &txn.expects {
        let found = entries.get(&**key)?.map_or(0, |row| row.value().0);
        if found != expected.0 {
            return Ok((Outcome::Conflict, Arc::default()));
        }
    }
    let mut counters = write.open_table(COUNTERS)?;
    let revision = counter(&counters, "revision")? + 1;
    counters.insert("revision", revision)?;
    let mut changes = Vec::with_capacity(txn.ops.len());
    for op in &txn.ops {
        changes.extend(apply_op(&mut entries, op, revision)?);
    }
    Ok((Outcome::Committed(Revision(revision)), changes.into()))
}

/// `None` where a key to delete was not there: nothing changed.
fn apply_op(
    entries: &mut RedbTable<'_, &str, (u64, u64, &[u8])>,
    op: &Op,
    revision: u64,
) -> Result<Option<Change>, redb::Error> {
    match op {
        Op::Put { key, value, session } => {
            let owner = session.map_or(0, |session| session.0);
            entries.insert(&**key, (revision, owner, &**value))?;
            Ok(Some(Change::Put(Entry {
                key: key.clone(),
                value: value.clone(),
                revision: Revision(revision),
                session: *session,
            })))
        }
        Op::Delete { key } => {
            let found = entries.remove(&**key)?.is_some();
            Ok(found.then(|| Change::Deleted(key.clone())))
        }
    }
}

fn keys_of_sessions(
    entries: &impl ReadableTable<&'static str, (u64, u64, &'static [u8])>,
    wanted: impl Fn(u64) -> bool,
) -> Result<Vec<Key>, redb::Error> {
    let mut keys = Vec::new();
    for row in entries.iter()? {
        let (key, value) = row?;
        let owner = value.value().1;
        if owner != 0 && wanted(owner) {
            keys.push(Key::from(key.value()));
        }
    }
    Ok(keys)
}

fn entry(key: &str, (revision, session, value): (u64, u64, &[u8])) -> Entry {
    Entry {
        key: key.into(),
        value: value.into(),
        revision: Revision(revision),
        session: (session != 0).then_some(SessionId(session)),
    }
}

fn counter(
    counters: &impl ReadableTable<&'static str, u64>,
    name: &str,
) -> Result<u64, redb::Error> {
    Ok(counters.get(name)?.map_or(0, |value| value.value()))
}

fn builder() -> redb::Builder {
    let mut builder = Database::builder();
    builder.set_cache_size(CACHE_BYTES);
    // The file is small, and without this damage is read as if it were what was written.
    builder.set_check_integrity_on_open(true);
    builder
}

const PAGE: usize = 4096;
const ENTRIES: TableDefinition<'static, &'static str, (u64, u64, &'static [u8])> =
    TableDefinition::new("entries");
const COUNTERS: TableDefinition<'static, &'static str, u64> = TableDefinition::new("counters");

/// The store is read whole at start and then only written: it needs no large cache.
const CACHE_BYTES: usize = 4 * 1024 * 1024;
