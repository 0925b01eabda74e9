//! How long a broker takes from its process's start to its first answer, and what it holds idle.

use super::table::Table;
use super::{BROKERS, process};
use crate::Outcome;
use crate::kafka::broker::Broker;
use crate::shell::root;
use std::time::Duration;

/// After this time nothing of the start is left running.
const IDLE_AFTER: Duration = Duration::from_secs(5);

/// Starts each broker on an empty folder, as often as asked.
pub fn run(repeat: usize) -> Outcome {
    let mut table = Table::default();
    for _ in 0..repeat {
        for kind in BROKERS {
            let broker = Broker::start(kind, &root().join("target/bench/start"))?;
            table.add("start to first answer, ms", kind, millis(broker.start_time));
            std::thread::sleep(IDLE_AFTER);
            table.add("resident when idle, MiB", kind, process::resident_mib(broker.id())?);
            broker.stop()?;
        }
    }
    println!("{}", table.markdown());
    Ok(())
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}
