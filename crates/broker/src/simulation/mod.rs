//! All that a broker keeps, over a disk that loses what a crash may lose (issue 3, must-show 4).
//!
//! Random lives of a broker under load: idempotent producers with acks=all, commits, reads of
//! commits, a member of a classic group, topics created and deleted, retention and compaction;
//! syncs fail, the disk fills, the process is killed and power is lost, also in the middle of a
//! write to the disk and in the middle of a start. After each restart, and in between, the answers
//! are held against a model: no acked record or commit is missing, no record is there twice, a
//! commit is never answered as absent or older, a live member is known, a deleted topic is gone
//! and leaves its successor nothing, leader epochs and generations only rise.
//!
//! What runs is the broker's own: request decoding and handlers, partitions with their logs, the
//! shards with their coordinator, the cluster's driver and images, and the embedded metadata store
//! with its `redb` file. Under all of it lies [`SimFs`]: it drops unsynced bytes and directory
//! entries, tears writes at 512 bytes and persists files in any order. Not covered: sockets, the
//! lock and the identity file of the data directory, the file name under which the metadata store
//! is born, and the threads that sync and clean, whose steps the simulation takes itself.
//!
//! `OTTLA_BROKER_SEEDS` sets how many lives there are; `OTTLA_SEED` runs one and tells its story.
//! The seed decides what is done and what the disk loses. Clocks are real, so a life may differ in
//! when a segment rolls.

mod client;
mod groups;
mod machine;
mod member;
mod producer;
mod topics;

use groups::Group;
use machine::{Machine, Run};
use member::Member;
use ottla_storage::fs::sim::{End, Fault, Op, Rng};
use producer::Producer;
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;
use topics::Churn;

#[test]
fn nothing_acked_is_lost_or_doubled_by_any_crash() {
    let number = |name| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let seeds = match number("OTTLA_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("OTTLA_BROKER_SEEDS").unwrap_or(SEEDS),
    };
    let (count, total) = (seeds.end - seeds.start, Mutex::<Counts>::default());
    let next = AtomicU64::new(seeds.start);
    let work = || {
        while let Some(seed) =
            Some(next.fetch_add(1, Ordering::Relaxed)).filter(|it| *it < seeds.end)
        {
            let counts = Life::run(seed);
            total.lock().expect("no panic while it is held").add(&counts);
        }
    };
    // A life mostly waits.
    thread::scope(|scope| (0..THREADS).for_each(|_| _ = scope.spawn(work)));
    let total = total.into_inner().expect("no panic while it was held");
    println!("{count} lives of {STEPS} steps: {:?}", total.0);
    if count >= SEEDS {
        total.all_happened();
    }
}

const SEEDS: u64 = 200;
const THREADS: usize = 4;
const STEPS: usize = 300;
/// The topic that is always there.
const STEADY: &str = "steady";
const PARTITIONS: i32 = 2;

/// How often what happened, so that a simulation that has gone lame is noticed, and the story of a
/// life, to be told if it fails.
#[derive(Debug, Default)]
struct Counts(BTreeMap<&'static str, u64>, Vec<String>);

impl Counts {
    fn note(&mut self, what: &'static str) {
        *self.0.entry(what).or_default() += 1;
    }

    fn tell(&mut self, what: String) {
        self.1.push(what);
    }

    fn add(&mut self, other: &Self) {
        for (what, times) in &other.0 {
            *self.0.entry(what).or_default() += times;
        }
    }

    fn all_happened(&self) {
        for what in [
            "batches acked",
            "batches sent again",
            "commits acked",
            "commits acked of a topic that goes",
            "commits read",
            "generations",
            "heartbeats",
            "topics created",
            "topics deleted",
            "power lost",
            "kills",
            "clean stops",
            "starts cut short",
            "compactions",
        ] {
            assert!(self.0.get(what).is_some_and(|times| *times > 0), "no {what}");
        }
    }
}

/// One life: a machine, the clients around it and what they were told.
struct Life {
    seed: u64,
    rng: Rng,
    machine: Machine,
    run: Run,
    producers: Vec<Producer>,
    groups: Vec<Group>,
    member: Member,
    churn: Churn,
    /// The highest leader epoch seen of each partition of the steady topic.
    epochs: BTreeMap<i32, i32>,
    counts: Counts,
}

/// Says which seed failed, however it failed.
impl Drop for Life {
    fn drop(&mut self) {
        if std::thread::panicking() {
            println!("{}", self.counts.1.join("\n"));
            println!("seed {} failed: run it alone with OTTLA_SEED={}", self.seed, self.seed);
        }
    }
}

impl Life {
    fn run(seed: u64) -> Counts {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.expect("a runtime");
        let counts = runtime.block_on(async {
            let mut life = Self::begin(seed).await;
            for _ in 0..STEPS {
                life.step().await;
            }
            life.end().await;
            std::mem::take(&mut life.counts)
        });
        // A thread that waits to load a shard of a machine that is off need not be waited for.
        runtime.shutdown_background();
        counts
    }

    async fn begin(seed: u64) -> Self {
        let mut rng = Rng(seed);
        let machine = Machine::new(&mut rng);
        let run = machine.start().await.expect("an empty disk");
        topics::create(&run, STEADY, PARTITIONS).await.expect("nothing fails yet");
        run.find_coordinator().await;
        run.until_ready().await;
        let mut producers = Vec::new();
        for partition in 0..PARTITIONS {
            producers.push(Producer::new(&run, STEADY, partition, 0).await.expect("an id"));
        }
        Self {
            seed,
            rng,
            machine,
            run,
            producers,
            groups: (0..3).map(Group::new).collect(),
            member: Member::default(),
            churn: Churn::default(),
            epochs: BTreeMap::new(),
            counts: Counts::default(),
        }
    }

    async fn step(&mut self) {
        match self.rng.below(1_000) {
            0..250 => self.produce(),
            250..380 => self.commit(),
            380..480 => self.read_commits(),
            480..720 => self.sync(),
            720..780 => self.change_topics().await,
            780..800 => self.inject(),
            800..850 => self.upkeep(),
            850..900 => self.member.step(&self.run, &mut self.rng, &mut self.counts).await,
            900..940 => self.end_soon(),
            940..950 => self.end_now(),
            _ => self.yields().await,
        }
        self.collect().await;
        if self.run.is_over() {
            self.restart().await;
        }
    }

    fn produce(&mut self) {
        let at = self.rng.below(self.producers.len() as u64 + 1) as usize;
        let producer = self.producers.get_mut(at).or(self.churn.producer());
        if let Some(producer) = producer {
            producer.drive(&self.run, &mut self.rng, &mut self.counts);
        }
    }

    fn commit(&mut self) {
        let at = self.rng.below(self.groups.len() as u64) as usize;
        self.groups[at].commit(&self.run, &mut self.rng);
    }

    fn read_commits(&mut self) {
        let at = self.rng.below(self.groups.len() as u64) as usize;
        self.groups[at].read(&self.run);
    }

    fn sync(&mut self) {
        let times = 1 + self.rng.below(3);
        for _ in 0..times {
            self.run.sync_one();
        }
    }

    async fn change_topics(&mut self) {
        self.churn.step(&self.run, &mut self.rng, &mut self.counts).await;
        // A topic that was just made again inherits nothing.
        for group in &mut self.groups {
            group.check(&self.run, self.churn.life()).await;
        }
    }

    fn inject(&mut self) {
        if self.rng.chance(30) {
            self.counts.tell("the disk fills".into());
            self.machine.fs.set_room(Some(self.rng.below(3_000)));
            return;
        }
        let ops = [Op::Write, Op::Sync, Op::SyncDir, Op::Create, Op::Rename, Op::SetLen];
        let op = ops[self.rng.below(ops.len() as u64) as usize];
        let path_suffix = if self.rng.chance(70) { ".log" } else { "" };
        let after = self.rng.below(4) as u32;
        let kind = ErrorKind::PermissionDenied;
        self.counts.tell(format!("{op:?} of {path_suffix:?} will fail"));
        self.machine.fs.inject(Fault { op, path_suffix, after, kind });
    }

    fn upkeep(&mut self) {
        self.machine.fs.set_room(None);
        for _ in 0..self.run.upkeep() {
            self.counts.note("compactions");
        }
    }

    /// The boot ends somewhere in what comes next.
    fn end_soon(&mut self) {
        let (changes, end) = (self.rng.below(60) as u32, self.pick_end());
        self.counts.tell(format!("{end:?} after {changes} changes"));
        self.machine.fs.end_after(changes, end);
    }

    fn end_now(&mut self) {
        if self.rng.chance(20) {
            self.counts.tell("stops".into());
            self.counts.note("clean stops");
            self.run.close();
            return self.machine.fs.kill();
        }
        let end = self.pick_end();
        self.counts.tell(format!("{end:?}"));
        match end {
            End::Kill => self.machine.fs.kill(),
            End::Power => self.machine.fs.crash(),
        }
    }

    fn pick_end(&mut self) -> End {
        let (end, name) =
            if self.rng.chance(40) { (End::Kill, "kills") } else { (End::Power, "power lost") };
        self.counts.note(name);
        end
    }

    async fn yields(&self) {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }

    /// Takes the answers that are there, as long as the machine that gave them runs.
    async fn collect(&mut self) {
        for _ in 0..3 {
            tokio::task::yield_now().await;
        }
        for producer in self.producers.iter_mut().chain(self.churn.producer()) {
            producer.collect(&self.run, &mut self.counts).await;
        }
        let life = self.churn.life();
        for group in &mut self.groups {
            group.collect(&self.run, life, &mut self.counts).await;
        }
    }

    /// Starts the broker again, also if a start is cut short, and checks all that it says.
    async fn restart(&mut self) {
        self.run.forget();
        loop {
            self.machine.fs.heal();
            self.machine.fs.set_room(None);
            if self.rng.chance(25) {
                let (changes, end) = (self.rng.below(120) as u32, self.pick_end());
                self.counts.tell(format!("{end:?} after {changes} changes of the start"));
                self.machine.fs.end_after(changes, end);
            }
            let boot = self.machine.fs.boot();
            match self.machine.start().await {
                Ok(run) => {
                    self.run = run;
                    if self.run.until_ready().await && self.check().await {
                        return self.counts.tell("started".into());
                    }
                    self.run.forget();
                }
                Err(error) => self.counts.tell(format!("cannot start: {error}")),
            }
            assert!(boot.is_over(), "a start failed by itself");
            self.counts.note("starts cut short");
        }
    }

    /// Holds what the broker says against the model. False if the machine ended meanwhile.
    async fn check(&mut self) -> bool {
        for producer in self.producers.iter_mut().chain(self.churn.producer()) {
            producer.lose_answers();
            producer.check(&self.run).await;
        }
        for group in &mut self.groups {
            group.lose_answers();
            group.check(&self.run, self.churn.life()).await;
        }
        self.member.check(&self.run).await;
        self.churn.check(&self.run).await;
        topics::check_epochs(&self.run, &mut self.epochs).await;
        !self.run.is_over()
    }

    /// Everything that was begun is brought to its end, and is there after one more crash.
    async fn end(&mut self) {
        self.machine.fs.crash();
        self.restart_whole().await;
        for _ in 0..ROUNDS_MAX {
            for producer in self.producers.iter_mut().chain(self.churn.producer()) {
                producer.send_unacked(&self.run, &mut self.counts);
            }
            while self.run.sync_one() {}
            self.collect().await;
            if self.producers.iter().all(Producer::is_idle) {
                break;
            }
        }
        assert!(self.producers.iter().all(Producer::is_idle), "seed {}", self.seed);
        self.machine.fs.crash();
        self.restart_whole().await;
    }

    async fn restart_whole(&mut self) {
        self.run.forget();
        self.machine.fs.heal();
        self.machine.fs.set_room(None);
        self.run = self.machine.start().await.expect("nothing fails");
        assert!(self.run.until_ready().await && self.check().await, "seed {}", self.seed);
    }
}

const ROUNDS_MAX: usize = 200;
