//! `memory`: bytes of an offset, an empty group and a member.

use super::block::{self, Plan};
use super::contestant::{KAFKA, OTTLA};
use super::load;
use crate::Outcome;
use crate::kafka::broker::Kind;

/// Fills each broker with groups.
pub fn run(plan: Plan) -> Outcome {
    block::run("memory", plan, &[KAFKA, OTTLA], |who, plan| {
        let broker = who.start("memory")?;
        let (groups, peopled) = if plan.quick { ("500", "20") } else { ("10000", "1000") };
        let mut options = vec!["--groups", groups, "--peopled", peopled];
        if who.kind == Kind::Kafka {
            options.push("--jvm");
        }
        let figures = load::on(&broker, "memory", &options)?;
        broker.stop()?;
        Ok(figures)
    })
}
