//! Random lives of a log, with power losses, kills, failing and full disks anywhere in them, held
//! against a model from outside (must-show 4). `OTTLA_SEEDS` sets how many; `OTTLA_SEED` runs one.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io::ErrorKind;
use std::time::Duration;

use super::*;
use crate::fs::sim::{Fault, Op, Rng};
use crate::{
    CleanJob, Cleaned, CleanupPolicy, RaiseJob, Raised, State, SyncJob, Synced, TimedOffset,
};

#[test]
fn nothing_acknowledged_is_lost_and_nothing_invented() {
    let number = |name| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let seeds = match number("OTTLA_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("OTTLA_SEEDS").unwrap_or(SEEDS),
    };
    let mut total = Counts::default();
    let count = seeds.end - seeds.start;
    for seed in seeds {
        let life = Life::run(seed);
        total.add(&life.counts);
        if seed % 64 == 0 {
            let again = Life::run(seed);
            assert_eq!(life.rig.all(), again.rig.all(), "seed {seed} is not deterministic");
        }
    }
    println!("{count} seeds of {STEPS} steps: {total:?}");
    if count >= SEEDS {
        total.all_happened();
    }
}

const SEEDS: u64 = 400;
const STEPS: usize = 150;
/// More than the retention time of any life.
const OLD_MS: i64 = 600_000;

/// How often what happened, so that a simulation that has gone lame is noticed.
#[derive(Debug, Default)]
struct Counts(BTreeMap<&'static str, u64>);

impl Counts {
    fn note(&mut self, what: &'static str, times: u64) {
        *self.0.entry(what).or_default() += times;
    }

    fn add(&mut self, other: &Self) {
        for (what, times) in &other.0 {
            self.note(what, *times);
        }
    }

    fn all_happened(&self) {
        for what in [
            "appends",
            "batches recognised",
            "syncs",
            "restarts",
            "cuts",
            "poisonings",
            "full disks",
            "failed openings",
            "segments retained",
            "deletions",
            "appends during a raise",
            "truncations",
            "compactions",
            "records compacted",
            "compactions failed",
        ] {
            assert!(self.0.get(what).is_some_and(|times| *times > 0), "no {what}");
        }
    }
}

/// A producer as it knows itself.
#[derive(Default)]
struct Client {
    epoch: i16,
    next: i32,
    /// First sequence, record count and first offset of what is in the log.
    batches: VecDeque<(i32, usize, i64)>,
}

enum Job {
    Started(SyncJob),
    Ran(Synced),
}

enum Clean {
    Started(CleanJob),
    Ran(Cleaned),
}

/// A raise of the start, and whether it is retention's.
enum Raise {
    Started(RaiseJob, bool),
    Ran(Raised, bool),
}

struct Life {
    rng: Rng,
    rig: Rig,
    /// Every record appended and not lost; the index is the offset.
    model: Vec<Seen>,
    /// What an append that failed may have left: nobody knows until the log is opened again.
    unknown: Vec<Seen>,
    /// Which client sent that, if one did, under which epoch and first sequence.
    unknown_of: Option<(i64, i16, i32)>,
    acked: i64,
    start: i64,
    job: Option<Job>,
    clean: Option<Clean>,
    raise: Option<Raise>,
    /// Compaction may have read keys up to here.
    clean_to: i64,
    /// Whether the log was ever truncated on demand.
    truncated: bool,
    /// Offsets whose records compaction took.
    gone: BTreeSet<i64>,
    clients: BTreeMap<i64, Client>,
    /// Whether every record comes long after its time.
    all_old: bool,
    counts: Counts,
    seed: u64,
}

/// Says which seed failed, however it failed.
impl Drop for Life {
    fn drop(&mut self) {
        if std::thread::panicking() {
            println!("seed {} failed: run it alone with OTTLA_SEED={}", self.seed, self.seed);
        }
    }
}

impl Life {
    fn run(seed: u64) -> Self {
        let mut rng = Rng(seed);
        let config = LogConfig {
            segment_bytes: 600 + rng.below(3_000),
            index_interval_bytes: rng.below(600),
            checkpoint_bytes: rng.below(4_000),
            segment_ms: Duration::from_millis(2_000 + rng.below(100_000)),
            retention_bytes: rng.chance(50).then_some(3_000),
            retention_ms: rng.chance(50).then_some(Duration::from_secs(60)),
            file_delete_delay_ms: Duration::from_millis(rng.below(5_000)),
            cleanup_policy: match rng.below(3) {
                0 => CleanupPolicy::DELETE,
                1 => CleanupPolicy::COMPACT,
                _ => CleanupPolicy::COMPACT_DELETE,
            },
            dirty_ratio_min_permille: rng.below(300) as u32,
            compaction_memory_bytes_max: 200 + rng.below(2_000) as usize,
            ..LogConfig::default()
        };
        let all_old = rng.chance(20);
        let rig = Rig::on(SimFs::new(rng.next_u64()), config);
        let mut life = Self {
            rng,
            rig,
            model: Vec::new(),
            unknown: Vec::new(),
            unknown_of: None,
            acked: 0,
            start: 0,
            job: None,
            clean: None,
            raise: None,
            clean_to: 0,
            truncated: false,
            gone: BTreeSet::new(),
            clients: BTreeMap::new(),
            all_old,
            counts: Counts::default(),
            seed,
        };
        for _ in 0..STEPS {
            life.step();
        }
        life.rig.fs.heal();
        life.restart();
        life
    }

    fn trace(&self, what: &str) {
        if std::env::var("OTTLA_SEED").is_ok() {
            println!("{what}: {:?}, acked {}", self.rig.log, self.acked);
        }
    }

    fn step(&mut self) {
        self.rig.now_ms += self.rng.below(500) as i64;
        match self.rng.below(100) {
            0..35 => self.append_plain(),
            35..50 => self.append_idempotent(),
            50..55 => self.retry(),
            55..61 => self.start_sync(),
            61..67 => self.run_sync(),
            67..73 => self.finish_sync(),
            73..82 => {
                self.start_sync();
                self.run_sync();
                self.finish_sync();
            }
            82..86 => self.inject(),
            86..89 => self.recover(),
            89..91 => self.retain(),
            91..92 => self.delete_records(),
            96..98 => self.compact(),
            92..93 => self.truncate(),
            93..95 => self.check(),
            95..96 => self.run_compaction(),
            _ => self.restart(),
        }
    }

    fn append_plain(&mut self) {
        let count = 1 + self.rng.below(4) as usize;
        let text = format!("{}-{}", self.rng.below(1_000_000), "x".repeat(self.size()));
        let time = self.record_time();
        let batch = batch(time, &text, count);
        self.append(batch);
    }

    /// Some records are older than retention allows when they come, in some lives all of them:
    /// retention takes whole logs then, the active segment included.
    fn record_time(&mut self) -> i64 {
        let old = self.all_old || self.rng.chance(30);
        self.rig.now_ms - if old { OLD_MS } else { 0 } - self.rng.below(2_000) as i64
    }

    fn size(&mut self) -> usize {
        if self.rng.chance(10) { self.rng.below(500) as usize } else { self.rng.below(40) as usize }
    }

    fn append_idempotent(&mut self) {
        let id = self.rng.below(3) as i64;
        let count = 1 + self.rng.below(3) as usize;
        let text = format!("of {id}, {}", self.rng.below(1_000_000));
        let raise = self.rng.chance(3);
        let client = self.clients.entry(id).or_default();
        if raise {
            *client = Client { epoch: client.epoch + 1, ..Client::default() };
        }
        let (epoch, sequence) = (ProducerEpoch(client.epoch), client.next);
        let time = self.record_time();
        let batch = batch(time, &text, count).producer(ProducerId(id), epoch, sequence);
        let online = self.rig.log.state() == &State::Online;
        if let Some(first) = self.append(batch) {
            let client = self.clients.get_mut(&id).unwrap();
            client.batches.push_back((client.next, count, first));
            client.next += count as i32;
        } else if online && !self.unknown.is_empty() {
            self.unknown_of = Some((id, epoch.0, sequence));
        }
    }

    /// Sends one of a producer's last five batches again: it must be known, wherever it is.
    fn retry(&mut self) {
        let id = self.rng.below(3) as i64;
        let Some(client) = self.clients.get(&id) else { return };
        let back = 1 + self.rng.below(5) as usize;
        let Some(at) = client.batches.len().checked_sub(back) else { return };
        let (sequence, count, first) = client.batches[at];
        if self.truncated && (first < self.start || self.gone.contains(&first)) {
            // A truncation may have had to learn the producers from what is left of the log.
            return;
        }
        let epoch = ProducerEpoch(client.epoch);
        let batch = batch(1, "retry", count).producer(ProducerId(id), epoch, sequence);
        match self.rig.append(batch) {
            Ok(appended) => {
                assert!(appended.duplicate, "seed {}: {id}/{sequence} at {first}", self.seed);
                assert_eq!(appended.first.0, first);
                self.counts.note("batches recognised", 1);
            }
            Err(AppendError::Poisoned(_)) => {}
            Err(error) => panic!("seed {}: {error}", self.seed),
        }
    }

    fn append(&mut self, batch: Builder) -> Option<i64> {
        let mut bytes = batch.build().unwrap();
        let context = self.rig.context();
        let online = self.rig.log.state() == &State::Online;
        match self.rig.log.append(&mut bytes, context) {
            Ok(appended) => {
                assert!(!appended.duplicate, "seed {}", self.seed);
                assert_eq!(appended.first.0, self.model.len() as i64);
                self.model.extend(records(&bytes));
                assert_eq!(appended.last.0 + 1, self.model.len() as i64);
                self.counts.note("appends", 1);
                self.counts.note("appends during a raise", u64::from(self.raise.is_some()));
                Some(appended.first.0)
            }
            Err(AppendError::DiskFull(_)) => {
                self.counts.note("full disks", 1);
                self.rig.fs.set_room(None);
                None
            }
            Err(AppendError::Poisoned(_)) if online => {
                (self.unknown, self.unknown_of) = (records(&bytes), None);
                None
            }
            Err(AppendError::Poisoned(_) | AppendError::TooLarge { .. }) => None,
            Err(error) => panic!("seed {}: {error}", self.seed),
        }
    }

    fn start_sync(&mut self) {
        if self.job.is_none() {
            self.job = self.rig.log.start_sync().map(Job::Started);
        }
    }

    fn run_sync(&mut self) {
        self.job = match self.job.take() {
            Some(Job::Started(job)) => Some(Job::Ran(job.run())),
            other => other,
        };
    }

    fn finish_sync(&mut self) {
        match self.job.take() {
            Some(Job::Ran(synced)) => match self.rig.log.finish_sync(synced) {
                Ok(up_to) => {
                    self.counts.note("syncs", 1);
                    self.acked = self.acked.max(up_to.0);
                    self.trace("synced");
                }
                Err(_) => {
                    self.counts.note("poisonings", 1);
                    self.trace("poisoned");
                }
            },
            other => self.job = other,
        }
        assert_eq!(self.rig.log.synced_offset().0, self.acked, "seed {}", self.seed);
    }

    fn inject(&mut self) {
        if self.rng.chance(30) {
            self.rig.fs.set_room(Some(self.rng.below(800)));
            return;
        }
        let ops = [Op::Write, Op::Sync, Op::SyncDir, Op::Create, Op::Rename, Op::SetLen];
        let op = ops[self.rng.below(ops.len() as u64) as usize];
        let kind =
            if self.rng.chance(30) { ErrorKind::StorageFull } else { ErrorKind::PermissionDenied };
        let after = self.rng.below(4) as u32;
        let path_suffix = if self.rng.chance(50) { ".log" } else { "" };
        let fault = Fault { op, path_suffix, after, kind };
        self.trace(&format!("injects {fault:?}"));
        self.rig.fs.inject(fault);
    }

    fn recover(&mut self) {
        if self.rig.log.state() == &State::Online {
            return;
        }
        self.run_sync();
        self.finish_sync();
        while self.raise.is_some() {
            self.step_raise();
        }
        self.trace("recovers");
        if self.rig.log.recover(self.rig.now()).is_err() {
            self.rig.fs.heal();
            self.rig.fs.set_room(None);
            if self.rng.chance(30) {
                return self.restart();
            }
            self.rig.log.recover(self.rig.now()).unwrap();
        }
        self.rig.epoch = self.rig.log.leader_epoch().unwrap().0;
        assert_eq!(self.rig.log.end_offset().0, self.acked, "seed {}", self.seed);
        self.lose_past(self.acked);
        self.check();
    }

    fn retain(&mut self) {
        if self.raise.is_none() {
            self.rig.log.checkpoint_soon();
            let committed = Offset(self.acked);
            let job = self.rig.log.start_retain(self.rig.now(), committed);
            self.raise = job.ok().flatten().map(|job| Raise::Started(job, true));
        }
        self.go_on_raising();
        self.rig.remove();
    }

    /// Takes some of the steps of a raise: other things happen in between.
    fn go_on_raising(&mut self) {
        while self.raise.is_some() && self.rng.chance(70) {
            self.step_raise();
        }
    }

    fn step_raise(&mut self) {
        let (raised, retains) = match self.raise.take() {
            Some(Raise::Started(job, retains)) => {
                self.raise = Some(Raise::Ran(job.run(), retains));
                return;
            }
            Some(Raise::Ran(raised, retains)) => (raised, retains),
            None => return,
        };
        let done = if retains {
            let retained = self.rig.log.finish_retain(raised, self.rig.now());
            retained.map(|retained| ("segments retained", retained.segments as u64))
        } else {
            self.rig.log.finish_raise(raised).map(|_| ("deletions", 1))
        };
        if let Ok((what, times)) = done {
            self.counts.note(what, times);
        }
        let start = self.rig.log.start_offset().0;
        assert!(start >= self.start && start <= self.acked, "seed {}", self.seed);
        self.start = start;
    }

    fn compact(&mut self) {
        match self.clean.take() {
            None => {
                let committed = Offset(self.acked);
                self.clean =
                    self.rig.log.start_clean(self.rig.now(), committed).map(Clean::Started);
                if self.clean.is_some() {
                    self.clean_to = self.clean_to.max(self.acked);
                }
                if self.rng.chance(50) {
                    self.run_compaction();
                }
            }
            Some(Clean::Ran(cleaned)) => {
                let report = self.rig.log.finish_clean(cleaned);
                self.trace(&format!("compacted {report:?}"));
                self.counts.note("compactions", 1);
                self.counts.note("records compacted", report.records_dropped);
                self.counts.note("compactions failed", u64::from(report.error.is_some()));
                self.check();
            }
            other => self.clean = other,
        }
    }

    fn run_compaction(&mut self) {
        self.clean = match self.clean.take() {
            Some(Clean::Started(job)) => Some(Clean::Ran(job.run())),
            other => other,
        };
    }

    fn delete_records(&mut self) {
        if self.raise.is_none() {
            let span = (self.acked - self.start) as u64;
            let to = Offset(self.start + self.rng.below(span + 1) as i64);
            let job = self.rig.log.start_raise(to).expect("in range");
            self.raise = job.map(|job| Raise::Started(job, false));
        }
        self.go_on_raising();
    }

    fn truncate(&mut self) {
        let end = self.rig.log.end_offset().0;
        let to = end - self.rng.below((end - self.start) as u64 + 1).min(10) as i64;
        if self.job.is_some()
            || self.clean.is_some()
            || self.raise.is_some()
            || self.rig.log.state() != &State::Online
        {
            return;
        }
        // Whatever becomes of it, nobody may count on what lies past it any more.
        let acked = self.acked;
        self.acked = self.acked.min(batch_start(&self.rig, to));
        self.truncated = true;
        let done = self.rig.log.truncate_to(Offset(to), self.rig.now());
        self.start = self.start.min(self.rig.log.start_offset().0);
        match done {
            Ok(end) => {
                self.counts.note("truncations", 1);
                let changed = end.0 < self.model.len() as i64;
                self.lose_past(end.0);
                self.acked = if changed { end.0 } else { acked };
                self.check();
            }
            Err(_) => {
                self.acked = self.rig.log.synced_offset().0;
                self.recover();
            }
        }
    }

    /// Power loss or kill, then opening again, which may itself fail and be cut short.
    fn restart(&mut self) {
        (self.job, self.clean, self.raise) = (None, None, None);
        self.trace("ends");
        let poisoned = self.rig.log.state() != &State::Online;
        let kill = self.rng.chance(30);
        let epoch = self.rig.log.leader_epoch();
        self.end_process(kill);
        let mut survives = kill && !poisoned;
        while self.rng.chance(20) {
            self.inject();
            match open(&self.rig.fs, &self.rig.config, self.rig.now_ms) {
                Ok((log, recovery)) => self.trace(&format!("tried {log:?}: {recovery}")),
                Err(error) => {
                    self.trace(&format!("tried: {error}"));
                    self.counts.note("failed openings", 1);
                }
            }
            let kill = self.rng.chance(50);
            survives &= kill;
            self.end_process(kill);
        }
        let recovery = self.rig.reopen();
        self.trace(&format!("opened: {recovery}"));
        self.counts.note("restarts", 1);
        self.counts.note("cuts", recovery.cuts.len() as u64);
        let (end, seed) = (self.rig.log.end_offset().0, self.seed);
        assert!(self.rig.log.leader_epoch() >= epoch, "seed {seed}");
        assert!(end >= self.acked, "seed {seed}: {} acked, {recovery}", self.acked);
        if survives {
            assert_eq!(end, self.model.len() as i64, "seed {seed}: {recovery}");
        }
        assert_eq!(self.rig.log.synced_offset().0, end);
        let start = self.rig.log.start_offset().0;
        assert!(start >= self.start, "seed {seed}: start {start} below {}", self.start);
        self.start = start;
        self.lose_past(end);
        self.acked = end;
        self.check();
    }

    /// Takes note of what compaction took, and holds it against what it may take.
    fn note_gone(&mut self, seen: &[Seen]) {
        let there: BTreeSet<i64> = seen.iter().map(|record| record.offset).collect();
        let may_go = self.clean_to as usize;
        for at in self.start as usize..may_go.min(self.model.len()) {
            let record = &self.model[at];
            if there.contains(&record.offset) || self.gone.contains(&record.offset) {
                continue;
            }
            let later = &self.model[at + 1..may_go.min(self.model.len())];
            let superseded = later.iter().any(|later| later.key == record.key);
            assert!(superseded, "seed {}: {record:?} is gone", self.seed);
            self.gone.insert(record.offset);
        }
    }

    fn end_process(&mut self, kill: bool) {
        self.trace(if kill { "kill" } else { "crash" });
        match kill {
            true => self.rig.fs.kill(),
            false => self.rig.fs.crash(),
        }
        self.rig.fs.heal();
        self.rig.fs.set_room(None);
    }

    /// What nobody was told of is in the log: whoever sent it would find out by sending it again.
    fn take_unknown(&mut self) {
        let sent = self.unknown_of.zip(self.unknown.first());
        if let Some(((id, epoch, sequence), first)) = sent
            && let Some(client) = self.clients.get_mut(&id)
            && client.epoch == epoch
        {
            client.batches.push_back((sequence, self.unknown.len(), first.offset));
        }
        self.model.append(&mut self.unknown);
    }

    fn lose_past(&mut self, end: i64) {
        if end > self.model.len() as i64 {
            self.take_unknown();
        }
        self.unknown.clear();
        self.model.truncate(end as usize);
        self.gone.split_off(&end);
        self.clean_to = self.clean_to.min(end);
        for client in self.clients.values_mut() {
            client.batches.retain(|(_, _, first)| *first < end);
            let known = client.batches.back().filter(|(_, _, first)| {
                // What is left of a log may not tell of the last batch: compaction or retention.
                !(self.truncated && (*first < self.start || self.gone.contains(first)))
            });
            if let Some((sequence, count, _)) = known {
                client.next = sequence + *count as i32;
            } else {
                // Nothing of this epoch is left: the client starts another one.
                *client = Client { epoch: client.epoch + 1, ..Client::default() };
            }
        }
    }

    /// Everything there is to read, by every way there is to find it.
    fn check(&mut self) {
        if self.rig.log.state() != &State::Online {
            return;
        }
        let (start, seed) = (self.start, self.seed);
        let seen = self.rig.all();
        self.note_gone(&seen);
        let left = |from: i64| -> Vec<Seen> {
            let from = self.model[from as usize..].iter();
            from.filter(|record| !self.gone.contains(&record.offset)).cloned().collect()
        };
        assert!(seen == left(start), "seed {seed}: {} read", seen.len());
        for _ in 0..5 {
            let span = self.model.len() as u64 - start as u64;
            let from = start + self.rng.below(span + 1) as i64;
            assert!(self.rig.from(Offset(from)) == left(from), "seed {seed}");
        }
        self.check_times(&seen);
        self.rig.log.check_indexes();
    }

    /// Lookups by time, around the times that records have and those that none has.
    fn check_times(&mut self, seen: &[Seen]) {
        let (reader, seed) = (self.rig.log.reader(), self.seed);
        let found = |it: TimedOffset| (it.offset.0, it.timestamp.0);
        let place = |record: &Seen| (record.offset, record.timestamp);
        for round in 0..6 {
            let time = match seen.len() {
                0 => self.rig.now_ms - OLD_MS,
                len if round < 4 => {
                    let near = &seen[self.rng.below(len as u64) as usize];
                    near.timestamp - 1 + self.rng.below(3) as i64
                }
                _ => self.rig.now_ms - self.rng.below(OLD_MS as u64 + 10_000) as i64,
            };
            let first = reader.find_by_time(Timestamp(time), 1 << 20).unwrap();
            let expected = seen.iter().find(|record| record.timestamp >= time);
            assert_eq!(first.map(found), expected.map(place), "seed {seed}, time {time}");
        }
        let latest = reader.find_latest_time(1 << 20).unwrap();
        let largest = seen.iter().map(|record| record.timestamp).max();
        let expected = seen.iter().find(|record| Some(record.timestamp) == largest);
        assert_eq!(latest.map(found), expected.map(place), "seed {seed}");
    }
}

fn batch_start(rig: &Rig, offset: i64) -> i64 {
    let found = rig.read(offset).unwrap_or_default();
    found.first().map_or(offset, |record| record.offset.min(offset))
}
