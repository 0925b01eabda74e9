//! Readers beside a writer, on a real disk: every read is whole, in order and below the bound.

use std::sync::atomic::{AtomicBool, Ordering};

use super::*;
use crate::fs::Disk;
use crate::{CleanupPolicy, Reader};

#[test]
fn readers_see_whole_batches_while_the_log_is_written_synced_and_compacted() {
    let temp = tempfile::tempdir().unwrap();
    let policy = CleanupPolicy::COMPACT;
    let config = LogConfig { cleanup_policy: policy, dirty_ratio_min_permille: 0, ..small() };
    let now = Now { mono: Instant::from_millis(1), wall: Timestamp(1_000) };
    let dir = temp.path().join("topic-0");
    let (mut log, _) = Log::open(Arc::new(Disk), &dir, TOPIC, config, now).unwrap();
    let reader = log.reader();
    let done = AtomicBool::new(false);
    let reads: usize = std::thread::scope(|scope| {
        let readers: Vec<_> =
            (0..3).map(|_| scope.spawn(|| follow(reader.clone(), &done))).collect();
        write(&mut log, now);
        done.store(true, Ordering::Release);
        readers.into_iter().map(|reader| reader.join().unwrap()).sum()
    });
    assert!(reads > 0);
}

fn write(log: &mut Log, now: Now) {
    for round in 0..2_000 {
        let mut bytes = batch(1_000 + round, &format!("{round}"), 3).build().unwrap();
        let context = AppendContext { leader_epoch: LeaderEpoch(0), now, origin: Origin::Client };
        log.append(&mut bytes, context).unwrap();
        if round % 50 == 0 {
            let job = log.start_sync().unwrap();
            log.finish_sync(job.run()).unwrap();
        }
        if round % 300 == 0
            && let Some(job) = log.start_clean(now, log.synced_offset())
        {
            let report = log.finish_clean(job.run());
            assert!(report.error.is_none(), "{report:?}");
        }
    }
}

/// Reads from the start to the synced end, over and over, until the writer is done.
fn follow(reader: Reader, done: &AtomicBool) -> usize {
    let mut reads = 0;
    while !done.load(Ordering::Acquire) {
        let (mut next, bound) = (reader.start_offset(), reader.synced_offset());
        while next < bound {
            let read = reader.read(next, 3_000, bound, usize::MAX).unwrap();
            if read.bytes.is_empty() {
                break;
            }
            let seen = records(&read.bytes);
            assert!(seen.iter().all(|record| record.offset < bound.0));
            assert!(seen.is_sorted_by_key(|record| record.offset));
            assert!(read.next > next);
            next = read.next;
            reads += 1;
        }
    }
    reads
}

/// A process may have only so many files open, and most partitions are small.
#[test]
#[cfg(target_os = "linux")]
fn a_small_log_has_one_file_open() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("topic-0");
    let now = Now { mono: Instant::from_millis(1), wall: Timestamp(1_000) };
    let config = LogConfig::default();
    let (mut log, _) = Log::open(Arc::new(Disk), &dir, TOPIC, config.clone(), now).unwrap();
    assert_eq!(open_in(&dir), ["00000000000000000000.log"]);
    let context = AppendContext { leader_epoch: LeaderEpoch(0), now, origin: Origin::Client };
    log.append(&mut batch(1_000, "a", 3).build().unwrap(), context).unwrap();
    let job = log.start_sync().unwrap();
    log.finish_sync(job.run()).unwrap();
    assert_eq!(open_in(&dir), ["00000000000000000000.log"]);
    drop(log);
    let _log = Log::open(Arc::new(Disk), &dir, TOPIC, config, now).unwrap();
    assert_eq!(open_in(&dir), ["00000000000000000000.log"]);
}

/// The names of this process's open files in a folder.
#[cfg(target_os = "linux")]
fn open_in(dir: &Path) -> Vec<String> {
    let files = std::fs::read_dir("/proc/self/fd").unwrap();
    let files = files.filter_map(|file| std::fs::read_link(file.ok()?.path()).ok());
    let inside = files.filter_map(|file| Some(file.strip_prefix(dir).ok()?.display().to_string()));
    let mut names: Vec<String> = inside.collect();
    names.sort();
    names
}
