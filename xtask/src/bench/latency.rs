//! `latency`: from whoever writes a record to whoever reads it, at half of what Kafka can do at
//! most and with one record in flight.

use super::block::{self, Plan};
use super::contestant::{Contestant, KAFKA, OTTLA, OTTLA_CACHED};
use super::load::{self, Figure};
use crate::Outcome;
use crate::kafka::broker::Kind;
use std::cell::Cell;

/// Kafka goes first: its maximum sets the rate for all.
pub fn run(plan: Plan) -> Outcome {
    let half = Cell::new(None);
    let contestants = [KAFKA, OTTLA, OTTLA_CACHED];
    block::run("latency", plan, &contestants, |who, plan| turn(who, plan, &half))
}

fn turn(who: Contestant, plan: Plan, half: &Cell<Option<f64>>) -> Result<Vec<Figure>, String> {
    let broker = who.start("latency")?;
    let seconds = if plan.quick { "4" } else { "30" };
    // A young JVM does a third of what it does warm.
    let warm = match (who.kind, plan.quick) {
        (Kind::Ottla, _) => "1",
        (Kind::Kafka, true) => "10",
        (Kind::Kafka, false) => "60",
    };
    let most = ["--depth", "4", "--seconds", seconds, "--warm", warm];
    let mut figures = load::on(&broker, "latency", &most)?;
    let most = figures.first().map_or(0.0, |(_, most)| *most);
    let rate = half.get().unwrap_or_else(|| (most / 2.0).floor().max(1.0));
    half.set(Some(rate));
    let rate = rate.to_string();
    let by_the_clock = ["--rate", &rate, "--seconds", seconds, "--warm", "2"];
    figures.extend(load::on(&broker, "latency", &by_the_clock)?);
    let alone = ["--partitions", "1", "--depth", "1", "--seconds", seconds, "--warm", "2"];
    figures.extend(load::on(&broker, "latency", &alone)?);
    broker.stop()?;
    Ok(figures)
}
