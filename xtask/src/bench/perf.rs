//! Producing and fetching with Kafka's own perf tools as clients, under the same durability.
//!
//! Twice: acknowledged from memory, as Kafka does by default, and synced before each
//! acknowledgement, as we do by default.

use super::table::Table;
use super::{BROKERS, process};
use crate::Outcome;
use crate::kafka::broker::{Broker, Kind};
use crate::kafka::install::{quiet, text_of};
use crate::kafka::java_class;
use crate::shell::root;
use std::time::Instant;

const PARTITIONS: &str = "16";

/// One load: record size in bytes and how many, by durability.
const LOADS: [Load; 3] = [
    Load { name: "100 B, page cache", bytes: 100, records: 5_000_000, synced: false },
    Load { name: "1 KB, page cache", bytes: 1000, records: 1_000_000, synced: false },
    Load { name: "1 KB, fsync", bytes: 1000, records: 300_000, synced: true },
];

struct Load {
    name: &'static str,
    bytes: u32,
    records: u32,
    synced: bool,
}

/// Runs every load on each broker in turn.
pub fn run(repeat: usize) -> Outcome {
    let mut table = Table::default();
    for _ in 0..repeat {
        for load in &LOADS {
            for kind in BROKERS {
                measure(kind, load, &mut table)?;
            }
        }
        println!("{}", table.markdown());
    }
    Ok(())
}

fn measure(kind: Kind, load: &Load, table: &mut Table) -> Outcome {
    let settings: &[&str] = match (kind, load.synced) {
        (Kind::Ottla, false) => &["durability=page-cache"],
        (Kind::Kafka, true) => &["log.flush.interval.messages=1"],
        _ => &[],
    };
    let broker = Broker::start_with(kind, &root().join("target/bench/perf"), settings)?;
    create_topic(&broker)?;
    // A young JVM does a third of what it does warm.
    produce(&broker, load)?;
    timed(kind, load, "produce", &broker, table, || produce(&broker, load))?;
    timed(kind, load, "fetch", &broker, table, || consume(&broker, load))?;
    broker.stop().map(drop)
}

fn timed(
    kind: Kind,
    load: &Load,
    what: &str,
    broker: &Broker,
    table: &mut Table,
    work: impl FnOnce() -> Result<f64, String>,
) -> Outcome {
    let (cpu, started) = (process::cpu_seconds(broker.id())?, Instant::now());
    let per_second = work()?;
    let spent = process::cpu_seconds(broker.id())? - cpu;
    let (records, mb) = (f64::from(load.records), f64::from(load.bytes) / 1e6);
    let name = load.name;
    println!("{kind:?} {what} {name}: {:.1} s", started.elapsed().as_secs_f64());
    table.add(&format!("{what} {name}: k records/s"), kind, per_second / 1e3);
    table.add(&format!("{what} {name}: MB/s"), kind, per_second * mb);
    table.add(&format!("{what} {name}: k records/broker CPU-s"), kind, records / spent / 1e3);
    Ok(())
}

fn create_topic(broker: &Broker) -> Outcome {
    let mut command = java_class("org.apache.kafka.tools.TopicCommand")?;
    command.args(["--create", "--topic", "perf", "--partitions", PARTITIONS]);
    quiet(command.args(["--bootstrap-server", &broker.bootstrap]))
}

/// Records per second by the tool's last line.
fn produce(broker: &Broker, load: &Load) -> Result<f64, String> {
    let mut command = java_class("org.apache.kafka.tools.ProducerPerformance")?;
    command.args(["--topic", "perf", "--throughput", "-1"]);
    command.args(["--num-records", &load.records.to_string()]);
    command.args(["--record-size", &load.bytes.to_string()]);
    let bootstrap = format!("bootstrap.servers={}", broker.bootstrap);
    command.args(["--command-property", &bootstrap, "acks=all", "linger.ms=5"]);
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
    command.args(["--bootstrap-server", &broker.bootstrap, "--topic", "perf"]);
    command.args(["--num-records", &load.records.to_string(), "--hide-header"]);
    let text = text_of(&mut command)?;
    // start, end, MB, MB/s, records, records/s, rebalance ms, fetch ms, fetch MB/s, fetch records/s
    let last = text.lines().rev().find(|line| line.split(", ").count() >= 10);
    let figure = last.and_then(|line| line.split(", ").nth(9)?.trim().parse().ok());
    figure.ok_or_else(|| format!("ConsumerPerformance printed no figure:\n{text}"))
}
