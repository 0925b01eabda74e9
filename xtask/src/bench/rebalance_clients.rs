//! `reb-clients`: rebalances of groups of real, unmodified clients in the consumer protocol, at
//! sizes that one machine bears.
//!
//! Each client has a program that holds the members in one process (`matrix/python/rebalance.py`
//! says what it does) and prints the times of each scene.

use super::block::{self, Plan};
use super::contestant::{Contestant, KAFKA, KAFKA_TUNED, OTTLA};
use super::load::Figure;
use crate::Outcome;
use crate::kafka;
use crate::kafka::install::text_of;
use crate::matrix::java::{classes, compile};
use crate::matrix::{build_go, python_script};
use crate::shell::{cargo, root};
use std::process::Command;

/// Whose members they are.
#[derive(Clone, Copy)]
enum Members {
    Java,
    Librdkafka,
    FranzGo,
    Ottla,
}

const ALL: [(Members, &str); 4] = [
    (Members::Java, "Java 4.4"),
    (Members::Librdkafka, "librdkafka"),
    (Members::FranzGo, "franz-go"),
    (Members::Ottla, "Ottla's"),
];

/// Longer than any heartbeat interval: whatever came before has settled.
const PAUSE_S: &str = "6";

/// Every scene with each client on each broker.
pub fn run(plan: Plan) -> Outcome {
    build_go()?;
    compile("rebalance", &["matrix/java/Rebalance.java"], &kafka::jars()?)?;
    cargo(&["build", "--release", "--quiet", "-p", "ottla-client", "--example", "rebalance"])?;
    let quick = [KAFKA, OTTLA];
    let full = [KAFKA, KAFKA_TUNED, OTTLA];
    let sizes: &[(u32, u32)] = if plan.quick { &[(10, 60)] } else { &[(10, 60), (50, 300)] };
    block::run("reb-clients", plan, if plan.quick { &quick } else { &full }, |who, _| {
        let turns = sizes.iter().flat_map(|size| ALL.iter().map(move |of| (of, size)));
        let figures = turns.map(|((members, name), size)| turn(who, *members, name, *size));
        Ok(figures.collect::<Result<Vec<_>, _>>()?.concat())
    })
}

/// A broker of its own for each group: nobody meets what another left behind.
fn turn(
    who: Contestant,
    members: Members,
    name: &str,
    (count, partitions): (u32, u32),
) -> Result<Vec<Figure>, String> {
    let broker = who.start("reb-clients")?;
    let mut command = members.command()?;
    command.args([&broker.bootstrap, "consumer", &count.to_string(), &partitions.to_string()]);
    let text = text_of(command.arg(PAUSE_S))?;
    broker.stop()?;
    // A line is a scene's name, a tab and its milliseconds.
    let figures = text.lines().filter_map(|line| {
        let (scene, millis) = line.split_once('\t')?;
        let millis = millis.parse().ok()?;
        println!("  {name}, {count} members: {scene} {millis}");
        Some((format!("{name}, {count} members: {scene}"), millis))
    });
    Ok(figures.collect())
}

impl Members {
    fn command(self) -> Result<Command, String> {
        Ok(match self {
            Self::Java => {
                let log4j = root().join("matrix/kafka/log4j2.xml");
                let libs = kafka::jars()?;
                let path = format!("{}:{}/*", classes("rebalance").display(), libs.display());
                let mut command = Command::new("java");
                command.arg(format!("-Dlog4j2.configurationFile={}", log4j.display()));
                command.args(["-Xmx1g", "-cp", &path, "Rebalance"]);
                command
            }
            Self::Librdkafka => python_script("rebalance.py")?,
            Self::FranzGo => Command::new(root().join("target/matrix/go/rebalance")),
            Self::Ottla => Command::new(root().join("target/release/examples/rebalance")),
        })
    }
}
