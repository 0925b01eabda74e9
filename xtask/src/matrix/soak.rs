//! `cargo xtask soak`: groups of our client in every protocol for a long time, while members join,
//! leave and are killed and the broker is restarted, five times, every other one by `kill -9`.
//!
//! Demanded: every record reaches every group at least once and in its partition's order, what the
//! broker says is committed never goes back, and the members that stay hold no more memory and no
//! more tasks in the end than after the first rounds.

use super::group::{Group, View};
use super::ledger::Promise;
use super::named;
use super::scenario::{Run, Setting, TIMEOUT};
use crate::Outcome;
use crate::bench::process::resident_mib;
use crate::kafka::broker::{Broker, Kind};
use crate::kafka::install::{Missing, text_of};
use crate::shell::root;
use std::collections::BTreeMap;
use std::process::Command;
use std::time::{Duration, Instant};

const USAGE: &str = "usage: cargo xtask soak [--minutes N]";
/// Each with a group of its own.
const PROTOCOLS: [&str; 3] = ["consumer", "classic", "register"];
/// Sessions short enough that the dead are missed within a round.
const SETTINGS: &[&str] =
    &["group.consumer.session.timeout.ms=6000", "group.consumer.heartbeat.interval.ms=500"];
const RESTARTS: u32 = 5;
/// From one look at everything to the next, at most.
const ROUND: Duration = Duration::from_secs(10);
/// Records of one producer process, and from one to the next; then a member of each group may
/// come or go.
const BURST: u64 = 500;
const PAUSE: Duration = Duration::from_millis(500);
/// What a member needs between reading and committing: long enough to be killed in the middle.
const WORK_MS: &str = "150";
const MEMBERS_MAX: usize = 4;
/// Rounds after which a member is as large as it should ever be.
const WARM_ROUNDS: usize = 6;
/// What the allocator may keep besides, in MiB.
const GROWTH_MAX_MIB: f64 = 8.0;
/// Tasks that may be under way at the moment of a report: requests, a new connection.
const GROWTH_MAX_TASKS: usize = 16;

/// Runs for so many minutes (15 unless said otherwise).
pub fn run(arguments: &[String]) -> Outcome {
    let minutes: f64 = match arguments {
        [] => 15.0,
        [flag, count] if flag == "--minutes" => count.parse().map_err(|_| USAGE)?,
        _ => return Err(USAGE.into()),
    };
    let client = named("ottla")?;
    if let Err(Missing::Toolchain(why) | Missing::Broken(why)) = client.install() {
        return Err(why);
    }
    let folder = root().join("target/soak");
    let broker = Broker::start_with(Kind::Ottla, &folder, SETTINGS)?;
    let setting = Setting {
        bootstrap: broker.bootstrap.clone(),
        kind: Kind::Ottla,
        records: BURST,
        logs: folder.join("logs"),
    };
    let mut run = Run::new(client, &setting);
    run.topic = "soak".to_owned();
    run.create_topic()?;
    let groups = PROTOCOLS.map(|protocol| {
        let arguments = ["--protocol", protocol, "--tasks", "true", "--work-ms", WORK_MS];
        run.arguments = arguments.map(str::to_owned).to_vec();
        (protocol, run.group(protocol))
    });
    let seed = u64::from(std::process::id());
    println!("soak of {minutes} minutes, {RESTARTS} restarts, seed {seed}; {}", folder.display());
    let mut soak = Soak {
        run,
        broker: Some(broker),
        groups,
        dice: Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1),
        began: Instant::now(),
        committed: BTreeMap::new(),
        sizes: Vec::new(),
        deaths: [0; 3],
    };
    soak.all(Duration::from_secs_f64(minutes * 60.0))
}

struct Soak<'a> {
    run: Run<'a>,
    /// None only while it restarts.
    broker: Option<Broker>,
    groups: [(&'static str, Group<'a>); 3],
    dice: Dice,
    began: Instant,
    /// By group and partition, as the broker last said.
    committed: BTreeMap<(&'static str, i64), i64>,
    /// What the members that stay held after each round.
    sizes: Vec<[Size; 3]>,
    /// Members that joined, left and were killed.
    deaths: [usize; 3],
}

/// What one member holds.
#[derive(Clone, Copy)]
struct Size {
    mib: f64,
    tasks: usize,
}

impl Soak<'_> {
    fn all(&mut self, length: Duration) -> Outcome {
        for (_, group) in &mut self.groups {
            group.start(&[])?;
            group.start(&[])?;
            group.wait("two members share the partitions", View::is_shared_evenly)?;
        }
        let mut restarts = 0;
        while self.began.elapsed() < length {
            let due = self.began.elapsed() >= length * (2 * restarts + 1) / (2 * RESTARTS);
            restarts += u32::from(due);
            self.round(ROUND.min(length / 16), due.then_some(restarts))?;
        }
        self.no_growth()?;
        for (_, group) in &mut self.groups {
            group.leave(0)?;
        }
        let [joined, left, killed] = self.deaths;
        println!("sound: {joined} joined, {left} left, {killed} were killed, {restarts} restarts");
        self.broker.take().map_or(Ok(()), |broker| broker.stop().map(drop))
    }

    /// Produces while members come and go, then waits until all is read and looks at everything.
    fn round(&mut self, length: Duration, restart: Option<u32>) -> Outcome {
        let until = Instant::now() + length;
        let mut is_due = restart.is_some();
        while Instant::now() < until {
            let (call, numbers) = self.run.produce_call("lz4", BURST)?;
            // Some changes come before the records, some among them.
            std::thread::sleep(PAUSE / 5 * u32::from(self.dice.roll(2) == 1));
            for index in 0..self.groups.len() {
                self.change(index)?;
            }
            if std::mem::take(&mut is_due) {
                self.restart(restart.unwrap_or_default())?;
            }
            call.wait(TIMEOUT)?;
            self.run.produced.push(numbers);
            std::thread::sleep(PAUSE);
        }
        for (protocol, group) in &self.groups {
            let read = self.run.read_since(group, Promise::AtLeastOnce, 0);
            read.map_err(|problem| format!("{protocol}: {problem}"))?;
        }
        self.run.produced.clear();
        self.no_regress()?;
        self.report()
    }

    /// One member of a group joins, leaves or is killed; the first one always stays.
    fn change(&mut self, index: usize) -> Outcome {
        let roll = self.dice.roll(6);
        let pick = self.dice.roll(MEMBERS_MAX);
        let (_, group) = &mut self.groups[index];
        let others = group.others(0);
        match roll {
            0 | 1 if others.len() + 1 < MEMBERS_MAX => {
                self.deaths[0] += 1;
                group.start(&[]).map(drop)
            }
            2 if !others.is_empty() => {
                self.deaths[1] += 1;
                group.leave(others[pick % others.len()])
            }
            3 if !others.is_empty() => {
                self.deaths[2] += 1;
                group.kill(others[pick % others.len()])
            }
            _ => Ok(()),
        }
    }

    fn restart(&mut self, number: u32) -> Outcome {
        let broker = self.broker.take().ok_or("no broker")?;
        let is_crash = number % 2 == 1;
        let broker = if is_crash { broker.crash() } else { broker.restart() }?;
        let how = if is_crash { "SIGKILL" } else { "SIGTERM" };
        println!("{} restart {number} by {how}: {:?}", self.clock(), broker.start_time);
        self.broker = Some(broker);
        Ok(())
    }

    /// What the broker has committed now is nowhere less than it had before.
    fn no_regress(&mut self) -> Outcome {
        for (protocol, group) in &self.groups {
            for (partition, offset) in offsets(&self.run, protocol)? {
                let before = self.committed.insert((protocol, partition), offset).unwrap_or(0);
                if offset < before {
                    let place = format!("{protocol}: partition {partition}");
                    return Err(format!("{place} went back from {before} to {offset}"));
                }
            }
            // Nor does anybody read what is committed.
            group.view().ledger.raise_floors();
        }
        Ok(())
    }

    fn report(&mut self) -> Outcome {
        let mut line = String::new();
        let mut sizes = [Size { mib: 0.0, tasks: 0 }; 3];
        for ((protocol, group), size) in self.groups.iter().zip(&mut sizes) {
            let members = group.others(usize::MAX).len();
            let mib = resident_mib(group.process(0))?;
            let view = group.view();
            let (tasks, reads) = (view.members[0].tasks, view.reads());
            let twice = view.ledger.duplicates();
            *size = Size { mib, tasks };
            line += &format!(
                " | {protocol}: {members} members, {reads} read, {twice} again, first {mib:.1} MiB \
                 {tasks} tasks"
            );
        }
        let broker = self.broker.as_ref().ok_or("no broker")?;
        println!("{}{line} | broker {:.1} MiB", self.clock(), resident_mib(broker.id())?);
        self.sizes.push(sizes);
        Ok(())
    }

    /// The members that were there all along, after the last rounds and after the first.
    fn no_growth(&self) -> Outcome {
        let (warm, rest) = self.sizes.split_at(WARM_ROUNDS.min(self.sizes.len() / 2));
        for (index, protocol) in PROTOCOLS.iter().enumerate() {
            let worst = |rounds: &[[Size; 3]]| {
                let sizes = rounds.iter().map(|round| round[index]);
                sizes.fold((0.0_f64, 0), |(mib, tasks), size| {
                    (mib.max(size.mib), tasks.max(size.tasks))
                })
            };
            let ((mib, tasks), (mib_now, tasks_now)) = (worst(warm), worst(rest));
            println!("{protocol}: {mib:.1} MiB {tasks} tasks, then {mib_now:.1} MiB {tasks_now}");
            if mib_now > mib + GROWTH_MAX_MIB || tasks_now > tasks + GROWTH_MAX_TASKS {
                return Err(format!("the {protocol} member that stays has grown"));
            }
        }
        Ok(())
    }

    fn clock(&self) -> String {
        format!("{:>6.1} s", self.began.elapsed().as_secs_f64())
    }
}

/// Committed offsets of a group by partition, as the broker says.
fn offsets(run: &Run<'_>, protocol: &str) -> Result<Vec<(i64, i64)>, String> {
    let mut command = Command::new(root().join("target/release/ottla"));
    let group = run.group(protocol).name().to_owned();
    command.args(["group", "offsets", "show", &group, "--output", "json"]);
    command.args(["--brokers", run.bootstrap()]);
    let text = text_of(&mut command)?;
    let lines: serde_json::Value =
        serde_json::from_str(&text).map_err(|error| format!("{error}: {text}"))?;
    let lines = lines.as_array().ok_or_else(|| format!("no list: {text}"))?;
    let pair = |line: &serde_json::Value| {
        Some((line.get("partition")?.as_i64()?, line.get("offset")?.as_i64()?))
    };
    Ok(lines.iter().filter_map(pair).collect())
}

/// Pseudo-random numbers (xorshift64).
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % sides as u64).unwrap_or(0)
    }
}
