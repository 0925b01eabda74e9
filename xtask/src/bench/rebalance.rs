//! Classic groups of real members: how long a rebalance takes, from the act to the last assignment.
//!
//! `matrix/python/rebalance.py` holds ten librdkafka consumers of 60 partitions and prints the
//! times of each scene; Kafka runs with its default initial delay and, apart, with ours.
//!
//! The group stands for 4 to 8 s between two acts. librdkafka sends its first heartbeat an interval
//! (3 s) after it has joined: with a pause of 2 s no heartbeat was on its way whose answer could
//! have told of the act, and what was measured was the rest of that interval, on every broker.

use super::block::{self, Plan};
use super::contestant::{KAFKA, KAFKA_OUR_DELAY, OTTLA};
use crate::Outcome;
use crate::kafka::install::text_of;
use crate::matrix;

/// Every scene on each broker.
pub fn run(plan: Plan) -> Outcome {
    block::run("rebalance", plan, &[KAFKA, KAFKA_OUR_DELAY, OTTLA], |who, _| {
        let broker = who.start("rebalance")?;
        let mut command = matrix::python_script("rebalance.py")?;
        let text = text_of(command.args([&broker.bootstrap, "classic", "10", "60", "4"]))?;
        broker.stop()?;
        Ok(text.lines().filter_map(scene).collect())
    })
}

/// A line is a scene's name, a tab and its milliseconds.
fn scene(line: &str) -> Option<(String, f64)> {
    let (name, millis) = line.split_once('\t')?;
    Some((name.to_owned(), millis.parse().ok()?))
}
