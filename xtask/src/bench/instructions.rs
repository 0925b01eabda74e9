//! `instructions`: how many instructions the hot paths take, counted by callgrind and so the same
//! on a busy machine. Beside each stands the figure recorded last; nothing passes or fails on it.

use crate::Outcome;
use crate::kafka::install::{Missing, Need, ensure, text_of};
use crate::kafka::process::create;
use crate::shell::{cargo, cargo_command, root};
use serde_json::{Map, Value, json};
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What is counted, and in how many rounds.
const PATHS: [(&str, &str, u64); 5] = [
    ("heartbeat", "a stable member's heartbeat, frame to frame", 2000),
    ("commit", "an offset commit of one partition, frame to frame", 2000),
    ("produce", "a batch of 160 records of 100 B checked and appended", 200),
    ("fetch", "64 KiB read and put into a response", 500),
    ("assign", "one of 1,000 members leaves and comes again, uniform", 50),
];
/// Where the figures recorded last are kept.
const RECORDED: &str = "docs/bench/instructions.json";
const VALGRIND: &[Need] = &[Need { program: "valgrind", debian: "valgrind" }];

/// Counts and compares; with `--record` writes the figures down.
pub fn run(arguments: &[String]) -> Outcome {
    let is_recording = match arguments {
        [] => false,
        [flag] if flag == "--record" => true,
        _ => return Err("usage: cargo xtask bench instructions [--record]".into()),
    };
    if let Err(Missing::Toolchain(reason) | Missing::Broken(reason)) = ensure(VALGRIND) {
        println!("skipped: counting instructions ({reason})");
        return Ok(());
    }
    let (binary, recorded) = (binary()?, recorded());
    let mut counted = Map::new();
    for (path, what, rounds) in PATHS {
        // What comes before the rounds is in both.
        let count = |rounds| instructions(&binary, path, rounds);
        let each = (count(3 * rounds)?.saturating_sub(count(rounds)?)) / (2 * rounds);
        println!("{}", line(path, what, each, recorded.get(path).and_then(Value::as_u64)));
        counted.insert(path.to_owned(), json!(each));
    }
    if is_recording {
        let path = root().join(RECORDED);
        let text = serde_json::to_string_pretty(&counted).map_err(|error| error.to_string())?;
        let written = create(&path)?.write_all((text + "\n").as_bytes());
        written.map_err(|error| format!("{}: {error}", path.display()))?;
    }
    Ok(())
}

/// As [`run`], for tests that must not fail on it.
pub fn report() {
    if let Err(problem) = run(&[]) {
        println!("skipped: counting instructions ({problem})");
    }
}

fn line(path: &str, what: &str, each: u64, recorded: Option<u64>) -> String {
    let compared = match recorded {
        Some(before) if before > 0 => {
            let change = (each as f64 / before as f64 - 1.0) * 100.0;
            format!("recorded {before}, {change:+.1} %")
        }
        _ => "nothing recorded".into(),
    };
    format!("instructions of {path} ({what}): {each} ({compared})")
}

fn instructions(binary: &Path, path: &str, rounds: u64) -> Result<u64, String> {
    let mut command = Command::new("valgrind");
    let log = root().join("target/bench/callgrind.log");
    command.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]);
    command.arg(format!("--log-file={}", log.display()));
    text_of(command.arg(binary).args([path, &rounds.to_string()]))?;
    let text = fs::read_to_string(&log).map_err(|error| format!("{}: {error}", log.display()))?;
    let total = text.lines().find_map(|line| line.split_once("Collected : "));
    let total = total.and_then(|(_, count)| count.trim().parse().ok());
    total.ok_or_else(|| format!("callgrind counted nothing:\n{text}"))
}

/// The bench's binary, built as releases are.
fn binary() -> Result<PathBuf, String> {
    let arguments = ["build", "--release", "--quiet", "-p", "ottla-broker", "--bench"];
    cargo(&[&arguments[..], &["instructions"]].concat())?;
    let mut command = cargo_command(&[&arguments[..], &["instructions"]].concat());
    let text = text_of(command.args(["--message-format", "json"]))?;
    let messages = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut built = messages.filter(|message| message["target"]["name"] == "instructions");
    let program = built.find_map(|message| Some(message["executable"].as_str()?.to_owned()));
    fs::create_dir_all(root().join("target/bench")).map_err(|error| error.to_string())?;
    program.map(PathBuf::from).ok_or_else(|| "cargo named no binary of the bench".into())
}

fn recorded() -> Value {
    let text = fs::read_to_string(root().join(RECORDED)).unwrap_or_default();
    serde_json::from_str(&text).unwrap_or(Value::Null)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_names_the_change_since_the_record() {
        assert!(line("x", "y", 110, Some(100)).ends_with("110 (recorded 100, +10.0 %)"));
        assert!(line("x", "y", 110, None).ends_with("110 (nothing recorded)"));
    }
}
