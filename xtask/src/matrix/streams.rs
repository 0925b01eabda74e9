//! A Kafka Streams application of two instances: JoinGroup with an assignor of its own, internal
//! topics (repartition, changelog), and deletion of records that were worked off.

use super::clients::Client;
use super::java::{compile, jvm};
use super::ledger::KEYS;
use super::report::{Report, Step};
use super::scenario::Setting;
use crate::kafka::process::{Call, create};
use crate::kafka::{jars, java_class};
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Stdio};
use std::time::{Duration, Instant};

const TIMEOUT: Duration = Duration::from_secs(90);
const WORDS: &str = "matrix-streams-words";
const COUNTS: &str = "matrix-streams-counts";
/// Six partitions read, six repartitioned and counted.
const TASKS: usize = 12;

/// Runs the application; `client` is the Java client that produces its input.
pub fn run(client: &Client, setting: &Setting, report: &mut Report) {
    let mut run = Run { client, setting, produced: 0, calls: 0 };
    let mut instances = Vec::new();
    let started = report.step(Step::Other("two instances share the tasks"), || {
        run.call(&["create-topic", "--topic", WORDS, "--partitions", "6"])?;
        run.call(&["create-topic", "--topic", COUNTS, "--partitions", "6"])?;
        for name in ["one", "two"] {
            instances.push(run.start(name)?);
        }
        await_tasks(&instances, TASKS / 2)
    });
    let counted = started
        && report.step(Step::Other("every word is counted"), || {
            run.produce()?;
            run.await_counts()
        });
    if counted {
        report.step(Step::Other("one stops, the other goes on"), || {
            run.produce()?;
            instances.remove(0).close()?;
            run.produce()?;
            await_tasks(&instances, TASKS)?;
            run.await_counts()
        });
    }
}

struct Run<'a> {
    client: &'a Client,
    setting: &'a Setting,
    produced: u64,
    calls: usize,
}

impl Run<'_> {
    fn start(&self, name: &str) -> Result<Instance, String> {
        let libs = jars()?;
        compile("streams", &["matrix/java/streams/WordCount.java"], &libs)?;
        let log = self.setting.logs.join(format!("streams-{name}.log"));
        let state = self.setting.logs.join(format!("streams-state-{name}"));
        let _ = fs::remove_dir_all(&state);
        let mut command = jvm("streams", &libs);
        command.args(["WordCount", "--application", "matrix-streams", "--from", WORDS]);
        command.args(["--to", COUNTS, "--bootstrap", &self.setting.bootstrap, "--state"]);
        command.arg(state).stdin(Stdio::piped()).stdout(create(&log)?);
        command.stderr(create(&log.with_extension("errors.log"))?);
        let mut child = command.spawn().map_err(|error| format!("cannot start: {error}"))?;
        let input = child.stdin.take();
        Ok(Instance { child, input, log })
    }

    fn produce(&mut self) -> Result<(), String> {
        let (first, records) = (self.produced, self.setting.records);
        self.produced += records;
        let (first, records, keys) = (first.to_string(), records.to_string(), KEYS.to_string());
        let numbers = ["--first", &first, "--records", &records, "--keys", &keys];
        let what = ["produce", "--topic", WORDS, "--codec", "lz4", "--idempotent", "true"];
        self.call(&[&what[..], &numbers].concat())
    }

    /// Waits until the last count of every word is the number of times it was produced.
    fn await_counts(&mut self) -> Result<(), String> {
        let wanted: BTreeMap<String, u64> = (0..KEYS)
            .map(|key| (format!("k{key}"), (self.produced - key).div_ceil(KEYS)))
            .collect();
        let deadline = Instant::now() + TIMEOUT;
        loop {
            let counts = self.counts()?;
            if counts == wanted {
                return Ok(());
            }
            if Instant::now() > deadline {
                return Err(format!("counted {counts:?}, not {wanted:?}"));
            }
        }
    }

    fn counts(&mut self) -> Result<BTreeMap<String, u64>, String> {
        let mut command = java_class("org.apache.kafka.tools.consumer.ConsoleConsumer")?;
        command.args(["--bootstrap-server", &self.setting.bootstrap, "--topic", COUNTS]);
        command.args(["--from-beginning", "--timeout-ms", "2000"]);
        let long = "org.apache.kafka.common.serialization.LongDeserializer";
        for property in [&format!("value.deserializer={long}"), "print.key=true"] {
            command.args(["--formatter-property", property]);
        }
        self.calls += 1;
        let log = self.setting.logs.join(format!("streams-counts-{}.log", self.calls));
        let text = Call::start(command, &log, "")?.wait(TIMEOUT)?;
        let pair = |line: &str| {
            let (word, count) = line.split_once('\t')?;
            Some((word.to_owned(), count.parse().ok()?))
        };
        // Later counts of a word come later, since a word stays in its partition.
        Ok(text.lines().filter_map(pair).collect())
    }

    fn call(&mut self, arguments: &[&str]) -> Result<(), String> {
        let mut command = self.client.command();
        command.args(arguments).args(["--bootstrap", &self.setting.bootstrap]);
        self.calls += 1;
        let log = self.setting.logs.join(format!("streams-call-{}.log", self.calls));
        Call::start(command, &log, "")?.wait(TIMEOUT).map(drop)
    }
}

/// A running instance of the application.
struct Instance {
    child: Child,
    input: Option<ChildStdin>,
    log: PathBuf,
}

impl Instance {
    /// Active tasks, once it runs.
    fn tasks(&self) -> Option<usize> {
        let text = fs::read_to_string(&self.log).ok()?;
        text.lines().last()?.strip_prefix("RUNNING ")?.parse().ok()
    }

    fn close(mut self) -> Result<(), String> {
        self.input = None;
        let deadline = Instant::now() + TIMEOUT;
        while self.child.try_wait().map_err(|error| error.to_string())?.is_none() {
            if Instant::now() > deadline {
                return Err("an instance did not close".into());
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        let text = fs::read_to_string(&self.log).unwrap_or_default();
        let closed = text.lines().any(|line| line == "closed");
        if closed { Ok(()) } else { Err(format!("an instance did not close well: {text}")) }
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn await_tasks(instances: &[Instance], each: usize) -> Result<(), String> {
    let deadline = Instant::now() + TIMEOUT;
    loop {
        let tasks: Vec<_> = instances.iter().map(Instance::tasks).collect();
        if tasks.iter().all(|tasks| *tasks == Some(each)) {
            return Ok(());
        }
        if Instant::now() > deadline {
            return Err(format!("tasks {tasks:?}, not {each} each"));
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}
