//! `coord-load`: how soon a coordinator that was killed answers for its groups again, and whether
//! it has lost anything that it had acknowledged.

use super::block::{self, Plan};
use super::contestant::{KAFKA, KAFKA_TUNED, OTTLA, OTTLA_CACHED};
use super::load;
use crate::Outcome;

/// Groups, partitions and rounds, each once on an empty broker.
type Scene = [&'static str; 3];

const QUICK: &[Scene] = &[["1000", "100", "10"], ["1", "100", "1680"]];
const FULL: &[Scene] = &[["1000", "100", "168"], ["1", "100", "16800"]];

/// Fills, kills, starts and asks.
pub fn run(plan: Plan) -> Outcome {
    let quick = [KAFKA, OTTLA_CACHED, OTTLA];
    let full = [KAFKA, KAFKA_TUNED, OTTLA_CACHED, OTTLA];
    let scenes = if plan.quick { QUICK } else { FULL };
    block::run("coord-load", plan, if plan.quick { &quick } else { &full }, |who, _| {
        let mut figures = Vec::new();
        for [groups, partitions, rounds] in scenes {
            let size = ["--groups", groups, "--partitions", partitions, "--rounds", rounds];
            let broker = who.start("coord-load")?;
            figures.extend(load::on(&broker, "fill", &size)?);
            let broker = broker.crash()?;
            let (started, data) = (broker.started_ms()?, broker.data.display().to_string());
            let asked = [&size[..], &["--started-ms", &started, "--data", &data]].concat();
            figures.extend(load::on(&broker, "recall", &asked)?);
            broker.stop()?;
        }
        Ok(figures)
    })
}
