//! Who is measured: each broker with a set of settings, and the column it fills.

use crate::kafka::broker::{Broker, Kind};
use crate::shell::root;
use std::fs;

/// A broker with settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Contestant {
    /// The head of its column.
    pub name: &'static str,
    /// Which broker.
    pub kind: Kind,
    profile: Profile,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Profile {
    Defaults,
    /// `matrix/kafka/tuned.properties`.
    Tuned,
    /// Acknowledged from memory, as Kafka does by default.
    PageCache,
    /// Synced before it is acknowledged, as we do by default.
    Synced,
    /// Classic groups wait as long at first as ours do.
    OurDelay,
}

/// Apache Kafka as it comes.
pub const KAFKA: Contestant =
    Contestant { name: "Kafka 4.4", kind: Kind::Kafka, profile: Profile::Defaults };
/// Apache Kafka with `matrix/kafka/tuned.properties`.
pub const KAFKA_TUNED: Contestant =
    Contestant { name: "Kafka 4.4 tuned", kind: Kind::Kafka, profile: Profile::Tuned };
/// Apache Kafka with our durability.
pub const KAFKA_SYNCED: Contestant =
    Contestant { name: "Kafka 4.4, fsync", kind: Kind::Kafka, profile: Profile::Synced };
/// Apache Kafka with our initial delay of classic groups.
pub const KAFKA_OUR_DELAY: Contestant =
    Contestant { name: "Kafka 4.4, delay 100 ms", kind: Kind::Kafka, profile: Profile::OurDelay };
/// Ours with Kafka's durability.
pub const OTTLA_CACHED: Contestant =
    Contestant { name: "Ottla, page cache", kind: Kind::Ottla, profile: Profile::PageCache };
/// Ours as it comes: what is acknowledged is on the disk.
pub const OTTLA: Contestant =
    Contestant { name: "Ottla", kind: Kind::Ottla, profile: Profile::Defaults };

impl Contestant {
    /// Starts it on an empty folder of the experiment's.
    pub fn start(self, experiment: &str) -> Result<Broker, String> {
        let settings = self.settings()?;
        let settings: Vec<&str> = settings.iter().map(String::as_str).collect();
        Broker::start_with(self.kind, &root().join("target/bench").join(experiment), &settings)
    }

    fn settings(self) -> Result<Vec<String>, String> {
        let mut settings: Vec<String> = Vec::new();
        if self.kind == Kind::Kafka {
            settings.extend(JVM.iter().map(|flag| (*flag).to_owned()));
            settings.push("group.initial.rebalance.delay.ms=3000".into());
        }
        match self.profile {
            Profile::Defaults => {}
            Profile::Synced => settings.push("log.flush.interval.messages=1".into()),
            Profile::PageCache => settings.push("durability=page-cache".into()),
            Profile::OurDelay => settings.push("group.initial.rebalance.delay.ms=100".into()),
            Profile::Tuned => settings.extend(tuned()?),
        }
        Ok(settings)
    }
}

fn tuned() -> Result<Vec<String>, String> {
    let path = root().join("matrix/kafka/tuned.properties");
    let text = fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    let lines = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    Ok(lines.map(str::to_owned).collect())
}

/// Heap and flags of Kafka's own start script.
const JVM: &[&str] = &[
    "-Xms2g",
    "-Xmx2g",
    "-server",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
];
