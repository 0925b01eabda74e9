//! The files are Kafka's own (decision 2): a fixture of every one of them is checked in, made anew
//! by `OTTLA_REWRITE=1`, and Kafka 4.4's dump tool reads a larger log if it is there (by
//! `cargo xtask test`, or `OTTLA_KAFKA_LIBS` set to a folder with its jars).

#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use ottla_model::{
    Instant, LeaderEpoch, Now, Offset, ProducerEpoch, ProducerId, Timestamp, TopicId,
};
use ottla_records::{Builder, Compression, NewRecord};
use ottla_storage::fs::Disk;
use ottla_storage::{AppendContext, CleanupPolicy, Log, LogConfig, Origin};

const TOPIC: TopicId = TopicId(*b"\x01ottla fixture\xff\x00");
const FIXTURE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixture/v1");

fn config() -> LogConfig {
    LogConfig {
        segment_bytes: 2_000,
        index_interval_bytes: 300,
        cleanup_policy: CleanupPolicy::COMPACT,
        dirty_ratio_min_permille: 0,
        ..LogConfig::default()
    }
}

fn now() -> Now {
    Now { mono: Instant::from_millis(1), wall: Timestamp(1_700_000_000_000) }
}

fn open(dir: &Path) -> Log {
    Log::open(Arc::new(Disk), dir, TOPIC, config(), now()).unwrap().0
}

fn append(log: &mut Log, builder: Builder, epoch: i32) {
    let mut bytes = builder.build().unwrap();
    let (leader_epoch, origin) = (LeaderEpoch(epoch), Origin::Client);
    log.append(&mut bytes, AppendContext { leader_epoch, now: now(), origin }).unwrap();
}

/// Plain, compressed and idempotent batches, tombstones, two leader epochs, several segments.
fn fill(log: &mut Log, rounds: i64) {
    for round in 0..rounds {
        let compression = [Compression::None, Compression::Snappy][round as usize % 2];
        let mut builder = Builder::new(compression);
        for index in 0..3 {
            let key = format!("key {}", (round + index) % 5);
            let value = format!("value {round}.{index}");
            let value = (round % 7 != 6).then_some(value.as_bytes());
            let timestamp = Timestamp(now().wall.0 + round * 1_000 - index);
            builder.append(&NewRecord::new(timestamp, Some(key.as_bytes()), value)).unwrap();
        }
        if round % 3 == 0 {
            let sequence = (round / 6 * 3) as i32;
            builder = builder.producer(ProducerId(4_000 + round % 2), ProducerEpoch(1), sequence);
        }
        append(log, builder, i32::from(round > rounds / 2) * 4);
    }
    sync(log);
}

fn sync(log: &mut Log) {
    while let Some(job) = log.start_sync() {
        log.finish_sync(job.run()).unwrap();
    }
}

fn listed(dir: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir).unwrap();
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

/// What we write today is what stands in the fixture, and what stands there can be opened.
#[test]
fn the_bytes_are_those_of_the_fixture() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("topic-0");
    let mut log = open(&dir);
    fill(&mut log, 30);
    let raise = log.start_raise(Offset(7)).unwrap().unwrap();
    log.finish_raise(raise.run()).unwrap();
    log.close().unwrap();
    if std::env::var("OTTLA_REWRITE").is_ok() {
        let _ = std::fs::remove_dir_all(FIXTURE);
        std::fs::create_dir_all(FIXTURE).unwrap();
        for path in listed(&dir) {
            std::fs::copy(&path, Path::new(FIXTURE).join(path.file_name().unwrap())).unwrap();
        }
    }
    let fixture = listed(Path::new(FIXTURE));
    let names = |paths: &[PathBuf]| -> Vec<_> {
        paths.iter().map(|path| path.file_name().unwrap().to_owned()).collect()
    };
    assert_eq!(names(&listed(&dir)), names(&fixture));
    for (ours, theirs) in listed(&dir).iter().zip(&fixture) {
        let name = ours.file_name().unwrap();
        assert_eq!(std::fs::read(ours).unwrap(), std::fs::read(theirs).unwrap(), "{name:?}");
    }
}

#[test]
fn a_log_of_this_format_opens() {
    let temp = tempfile::tempdir().unwrap();
    for path in listed(Path::new(FIXTURE)) {
        std::fs::copy(&path, temp.path().join(path.file_name().unwrap())).unwrap();
    }
    let (log, recovery) = Log::open(Arc::new(Disk), temp.path(), TOPIC, config(), now()).unwrap();
    assert_eq!(recovery.to_string(), "offsets 7 to 90");
    assert_eq!(log.leader_epoch(), Some(LeaderEpoch(4)));
    assert_eq!(log.epoch_end(LeaderEpoch(0)), Some((LeaderEpoch(0), Offset(48))));
    assert_eq!(log.producers().count(), 2);
    let read = log.reader().read(Offset(7), 1 << 20, log.end_offset(), usize::MAX).unwrap();
    assert!(!read.bytes.is_empty());
}

/// Must-show 3: segments, both indexes and producer snapshots, as Kafka's own tool sees them.
#[test]
fn kafkas_dump_tool_reads_every_file() {
    let Some(libs) = kafka() else {
        println!("skipped: Kafka's jars are not in target/kafka/libs, nor java in the path");
        return;
    };
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("topic-0");
    let mut log = open(&dir);
    fill(&mut log, 120);
    let job = log.start_clean(now(), log.end_offset()).unwrap();
    let report = log.finish_clean(job.run());
    assert!(report.records_dropped > 0 && report.error.is_none(), "{report:?}");
    fill(&mut log, 0);
    log.close().unwrap();
    for (suffix, flags) in [
        ("log", "--print-data-log --deep-iteration"),
        ("index", ""),
        ("index", "--index-sanity-check"),
        ("timeindex", ""),
        ("timeindex", "--index-sanity-check"),
        ("snapshot", ""),
    ] {
        let ending = |path: &PathBuf| path.extension().is_some_and(|found| found == suffix);
        let files: Vec<_> = listed(&dir).into_iter().filter(ending).collect();
        assert!(!files.is_empty(), "{suffix}");
        let text = dump(&libs, &files, flags);
        for amiss in ["Mismatches in", "not found in", "Found timestamp mismatch", "isvalid: false"]
        {
            assert!(!text.contains(amiss), "{suffix} {flags}: {text}");
        }
        if suffix == "snapshot" {
            assert!(text.contains("producerId: 4000 producerEpoch: 1"), "{text}");
        }
    }
}

fn dump(libs: &Path, files: &[PathBuf], flags: &str) -> String {
    let files: Vec<_> = files.iter().map(|file| file.display().to_string()).collect();
    let output = Command::new("java")
        .args(["-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp"])
        .arg(format!("{}/*", libs.display()))
        .args(["org.apache.kafka.tools.DumpLogSegments", "--files", &files.join(",")])
        .args(flags.split_whitespace())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}{errors}");
    assert!(!errors.contains("Exception"), "{errors}");
    text
}

/// The folder of Kafka's jars, if it and a JVM are there.
fn kafka() -> Option<PathBuf> {
    let fetched = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/kafka/libs");
    let libs = std::env::var("OTTLA_KAFKA_LIBS").unwrap_or_else(|_| fetched.to_owned());
    let java = Command::new("java").arg("-version").output().is_ok();
    (java && Path::new(&libs).is_dir()).then(|| PathBuf::from(libs))
}
