//! What came of each client's steps, and the table that says so.

use std::fmt::Write as _;
use std::time::Instant;

/// A column of the table, or a remark below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    Create,
    Join,
    /// Twenty thousand keyed records in this codec, read exactly once by two members.
    Codec(&'static str),
    Idempotent,
    Third,
    Kill,
    Leave,
    Resume,
    Static,
    Cooperative,
    ExactHandover,
    /// A step of a program that is not a plain client.
    Other(&'static str),
}

/// The columns in the order of the scenario.
const COLUMNS: &[Step] = &[
    Step::Create,
    Step::Join,
    Step::Codec("none"),
    Step::Codec("gzip"),
    Step::Codec("snappy"),
    Step::Codec("lz4"),
    Step::Codec("zstd"),
    Step::Idempotent,
    Step::Third,
    Step::Kill,
    Step::Leave,
    Step::Resume,
    Step::Static,
    Step::Cooperative,
];

impl Step {
    fn title(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Join => "join",
            Self::Codec(codec) => codec,
            Self::Idempotent => "idemp",
            Self::Third => "third",
            Self::Kill => "kill",
            Self::Leave => "leave",
            Self::Resume => "resume",
            Self::Static => "static",
            Self::Cooperative => "coop",
            Self::ExactHandover => "exactly once over a rebalance",
            Self::Other(title) => title,
        }
    }
}

/// What came of one step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    Passed,
    Failed(String),
    /// The client is not able to, for this reason; the broker is not to blame.
    Cannot(String),
}

/// One client's row.
#[derive(Debug)]
pub struct Report {
    pub name: &'static str,
    /// What the client says of itself, or why it did not run.
    pub version: String,
    pub install_seconds: f32,
    pub seconds: f32,
    /// Set when the whole client was left out.
    pub skipped: Option<String>,
    outcomes: Vec<(Step, Outcome)>,
}

impl Report {
    /// A row without results yet.
    pub fn new(name: &'static str) -> Self {
        Self {
            name,
            version: String::new(),
            install_seconds: 0.0,
            seconds: 0.0,
            skipped: None,
            outcomes: Vec::new(),
        }
    }

    /// Runs a step and notes what came of it; tells whether it passed.
    pub fn step(&mut self, step: Step, run: impl FnOnce() -> Result<(), String>) -> bool {
        let started = Instant::now();
        let result = run();
        let passed = result.is_ok();
        let seconds = started.elapsed().as_secs_f32();
        let word = if passed { "ok" } else { "FAILED" };
        println!("  {:<15} {:<7} {word} {seconds:.1} s", self.name, step.title());
        self.outcome(step, result.map_or_else(Outcome::Failed, |()| Outcome::Passed));
        passed
    }

    /// Runs a step that the client may not be able to do.
    pub fn step_if(
        &mut self,
        step: Step,
        can: Result<(), &str>,
        run: impl FnOnce() -> Result<(), String>,
    ) {
        match can {
            Ok(()) => drop(self.step(step, run)),
            Err(reason) => self.outcome(step, Outcome::Cannot(reason.into())),
        }
    }

    /// Notes an ability that no step of its own shows.
    pub fn note(&mut self, step: Step, can: Result<(), &str>) {
        let cannot = |reason: &str| Outcome::Cannot(reason.into());
        self.outcome(step, can.map_or_else(cannot, |()| Outcome::Passed));
    }

    /// Notes what came of a step.
    pub fn outcome(&mut self, step: Step, outcome: Outcome) {
        self.outcomes.push((step, outcome));
    }

    /// Whether any step failed.
    pub fn is_failure(&self) -> bool {
        self.outcomes.iter().any(|(_, outcome)| matches!(outcome, Outcome::Failed(_)))
    }

    fn cell(&self, step: Step) -> &'static str {
        match self.outcomes.iter().find(|(of, _)| *of == step) {
            Some((_, Outcome::Passed)) => "ok",
            Some((_, Outcome::Failed(_))) => "FAIL",
            Some((_, Outcome::Cannot(_))) => "cannot",
            None => "-",
        }
    }

    fn remarks(&self) -> impl Iterator<Item = String> {
        self.outcomes.iter().filter_map(|(step, outcome)| match outcome {
            Outcome::Passed if matches!(step, Step::Other(_)) => {
                Some(format!("{} ok: {}", self.name, step.title()))
            }
            Outcome::Passed => None,
            Outcome::Cannot(reason) => {
                Some(format!("{} cannot: {}: {reason}", self.name, step.title()))
            }
            Outcome::Failed(problem) => {
                Some(format!("{} FAILED: {}: {problem}", self.name, step.title()))
            }
        })
    }
}

/// The table of all clients with a remark for every cell that is not `ok`.
pub fn table(reports: &[Report]) -> String {
    let mut text = format!("{:<15} {:<26}", "client", "version");
    for column in COLUMNS {
        let _ = write!(text, " {:<6}", column.title());
    }
    text.push_str("  install    run\n");
    for report in reports {
        let _ = write!(text, "{:<15} {:<26}", report.name, report.version);
        for column in COLUMNS {
            let _ = write!(text, " {:<6}", report.cell(*column));
        }
        let _ = writeln!(text, " {:>6.1} s {:>5.1} s", report.install_seconds, report.seconds);
    }
    for report in reports {
        for remark in report.remarks() {
            let _ = writeln!(text, "{remark}");
        }
        if let Some(reason) = &report.skipped {
            let _ = writeln!(text, "{} skipped: {reason}", report.name);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cell_that_is_not_ok_has_a_remark() {
        let mut report = Report::new("client");
        report.outcome(Step::Create, Outcome::Passed);
        report.outcome(Step::Join, Outcome::Failed("no answer".into()));
        report.outcome(Step::Static, Outcome::Cannot("has none".into()));
        assert!(report.is_failure());
        let table = table(&[report]);
        assert!(table.contains("client FAILED: join: no answer"));
        assert!(table.contains("client cannot: static: has none"));
    }
}
