//! What a log costs: appending (with the checksum that a broker computes first), reading at the
//! tail and from the page cache, recovering. On a real file system; syncs are left out.
//!
//! `cargo bench -p ottla-storage`. Batches are one record of 100 B and 160 of them (16 KB, a Java
//! producer's default).

use std::path::Path;
use std::sync::Arc;

use divan::counter::{BytesCount, ItemsCount};
use divan::{Bencher, black_box};
use ottla_model::{Instant, LeaderEpoch, Now, Offset, Timestamp, TopicId};
use ottla_records::{Batch, Builder, Compression, NewRecord};
use ottla_storage::fs::Disk;
use ottla_storage::{AppendContext, Log, LogConfig, Origin};

fn main() {
    divan::main();
}

const SIZES: [usize; 3] = [1, 160, 10_000];
const READS: [usize; 3] = [4 << 10, 64 << 10, 1 << 20];
/// Bytes of log that reads and recoveries find.
const FILL: usize = 256 << 20;

#[divan::bench(args = SIZES)]
fn append(bencher: Bencher, records: usize) {
    let folder = Folder::new();
    let mut log = folder.open(LogConfig { segment_bytes: 256 << 20, ..LogConfig::default() });
    let mut bytes = batch(records);
    let counted = bencher.counter(BytesCount::new(bytes.len())).counter(ItemsCount::new(records));
    counted.bench_local(|| {
        Batch::first(&bytes).expect("a batch").verify_crc().expect("its own checksum");
        let appended = log.append(&mut bytes, context()).expect("room");
        folder.forget_old(&mut log);
        appended
    });
}

/// The limit of the same machine: checksum and one write, no log around them.
#[divan::bench(args = SIZES)]
fn checksum_and_write(bencher: Bencher, records: usize) {
    use std::os::unix::fs::FileExt;
    let folder = Folder::new();
    let file = std::fs::File::create(folder.0.path().join("plain")).expect("room");
    let bytes = batch(records);
    let mut at = 0;
    let counted = bencher.counter(BytesCount::new(bytes.len())).counter(ItemsCount::new(records));
    counted.bench_local(|| {
        Batch::first(&bytes).expect("a batch").verify_crc().expect("its own checksum");
        file.write_all_at(&bytes, at).expect("room");
        at += bytes.len() as u64;
        if at > 512 << 20 {
            file.set_len(0).expect("an open file");
            at = 0;
        }
    });
}

/// A consumer that reads on and on, from the page cache.
#[divan::bench(args = READS)]
fn read_on(bencher: Bencher, bytes_max: usize) {
    let folder = Folder::new();
    let log = folder.filled(160);
    let (reader, end) = (log.reader(), log.end_offset());
    let mut next = Offset(0);
    bencher.counter(BytesCount::new(bytes_max)).bench_local(|| {
        let read = reader.read(next, bytes_max, end, usize::MAX).expect("in range");
        next = if read.next >= end { Offset(0) } else { read.next };
        black_box(read.bytes.len())
    });
}

/// Consumers that begin anywhere: the index decides.
#[divan::bench(args = READS)]
fn read_anywhere(bencher: Bencher, bytes_max: usize) {
    let folder = Folder::new();
    let log = folder.filled(160);
    let (reader, end) = (log.reader(), log.end_offset());
    let mut at = 1u64;
    bencher.counter(BytesCount::new(bytes_max)).bench_local(|| {
        at = at.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let from = Offset(((at >> 20) % end.0 as u64) as i64);
        black_box(reader.read(from, bytes_max, end, usize::MAX).expect("in range").bytes.len())
    });
}

/// A start after a kill that finds no checkpoint at all: everything is read and checked.
#[divan::bench(sample_count = 5, sample_size = 1)]
fn check_everything(bencher: Bencher) {
    let folder = Folder::new();
    drop(folder.filled(160));
    let checkpoint = folder.0.path().join("log/recovery-checkpoint");
    bencher
        .counter(BytesCount::new(FILL))
        .with_inputs(|| std::fs::remove_file(&checkpoint).expect("written by the one before"))
        .bench_local_values(|()| folder.open(LogConfig::default()).end_offset());
}

/// A start after a kill at any moment: at most the checkpoint's interval is read.
#[divan::bench(sample_count = 5, sample_size = 1)]
fn start_after_kill(bencher: Bencher) {
    let folder = Folder::new();
    bencher
        .with_inputs(|| {
            let mut log = folder.filled(160);
            let appended = log.append(&mut batch(160), context());
            black_box(appended).expect("room");
        })
        .bench_local_values(|()| folder.open(LogConfig::default()).end_offset());
}

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a temporary folder"))
    }

    fn open(&self, config: LogConfig) -> Log {
        let dir: &Path = &self.0.path().join("log");
        Log::open(Arc::new(Disk), dir, TopicId([1; 16]), config, now()).expect("it opens").0
    }

    fn filled(&self, records: usize) -> Log {
        let mut log = self.open(LogConfig::default());
        let mut bytes = batch(records);
        while log.size() < FILL as u64 {
            log.append(&mut bytes, context()).expect("room");
            if log.needs_sync() && log.end_offset().0 % 64 == 0 {
                let job = log.start_sync().expect("nothing else syncs");
                log.finish_sync(job.run()).expect("a working disk");
            }
        }
        log
    }

    /// Keeps a long bench from filling the disk.
    fn forget_old(&self, log: &mut Log) {
        if log.segment_count() > 4 {
            let job = log.start_sync().expect("nothing else syncs");
            log.finish_sync(job.run()).expect("a working disk");
            let raise = log.start_raise(log.end_offset()).expect("in range").expect("higher");
            log.finish_raise(raise.run()).expect("a working disk");
            let retain = log.start_retain(now(), log.end_offset()).expect("a working disk");
            if let Some(job) = retain {
                log.finish_retain(job.run(), now()).expect("a working disk");
            }
            let later = Instant::from_millis(1_000_000);
            log.due_removal(later).map_or(Ok(()), |removal| removal.run()).expect("removable");
        }
    }
}

fn batch(records: usize) -> Vec<u8> {
    let mut builder = Builder::new(Compression::None);
    for _ in 0..records {
        let record = NewRecord::new(now().wall, Some(b"8 bytes!"), Some(&[b'v'; 92]));
        builder.append(&record).expect("room");
    }
    builder.build().expect("nothing to pack")
}

fn context() -> AppendContext {
    AppendContext { leader_epoch: LeaderEpoch(0), now: now(), origin: Origin::Client }
}

fn now() -> Now {
    Now { mono: Instant::from_millis(1), wall: Timestamp(1_700_000_000_000) }
}
