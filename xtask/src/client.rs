//! `cargo xtask client`: the tests of the Rust client against Apache Kafka 4.4.
//!
//! They are the same that `cargo test` runs against Ottla; what they run against is told by
//! `KAFKA_BOOTSTRAP`. Tests that stop and start their broker, or speak the register protocol,
//! always have one of ours to themselves.

use crate::Outcome;
use crate::kafka::NEEDS;
use crate::kafka::broker::{Broker, Kind};
use crate::kafka::install::{Missing, ensure, in_ci};
use crate::shell::{cargo_command, root, run as run_command};

/// Starts Kafka and runs the tests, or those whose names contain the arguments.
pub fn run(arguments: &[String]) -> Outcome {
    match ensure(NEEDS) {
        Ok(()) => {}
        Err(Missing::Toolchain(reason)) if !in_ci() => {
            println!("the client's tests against Apache Kafka skipped: {reason}");
            return Ok(());
        }
        Err(Missing::Toolchain(reason) | Missing::Broken(reason)) => return Err(reason),
    }
    let broker = Broker::start(Kind::Kafka, &root().join("target/client/broker"))?;
    println!("Apache Kafka at {}, log {}", broker.bootstrap, broker.log().display());
    let mut command = cargo_command(&["test", "--quiet", "-p", "ottla-client", "--test", "it"]);
    command.arg("--").args(arguments).env("KAFKA_BOOTSTRAP", &broker.bootstrap);
    let outcome = run_command(command);
    broker.stop()?;
    outcome
}
