//! `goals`: every goal of the project with what was measured, met or not.

use super::results::{Results, sorted};
use super::sheet::median;
use crate::Outcome;
use crate::shell::root;
use serde_json::Value;
use std::fs;

/// One ratio to reach.
struct Goal {
    id: &'static str,
    what: &'static str,
    bench: &'static str,
    /// Words that name our figure.
    figure: &'static [&'static str],
    ours: &'static str,
    against: Against,
    /// Whether a larger figure is the better one.
    more: bool,
    mark: f64,
}

/// What our figure is held against.
enum Against {
    /// The same figure of this contestant.
    Theirs(&'static str),
    /// Another figure of our own.
    Figure(&'static [&'static str]),
    /// A limit of the machine in the same run, scaled to the figure's unit.
    Limit(&'static str, f64),
}

/// Prints one row per goal.
pub fn run() -> Outcome {
    println!("| goal | | mark | measured | |\n|---|---|---|---|---|");
    for goal in GOALS {
        println!("{}", goal.row());
    }
    println!("{}", assignors());
    println!();
    let mut benches: Vec<&str> = GOALS.iter().map(|goal| goal.bench).collect();
    benches.dedup();
    for bench in benches {
        if let Some(results) = Results::of(bench) {
            println!("- `{bench}` {}", results.origin());
        }
    }
    Ok(())
}

/// The assignors have a grid of their own: in how many of its cells the mark is reached.
fn assignors() -> String {
    let read = |name| {
        let path = root().join(format!("target/bench/assign-{name}.json"));
        serde_json::from_str::<Value>(&fs::read_to_string(path).ok()?).ok()
    };
    let measured = match read("full").or_else(|| read("quick")) {
        None => "not measured".to_owned(),
        Some(all) => {
            let cells: Vec<&Value> = all["cells"].as_array().into_iter().flatten().collect();
            let is_reached = |cell: &&&Value| {
                let [kafka, ours] = ["kafka", "ottla"].map(|who| middle(&cell["assignor_us"][who]));
                ours.zip(kafka).is_some_and(|(ours, kafka)| kafka >= 10.0 * ours)
            };
            let reached = cells.iter().filter(is_reached).count();
            format!("{reached} of {} cells", cells.len())
        }
    };
    format!(
        "| G1a | assignors, Kafka's own grid, to Kafka 4.4 | 10x in every cell | {measured} | |"
    )
}

fn middle(figures: &Value) -> Option<f64> {
    median(&sorted(figures))
}

/// How many times better than Kafka each goal was reached, with its mark; for the plot.
pub fn reached() -> Vec<(String, f64, f64)> {
    let of_kafka = |goal: &&Goal| matches!(goal.against, Against::Theirs(_));
    let named =
        |goal: &Goal| Some((format!("{} {}", goal.id, goal.what), goal.ratio()?, goal.mark));
    GOALS.iter().filter(of_kafka).filter_map(named).collect()
}

impl Goal {
    fn ratio(&self) -> Option<f64> {
        let results = Results::of(self.bench)?;
        let ours = results.median(self.figure, self.ours)?;
        let other = match self.against {
            Against::Theirs(column) => results.median(self.figure, column)?,
            Against::Figure(words) => results.median(words, self.ours)?,
            Against::Limit(name, scale) => results.limit(name)? * scale,
        };
        let (better, worse) = if self.more { (ours, other) } else { (other, ours) };
        (worse > 0.0).then(|| better / worse)
    }

    fn row(&self) -> String {
        let Self { id, what, mark, .. } = self;
        let against = match self.against {
            Against::Theirs(column) => column.to_owned(),
            Against::Figure(words) => words.join(" "),
            Against::Limit(name, _) => name.to_owned(),
        };
        let (measured, met) = match self.ratio() {
            None => ("not measured".to_owned(), ""),
            Some(ratio) if ratio >= *mark => (shown(ratio), "met"),
            Some(ratio) => (shown(ratio), "**not met**"),
        };
        format!("| {id} | {what}, to {against} | {} | {measured} | {met} |", shown(*mark))
    }
}

fn shown(ratio: f64) -> String {
    if ratio >= 10.0 { format!("{ratio:.0}x") } else { format!("{ratio:.2}x") }
}

/// Ratio to Kafka on its defaults.
const fn more(
    id: &'static str,
    what: &'static str,
    bench: &'static str,
    figure: &'static [&'static str],
    ours: &'static str,
    mark: f64,
) -> Goal {
    Goal { id, what, bench, figure, ours, against: Against::Theirs(KAFKA), more: true, mark }
}

const fn less(
    id: &'static str,
    what: &'static str,
    bench: &'static str,
    figure: &'static [&'static str],
    mark: f64,
) -> Goal {
    let against = Against::Theirs(KAFKA);
    Goal { id, what, bench, figure, ours: OTTLA, against, more: false, mark }
}

impl Goal {
    const fn to(mut self, against: Against, mark: f64) -> Self {
        self.against = against;
        self.mark = mark;
        self
    }

    const fn by(mut self, ours: &'static str) -> Self {
        self.ours = ours;
        self
    }
}

const KAFKA: &str = "Kafka 4.4";
const OTTLA: &str = "Ottla";
const CACHED: &str = "Ottla, page cache";
const PER_CPU: &str = "requests/broker CPU-s";
const ECHO: Against = Against::Limit("echo of 64 B, depth 16, per server CPU-s", 1.0);
const BEATS: &[&str] = &["consumer heartbeats, depth 16", PER_CPU];
const CLASSIC_BEATS: &[&str] = &["classic heartbeats, depth 16", PER_CPU];
const COMMITS: &[&str] = &["1000 groups, 1 partitions", "depth 16", PER_CPU];
const HOT: &[&str] = &["commits, 1 groups", "depth 16", PER_CPU];
const WIDE: &[&str] = &["50 partitions", "depth 16", PER_CPU];
const READ_KB: &[&str] = &["1 KB", "k records/client"];
const READ_SMALL: &[&str] = &["100 B", "k records/client"];
const AT_RATE: &str = "write to read at a fixed rate";

const GOALS: &[Goal] = &[
    less("G1", "one joins", "reb", &["consumer", "join 1: converged"], 20.0),
    less("G1", "one leaves", "reb", &["consumer", "leave 1: converged"], 10.0),
    less("G1", "partitions doubled", "reb", &["consumer", "grow", "converged"], 20.0),
    less("G1", "all start", "reb", &["consumer", "start: converged"], 20.0),
    less("G1c", "classic, all start", "reb-classic", &["start: converged"], 3.0)
        .to(Against::Theirs("Kafka 4.4, delay 100 ms"), 3.0),
    less("G1c", "classic, one joins", "reb-classic", &["join 1: converged"], 10.0)
        .to(Against::Theirs("Kafka 4.4, delay 100 ms"), 10.0),
    less(
        "G2",
        "kill -9: start to first correct OffsetFetch",
        "coord-load",
        &["first correct"],
        20.0,
    ),
    more("G2", "commits recalled per second", "coord-load", &["recalled per second"], OTTLA, 5.0),
    more("G2", "log recalled", "coord-load", &["log recalled"], OTTLA, 0.5)
        .to(Against::Figure(&["read and summed"]), 0.5),
    less("G2m", "bytes of an offset", "memory", &["an offset"], 10.0),
    less("G2m", "bytes of a member", "memory", &["a member"], 10.0),
    less("G2m", "bytes of an empty group", "memory", &["an empty group"], 10.0),
    more("G3", "heartbeats per CPU-second, consumer", "hb-storm", BEATS, OTTLA, 10.0),
    more("G3", "heartbeats per CPU-second, consumer", "hb-storm", BEATS, OTTLA, 0.5).to(ECHO, 0.5),
    more("G3", "heartbeats per CPU-second, classic", "hb-storm", CLASSIC_BEATS, OTTLA, 10.0),
    more("G3", "commits per CPU-second, page cache", "commit-storm", COMMITS, CACHED, 10.0),
    more("G3", "commits per CPU-second, synced", "commit-storm", COMMITS, OTTLA, 10.0),
    more("G3", "commits per CPU-second, page cache", "commit-storm", COMMITS, CACHED, 0.4)
        .to(ECHO, 0.4),
    more("G3", "the same, one hot group, page cache", "commit-storm", HOT, CACHED, 10.0),
    more("G3", "the same, 50 partitions, page cache", "commit-storm", WIDE, CACHED, 10.0),
    more(
        "G4",
        "produce 100 B per CPU-second",
        "pf",
        &["produce 100 B", "records/broker"],
        CACHED,
        4.0,
    ),
    more(
        "G4",
        "produce 1 KB per CPU-second",
        "pf",
        &["produce 1 KB", "records/broker"],
        CACHED,
        4.0,
    ),
    more("G4", "fetch 100 B", "pf", &["fetch 100 B", "records/broker"], CACHED, 3.0),
    more("G4", "fetch 1 KB", "pf", &["fetch 1 KB", "records/broker"], CACHED, 3.0),
    more("G4", "fetch 1 KB, MB per CPU-second", "pf", &["fetch 1 KB", "MB/broker"], CACHED, 0.8)
        .to(Against::Limit("loopback 1 MiB writes, GB/s", 1000.0), 0.8),
    more("G4", "fetch 1 KB, records per second", "pf", &["fetch 1 KB: records/s"], CACHED, 1.0),
    less("G4l", "write to read, p50", "latency", &[AT_RATE, "p50"], 3.0).by(CACHED),
    less("G4l", "write to read, p99", "latency", &[AT_RATE, "p99,"], 5.0).by(CACHED),
    less("G4l", "write to read, p99.9", "latency", &[AT_RATE, "p99.9"], 10.0).by(CACHED),
    less("G4l", "write to read, one in flight, p50", "latency", &["one in flight p50"], 0.25)
        .by(CACHED)
        .to(Against::Figure(&["echo of 64 B", "p50"]), 0.25),
    less("G4s", "start to first answer", "start", &["first answer, empty"], 50.0),
    less("G4s", "memory when idle", "start", &["resident when idle"], 30.0),
    more("G5", "read 100 B per client CPU-second", "consume-100", READ_SMALL, OTTLA, 2.0)
        .to(Against::Theirs("librdkafka"), 2.0),
    more("G5", "read 100 B per client CPU-second", "consume-100", READ_SMALL, OTTLA, 2.0)
        .to(Against::Theirs("franz-go"), 2.0),
    more("G5", "read 100 B per client CPU-second", "consume-100", READ_SMALL, OTTLA, 5.0)
        .to(Against::Theirs("Java, consumer protocol's"), 5.0),
    more("G5", "read 1 KB per client CPU-second", "consume-1000", READ_KB, OTTLA, 2.0)
        .to(Against::Theirs("librdkafka"), 2.0),
    more("G5", "read 1 KB per client CPU-second", "consume-1000", READ_KB, OTTLA, 2.0)
        .to(Against::Theirs("franz-go"), 2.0),
    more("G5", "read 1 KB per client CPU-second", "consume-1000", READ_KB, OTTLA, 5.0)
        .to(Against::Theirs("Java, consumer protocol's"), 5.0),
    more(
        "G5",
        "read 1 KB, MB per client CPU-second",
        "consume-1000",
        &["1 KB", "MB/client"],
        OTTLA,
        0.5,
    )
    .to(Against::Limit("loopback 1 MiB writes, GB/s", 1000.0), 0.5),
];

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Turns are written down in their order, not in that of their figures.
    #[test]
    fn the_middle_is_that_of_the_sorted_figures() {
        assert_eq!(middle(&json!([300.0, 400.0, 100.0])), Some(300.0));
        assert_eq!(middle(&json!([])), None);
    }
}
