//! `consume` and `produce`: the client's side of reading and producing, per CPU-second of its own
//! process. One Apache Kafka for all; the clients take turns, each a speed program
//! (`matrix/README.md`, run by [`speed`]) that warms up first, counts what it reads
//! and checks the order. Each record size is a block of its own.

use super::block::{self, Plan};
use super::contestant::KAFKA;
use super::load::Figure;
use super::perf;
use super::sheet::Named;
use super::speed;
use crate::Outcome;
use crate::kafka::broker::Broker;
use crate::kafka::install::{installed, quiet, text_of};
use crate::kafka::{self, java_class};
use crate::matrix::java::{classes, compile};
use crate::matrix::{build_go, wheels};
use crate::shell::{cargo, root};
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

const PARTITIONS: u32 = 16;
/// Record sizes in bytes, and how they are called.
const SIZES: [(u64, &str); 2] = [(100, "100 B"), (1000, "1 KB")];
/// How long a phase of a run may take: so much, and as long as the slowest may be at its work. The
/// slowest client measured moves 60 MiB a second on two cores.
const PHASE_LIMIT: Duration = Duration::from_secs(30);
const MIB_PER_SECOND_LEAST: u64 = 20;
/// What a phase that only warms up moves, in MiB, unless the measured one moves less.
const WARM_MIB: u64 = 250;

/// What one measured phase took.
struct Done {
    records: f64,
    seconds: f64,
    cpu_seconds: f64,
}

/// How much is moved.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// MiB of records in each run.
    pub mib: u64,
    /// Bytes of a record; each of the known sizes, if none.
    pub bytes: Option<u64>,
}

impl Load {
    fn sizes(self) -> impl Iterator<Item = (u64, &'static str)> {
        let is_wanted = move |size: &(u64, &str)| self.bytes.is_none_or(|bytes| bytes == size.0);
        SIZES.into_iter().filter(is_wanted)
    }
}

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

/// Reading what lies in the page cache.
pub fn consume(plan: Plan, load: Load) -> Outcome {
    install()?;
    load.sizes().try_for_each(|size| consume_size(plan, load.mib, size))
}

fn consume_size(plan: Plan, mib: u64, (bytes, size): (u64, &str)) -> Outcome {
    let broker = KAFKA.start("consume")?;
    let topic = format!("records-{bytes}");
    create_topic(&broker, &topic)?;
    // By Kafka's own tool, so that the batches are nobody's invention.
    perf::produce(&broker, &topic, records(mib, bytes), bytes, &[])?;
    let turn = |client: Client, _| {
        let done = run(client, "read", &broker, &topic, (mib, bytes));
        Ok(figures(&format!("read {size}"), client, done, bytes))
    };
    block::run(&format!("consume-{bytes}"), plan, &READERS, turn)?;
    broker.stop()?;
    forget("consume")
}

/// Producing, acknowledged by the page cache, as Kafka does by default.
pub fn produce(plan: Plan, load: Load) -> Outcome {
    install()?;
    load.sizes().try_for_each(|size| produce_size(plan, load.mib, size))
}

fn produce_size(plan: Plan, mib: u64, (bytes, size): (u64, &str)) -> Outcome {
    let broker = KAFKA.start("produce")?;
    let turns = std::cell::Cell::new(0);
    let turn = |client: Client, _| {
        turns.set(turns.get() + 1);
        let topic = format!("produce-{}", turns.get());
        create_topic(&broker, &topic)?;
        let done = run(client, "write", &broker, &topic, (mib, bytes));
        delete_topic(&broker, &topic)?;
        Ok(figures(&format!("produce {size}"), client, done, bytes))
    };
    block::run(&format!("produce-{bytes}"), plan, &WRITERS, turn)?;
    broker.stop()?;
    forget("produce")
}

/// Gigabytes are not left behind.
fn forget(experiment: &str) -> Outcome {
    let folder = root().join("target/bench").join(experiment).join("data");
    std::fs::remove_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))
}

fn records(mib: u64, bytes: u64) -> u64 {
    (mib << 20) / bytes
}

/// What a turn found. A run that failed is named and counted, and the others go on.
fn figures(what: &str, client: Client, done: Result<Done, String>, bytes: u64) -> Vec<Figure> {
    let failed = format!("{what}: 1 if the run failed");
    let done = match done {
        Ok(done) => done,
        Err(error) => {
            println!("  FAILED: {}: {error}", client.name());
            return vec![(failed, 1.0)];
        }
    };
    let Done { records, seconds, cpu_seconds } = done;
    let mb = bytes as f64 / 1e6;
    vec![
        (format!("{what}: k records/client CPU-s"), records / cpu_seconds / 1e3),
        (format!("{what}: MB/client CPU-s"), records * mb / cpu_seconds),
        (format!("{what}: k records/s"), records / seconds / 1e3),
        (failed, 0.0),
    ]
}

fn run(
    client: Client,
    what: &str,
    broker: &Broker,
    topic: &str,
    (mib, bytes): (u64, u64),
) -> Result<Done, String> {
    let mut command = client.command();
    command.args([what, &broker.bootstrap, topic, &PARTITIONS.to_string()]);
    command.arg(records(mib.min(WARM_MIB), bytes).to_string());
    let count = records(mib, bytes);
    command.args([count.to_string(), bytes.to_string()]);
    let limit = PHASE_LIMIT + Duration::from_secs(mib / MIB_PER_SECOND_LEAST);
    let (seconds, cpu_seconds) = speed::run(command, limit)?;
    println!("  {what} {bytes} B: {seconds:.1} s, {cpu_seconds:.1} CPU-s");
    Ok(Done { records: count as f64, seconds, cpu_seconds })
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
