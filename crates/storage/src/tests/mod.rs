//! The log's tests talk to the harness in this file, not to the log's API.

mod basics;
mod compaction;
mod faults;
mod idempotence;
mod recovery;
mod retention;
mod simulation;
mod threads;

use std::path::Path;
use std::sync::Arc;

use ottla_model::{
    Instant, LeaderEpoch, Now, Offset, ProducerEpoch, ProducerId, Timestamp, TopicId,
};
use ottla_records::{Batches, Builder, Compression, NewRecord};

use crate::fs::sim::SimFs;
use crate::{
    AppendContext, AppendError, Appended, ChangeError, Log, LogConfig, Origin, ReadError, Recovery,
    Retained, fs,
};

/// Small files, so that a few kilobytes make everything happen.
pub(crate) fn small() -> LogConfig {
    LogConfig {
        segment_bytes: 2048,
        index_interval_bytes: 200,
        checkpoint_bytes: 3000,
        ..LogConfig::default()
    }
}

/// A log on a simulated disk, and the hand that drives it.
pub(crate) struct Rig {
    pub(crate) fs: SimFs,
    pub(crate) log: Log,
    pub(crate) config: LogConfig,
    pub(crate) now_ms: i64,
    pub(crate) epoch: i32,
}

/// One record as a reader sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) offset: i64,
    pub(crate) timestamp: i64,
    pub(crate) key: Option<Vec<u8>>,
    pub(crate) value: Option<Vec<u8>>,
}

pub(crate) const DIR: &str = "/data/topic-0";
pub(crate) const TOPIC: TopicId = TopicId([7; 16]);

impl Rig {
    pub(crate) fn new(config: LogConfig) -> Self {
        Self::on(SimFs::new(1), config)
    }

    pub(crate) fn on(fs: SimFs, config: LogConfig) -> Self {
        fs::Fs::create_dir(&fs, Path::new("/data")).unwrap();
        fs::Fs::sync_dir(&fs, Path::new("/")).unwrap();
        let (log, _) = open(&fs, &config, 1_000).unwrap();
        Self { fs, log, config, now_ms: 1_000_000, epoch: 0 }
    }

    pub(crate) fn now(&self) -> Now {
        Now { mono: Instant::from_millis(self.now_ms as u64), wall: Timestamp(self.now_ms) }
    }

    pub(crate) fn append(&mut self, batch: Builder) -> Result<Appended, AppendError> {
        let mut bytes = batch.build().unwrap();
        let context = self.context();
        self.log.append(&mut bytes, context)
    }

    pub(crate) fn context(&self) -> AppendContext {
        let leader_epoch = LeaderEpoch(self.epoch);
        AppendContext { leader_epoch, now: self.now(), origin: Origin::Client }
    }

    /// Appends one batch of `count` records `prefix-0`, `prefix-1`, ... made now.
    pub(crate) fn put(&mut self, prefix: &str, count: usize) -> Appended {
        let batch = batch(self.now_ms, prefix, count);
        self.append(batch).unwrap()
    }

    pub(crate) fn sync(&mut self) {
        while let Some(job) = self.log.start_sync() {
            self.log.finish_sync(job.run()).unwrap();
        }
    }

    /// A whole pass of retention: up to the file system's renames.
    pub(crate) fn retain(&mut self, committed: Offset) -> Result<Retained, ChangeError> {
        let now = self.now();
        let retained = match self.log.start_retain(now, committed)? {
            Some(job) => self.log.finish_retain(job.run(), now)?,
            None => Retained::default(),
        };
        self.remove();
        Ok(retained)
    }

    /// Does what is due for the files of segments that went.
    pub(crate) fn remove(&mut self) {
        if let Some(removal) = self.log.due_removal(self.now().mono) {
            let _ = removal.run();
        }
    }

    pub(crate) fn delete_before(&mut self, offset: i64) -> Result<Offset, ChangeError> {
        match self.log.start_raise(Offset(offset))? {
            Some(job) => self.log.finish_raise(job.run()),
            None => Ok(self.log.start_offset()),
        }
    }

    /// The process dies; what the kernel has stays.
    pub(crate) fn kill(&mut self) -> Recovery {
        self.fs.kill();
        self.reopen()
    }

    /// Power is lost.
    pub(crate) fn crash(&mut self) -> Recovery {
        self.fs.crash();
        self.reopen()
    }

    pub(crate) fn reopen(&mut self) -> Recovery {
        let (log, recovery) = open(&self.fs, &self.config, self.now_ms).unwrap();
        self.log = log;
        self.epoch = self.log.leader_epoch().map_or(0, |epoch| epoch.0);
        recovery
    }

    /// Every record from the start on, read in small pieces.
    pub(crate) fn all(&self) -> Vec<Seen> {
        self.from(self.log.start_offset())
    }

    pub(crate) fn from(&self, from: Offset) -> Vec<Seen> {
        let (reader, end) = (self.log.reader(), self.log.end_offset());
        let (mut next, mut seen) = (from, Vec::new());
        while next < end {
            let read = reader.read(next, 700, end, usize::MAX).unwrap();
            if read.bytes.is_empty() {
                break;
            }
            assert!(read.next > next, "a read goes forward");
            next = read.next;
            seen.extend(records(&read.bytes));
        }
        seen.retain(|record| record.offset >= from.0);
        seen
    }

    pub(crate) fn values(&self) -> Vec<String> {
        self.all().into_iter().map(|record| text(record.value)).collect()
    }

    pub(crate) fn read(&self, from: i64) -> Result<Vec<Seen>, ReadError> {
        let read =
            self.log.reader().read(Offset(from), 1 << 20, self.log.end_offset(), usize::MAX)?;
        Ok(records(&read.bytes))
    }

    pub(crate) fn files(&self) -> Vec<String> {
        let mut names: Vec<String> = fs::Fs::list(&self.fs, Path::new(DIR))
            .unwrap()
            .into_iter()
            .map(|file| file.name)
            .collect();
        names.sort();
        names
    }

    pub(crate) fn file(&self, name: &str) -> Vec<u8> {
        self.fs.contents(&Path::new(DIR).join(name)).unwrap()
    }

    pub(crate) fn plant(&self, name: &str, bytes: &[u8]) {
        self.fs.plant(&Path::new(DIR).join(name), bytes);
    }
}

pub(crate) fn open(
    fs: &SimFs,
    config: &LogConfig,
    now_ms: i64,
) -> Result<(Log, Recovery), crate::OpenError> {
    let now = Now { mono: Instant::from_millis(now_ms as u64), wall: Timestamp(now_ms) };
    Log::open(Arc::new(fs.clone()), Path::new(DIR), TOPIC, config.clone(), now)
}

pub(crate) fn batch(time_ms: i64, prefix: &str, count: usize) -> Builder {
    let mut builder = Builder::new(Compression::None);
    for index in 0..count {
        let (key, value) = (format!("key-{index}"), format!("{prefix}-{index}"));
        let fields = (Some(key.as_bytes()), Some(value.as_bytes()));
        builder.append(&NewRecord::new(Timestamp(time_ms), fields.0, fields.1)).unwrap();
    }
    builder
}

/// A batch of one record of an idempotent producer.
pub(crate) fn idempotent(id: i64, epoch: i16, sequence: i32, value: &str) -> Builder {
    batch(1_000, value, 1).producer(ProducerId(id), ProducerEpoch(epoch), sequence)
}

pub(crate) fn records(bytes: &[u8]) -> Vec<Seen> {
    let mut seen = Vec::new();
    for batch in Batches::new(bytes) {
        let batch = batch.unwrap();
        batch.verify_crc().unwrap();
        for record in &batch.records(1 << 20).unwrap() {
            let record = record.unwrap();
            seen.push(Seen {
                offset: record.offset.0,
                timestamp: record.timestamp.0,
                key: record.key.map(<[u8]>::to_vec),
                value: record.value.map(<[u8]>::to_vec),
            });
        }
    }
    seen
}

pub(crate) fn text(bytes: Option<Vec<u8>>) -> String {
    bytes.map_or("-".into(), |bytes| String::from_utf8(bytes).unwrap())
}
