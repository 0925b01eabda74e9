//! `cargo xtask bench`: Apache Kafka 4.4 and our broker side by side, in one run.
//!
//! The brokers take turns (A B A B ...), each experiment prints the median and the range of its
//! repetitions and the ratio of the medians. It prints figures; it never passes or fails on them.

mod assign;
mod perf;
pub mod process;
mod rebalance;
mod start;
mod table;

use crate::Outcome;
use crate::kafka::NEEDS;
use crate::kafka::broker::Kind;
use crate::kafka::install::{Missing, ensure};

const USAGE: &str = "\
usage: cargo xtask bench start|perf|rebalance [--repeat N]
       cargo xtask bench assign [--quick]

  start       process start to first answer, resident memory when idle
  perf        Kafka's own perf tools as clients: records per second and per broker CPU-second
  rebalance   classic groups of librdkafka members: all start, one joins, one leaves
  assign      the server assignors beside Kafka's own, on the grid of its bench";

/// The brokers in the order in which they take turns.
const BROKERS: [Kind; 2] = [Kind::Kafka, Kind::Ottla];

/// Runs the named experiment.
pub fn run(arguments: &[String]) -> Outcome {
    let (name, rest) = arguments.split_first().ok_or(USAGE)?;
    let repeat = match rest {
        _ if name == "assign" => 0,
        [] => 5,
        [flag, count] if flag == "--repeat" => count.parse().map_err(|_| USAGE)?,
        _ => return Err(USAGE.into()),
    };
    if let Err(Missing::Toolchain(reason) | Missing::Broken(reason)) = ensure(NEEDS) {
        return Err(format!("Apache Kafka cannot run here: {reason}"));
    }
    println!("{}", process::machine());
    match name.as_str() {
        "assign" => assign::run(rest),
        "start" => start::run(repeat),
        "perf" => perf::run(repeat),
        "rebalance" => rebalance::run(repeat),
        _ => Err(USAGE.into()),
    }
}
