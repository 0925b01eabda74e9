//! Compaction: the last record of each key stays, offsets stay, restarts find it as it was.

use std::io::ErrorKind;
use std::time::Duration;

use super::*;
use crate::fs::sim::{Fault, Op};
use crate::{CleanReport, CleanupPolicy};

fn compacting() -> LogConfig {
    LogConfig { cleanup_policy: CleanupPolicy::COMPACT, ..small() }
}

fn put(rig: &mut Rig, key: &str, value: Option<&str>) {
    let mut builder = Builder::new(Compression::None);
    let fields = (Some(key.as_bytes()), value.map(str::as_bytes));
    builder.append(&NewRecord::new(Timestamp(rig.now_ms), fields.0, fields.1)).unwrap();
    rig.append(builder).unwrap();
}

/// Rolls, so that everything before may be cleaned, and checkpoints that.
fn settle(rig: &mut Rig) {
    rig.now_ms += 8 * 24 * 3_600_000;
    put(rig, "settled", Some("by a roll"));
    rig.sync();
}

fn clean(rig: &mut Rig) -> Option<CleanReport> {
    let committed = rig.log.synced_offset();
    let job = rig.log.start_clean(rig.now(), committed)?;
    Some(rig.log.finish_clean(job.run()))
}

/// Key and value of every record, in order.
fn pairs(rig: &Rig) -> Vec<(String, String)> {
    rig.all().into_iter().map(|record| (text(record.key), text(record.value))).collect()
}

/// Of `seen`, the last record of each key below `to`, and everything from there on.
fn compacted(seen: &[super::Seen], to: i64) -> Vec<super::Seen> {
    let superseded = |record: &super::Seen| {
        seen.iter().any(|later| {
            later.offset > record.offset && later.offset < to && later.key == record.key
        })
    };
    seen.iter().filter(|record| !superseded(record)).cloned().collect()
}

#[test]
fn the_last_record_of_each_key_stays() {
    for compression in Compression::ALL {
        let mut rig = Rig::new(compacting());
        for round in 0..60 {
            let mut builder = Builder::new(compression);
            for index in 0..5 {
                let key = format!("key-{}", (round * 7 + index * 3) % 20);
                let value = format!("{round}-{index}");
                let fields = (Some(key.as_bytes()), Some(value.as_bytes()));
                let record = NewRecord::new(Timestamp(rig.now_ms), fields.0, fields.1);
                builder.append(&record).unwrap();
            }
            rig.append(builder).unwrap();
        }
        settle(&mut rig);
        let before = rig.all();
        let (end, size) = (rig.log.end_offset(), rig.log.size());
        let report = clean(&mut rig).unwrap();
        assert!(report.error.is_none(), "{report:?}");
        assert_eq!(report.records_dropped + report.records_kept, 300);
        assert!(rig.log.size() < size);
        assert_eq!(rig.all(), compacted(&before, report.clean_to.0));
        assert_eq!(rig.log.end_offset(), end);
        rig.log.check_indexes();
        for from in 0..end.0 {
            assert_eq!(
                rig.from(Offset(from)),
                rig.all()[rig.all().len() - rig.from(Offset(from)).len()..]
            );
        }
        let after = rig.all();
        assert_eq!(rig.crash().cuts, []);
        assert_eq!(rig.all(), after);
        assert!(clean(&mut rig).is_none(), "nothing is dirty, also after a restart");
    }
}

/// KIP-534: a tombstone stays readable for delete.retention.ms after the pass that met it.
#[test]
fn tombstones_go_after_their_retention() {
    let mut rig = Rig::new(LogConfig { dirty_ratio_min_permille: 0, ..compacting() });
    put(&mut rig, "a", Some("1"));
    put(&mut rig, "b", Some("2"));
    put(&mut rig, "a", None);
    settle(&mut rig);
    clean(&mut rig).unwrap();
    let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    let settled = pair("settled", "by a roll");
    assert_eq!(pairs(&rig), [pair("b", "2"), pair("a", "-"), settled.clone()]);
    let times: Vec<_> = rig.all().iter().map(|record| record.timestamp).collect();
    assert_eq!(times[..2], [1_000_000, 1_000_000], "the horizon changes no timestamp");
    rig.crash();
    settle(&mut rig);
    clean(&mut rig).unwrap();
    assert_eq!(pairs(&rig), [pair("b", "2"), settled.clone(), settled]);
}

/// The group coordinator relies on it: an idempotent producer's last sequence outlives its record.
#[test]
fn a_producers_last_batch_is_kept_though_empty() {
    let mut rig = Rig::new(compacting());
    for sequence in 0..3 {
        rig.append(idempotent(1, 0, sequence, "old")).unwrap();
    }
    put(&mut rig, "key-0", Some("new"));
    settle(&mut rig);
    clean(&mut rig).unwrap();
    let values: Vec<_> = rig.values();
    assert_eq!(values, ["new", "by a roll"]);
    fs::Fs::remove(&rig.fs, &Path::new(DIR).join("recovery-checkpoint")).unwrap();
    rig.kill();
    assert!(rig.append(idempotent(1, 0, 2, "old")).unwrap().duplicate);
    rig.append(idempotent(1, 0, 3, "next")).unwrap();
}

#[test]
fn keys_that_do_not_fit_the_memory_wait_for_the_next_pass() {
    let config = LogConfig { compaction_memory_bytes_max: 1_000, ..compacting() };
    let mut rig = Rig::new(LogConfig { dirty_ratio_min_permille: 0, ..config });
    for round in 0..3 {
        for key in 0..60 {
            put(&mut rig, &format!("key {key}"), Some(&format!("{round}")));
        }
    }
    settle(&mut rig);
    let before = rig.all();
    let mut last = Offset(0);
    let mut passes = 0;
    while let Some(report) = clean(&mut rig) {
        assert!(report.error.is_none(), "{report:?}");
        assert!(report.clean_to > last, "every pass gets on");
        last = report.clean_to;
        passes += 1;
    }
    assert!(passes > 3);
    assert_eq!(rig.all(), compacted(&before, last.0));
    assert_eq!(rig.all().len(), 61);
}

#[test]
fn what_is_young_or_not_committed_is_left_alone() {
    let lag = Duration::from_secs(3_600);
    let mut rig = Rig::new(LogConfig { compaction_lag_min_ms: lag, ..compacting() });
    for round in 0..60 {
        put(&mut rig, "one", Some(&format!("{round}")));
    }
    rig.sync();
    assert!(rig.log.segment_count() > 1);
    assert!(clean(&mut rig).is_none());
    rig.now_ms += 3_600_000;
    assert!(rig.log.start_clean(rig.now(), Offset(0)).is_none());
    assert!(clean(&mut rig).is_some());
}

/// `min.cleanable.dirty.ratio`, and `max.compaction.lag.ms`, which overrules it.
#[test]
fn a_pass_waits_until_enough_is_dirty_or_too_old() {
    let mut rig = Rig::new(compacting());
    for key in 0..200 {
        put(&mut rig, &format!("key {key}"), Some("a value of some length"));
    }
    settle(&mut rig);
    clean(&mut rig).unwrap();
    put(&mut rig, "key 1", Some("again"));
    settle(&mut rig);
    assert!(clean(&mut rig).is_none());
    let lag = Some(Duration::from_secs(3_600));
    rig.log.set_config(LogConfig { compaction_lag_max_ms: lag, ..compacting() });
    assert!(clean(&mut rig).is_some());
}

#[test]
fn retention_and_cuts_wait_for_a_pass() {
    let policy = CleanupPolicy::COMPACT_DELETE;
    let keep = Some(Duration::from_secs(1));
    let mut rig = Rig::new(LogConfig { cleanup_policy: policy, retention_ms: keep, ..small() });
    for round in 0..60 {
        put(&mut rig, "one", Some(&format!("{round}")));
    }
    settle(&mut rig);
    let end = rig.log.end_offset();
    let job = rig.log.start_clean(rig.now(), end).unwrap();
    assert!(rig.log.start_clean(rig.now(), end).is_none());
    assert_eq!(rig.retain(end).unwrap().segments, 0);
    assert!(rig.log.truncate_to(Offset(1), rig.now()).is_err());
    let cleaned = job.run();
    put(&mut rig, "meanwhile", Some("appended"));
    rig.log.finish_clean(cleaned);
    assert_eq!(pairs(&rig).len(), 3);
    assert!(rig.retain(end).unwrap().segments > 0);
    assert!(rig.log.start_offset().0 > 0);
}

/// Must-show 4 for compaction: whatever fails or dies at whatever step, a restart finds every key.
#[test]
fn a_pass_that_dies_anywhere_leaves_every_key() {
    let ops = [Op::Write, Op::Sync, Op::SyncDir, Op::Create, Op::Rename];
    let mut struck = 0;
    for op in ops {
        for after in 0..12 {
            for (seed, dies) in [(1, true), (2, true), (3, true), (4, false)] {
                let mut rig = Rig::on(SimFs::new(seed), compacting());
                for round in 0..120 {
                    put(&mut rig, &format!("{}", round % 7), Some(&format!("{round}")));
                }
                settle(&mut rig);
                let before = rig.all();
                let expected = compacted(&before, rig.log.end_offset().0 - 1);
                let kind = ErrorKind::PermissionDenied;
                rig.fs.inject(Fault { op, path_suffix: "", after, kind });
                let report = clean(&mut rig).unwrap();
                struck += usize::from(rig.fs.faults_left() == 0);
                rig.fs.heal();
                if dies {
                    rig.crash();
                }
                let seen = rig.all();
                for record in &expected {
                    assert!(seen.contains(record), "{op:?} {after} {report:?}");
                }
                assert!(seen.iter().all(|record| before.contains(record)));
                assert!(seen.is_sorted_by_key(|record| record.offset));
                rig.log.check_indexes();
                clean(&mut rig);
                rig.crash();
                assert_eq!(rig.all(), expected);
            }
        }
    }
    assert!(struck > 60, "{struck} faults struck");
}

/// A swap that could not be finished waits for the next opening. By then a later pass may have
/// taken what it holds into another segment: it must not come to life beside that one.
#[test]
fn an_unfinished_swap_does_not_outlive_the_one_that_covers_it() {
    let mut rig = Rig::new(LogConfig { dirty_ratio_min_permille: 0, ..compacting() });
    for round in 0..60 {
        put(&mut rig, &format!("{}", round % 3), Some(&"x".repeat(100)));
    }
    settle(&mut rig);
    let (path_suffix, kind) = (".timeindex.tmp", ErrorKind::PermissionDenied);
    rig.fs.inject(Fault { op: Op::Rename, path_suffix, after: 1, kind });
    clean(&mut rig).unwrap();
    let swaps = |rig: &Rig| rig.files().into_iter().filter(|it| it.ends_with(".swap")).count();
    assert_eq!(swaps(&rig), 1);
    settle(&mut rig);
    let before = rig.log.segment_count();
    clean(&mut rig).unwrap();
    assert!(rig.log.segment_count() < before, "the small ones were merged");
    let (left, segments) = (rig.all(), rig.log.segment_count());
    rig.kill();
    assert_eq!((rig.all(), rig.log.segment_count(), swaps(&rig)), (left.clone(), segments, 0));
    for record in left {
        assert_eq!(rig.read(record.offset).unwrap()[0], record);
    }
}

/// Cutting the log back while a compaction runs leaves the files of its segments alone: the
/// indexes in memory are those of the originals.
#[test]
fn a_cut_beside_a_compaction_leaves_its_indexes_alone() {
    let mut rig = Rig::new(LogConfig { dirty_ratio_min_permille: 0, ..compacting() });
    for round in 0..60 {
        put(&mut rig, &format!("{}", round % 3), Some(&"x".repeat(100)));
    }
    settle(&mut rig);
    // Its indexes stay in memory, to be written by whoever thinks they should be.
    let (path_suffix, kind) = (".index.tmp", ErrorKind::PermissionDenied);
    rig.fs.inject(Fault { op: Op::Rename, path_suffix, after: 0, kind });
    clean(&mut rig).unwrap();
    settle(&mut rig);
    put(&mut rig, "cut", Some("off"));
    let committed = rig.log.synced_offset();
    let cleaned = rig.log.start_clean(rig.now(), committed).unwrap().run();
    rig.log.truncate_to(committed, rig.now()).unwrap();
    rig.log.finish_clean(cleaned);
    let before = rig.all();
    rig.crash();
    rig.log.check_indexes();
    assert_eq!(rig.all(), before);
}
