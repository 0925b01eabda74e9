//! How long a broker takes from its process's start to its first answer, empty and with something
//! to open, and what it holds idle.

use super::block::{self, Plan};
use super::contestant::{Contestant, KAFKA, OTTLA};
use super::load::Figure;
use super::{perf, process};
use crate::Outcome;
use crate::kafka::broker::Broker;
use std::time::Duration;

/// After this time nothing of the start is left running.
const IDLE_AFTER: Duration = Duration::from_secs(5);

/// Starts each broker on an empty folder, and again on one that holds a topic.
pub fn run(plan: Plan) -> Outcome {
    block::run("start", plan, &[KAFKA, OTTLA], turn)
}

fn turn(who: Contestant, plan: Plan) -> Result<Vec<Figure>, String> {
    let broker = who.start("start")?;
    let mut figures = vec![answered("empty", &broker)];
    std::thread::sleep(IDLE_AFTER);
    figures.push(("resident when idle, MiB".into(), process::resident_mib(broker.id())?));
    let (partitions, records) = if plan.quick { ("100", 100_000) } else { ("1000", 1_000_000) };
    perf::create_topic(&broker, "start", partitions)?;
    perf::produce(&broker, "start", records, 1000, &[])?;
    let broker = broker.restart()?;
    let holds = format!("{partitions} partitions, {} MB", records / 1000);
    figures.push(answered(&holds, &broker));
    broker.stop()?;
    Ok(figures)
}

fn answered(holds: &str, broker: &Broker) -> Figure {
    let millis = broker.start_time.as_secs_f64() * 1e3;
    (format!("start to first answer, {holds}, ms"), millis)
}
