//! Classic groups of real members: how long a rebalance takes, from the act to the last assignment.
//!
//! `matrix/python/rebalance.py` holds ten librdkafka consumers of 60 partitions and prints the
//! times of each scene; Kafka runs with its default initial delay and, apart, with none.

use super::table::Table;
use crate::Outcome;
use crate::kafka::broker::{Broker, Kind};
use crate::kafka::install::text_of;
use crate::matrix;
use crate::shell::root;

/// A broker as configured for a column of its own.
const SCENES: [(&str, Kind, &[&str]); 3] = [
    ("", Kind::Ottla, &[]),
    ("Kafka's default delay", Kind::Kafka, &["group.initial.rebalance.delay.ms=3000"]),
    ("Kafka without delay", Kind::Kafka, &["group.initial.rebalance.delay.ms=0"]),
];

/// Runs every scene, as often as asked.
pub fn run(repeat: usize) -> Outcome {
    let mut tables = [Table::default(), Table::default()];
    for _ in 0..repeat {
        for (name, kind, settings) in SCENES {
            for (scene, millis) in measure(kind, settings)? {
                println!("{kind:?} {name} {scene}: {millis} ms");
                match kind {
                    Kind::Ottla => tables.iter_mut().for_each(|t| t.add(&scene, kind, millis)),
                    Kind::Kafka => {
                        tables[usize::from(name != SCENES[1].0)].add(&scene, kind, millis);
                    }
                }
            }
        }
    }
    for (table, (name, ..)) in tables.iter().zip(&SCENES[1..]) {
        println!("{name}:\n\n{}", table.markdown());
    }
    Ok(())
}

fn measure(kind: Kind, settings: &[&str]) -> Result<Vec<(String, f64)>, String> {
    let broker = Broker::start_with(kind, &root().join("target/bench/rebalance"), settings)?;
    let mut command = matrix::python_script("rebalance.py")?;
    let text = text_of(command.arg(&broker.bootstrap))?;
    broker.stop()?;
    Ok(text.lines().filter_map(scene).collect())
}

/// A line is a scene's name, a tab and its milliseconds.
fn scene(line: &str) -> Option<(String, f64)> {
    let (name, millis) = line.split_once('\t')?;
    Some((name.to_owned(), millis.parse().ok()?))
}
