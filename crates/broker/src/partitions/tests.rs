//! A partition over a file system that fails on request: what is acknowledged, shown, lost.

use super::*;
use crate::clock;
use ottla_model::{LeaderEpoch, Offset, TopicPartition};
use ottla_records::{Builder, Compression, NewRecord};
use ottla_storage::fs::sim::{Fault, Op, SimFs};
use ottla_storage::{AppendError, Log, LogConfig, Origin};
use std::io::ErrorKind;
use std::path::Path;
use watermark::SetBack;

/// A partition of `fs` that is synced only when the test says so.
pub(crate) fn partition_of(fs: &SimFs, config: LogConfig) -> Arc<Partition> {
    let fs = Arc::new(fs.clone());
    let (id, now) = (TopicId([7; 16]), clock::now());
    let (log, _) = Log::open(fs, Path::new("/t-0"), id, config, now).expect("it opens");
    let epoch = log.leader_epoch().unwrap_or_default();
    let at = TopicPartition::new("t", 0);
    Arc::new(Partition::new(at, id, log, epoch, SyncQueue::unserved()))
}

/// A failure of the next sync of a segment.
pub(crate) fn sync_failure() -> Fault {
    Fault { op: Op::Sync, path_suffix: ".log", after: 0, kind: ErrorKind::Other }
}

fn append(partition: &Arc<Partition>, value: &str) -> Result<Passes, AppendError> {
    let mut builder = Builder::new(Compression::None);
    let now = clock::now();
    builder.append(&NewRecord::new(now.wall, None, Some(value.as_bytes()))).expect("room");
    let batch = builder.build().expect("a batch");
    partition.append(&batch, now, Origin::Client, |_| {}).map(|(_, passes)| passes)
}

/// Appends one record, and what tells when it is safe.
pub(crate) fn appended(partition: &Arc<Partition>, value: &str) -> Passes {
    append(partition, value).expect("a log that takes appends")
}

fn shown(partition: &Partition) -> i64 {
    let bytes = partition.read(Offset(0), 1 << 20, usize::MAX).expect("readable");
    ottla_records::Batches::new(&bytes).count() as i64
}

/// Decision 4: nothing is acknowledged or shown before it is synced.
#[test]
fn an_append_is_safe_and_shown_after_the_next_sync() {
    let partition = partition_of(&SimFs::new(1), LogConfig::default());
    let passes = append(&partition, "a").expect("appended");
    assert_eq!((passes.outcome(), shown(&partition)), (None, 0));
    partition.sync();
    assert_eq!((passes.outcome(), shown(&partition)), (Some(Ok(())), 1));
}

/// Issue 3: a failed fsync makes the partition refuse writes until recovered, never a silent gap.
#[test]
fn a_failed_sync_fails_those_who_wait_and_refuses_writes_until_recovered() {
    let fs = SimFs::new(2);
    let partition = partition_of(&fs, LogConfig::default());
    append(&partition, "safe").expect("appended");
    partition.sync();
    let before = partition.leader_epoch();
    let lost = append(&partition, "lost").expect("appended");
    fs.inject(sync_failure());
    partition.sync();
    assert_eq!(lost.outcome(), Some(Err(SetBack)));
    assert!(matches!(append(&partition, "refused"), Err(AppendError::Poisoned(_))));
    assert_eq!(shown(&partition), 1, "reading goes on");

    assert!(partition.recover());
    assert!(partition.leader_epoch() > before, "what was cut must not come again as the same");
    let next = append(&partition, "next").expect("appended");
    partition.sync();
    assert_eq!((next.outcome(), shown(&partition)), (Some(Ok(())), 2));
    assert_eq!(lost.outcome(), Some(Err(SetBack)), "another record has its offset now");
}

/// Disk full is an error that passes; reading goes on and nothing is half there.
#[test]
fn a_full_disk_refuses_and_recovers_by_itself() {
    let fs = SimFs::new(3);
    let partition = partition_of(&fs, LogConfig::default());
    append(&partition, "a").expect("appended");
    partition.sync();
    fs.set_room(Some(0));
    assert!(matches!(append(&partition, "b"), Err(AppendError::DiskFull(_))));
    assert_eq!(shown(&partition), 1);
    fs.set_room(None);
    append(&partition, "c").expect("appended");
    partition.sync();
    assert_eq!((shown(&partition), partition.end_offset()), (2, Offset(2)));
}

/// With `durability = "page-cache"` an append is shown at once, as in Kafka.
#[test]
fn the_page_cache_is_enough_where_it_is_asked_to_be() {
    let config =
        LogConfig { durability: ottla_storage::Durability::PageCache, ..LogConfig::default() };
    let partition = partition_of(&SimFs::new(4), config);
    let passes = append(&partition, "a").expect("appended");
    assert_eq!((passes.outcome(), shown(&partition)), (Some(Ok(())), 1));
}

/// A reign begun by the cluster fences nobody but older ones.
#[test]
fn a_new_reign_goes_into_the_log() {
    let partition = partition_of(&SimFs::new(5), LogConfig::default());
    partition.begin_reign(LeaderEpoch(4));
    append(&partition, "a").expect("appended");
    assert_eq!(partition.leader_epoch(), LeaderEpoch(4));
    assert_eq!(partition.with_log(|log| log.leader_epoch()), Some(LeaderEpoch(4)));
}

/// Issue 3: on a full disk a reign begins with its first append, and until then reading goes on: no
/// append may come under the old epoch, nor be taken before the new one is written.
#[test]
fn a_reign_on_a_full_disk_begins_with_its_first_append() {
    let fs = SimFs::new(6);
    let partition = partition_of(&fs, LogConfig::default());
    append(&partition, "a").expect("appended");
    partition.sync();
    let old = partition.with_log(|log| log.leader_epoch());
    fs.set_room(Some(0));
    partition.begin_reign(LeaderEpoch(4));
    assert_eq!(partition.leader_epoch(), LeaderEpoch(4));
    assert!(matches!(append(&partition, "b"), Err(AppendError::DiskFull(_))));
    assert_eq!((partition.with_log(|log| log.leader_epoch()), shown(&partition)), (old, 1));
    fs.set_room(None);
    append(&partition, "c").expect("appended");
    partition.sync();
    let begun = partition.with_log(|log| log.leader_epoch());
    assert_eq!((begun, shown(&partition)), (Some(LeaderEpoch(4)), 2));
}
