//! `consume` and `produce`: the client's side of reading and producing, per CPU-second of its own
//! process. One Apache Kafka for all; the clients take turns, each a speed program
//! (`matrix/README.md`) that warms up first, counts what it reads and checks the order.

use super::block::{self, Plan};
use super::contestant::KAFKA;
use super::load::Figure;
use super::perf;
use super::process::cpu_seconds;
use super::sheet::Named;
use crate::Outcome;
use crate::kafka::broker::Broker;
use crate::kafka::install::{installed, quiet, text_of};
use crate::kafka::{self, java_class};
use crate::matrix::java::{classes, compile};
use crate::matrix::{build_go, wheels};
use crate::shell::{cargo, root};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::PathBuf;
use std::process::{Command, Stdio};

const PARTITIONS: u32 = 16;
/// Record sizes in bytes, and how they are called.
const SIZES: [(u64, &str); 2] = [(100, "100 B"), (1000, "1 KB")];
/// What a phase that only warms up moves, in MiB, unless the measured one moves less.
const WARM_MIB: u64 = 250;

/// Whose client it is; ours last, so that the others are compared with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Client {
    Librdkafka,
    FranzGo,
    /// With this `group.protocol`, which chooses between two consumers.
    Java(&'static str),
    Ottla,
}

const READERS: [Client; 5] = [
    Client::Librdkafka,
    Client::FranzGo,
    Client::Java("classic"),
    Client::Java("consumer"),
    Client::Ottla,
];
const WRITERS: [Client; 4] =
    [Client::Librdkafka, Client::FranzGo, Client::Java("classic"), Client::Ottla];

impl Named for Client {
    fn name(self) -> &'static str {
        match self {
            Self::Librdkafka => "librdkafka",
            Self::FranzGo => "franz-go",
            Self::Java("consumer") => "Java, consumer protocol's",
            Self::Java(_) => "Java",
            Self::Ottla => "Ottla",
        }
    }
}

impl Client {
    fn command(self) -> Command {
        match self {
            Self::Librdkafka => Command::new(librdkafka_program()),
            Self::FranzGo => Command::new(root().join("target/matrix/go/speed")),
            Self::Java(protocol) => {
                // The JVM's own defaults, unlike the small ones of the tests.
                let mut command = Command::new("java");
                let libs = root().join("target/kafka/libs");
                let compiled = classes("speed");
                command.arg(format!("-Dprotocol={protocol}"));
                let log4j = root().join("matrix/kafka/log4j2.xml");
                command.arg(format!("-Dlog4j2.configurationFile={}", log4j.display()));
                let path = format!("{}:{}/*", compiled.display(), libs.display());
                command.args(["-Xmx2g", "-cp", &path, "Speed"]);
                command
            }
            Self::Ottla => Command::new(root().join("target/release/examples/speed")),
        }
    }
}

/// Reading what lies in the page cache; `mib` of each record size.
pub fn consume(plan: Plan, mib: u64) -> Outcome {
    install()?;
    let broker = KAFKA.start("consume")?;
    for (bytes, _) in SIZES {
        create_topic(&broker, &topic(bytes))?;
        // By Kafka's own tool, so that the batches are nobody's invention.
        perf::produce(&broker, &topic(bytes), records(mib, bytes), bytes, &[])?;
    }
    let turn = |client: Client, _| {
        let mut figures = Vec::new();
        for (bytes, size) in SIZES {
            let done = run(client, "read", &broker, &topic(bytes), (mib, bytes))?;
            figures.extend(named(&format!("read {size}"), &done, bytes));
        }
        Ok(figures)
    };
    block::run("consume", plan, &READERS, turn)?;
    broker.stop().map(drop)
}

/// Producing, acknowledged by the page cache, as Kafka does by default.
pub fn produce(plan: Plan, mib: u64) -> Outcome {
    install()?;
    let broker = KAFKA.start("produce")?;
    let turns = std::cell::Cell::new(0);
    let turn = |client: Client, _| {
        let mut figures = Vec::new();
        for (bytes, size) in SIZES {
            turns.set(turns.get() + 1);
            let topic = format!("produce-{}", turns.get());
            create_topic(&broker, &topic)?;
            let done = run(client, "write", &broker, &topic, (mib, bytes))?;
            figures.extend(named(&format!("produce {size}"), &done, bytes));
            delete_topic(&broker, &topic)?;
        }
        Ok(figures)
    };
    block::run("produce", plan, &WRITERS, turn)?;
    broker.stop().map(drop)
}

fn topic(bytes: u64) -> String {
    format!("records-{bytes}")
}

fn records(mib: u64, bytes: u64) -> u64 {
    (mib << 20) / bytes
}

/// What one measured phase took.
struct Done {
    records: f64,
    seconds: f64,
    cpu_seconds: f64,
}

fn named(what: &str, done: &Done, bytes: u64) -> Vec<Figure> {
    let mb = bytes as f64 / 1e6;
    vec![
        (format!("{what}: k records/client CPU-s"), done.records / done.cpu_seconds / 1e3),
        (format!("{what}: MB/client CPU-s"), done.records * mb / done.cpu_seconds),
        (format!("{what}: k records/s"), done.records / done.seconds / 1e3),
    ]
}

/// One process: it warms up, then what it does is counted between its two lines.
fn run(
    client: Client,
    what: &str,
    broker: &Broker,
    topic: &str,
    (mib, bytes): (u64, u64),
) -> Result<Done, String> {
    let count = records(mib, bytes);
    let mut command = client.command();
    command.args([what, &broker.bootstrap, topic, &PARTITIONS.to_string()]);
    command.arg(records(mib.min(WARM_MIB), bytes).to_string());
    command.args([count.to_string(), bytes.to_string()]);
    let spawned = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let mut child = spawned.map_err(|error| format!("cannot start {client:?}: {error}"))?;
    let mut input = child.stdin.take().ok_or("no input")?;
    let mut lines = BufReader::new(child.stdout.take().ok_or("no output")?).lines();
    let mut phase = |word: &str| {
        let line = lines.next().and_then(Result::ok).unwrap_or_default();
        let rest = line.strip_prefix(word).ok_or(format!("{client:?} said `{line}`"))?;
        let mut words = rest.split_whitespace();
        let seconds = words.nth(1).and_then(|seconds| seconds.parse::<f64>().ok());
        Ok::<_, String>((seconds.ok_or("no seconds")?, cpu_seconds(child.id())?))
    };
    let (_, cpu_before) = phase("warm")?;
    input.write_all(b"\n").map_err(|error| error.to_string())?;
    let (seconds, cpu) = phase("done")?;
    drop(input);
    child.wait().map_err(|error| error.to_string())?;
    let done = Done { records: count as f64, seconds, cpu_seconds: cpu - cpu_before };
    println!("  {what} {bytes} B: {seconds:.1} s, {:.1} CPU-s", done.cpu_seconds);
    Ok(done)
}

fn create_topic(broker: &Broker, topic: &str) -> Outcome {
    perf::create_topic(broker, topic, &PARTITIONS.to_string())
}

fn delete_topic(broker: &Broker, topic: &str) -> Outcome {
    let mut command = java_class("org.apache.kafka.tools.TopicCommand")?;
    command.args(["--delete", "--topic", topic]);
    quiet(command.args(["--bootstrap-server", &broker.bootstrap]))
}

fn install() -> Outcome {
    build_go()?;
    compile("speed", &["matrix/java/Speed.java"], &kafka::jars()?)?;
    build_c()?;
    cargo(&["build", "--release", "--quiet", "-p", "ottla-client", "--example", "speed"])?;
    let version = text_of(Command::new(librdkafka_program()).arg("version"))?;
    println!("{}", version.trim());
    Ok(())
}

fn librdkafka_program() -> PathBuf {
    root().join("target/matrix/c/speed")
}

/// Against the headers of the system's librdkafka and the library of the newest wheel.
fn build_c() -> Outcome {
    let source = root().join("matrix/c/speed.c");
    let libs = wheels()?.join("confluent_kafka.libs");
    let entries = std::fs::read_dir(&libs).map_err(|e| format!("{}: {e}", libs.display()))?;
    let mut names = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let is_it = |path: &PathBuf| path.to_string_lossy().contains("librdkafka");
    let library = names.find(is_it).ok_or("the wheel of confluent-kafka brings no librdkafka")?;
    if !PathBuf::from("/usr/include/librdkafka/rdkafka.h").exists() {
        return Err("librdkafka's headers are missing: install librdkafka-dev".into());
    }
    installed(&root().join("target/matrix/c"), &[&source], || {
        let mut cc = Command::new("cc");
        cc.args(["-O2", "-Wall", "-Wextra", "-o"]).arg(librdkafka_program()).arg(&source);
        quiet(cc.arg(&library).arg(format!("-Wl,-rpath,{}", libs.display())))
    })
}
