//! `crowd`: very many groups at rest on one broker, and a giant one that starts beside them.

use super::block::{self, Plan};
use super::contestant::{KAFKA, OTTLA};
use super::load;
use crate::Outcome;
use crate::kafka::broker::Kind;

const QUICK: &[&str] = &["--groups", "100", "--members", "20", "--giants", "500", "--seconds", "5"];
const FULL: &[&str] = &["--groups", "1000", "--members", "100", "--giants", "5000"];

/// One crowd and one giant per turn, on a broker started for it.
pub fn run(plan: Plan) -> Outcome {
    block::run("crowd", plan, &[KAFKA, OTTLA], |who, plan| {
        let broker = who.start("crowd")?;
        let mut options = if plan.quick { QUICK } else { FULL }.to_vec();
        if who.kind == Kind::Kafka {
            options.extend(["--jvm", "--warm", if plan.quick { "5" } else { "60" }]);
        }
        let figures = load::on(&broker, "crowd", &options)?;
        broker.stop()?;
        Ok(figures)
    })
}
