//! Producing and fetching with Kafka's own perf tools as clients, under the same durability.
//!
//! Twice: acknowledged from memory, as Kafka does by default, and synced before each
//! acknowledgement, as we do by default.

use super::block::{self, Plan};
use super::contestant::{Contestant, KAFKA, KAFKA_SYNCED, KAFKA_TUNED, OTTLA, OTTLA_CACHED};
use super::load::Figure;
use super::process;
use crate::Outcome;
use crate::kafka::broker::Broker;
use crate::kafka::install::{quiet, text_of};
use crate::kafka::java_class;

/// One load: records of a size, and how many; partitions; the bytes of a batch.
struct Load {
    name: &'static str,
    bytes: u32,
    records: u32,
    partitions: &'static str,
    batch: &'static str,
}

const QUICK: &[Load] = &[
    Load::of("100 B", 100, 3_000_000, "16", "16384"),
    Load::of("1 KB", 1000, 600_000, "16", "16384"),
];
const FULL: &[Load] = &[
    Load::of("100 B", 100, 5_000_000, "16", "16384"),
    Load::of("1 KB", 1000, 1_000_000, "16", "16384"),
    Load::of("1 KB, batches of 128 KiB", 1000, 1_000_000, "16", "131072"),
    Load::of("1 KB, 1 partition", 1000, 1_000_000, "1", "16384"),
    Load::of("1 KB, 1,000 partitions", 1000, 1_000_000, "1000", "16384"),
    Load::of("100 B, a record a batch", 100, 200_000, "16", "0"),
];
const SYNCED: &[Load] = &[Load::of("1 KB, fsync", 1000, 300_000, "16", "16384")];

impl Load {
    const fn of(
        name: &'static str,
        bytes: u32,
        records: u32,
        partitions: &'static str,
        batch: &'static str,
    ) -> Self {
        Self { name, bytes, records, partitions, batch }
    }
}

/// Every load on each broker, from memory and synced.
pub fn run(plan: Plan) -> Outcome {
    let quick = [KAFKA, OTTLA_CACHED];
    let full = [KAFKA, KAFKA_TUNED, OTTLA_CACHED];
    let loads = if plan.quick { QUICK } else { FULL };
    block::run("pf", plan, if plan.quick { &quick } else { &full }, |who, _| turn(who, loads))?;
    block::run("pf-fsync", plan, &[KAFKA_SYNCED, OTTLA], |who, _| turn(who, SYNCED))
}

fn turn(who: Contestant, loads: &[Load]) -> Result<Vec<Figure>, String> {
    let mut figures = Vec::new();
    for load in loads {
        let broker = who.start("pf")?;
        create_topic(&broker, TOPIC, load.partitions)?;
        let batch = format!("batch.size={}", load.batch);
        let write = || produce(&broker, TOPIC, load.records.into(), load.bytes.into(), &[&batch]);
        // A young JVM does a third of what it does warm.
        write()?;
        figures.extend(timed(load, "produce", &broker, write)?);
        figures.extend(timed(load, "fetch", &broker, || consume(&broker, load))?);
        broker.stop()?;
    }
    Ok(figures)
}

fn timed(
    load: &Load,
    what: &str,
    broker: &Broker,
    work: impl FnOnce() -> Result<f64, String>,
) -> Result<Vec<Figure>, String> {
    let cpu = process::cpu_seconds(broker.id())?;
    let per_second = work()?;
    let spent = (process::cpu_seconds(broker.id())? - cpu).max(0.01);
    let (records, mb) = (f64::from(load.records), f64::from(load.bytes) / 1e6);
    let name = load.name;
    Ok(vec![
        (format!("{what} {name}: records/s"), per_second),
        (format!("{what} {name}: MB/s"), per_second * mb),
        (format!("{what} {name}: records/broker CPU-s"), records / spent),
        (format!("{what} {name}: MB/broker CPU-s"), records * mb / spent),
    ])
}

/// Creates a topic with Kafka's own tool.
pub fn create_topic(broker: &Broker, topic: &str, partitions: &str) -> Outcome {
    let mut command = java_class("org.apache.kafka.tools.TopicCommand")?;
    command.args(["--create", "--topic", topic, "--partitions", partitions]);
    quiet(command.args(["--bootstrap-server", &broker.bootstrap]))
}

/// Records per second by the tool's last line.
pub fn produce(
    broker: &Broker,
    topic: &str,
    records: u64,
    bytes: u64,
    settings: &[&str],
) -> Result<f64, String> {
    let mut command = java_class("org.apache.kafka.tools.ProducerPerformance")?;
    command.args(["--topic", topic, "--throughput", "-1"]);
    command.args(["--num-records", &records.to_string()]);
    command.args(["--record-size", &bytes.to_string()]);
    let bootstrap = format!("bootstrap.servers={}", broker.bootstrap);
    command.args(["--command-property", &bootstrap, "acks=all", "linger.ms=5"]).args(settings);
    let text = text_of(&mut command)?;
    let last = text.lines().rev().find(|line| line.contains("records/sec"));
    let figure = last.and_then(|line| {
        line.split(", ").find_map(|part| part.split_once(" records/sec")?.0.trim().parse().ok())
    });
    figure.ok_or_else(|| format!("ProducerPerformance printed no figure:\n{text}"))
}

/// Records per second by the tool's line, the time to join the group left out.
fn consume(broker: &Broker, load: &Load) -> Result<f64, String> {
    let mut command = java_class("org.apache.kafka.tools.ConsumerPerformance")?;
    command.args(["--bootstrap-server", &broker.bootstrap, "--topic", TOPIC]);
    command.args(["--num-records", &load.records.to_string(), "--hide-header"]);
    let text = text_of(&mut command)?;
    // start, end, MB, MB/s, records, records/s, rebalance ms, fetch ms, fetch MB/s, fetch records/s
    let last = text.lines().rev().find(|line| line.split(", ").count() >= 10);
    let figure = last.and_then(|line| line.split(", ").nth(9)?.trim().parse().ok());
    figure.ok_or_else(|| format!("ConsumerPerformance printed no figure:\n{text}"))
}

const TOPIC: &str = "perf";
