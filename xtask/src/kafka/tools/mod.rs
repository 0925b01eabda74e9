//! `cargo xtask tools`: Kafka's own command-line tools against a broker, and on its files.
//!
//! Each tool runs as its user runs it, in a process of its own, and something it printed is
//! asserted. What a tool prints against Apache Kafka (`--broker kafka`) is the measure.

mod cluster;
mod dump;
mod groups;
mod records;
mod topics;

use super::broker::{Broker, Kind};
use super::install::{Missing, ensure, in_ci};
use super::java_class;
use super::process::Call;
use crate::Outcome;
use crate::shell::root;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// How long one tool may run.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Runs all tools against a broker of the kind that `--broker` names, ours by default.
pub fn run(arguments: &[String]) -> Outcome {
    let kind = match arguments {
        [] => Kind::Ottla,
        [flag, kind] if flag == "--broker" => Kind::parse(kind)?,
        _ => return Err("usage: cargo xtask tools [--broker ottla|kafka]".into()),
    };
    match ensure(super::NEEDS) {
        Ok(()) => {}
        Err(Missing::Toolchain(reason)) if !in_ci() => {
            println!("Kafka's tools skipped: {reason}");
            return Ok(());
        }
        Err(Missing::Toolchain(reason) | Missing::Broken(reason)) => return Err(reason),
    }
    let folder = root().join("target/tools");
    let broker = Broker::start(kind, &folder.join("broker"))?;
    println!("{kind:?} at {}, log {}", broker.bootstrap, broker.log().display());
    let mut tools = Tools::new(broker.bootstrap.clone(), folder.join("logs"));
    topics::run(&mut tools);
    records::run(&mut tools);
    groups::run(&mut tools);
    cluster::run(&mut tools);
    let data = broker.stop()?;
    dump::run(&mut tools, &data);
    tools.verdict()
}

/// Runs tools against one broker and keeps what came of each.
pub struct Tools {
    bootstrap: String,
    logs: PathBuf,
    calls: usize,
    failures: Vec<String>,
}

impl Tools {
    fn new(bootstrap: String, logs: PathBuf) -> Self {
        Self { bootstrap, logs, calls: 0, failures: Vec::new() }
    }

    /// A tool that must succeed and print each of `wants`. Arguments are split at spaces.
    pub fn expect(&mut self, class: &str, arguments: &str, wants: &[&str]) {
        self.check(class, arguments, "", |text| contains_all(text, wants));
    }

    /// A tool that must refuse, saying `want`.
    pub fn expect_refusal(&mut self, class: &str, arguments: &str, want: &str) {
        let refused = match self.call(class, arguments, "") {
            Ok(text) | Err(text) => contains_all(&text, &[want]),
        };
        self.note(class, arguments, refused);
    }

    /// A tool that gets `input`, must succeed and print what `judge` accepts.
    pub fn check(
        &mut self,
        class: &str,
        arguments: &str,
        input: &str,
        judge: impl FnOnce(&str) -> Result<(), String>,
    ) {
        let outcome = self.call(class, arguments, input).and_then(|text| judge(&text));
        self.note(class, arguments, outcome);
    }

    /// Runs a tool against the broker and returns what it printed.
    pub fn call(&mut self, class: &str, arguments: &str, input: &str) -> Result<String, String> {
        let server = format!("--bootstrap-server {} {arguments}", self.bootstrap);
        self.call_offline(class, &server, input)
    }

    /// Runs a tool that needs no broker.
    pub fn call_offline(
        &mut self,
        class: &str,
        arguments: &str,
        input: &str,
    ) -> Result<String, String> {
        let mut command = java_class(&format!("org.apache.kafka.tools.{class}"))?;
        command.args(arguments.split_whitespace());
        self.calls += 1;
        let name = format!("{:02}-{class}.log", self.calls);
        Call::start(command, &self.logs.join(name), input)?.wait(TIMEOUT)
    }

    /// Prints and keeps what came of a call.
    pub fn note(&mut self, class: &str, arguments: &str, outcome: Result<(), String>) {
        let word = if outcome.is_ok() { "ok    " } else { "FAILED" };
        println!("  {word} {class} {arguments}");
        if let Err(problem) = outcome {
            println!("         {problem}");
            self.failures.push(format!("{class} {arguments}"));
        }
    }

    /// Waits until a call prints all of `wants`: for what a broker does in its own time.
    pub fn await_text(&mut self, class: &str, arguments: &str, wants: &[&str]) {
        let deadline = Instant::now() + TIMEOUT;
        loop {
            let outcome =
                self.call(class, arguments, "").and_then(|text| contains_all(&text, wants));
            if outcome.is_ok() || Instant::now() > deadline {
                return self.note(class, arguments, outcome);
            }
        }
    }

    fn verdict(&self) -> Outcome {
        println!("{} calls of Kafka's tools, {} failed", self.calls, self.failures.len());
        if self.failures.is_empty() { Ok(()) } else { Err(self.failures.join("\n")) }
    }
}

/// Whether `text` has every one of `wants`.
pub fn contains_all(text: &str, wants: &[&str]) -> Result<(), String> {
    match wants.iter().find(|want| !text.contains(**want)) {
        None => Ok(()),
        Some(want) => Err(format!("`{want}` is missing in:\n{text}")),
    }
}
