//! `cargo xtask bench`: Apache Kafka 4.4 and our broker side by side, in one run.
//!
//! The brokers take turns (A B A B ...), each experiment prints the median and the range of its
//! repetitions and the ratio of the medians. It prints figures; it never passes or fails on them.

mod assign;
mod block;
mod clients;
mod contestant;
mod crowd;
mod goals;
pub mod instructions;
mod latency;
mod load;
mod memory;
mod perf;
mod plot;
pub mod process;
mod rebalance;
mod rebalance_clients;
mod rebalances;
mod recall;
mod results;
mod sheet;
mod speed;
mod start;
mod storms;

use crate::Outcome;
use crate::kafka::NEEDS;
use crate::kafka::install::{Missing, ensure};
use block::Plan;
use clients::Load;

const USAGE: &str = "\
usage: cargo xtask bench NAME [--quick] [--repeat N] [--mib N] [--bytes 100|1000]

  all           every one below in turn
  limits        what the machine can do right now, without any broker
  start         process start to first answer, resident memory when idle
  hb-storm      heartbeats per broker CPU-second, both protocols
  commit-storm  offset commits per broker CPU-second, checked
  coord-load    a killed coordinator: from its start to the first correct OffsetFetch and to all
  latency       from writer to reader at half of Kafka's maximum, and one record in flight
  crowd         1,000 groups of 100 members at rest, then a giant group beside them
  memory        bytes of an offset, an empty group, a member
  reb           rebalances of virtual members with the timing of the Java client
  reb-clients   the same of real clients in the consumer protocol: Java, librdkafka, franz-go,
                ours; all start, one joins, one leaves, partitions doubled
  pf            Kafka's own perf tools as clients: records per second and per broker CPU-second
  rebalance     classic groups of librdkafka members: all start, one joins, one leaves
  consume       records per client CPU-second read from Kafka: ours beside librdkafka, franz-go,
                Java; --mib of each record size (full: 10240, quick: 300), or of --bytes only;
                a run past its limit of time is killed, named and counted
  produce       the same for producing
  assign        the server assignors beside Kafka's own, on the grid of its bench
  goals         every goal beside what the last runs measured (nothing is run)
  plot          the plots of docs/bench, drawn anew from the last runs (nothing is run)
  instructions  instructions of the hot paths beside those recorded (--record: write them)

Quick runs take minutes and stay in target/bench/results; full ones write docs/bench.";

/// Runs the named experiment.
pub fn run(arguments: &[String]) -> Outcome {
    let (name, rest) = arguments.split_first().ok_or(USAGE)?;
    // These need no broker.
    match name.as_str() {
        "goals" => return goals::run(),
        "instructions" => return instructions::run(rest),
        "plot" => return plot::run(),
        _ => {}
    }
    // It has sizes of its own instead of repetitions.
    let (plan, load) = match name.as_str() {
        "assign" => plan(&[])?,
        _ => plan(rest)?,
    };
    if let Err(Missing::Toolchain(reason) | Missing::Broken(reason)) = ensure(NEEDS) {
        return Err(format!("Apache Kafka cannot run here: {reason}"));
    }
    println!("{}", process::machine());
    match name.as_str() {
        "all" => ALL.iter().try_for_each(|name| timed(name, plan, load)),
        "assign" => assign::run(rest),
        name => experiment(name, plan, load),
    }
}

/// What `all` runs, cheapest first.
const ALL: &[&str] = &[
    "limits",
    "start",
    "instructions",
    "memory",
    "hb-storm",
    "commit-storm",
    "coord-load",
    "latency",
    "crowd",
    "reb",
    "reb-clients",
    "rebalance",
    "pf",
    "consume",
    "produce",
    "assign",
];

fn timed(name: &str, plan: Plan, load: Load) -> Outcome {
    let begun = std::time::Instant::now();
    println!("\n== {name}");
    experiment(name, plan, load)?;
    println!("== {name} took {} s", begun.elapsed().as_secs());
    Ok(())
}

fn experiment(name: &str, plan: Plan, load: Load) -> Outcome {
    match name {
        "assign" if plan.quick => assign::run(&["--quick".to_owned()]),
        "assign" => assign::run(&[]),
        "coord-load" => recall::run(plan),
        "consume" => clients::consume(plan, load),
        "produce" => clients::produce(plan, load),
        "commit-storm" => storms::commits(plan),
        "crowd" => crowd::run(plan),
        "hb-storm" => storms::heartbeats(plan),
        "instructions" => instructions::run(&[]),
        "latency" => latency::run(plan),
        "limits" => limits(),
        "memory" => memory::run(plan),
        "perf" | "pf" => perf::run(plan),
        "reb" => rebalances::run(plan),
        "reb-clients" => rebalance_clients::run(plan),
        "rebalance" => rebalance::run(plan),
        "start" => start::run(plan),
        _ => Err(USAGE.into()),
    }
}

fn limits() -> Outcome {
    for (name, figure) in block::limits()? {
        println!("{name}: {figure:.2}");
    }
    Ok(())
}

/// The plan, and how much data `consume` and `produce` move.
fn plan(flags: &[String]) -> Result<(Plan, Load), String> {
    let quick = flags.iter().any(|flag| flag == "--quick");
    let mut plan = Plan { quick, repeat: if quick { 1 } else { 5 } };
    let mut load = Load { mib: if quick { 300 } else { 10 << 10 }, bytes: None };
    let mut flags = flags.iter().filter(|flag| *flag != "--quick");
    while let Some(flag) = flags.next() {
        let count = flags.next().and_then(|count| count.parse().ok()).ok_or(USAGE)?;
        match flag.as_str() {
            "--repeat" => plan.repeat = usize::try_from(count).map_err(|_| USAGE)?,
            "--mib" => load.mib = count,
            "--bytes" => load.bytes = Some(count),
            _ => return Err(USAGE.into()),
        }
    }
    Ok((plan, load))
}
