//! `hb-storm` and `commit-storm`: heartbeats and offset commits as fast as they are answered, per
//! CPU-second of the broker, over 64 connections.

use super::block::{self, Plan};
use super::contestant::{Contestant, KAFKA, KAFKA_TUNED, OTTLA, OTTLA_CACHED};
use super::load::{self, Figure};
use crate::Outcome;

/// Heartbeats of both protocols.
pub fn heartbeats(plan: Plan) -> Outcome {
    let all = [KAFKA, KAFKA_TUNED, OTTLA];
    block::run("hb-storm", plan, if plan.quick { &QUICK_BEATS } else { &all }, |who, plan| {
        let broker = who.start("hb-storm")?;
        let groups = if plan.quick { "20" } else { "1000" };
        let mut figures = Vec::new();
        for (protocol, groups) in [("consumer", groups), ("classic", "100")] {
            let scene = ["--protocol", protocol, "--groups", groups];
            let options = with(&scene, plan, who);
            figures.extend(load::on(&broker, "heartbeats", &refs(&options))?);
        }
        broker.stop()?;
        Ok(figures)
    })
}

const QUICK_BEATS: [Contestant; 2] = [KAFKA, OTTLA];

/// Commits of many small groups, of one hot group, and of many partitions at once.
pub fn commits(plan: Plan) -> Outcome {
    let all = [KAFKA, KAFKA_TUNED, OTTLA, OTTLA_CACHED];
    block::run("commit-storm", plan, if plan.quick { &QUICK_COMMITS } else { &all }, commit_turn)
}

const QUICK_COMMITS: [Contestant; 3] = [KAFKA, OTTLA, OTTLA_CACHED];

fn commit_turn(who: Contestant, plan: Plan) -> Result<Vec<Figure>, String> {
    let broker = who.start("commit-storm")?;
    let mut figures = Vec::new();
    for scene in [
        ["--groups", "1000", "--partitions", "1"],
        ["--groups", "1", "--partitions", "1"],
        ["--groups", "1000", "--partitions", "50"],
    ] {
        let mut options = with(&scene, plan, who);
        if plan.quick && scene != ["--groups", "1000", "--partitions", "1"] {
            options.extend(["--depth", "16"].map(str::to_owned));
        }
        if scene[1] == "1000" && scene[3] == "1" {
            options.extend(RATES.iter().flat_map(|rate| ["--rate".to_owned(), (*rate).to_owned()]));
        }
        figures.extend(load::on(&broker, "commits", &refs(&options))?);
    }
    broker.stop()?;
    Ok(figures)
}

/// Requests a second by the clock: what every broker can do, and what not every one can.
const RATES: [&str; 2] = ["5000", "20000"];

/// The scene's options, with how long it runs and how long a JVM is warmed before.
fn with(scene: &[&str], plan: Plan, who: Contestant) -> Vec<String> {
    let warm = match (who.kind, plan.quick) {
        (crate::kafka::broker::Kind::Ottla, _) => "0",
        (_, true) => "5",
        (_, false) => "60",
    };
    let seconds = if plan.quick { "2" } else { "5" };
    let options = ["--seconds", seconds, "--warm", warm];
    scene.iter().chain(&options).map(|word| (*word).to_owned()).collect()
}

fn refs(options: &[String]) -> Vec<&str> {
    options.iter().map(String::as_str).collect()
}
