//! Hostile bytes in any file of a log: it opens without a panic or says why not, what it accepts
//! can be read from end to end, and it goes on from there. What a second opening finds is what
//! the first one left.

#![no_main]

use std::path::Path;
use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use ottla_model::{Instant, LeaderEpoch, Now, Offset, Timestamp, TopicId};
use ottla_records::{Batches, BatchesMut, Builder, Compression, NewRecord};
use ottla_storage::fs::{Fs, sim::SimFs};
use ottla_storage::{AppendContext, AppendError, CleanupPolicy, Log, LogConfig, Origin};

const DIR: &str = "/log";
const TOPIC: TopicId = TopicId([7; 16]);
const NAMES: [&str; 12] = [
    "00000000000000000000.log",
    "00000000000000000000.index",
    "00000000000000000000.timeindex",
    "00000000000000000003.log",
    "00000000000000000003.index",
    "00000000000000000003.timeindex",
    "00000000000000000003.snapshot",
    "00000000000000000000.log.swap",
    "leader-epoch-checkpoint",
    "recovery-checkpoint",
    "log-offsets",
    "sync-failed",
];

// The first byte says what files there are beside a sound log, or instead of one; each takes a
// share of the rest.
fuzz_target!(|bytes: &[u8]| {
    let Some((&choice, rest)) = bytes.split_first() else { return };
    let fs = SimFs::new(1);
    fs.create_dir(Path::new(DIR)).expect("the root is there");
    fs.sync_dir(Path::new("/")).expect("nothing fails");
    if choice & 1 == 1 {
        sound(&fs);
    }
    plant(&fs, rest, choice & 2 == 2);
    let Ok((mut log, first)) = open(&fs) else { return };
    assert_eq!((first.start, first.end), (log.start_offset(), log.end_offset()));
    let seen = read(&log);
    let _ = log.reader().find_by_time(Timestamp(5), 1 << 16);
    go_on(&mut log);
    if let Some(job) = log.start_clean(now(), log.synced_offset()) {
        log.finish_clean(job.run());
    }
    drop(log);
    fs.crash();
    let (log, _) = open(&fs).expect("what an opening accepted opens again");
    assert!(log.end_offset() >= first.end);
    if let (Some(seen), Some(again)) = (seen, read(&log)) {
        assert!(seen <= again + first.end.0 as usize);
    }
});

/// A log of two segments, closed.
fn sound(fs: &SimFs) {
    let Ok((mut log, _)) = open(fs) else { return };
    for _ in 0..6 {
        append(&mut log).expect("nothing fails");
    }
    log.close().expect("nothing fails");
}

/// Cuts `bytes` into files: one byte for the name, two for the length. Batches may be given the
/// checksum they need to get past the first check.
fn plant(fs: &SimFs, mut bytes: &[u8], seal: bool) {
    while let Some(([name, high, low], rest)) = bytes.split_first_chunk() {
        let len = usize::from(u16::from_be_bytes([*high, *low])).min(rest.len());
        let (file, after) = rest.split_at(len);
        let mut file = file.to_vec();
        if seal {
            BatchesMut::new(&mut file).flatten().for_each(|mut batch| batch.seal());
        }
        let name = NAMES[usize::from(*name) % NAMES.len()];
        fs.plant(&Path::new(DIR).join(name), &file);
        bytes = after;
    }
}

/// How many batches there are; none if one of them cannot be read.
fn read(log: &Log) -> Option<usize> {
    let (mut next, mut batches) = (log.start_offset(), 0);
    while next < log.end_offset() {
        let read = log.reader().read(next, 1 << 12, log.end_offset(), true).ok()?;
        if read.bytes.is_empty() {
            break;
        }
        assert!(read.next > next);
        next = read.next;
        batches += Batches::new(&read.bytes).inspect(|batch| assert!(batch.is_ok())).count();
    }
    Some(batches)
}

fn go_on(log: &mut Log) {
    let end = log.end_offset();
    match append(log) {
        Ok(first) => assert_eq!(first, end),
        Err(AppendError::OffsetsUsedUp { .. } | AppendError::Fenced { .. }) => return,
        Err(error) => panic!("{error}"),
    }
    let job = log.start_sync().expect("something to sync");
    log.finish_sync(job.run()).expect("nothing fails");
}

fn append(log: &mut Log) -> Result<Offset, AppendError> {
    let mut builder = Builder::new(Compression::None);
    let record = NewRecord::new(Timestamp(7), Some(b"key"), Some(b"value"));
    builder.append(&record).expect("room");
    let mut bytes = builder.build().expect("nothing to pack");
    let leader_epoch = log.leader_epoch().unwrap_or(LeaderEpoch(0));
    let context = AppendContext { leader_epoch, now: now(), origin: Origin::Client };
    Ok(log.append(&mut bytes, context)?.first)
}

fn open(fs: &SimFs) -> Result<(Log, ottla_storage::Recovery), ottla_storage::OpenError> {
    let config = LogConfig {
        segment_bytes: 250,
        index_interval_bytes: 0,
        batch_unpacked_bytes_max: 1 << 16,
        cleanup_policy: CleanupPolicy::COMPACT_DELETE,
        dirty_ratio_min_permille: 0,
        ..LogConfig::default()
    };
    Log::open(Arc::new(fs.clone()), Path::new(DIR), TOPIC, config, now())
}

fn now() -> Now {
    Now { mono: Instant::from_millis(1), wall: Timestamp(1_000) }
}
