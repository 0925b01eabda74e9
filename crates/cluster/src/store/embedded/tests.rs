//! The embedded engine under the shared suite, and what is its own: crashes and lag.

use super::super::conformance::{self, Harness};
use super::super::{Change, Key, Op};
use super::*;
use pollster::block_on;
use redb::StorageBackend;
use redb::backends::InMemoryBackend;
use std::io;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

/// On a real directory, where a reopening goes through the file.
#[test]
fn conforms_on_disk() {
    struct OnDisk(Vec<tempfile::TempDir>);
    impl Harness for OnDisk {
        type Store = Embedded;
        fn fresh(&mut self) -> Embedded {
            self.0.push(tempfile::tempdir().unwrap());
            open(self.0.last().unwrap().path())
        }
        fn reopen(&mut self, store: Embedded) -> Embedded {
            drop(store);
            open(self.0.last().unwrap().path())
        }
    }
    block_on(conformance::all(&mut OnDisk(Vec::new())));
}

/// Power loss at every write of a run: what was acknowledged is there, a transaction is whole.
#[test]
fn power_loss_keeps_acknowledged_commits_whole() {
    let mut cut = 0;
    while lose_power_at(cut, Loss::Everything) {
        cut += 1;
    }
    assert!(cut > PAIRS, "the run was never cut");
}

/// The same where the disk had written some of it, in any order and in pieces of 512 bytes.
#[test]
fn power_loss_may_tear_and_reorder_what_was_not_synced() {
    for seed in 0..5 {
        let mut cut = seed % 3;
        while lose_power_at(cut as usize, Loss::Some(seed)) {
            cut += 3;
        }
    }
}

/// A sync fails, the process is killed, and only then power is lost: what the next process was told
/// is committed must not lean on what never reached the disk.
#[test]
fn a_kill_after_a_failed_sync_leaves_nothing_that_is_only_in_memory() {
    for (failing, cut) in
        (0..24).flat_map(|failing| (0..60).step_by(3).map(move |cut| (failing, cut)))
    {
        let disk = Disk::default();
        drop(Embedded::open_backend(disk.clone()).unwrap());
        disk.cut_after(failing);
        block_on(write_pairs(disk.clone()));
        disk.fail_sync();
        disk.make_room();
        disk.cut_after(cut);
        let acked = block_on(write_pairs(disk.clone()));
        disk.lose_power(Loss::Everything);
        let found = block_on(read_pairs(disk));
        assert!(found.len() >= acked, "{failing}, {cut}: {acked} acknowledged, {found:?} found");
    }
}

/// Whether the run was cut at all.
fn lose_power_at(cut: usize, loss: Loss) -> bool {
    let disk = Disk::default();
    drop(Embedded::open_backend(disk.clone()).unwrap());
    disk.cut_after(cut);
    let acked = block_on(write_pairs(disk.clone()));
    let died = disk.has_died();
    disk.lose_power(loss);
    let found = block_on(read_pairs(disk));
    assert!(found.len() >= acked, "cut {cut}: {acked} acknowledged, {found:?} found");
    assert!(found.iter().all(|(a, b)| a == b), "cut {cut}: half a transaction: {found:?}");
    if !died {
        assert_eq!(acked, PAIRS);
    }
    died
}

/// A failed write leaves nobody knowing; the engine says so and answers nothing more.
#[test]
fn a_failed_write_is_an_unknown_outcome_and_the_end() {
    let disk = Disk::default();
    let store = Embedded::open_backend(disk.clone()).unwrap();
    let mut watch = store.watch("", Revision::NONE);
    disk.cut_after(0);
    let outcome = block_on(store.commit(pair(0)));
    assert!(matches!(outcome, Ok(Outcome::Unknown(_))), "{outcome:?}");
    assert!(matches!(block_on(store.commit(pair(1))), Err(StoreError::Unavailable(_))));
    assert!(matches!(block_on(store.read("")), Err(StoreError::Unavailable(_))));
    let event = block_on(std::future::poll_fn(|cx| watch.poll_next(cx)));
    assert!(matches!(event, Event::Closed(_)), "{event:?}");
}

/// Issue 3: a full disk passes. The transaction that met it is of unknown outcome; sessions live
/// on, and once there is room the next question finds the file as it is, and watchers read anew.
#[test]
fn a_full_disk_heals_without_a_restart() {
    for room in 0..12 {
        let disk = Disk::default();
        let table = Table::open_backend(disk.clone()).unwrap();
        let again = disk.clone();
        let reopen = Box::new(move || Table::open_backend(again.clone()));
        let store = Embedded::start(table, reopen, None).unwrap();
        let session = block_on(store.open_session(Duration::from_secs(9))).unwrap();
        block_on(store.commit(pair(0))).unwrap();
        let mut watch = store.watch("", Revision(1));
        disk.fill_after(room);
        let outcome = block_on(store.commit(pair(1))).unwrap();
        if matches!(outcome, Outcome::Unknown(_)) {
            let refused = block_on(store.commit(pair(2)));
            assert!(matches!(refused, Err(StoreError::Unavailable(_))), "{refused:?}");
        }
        assert!(block_on(store.keep_alive(session.id)).is_ok(), "room {room}");
        disk.make_room();
        let Ok(Outcome::Committed(last)) = block_on(store.commit(pair(3))) else { panic!() };
        let found = block_on(store.read("a/")).unwrap();
        let keys: Vec<&str> = found.entries.iter().map(|entry| &*entry.key).collect();
        let both = keys == ["a/0000", "a/0001", "a/0003"];
        assert!(both || keys == ["a/0000", "a/0003"], "room {room}: {keys:?}");
        assert_eq!(found.revision, last);
        if matches!(outcome, Outcome::Unknown(_)) {
            let event = block_on(std::future::poll_fn(|cx| watch.poll_next(cx)));
            assert_eq!(event, Event::Lagged, "room {room}");
        }
    }
}

/// A watcher that does not read is told to start over instead of growing without bound.
#[test]
fn a_slow_watcher_lags_and_is_told() {
    let store = Embedded::open_backend(InMemoryBackend::new()).unwrap();
    let mut watch = store.watch("", Revision::NONE);
    for n in 0..1100 {
        block_on(store.commit(pair(n))).unwrap();
    }
    let mut changes = 0;
    loop {
        match block_on(std::future::poll_fn(|cx| watch.poll_next(cx))) {
            Event::Changes { .. } => changes += 1,
            Event::Lagged => break,
            Event::Closed(why) => panic!("{why}"),
        }
    }
    assert_eq!(changes, 1024);
    let mut late = store.watch("", Revision(3));
    assert_eq!(block_on(std::future::poll_fn(|cx| late.poll_next(cx))), Event::Lagged);
}

/// A power loss while the file is made for the first time must not lock its owner out.
#[test]
fn a_half_made_file_is_made_again() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join(META_DIR)).unwrap();
    std::fs::write(dir.path().join(META_DIR).join(UNBORN_FILE), [0; 4096]).unwrap();
    let found = block_on(open(dir.path()).read("")).unwrap();
    assert!(found.entries.is_empty());
    assert!(!dir.path().join(META_DIR).join(UNBORN_FILE).exists());
}

/// Bits that flipped on the disk are noticed when the file is opened, whichever they are.
#[test]
fn a_damaged_file_is_refused_and_never_read() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    for n in 0..100 {
        block_on(store.commit(pair(n))).unwrap();
    }
    drop(store);
    let path = dir.path().join(META_DIR).join(META_FILE);
    let whole = std::fs::read(&path).unwrap();
    let mut toss = 1_u64;
    for _ in 0..60 {
        let mut damaged = whole.clone();
        for _ in 0..20 {
            toss = toss.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            damaged[(toss >> 33) as usize % whole.len()] ^= (toss >> 20) as u8 | 1;
        }
        std::fs::write(&path, damaged).unwrap();
        let lock = DirLock::acquire(dir.path()).unwrap();
        // What is damaged may be a page that is free.
        if let Ok(store) = Embedded::open(lock) {
            assert_eq!(block_on(store.read("")).unwrap().entries.len(), 200);
        }
    }
    std::fs::write(&path, whole).unwrap();
    assert_eq!(block_on(open(dir.path()).read("")).unwrap().entries.len(), 200);
}

/// Futures that were dropped unanswered do not stop the engine.
#[test]
fn a_dropped_question_still_happens() {
    let store = Embedded::open_backend(InMemoryBackend::new()).unwrap();
    drop(store.commit(pair(0)));
    let found = block_on(store.read("")).unwrap();
    assert_eq!(found.entries.len(), 2);
}

/// Two brokers on one directory: the lock is taken before the file is touched.
#[test]
fn the_lock_lives_as_long_as_the_store() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    assert!(DirLock::acquire(dir.path()).is_err());
    drop(store);
    assert!(DirLock::acquire(dir.path()).is_ok());
}

/// Transactions that wait together see each other in order.
#[test]
fn a_batch_is_applied_in_order() {
    let store = Embedded::open_backend(InMemoryBackend::new()).unwrap();
    let mut watch = store.watch("", Revision::NONE);
    let replies: Vec<_> = (0..50).map(|n| store.commit(pair(n))).collect();
    for (n, reply) in replies.into_iter().enumerate() {
        assert_eq!(block_on(reply), Ok(Outcome::Committed(Revision(n as u64 + 1))));
        let event = block_on(std::future::poll_fn(|cx| watch.poll_next(cx)));
        let Event::Changes { revision, changes } = event else { panic!("{event:?}") };
        assert_eq!(revision, Revision(n as u64 + 1));
        assert!(matches!(&changes[0], Change::Put(entry) if *entry.key == *format!("a/{n:04}")));
    }
}

async fn write_pairs(disk: Disk) -> usize {
    let Ok(store) = Embedded::open_backend(disk) else { return 0 };
    for n in 0..PAIRS {
        match store.commit(pair(n)).await {
            Ok(Outcome::Committed(_)) => {}
            _ => return n,
        }
    }
    PAIRS
}

async fn read_pairs(disk: Disk) -> Vec<(Vec<u8>, Vec<u8>)> {
    let store = Embedded::open_backend(disk).expect("opens after the power came back");
    let (a, b) = (store.read("a/").await.unwrap(), store.read("b/").await.unwrap());
    assert_eq!(a.entries.len(), b.entries.len());
    let value = |entry: &super::super::Entry| entry.value.to_vec();
    a.entries.iter().map(value).zip(b.entries.iter().map(value)).collect()
}

fn pair(n: usize) -> Txn {
    let put = |key: String| Op::Put {
        key: Key::from(key),
        value: n.to_string().as_bytes().into(),
        session: None,
    };
    Txn { expects: Vec::new(), ops: vec![put(format!("a/{n:04}")), put(format!("b/{n:04}"))] }
}

fn open(dir: &Path) -> Embedded {
    Embedded::open(DirLock::acquire(dir).unwrap()).unwrap()
}

const PAIRS: usize = 12;

/// A disk that forgets what was not synced, and dies at a chosen write or sync.
#[derive(Clone, Debug, Default)]
struct Disk(Arc<Mutex<Platters>>, Arc<AtomicBool>);

#[derive(Debug, Default)]
struct Platters {
    written: Vec<u8>,
    synced: Vec<u8>,
    /// Writes since the last sync.
    unsynced: Vec<(usize, Vec<u8>)>,
    left: Option<usize>,
    /// What ends it is want of room.
    full: bool,
}

/// What becomes of unsynced writes.
#[derive(Clone, Copy)]
enum Loss {
    /// They are gone.
    Everything,
    /// Pieces of them survive, chosen by this seed.
    Some(u64),
}

impl Disk {
    fn cut_after(&self, operations: usize) {
        self.0.lock().unwrap().left = Some(operations);
    }

    fn fill_after(&self, operations: usize) {
        let mut platters = self.0.lock().unwrap();
        (platters.left, platters.full) = (Some(operations), true);
    }

    fn make_room(&self) {
        self.0.lock().unwrap().left = None;
    }

    /// What is not synced reads as written, and will never be.
    fn fail_sync(&self) {
        self.0.lock().unwrap().unsynced.clear();
    }

    fn has_died(&self) -> bool {
        self.1.load(Ordering::Relaxed)
    }

    fn lose_power(&self, loss: Loss) {
        let mut platters = self.0.lock().unwrap();
        platters.left = None;
        let mut survives = match loss {
            Loss::Everything => Vec::new(),
            Loss::Some(_) => std::mem::take(&mut platters.unsynced),
        };
        let Loss::Some(mut seed) = loss else {
            platters.written = platters.synced.clone();
            return;
        };
        // A file's length is the file system's, which journals it.
        let length = platters.written.len();
        platters.synced.resize(length, 0);
        let mut toss = || {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            seed >> 33
        };
        survives.sort_by_key(|_| toss());
        for (from, data) in survives {
            for (index, sector) in data.chunks(512).enumerate() {
                let at = from + index * 512;
                if toss() % 2 == 0 && at + sector.len() <= length {
                    platters.synced[at..at + sector.len()].copy_from_slice(sector);
                }
            }
        }
        platters.written = platters.synced.clone();
    }

    fn operate(&self, change: impl FnOnce(&mut Platters)) -> io::Result<()> {
        let mut platters = self.0.lock().unwrap();
        if platters.left == Some(0) {
            self.1.store(true, Ordering::Relaxed);
            return Err(match platters.full {
                true => io::ErrorKind::StorageFull.into(),
                false => io::Error::other("the disk is gone"),
            });
        }
        platters.left = platters.left.map(|left| left - 1);
        change(&mut platters);
        Ok(())
    }
}

impl StorageBackend for Disk {
    fn len(&self) -> io::Result<u64> {
        Ok(self.0.lock().unwrap().written.len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let platters = self.0.lock().unwrap();
        let from = offset as usize;
        out.copy_from_slice(&platters.written[from..from + out.len()]);
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.operate(|platters| platters.written.resize(len as usize, 0))
    }

    fn sync_data(&self) -> io::Result<()> {
        self.operate(|platters| {
            platters.synced.resize(platters.written.len(), 0);
            for (from, data) in std::mem::take(&mut platters.unsynced) {
                platters.synced[from..from + data.len()].copy_from_slice(&data);
            }
        })
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.operate(|platters| {
            let from = offset as usize;
            platters.written[from..from + data.len()].copy_from_slice(data);
            platters.unsynced.push((from, data.to_vec()));
        })
    }
}
