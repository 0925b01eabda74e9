//! `reb`: rebalances of virtual members with the timing of the Java client, consumer protocol and
//! classic, at sizes that real clients do not reach on one machine.

use super::block::{self, Plan};
use super::contestant::{Contestant, KAFKA, KAFKA_OUR_DELAY, KAFKA_TUNED, OTTLA};
use super::load::{self, Figure};
use crate::Outcome;

/// One scene: its members, partitions and acts.
struct Scene(&'static [&'static str]);

const QUICK: &[Scene] = &[
    Scene(&["--members", "10", "--partitions", "100", "--acts", "join:1,leave:1,grow:100"]),
    Scene(&["--members", "100", "--partitions", "1000", "--acts", "join:1"]),
];
const QUICK_CLASSIC: &[Scene] =
    &[Scene(&["--members", "50", "--partitions", "500", "--acts", "join:1,leave:1"])];

const FULL: &[Scene] = &[
    Scene(&["--members", "10", "--partitions", "100", "--acts", "join:1,leave:1,grow:900"]),
    Scene(&[
        "--members",
        "100",
        "--partitions",
        "1000",
        "--acts",
        "join:1,leave:1,join:50,leave:50",
        "--revoke-ms",
        "10",
    ]),
    Scene(&["--members", "1000", "--partitions", "5000", "--acts", "join:1,leave:1,restart:100"]),
    Scene(&["--members", "1000", "--partitions", "50000", "--topics", "1000"]),
    Scene(&["--members", "5000", "--partitions", "5000", "--acts", "join:1,leave:1"]),
];
const FULL_CLASSIC: &[Scene] = &[
    Scene(&["--members", "10", "--partitions", "60", "--acts", "join:1,leave:1"]),
    Scene(&["--members", "50", "--partitions", "500", "--acts", "join:1,leave:1"]),
    Scene(&["--members", "1000", "--partitions", "1000", "--acts", "join:1,leave:1"]),
];

/// Every scene on each broker.
pub fn run(plan: Plan) -> Outcome {
    let quick = [KAFKA, OTTLA];
    let full = [KAFKA, KAFKA_TUNED, OTTLA];
    let consumer = if plan.quick { QUICK } else { FULL };
    block::run("reb", plan, if plan.quick { &quick } else { &full }, |who, plan| {
        turn(who, plan, "consumer", consumer)
    })?;
    let quick = [KAFKA_OUR_DELAY, OTTLA];
    let full = [KAFKA, KAFKA_OUR_DELAY, OTTLA];
    let classic = if plan.quick { QUICK_CLASSIC } else { FULL_CLASSIC };
    block::run("reb-classic", plan, if plan.quick { &quick } else { &full }, |who, plan| {
        turn(who, plan, "classic", classic)
    })
}

fn turn(
    who: Contestant,
    plan: Plan,
    protocol: &str,
    scenes: &[Scene],
) -> Result<Vec<Figure>, String> {
    let broker = who.start("reb")?;
    let pause = if protocol == "classic" { "3000" } else { "5000" };
    let steady = if plan.quick { "5" } else { "30" };
    let mut options = vec!["--protocol", protocol, "--pause-ms", pause, "--steady", steady];
    if !plan.quick {
        // A young JVM is not what is compared.
        let warm = ["--members", "200", "--partitions", "1000", "--steady", "60"];
        load::on(&broker, "rebalance", &[&["--protocol", protocol], &warm[..]].concat())?;
    }
    let mut figures = Vec::new();
    for Scene(scene) in scenes {
        options.truncate(6);
        options.extend(*scene);
        figures.extend(load::on(&broker, "rebalance", &options)?);
    }
    broker.stop()?;
    Ok(figures)
}
