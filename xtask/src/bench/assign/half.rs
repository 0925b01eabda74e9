//! The two programs that are asked in turn: Kafka's assignors in a JVM, ours in a bench.

use crate::kafka::jars;
use crate::matrix::java;
use crate::shell::{cargo_command, root};
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// A program that answers lines. Dropping it kills it.
pub struct Half {
    name: &'static str,
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Half {
    /// Kafka's, with both compilers and the collector a broker has.
    pub fn kafka() -> Result<Self, String> {
        let libs = jars()?;
        java::compile("assignor", &["matrix/java/assignor/AssignorBench.java"], &libs)?;
        let classes = java::classes("assignor");
        let log4j = root().join("matrix/kafka/log4j2.xml");
        let mut command = Command::new("java");
        command.args(["-Xms2g", "-Xmx2g"]);
        command.arg(format!("-Dlog4j2.configurationFile={}", log4j.display()));
        command.arg("-cp").arg(format!("{}:{}/*", classes.display(), libs.display()));
        Self::start("Kafka", command.arg("AssignorBench"))
    }

    /// Ours, built in release mode.
    pub fn ours() -> Result<Self, String> {
        let mut command = Command::new(bench_binary()?);
        Self::start("Ottla", command.arg("serve"))
    }

    fn start(name: &'static str, command: &mut Command) -> Result<Self, String> {
        let spawned = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut child = spawned.map_err(|error| format!("cannot start {name}: {error}"))?;
        let input = child.stdin.take().expect("its input is a pipe");
        let output = BufReader::new(child.stdout.take().expect("its output is a pipe"));
        Ok(Self { name, child, input, output })
    }

    /// Sends a line that has no answer.
    pub fn tell(&mut self, line: &str) -> Result<(), String> {
        let sent = writeln!(self.input, "{line}").and_then(|()| self.input.flush());
        sent.map_err(|error| format!("{} ended at `{line}`: {error}", self.name))
    }

    /// Sends a line and reads the one it is answered with.
    pub fn ask_text(&mut self, line: &str) -> Result<String, String> {
        self.tell(line)?;
        let mut answer = String::new();
        let read = self.output.read_line(&mut answer);
        read.map_err(|error| format!("{} at `{line}`: {error}", self.name))?;
        Ok(answer.trim().to_owned())
    }

    /// Sends a line and reads the numbers it is answered with.
    pub fn ask(&mut self, line: &str) -> Result<Vec<u64>, String> {
        let answer = self.ask_text(line)?;
        let numbers = answer.split_whitespace().map(str::parse).collect::<Result<Vec<u64>, _>>();
        let numbers = numbers.ok().filter(|numbers| !numbers.is_empty());
        numbers.ok_or_else(|| format!("{} answered `{line}` with `{answer}`", self.name))
    }

    /// The median time of a `run` or `build` of this length, in microseconds.
    pub fn micros(&mut self, what: &str, millis: u64) -> Result<f64, String> {
        Ok(self.ask(&format!("{what} {millis}"))?[0] as f64 / 1e3)
    }
}

impl Drop for Half {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The bench of `ottla-group`, built; cargo says where it is.
fn bench_binary() -> Result<String, String> {
    let arguments =
        ["build", "--release", "-p", "ottla-group", "--bench", "assign", "--message-format=json"];
    let mut command = cargo_command(&arguments);
    let output = command.stderr(Stdio::inherit()).output().map_err(|error| error.to_string())?;
    if !output.status.success() {
        return Err("the bench of ottla-group does not build".into());
    }
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let messages = text.lines().rev().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut ours = messages.filter(|message| message["target"]["name"] == "assign");
    let binary = ours.find_map(|message| Some(message["executable"].as_str()?.to_owned()));
    binary.ok_or_else(|| "cargo named no binary of the bench".into())
}
