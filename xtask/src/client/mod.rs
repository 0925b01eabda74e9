//! `cargo xtask client`: the Rust client against Apache Kafka 4.4.
//!
//! The tests are the same that `cargo test` runs against Ottla; what they run against is told by
//! `KAFKA_BOOTSTRAP`. Tests that stop and start their broker, or speak the register protocol,
//! always have one of ours to themselves. A second Kafka has the consumer protocol switched off.
//! Then there are groups of our members and of other clients', on both brokers.

use crate::Outcome;
use crate::kafka::NEEDS;
use crate::kafka::broker::{Broker, Kind};
use crate::kafka::install::{Missing, ensure, in_ci};
use crate::matrix::mixed;
use crate::shell::{cargo_command, root, run as run_command};

/// What a Kafka without the consumer protocol is set to.
const CLASSIC_ALONE: &str = "group.coordinator.rebalance.protocols=classic";
/// The tests that are for such a Kafka.
const FALLBACK: &[&str] = &["--include-ignored", "switched_off", "kip848"];

/// Starts the brokers and runs everything, or the tests whose names contain the arguments.
pub fn run(arguments: &[String]) -> Outcome {
    match ensure(NEEDS) {
        Ok(()) => {}
        Err(Missing::Toolchain(reason)) if !in_ci() => {
            println!("the client's tests against Apache Kafka skipped: {reason}");
            return Ok(());
        }
        Err(Missing::Toolchain(reason) | Missing::Broken(reason)) => return Err(reason),
    }
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["fallback"] => tests(&[CLASSIC_ALONE], FALLBACK),
        ["mixed", "kafka"] => mixed::run(Kind::Kafka),
        ["mixed", "ottla"] => mixed::run(Kind::Ottla),
        [] => {
            tests(&[], &[])?;
            tests(&[CLASSIC_ALONE], FALLBACK)?;
            mixed::run(Kind::Ottla)?;
            mixed::run(Kind::Kafka)
        }
        _ => tests(&[], &words),
    }
}

/// Runs the selected tests against a Kafka with these settings.
fn tests(settings: &[&str], selection: &[&str]) -> Outcome {
    let folder = root().join("target/client/broker");
    let broker = Broker::start_with(Kind::Kafka, &folder, settings)?;
    println!("Apache Kafka at {}, log {} {settings:?}", broker.bootstrap, broker.log().display());
    let mut command = cargo_command(&["test", "--quiet", "-p", "ottla-client", "--test", "it"]);
    command.arg("--").args(selection).env("KAFKA_BOOTSTRAP", &broker.bootstrap);
    let outcome = run_command(command);
    broker.stop()?;
    outcome
}
