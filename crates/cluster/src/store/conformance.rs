//! The suite every engine must pass before a cluster may stand on it.
//!
//! An engine's tests implement [`Harness`] and call [`all`] in their own executor; each rule is
//! also a function of its own, so that a failing one can be run alone. Rules are written for
//! what the cluster relies on, not for what one engine happens to do.

use super::{
    Change, Entry, Event, Key, Op, Outcome, Revision, SessionId, Snapshot, Store, StoreError, Txn,
    Watch,
};
use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;

/// How the suite gets hold of stores.
pub trait Harness {
    /// The engine under test.
    type Store: Store;

    /// An open store without any entry.
    fn fresh(&mut self) -> Self::Store;

    /// The same store's content after its user died without a word: sessions end, commits stay.
    fn reopen(&mut self, store: Self::Store) -> Self::Store;
}

/// Runs every rule.
///
/// # Panics
/// Where the engine breaks a rule.
pub async fn all<H: Harness>(harness: &mut H) {
    a_read_sees_its_prefix_in_key_order(&harness.fresh()).await;
    a_transaction_happens_whole_or_not_at_all(&harness.fresh()).await;
    zero_expects_absence(&harness.fresh()).await;
    of_two_rivals_one_wins(&harness.fresh()).await;
    a_late_transaction_of_the_same_writer_conflicts(&harness.fresh()).await;
    revisions_rise_with_each_commit_and_never_with_a_conflict(&harness.fresh()).await;
    deleting_nothing_is_no_error(&harness.fresh()).await;
    bounds_are_refused(&harness.fresh()).await;
    a_watch_misses_nothing_after_a_read(&harness.fresh()).await;
    a_watch_sees_its_prefix_alone_and_a_transaction_whole(&harness.fresh()).await;
    a_closed_session_takes_its_keys_along(&harness.fresh()).await;
    a_put_of_an_ended_session_does_not_happen(&harness.fresh()).await;
    commits_survive_a_reopening(harness).await;
    sessions_do_not_survive_a_reopening(harness).await;
    revisions_go_on_after_a_reopening(harness).await;
}

/// A prefix is a prefix of the text, and order is the order of bytes.
pub async fn a_read_sees_its_prefix_in_key_order(store: &impl Store) {
    commit(store, [], [put("b/2", "x"), put("a/10", "1"), put("a/9", "2"), put("a0", "3")]).await;
    let found = read(store, "a/").await;
    let keys: Vec<_> = found.entries.iter().map(|entry| &*entry.key).collect();
    assert_eq!(keys, ["a/10", "a/9"]);
    assert!(found.entries.iter().all(|entry| entry.revision == found.revision));
    assert_eq!(read(store, "").await.entries.len(), 4);
}

/// One false expectation and nothing of the transaction is seen.
pub async fn a_transaction_happens_whole_or_not_at_all(store: &impl Store) {
    let first = commit(store, [], [put("a", "1"), put("b", "1")]).await;
    let stale = [("a", first), ("b", Revision(first.0 + 7))];
    assert_eq!(try_commit(store, stale, [put("a", "2"), delete("b")]).await, Outcome::Conflict);
    assert_eq!(values(&read(store, "").await), ["1", "1"]);
    commit(store, [("a", first), ("b", first)], [put("a", "2"), delete("b")]).await;
    assert_eq!(values(&read(store, "").await), ["2"]);
}

/// Revision 0 expects that there is no such key, also after it was deleted.
pub async fn zero_expects_absence(store: &impl Store) {
    commit(store, [("a", Revision::NONE)], [put("a", "1")]).await;
    let again = try_commit(store, [("a", Revision::NONE)], [put("a", "2")]).await;
    assert_eq!(again, Outcome::Conflict);
    commit(store, [], [delete("a")]).await;
    commit(store, [("a", Revision::NONE)], [put("a", "3")]).await;
}

/// Two transactions in flight that expect the same revision: exactly one happens.
pub async fn of_two_rivals_one_wins(store: &impl Store) {
    let start = commit(store, [], [put("a", "0")]).await;
    let rivals = [
        store.commit(txn([("a", start)], [put("a", "1")])),
        store.commit(txn([("a", start)], [put("a", "2")])),
    ];
    let mut won = 0;
    for rival in rivals {
        match rival.await.expect("the store is reachable") {
            Outcome::Committed(_) => won += 1,
            Outcome::Conflict => {}
            Outcome::Unknown(why) => panic!("unknown outcome without a fault: {why}"),
        }
    }
    assert_eq!(won, 1);
}

/// What makes an unknown outcome decidable: see [`Txn`].
pub async fn a_late_transaction_of_the_same_writer_conflicts(store: &impl Store) {
    let known = commit(store, [("writers/1", Revision::NONE)], [put("writers/1", "t1")]).await;
    let late = txn([("writers/1", known)], [put("writers/1", "t2"), put("x", "late")]);
    commit(store, [("writers/1", known)], [put("writers/1", "t3")]).await;
    assert_eq!(store.commit(late).await, Ok(Outcome::Conflict));
    assert!(read(store, "x").await.entries.is_empty());
}

/// The count of transactions is the count of commits.
pub async fn revisions_rise_with_each_commit_and_never_with_a_conflict(store: &impl Store) {
    let first = commit(store, [], [put("a", "1")]).await;
    try_commit(store, [("a", Revision::NONE)], [put("a", "2")]).await;
    assert_eq!(read(store, "a").await.revision, first);
    let second = commit(store, [], [put("b", "1")]).await;
    assert!(second > first);
    assert_eq!(read(store, "a").await.entries[0].revision, first);
}

/// A delete says what must not be there afterwards.
pub async fn deleting_nothing_is_no_error(store: &impl Store) {
    commit(store, [], [delete("nothing")]).await;
}

/// Every engine has the same bounds, so that one is not found out only in a large cluster.
pub async fn bounds_are_refused(store: &impl Store) {
    let many = (0..=super::OPS_MAX).map(|n| put(&format!("k{n}"), "v"));
    refused(store, many.collect()).await;
    refused(store, vec![put("a", "1"), delete("a")]).await;
    refused(store, vec![put("a", &"x".repeat(super::VALUE_BYTES_MAX + 1))]).await;
    refused(store, vec![put(&"k".repeat(super::KEY_BYTES_MAX + 1), "v")]).await;
    assert!(read(store, "").await.entries.is_empty());
    commit(store, [], [put("a", &"x".repeat(super::VALUE_BYTES_MAX))]).await;
}

/// Read, then watch from the read's revision: between the two there is no gap.
pub async fn a_watch_misses_nothing_after_a_read(store: &impl Store) {
    commit(store, [], [put("a", "1")]).await;
    let seen = read(store, "").await.revision;
    let second = commit(store, [], [put("a", "2")]).await;
    let mut watch = store.watch("", seen);
    let third = commit(store, [], [delete("a")]).await;
    let entry =
        Entry { key: "a".into(), value: Arc::from(&b"2"[..]), revision: second, session: None };
    assert_eq!(next(&mut *watch).await, (second, vec![Change::Put(entry)]));
    assert_eq!(next(&mut *watch).await, (third, vec![Change::Deleted("a".into())]));
}

/// Others' changes are not told; one transaction is one event.
pub async fn a_watch_sees_its_prefix_alone_and_a_transaction_whole(store: &impl Store) {
    let mut watch = store.watch("a/", read(store, "").await.revision);
    commit(store, [], [put("b/1", "x")]).await;
    let second = commit(store, [], [put("a/1", "x"), put("b/2", "x"), put("a/2", "x")]).await;
    let (revision, changes) = next(&mut *watch).await;
    assert_eq!((revision, changes.len()), (second, 2));
}

/// Ending a session is one transaction like any other.
pub async fn a_closed_session_takes_its_keys_along(store: &impl Store) {
    let session = store.open_session(TTL).await.expect("a session").id;
    commit(store, [], [put_for("a", session), put_for("b", session), put("c", "kept")]).await;
    assert!(store.keep_alive(session).await.expect("it lives") > Duration::ZERO);
    let mut watch = store.watch("", read(store, "").await.revision);
    store.close_session(session).await.expect("it closes");
    let (_, changes) = next(&mut *watch).await;
    assert_eq!(changes, [Change::Deleted("a".into()), Change::Deleted("b".into())]);
    assert_eq!(values(&read(store, "").await), ["kept"]);
    assert_eq!(store.keep_alive(session).await, Err(StoreError::SessionEnded(session)));
}

/// A deposed holder cannot write for a session it no longer has.
pub async fn a_put_of_an_ended_session_does_not_happen(store: &impl Store) {
    let session = store.open_session(TTL).await.expect("a session").id;
    store.close_session(session).await.expect("it closes");
    let late = store.commit(txn([], [put_for("a", session)])).await;
    assert_eq!(late, Err(StoreError::SessionEnded(session)));
    assert!(read(store, "").await.entries.is_empty());
}

/// What was answered as committed is there for good.
pub async fn commits_survive_a_reopening(harness: &mut impl Harness) {
    let store = harness.fresh();
    for n in 0..20 {
        commit(&store, [], [put(&format!("k{n:02}"), &n.to_string())]).await;
    }
    commit(&store, [], [delete("k07")]).await;
    let before = read(&store, "").await;
    assert_eq!(read(&harness.reopen(store), "").await.entries, before.entries);
}

/// Nobody keeps a dead process's sessions alive.
pub async fn sessions_do_not_survive_a_reopening(harness: &mut impl Harness) {
    let store = harness.fresh();
    let session = store.open_session(TTL).await.expect("a session").id;
    commit(&store, [], [put_for("mine", session), put("kept", "kept")]).await;
    let store = harness.reopen(store);
    assert_eq!(values(&read(&store, "").await), ["kept"]);
    assert_eq!(store.keep_alive(session).await, Err(StoreError::SessionEnded(session)));
    let next = store.open_session(TTL).await.expect("a session").id;
    assert_ne!(next, session);
}

/// A revision is never given twice, or an expectation could be met by mistake.
pub async fn revisions_go_on_after_a_reopening(harness: &mut impl Harness) {
    let store = harness.fresh();
    let before = commit(&store, [], [put("a", "1")]).await;
    let store = harness.reopen(store);
    assert!(commit(&store, [], [put("a", "2")]).await > before);
}

async fn refused(store: &impl Store, ops: Vec<Op>) {
    let refusal = store.commit(Txn { expects: Vec::new(), ops }).await;
    assert!(matches!(refusal, Err(StoreError::Refused(_))), "{refusal:?}");
}

async fn next(watch: &mut dyn Watch) -> (Revision, Vec<Change>) {
    match poll_fn(|cx| watch.poll_next(cx)).await {
        Event::Changes { revision, changes } => (revision, changes.to_vec()),
        other => panic!("expected changes, not {other:?}"),
    }
}

async fn read(store: &impl Store, prefix: &str) -> Snapshot {
    store.read(prefix).await.expect("the store is reachable")
}

async fn commit<const E: usize, const O: usize>(
    store: &impl Store,
    expects: [(&str, Revision); E],
    ops: [Op; O],
) -> Revision {
    match try_commit(store, expects, ops).await {
        Outcome::Committed(revision) => revision,
        other => panic!("expected a commit, not {other:?}"),
    }
}

async fn try_commit<const E: usize, const O: usize>(
    store: &impl Store,
    expects: [(&str, Revision); E],
    ops: [Op; O],
) -> Outcome {
    store.commit(txn(expects, ops)).await.expect("the store is reachable")
}

fn txn<const E: usize, const O: usize>(expects: [(&str, Revision); E], ops: [Op; O]) -> Txn {
    let expects = expects.map(|(key, revision)| (Key::from(key), revision));
    Txn { expects: expects.into(), ops: ops.into() }
}

fn put(key: &str, value: &str) -> Op {
    Op::Put { key: key.into(), value: value.as_bytes().into(), session: None }
}

fn put_for(key: &str, session: SessionId) -> Op {
    Op::Put { key: key.into(), value: Arc::default(), session: Some(session) }
}

fn delete(key: &str) -> Op {
    Op::Delete { key: key.into() }
}

fn values(snapshot: &Snapshot) -> Vec<String> {
    let text = |entry: &Entry| String::from_utf8_lossy(&entry.value).into_owned();
    snapshot.entries.iter().map(text).collect()
}

const TTL: Duration = Duration::from_secs(10);
