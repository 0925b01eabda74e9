//! Scenarios of many parties as text: commands, then everything that came out of the shard.
//!
//! A file opens with a comment that says why it exists. A block is some commands, a line `----`,
//! and what they must bring forth; blank lines end it. `OTTLA_REWRITE=1` writes what they do
//! bring forth instead: the difference is reviewed like code, and only a change of behaviour that
//! somebody wanted may be committed. `README.md` beside the files lists the commands.

// A test binary has no outside: `pub` says what other modules of it use.
#![allow(unreachable_pub)]

mod consumer;
#[path = "../harness/mod.rs"]
mod harness;
mod parse;
mod print;
mod print_consumer;
mod stage;

use ottla_group::probe::{self, Fault};
use stage::Stage;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// Faults belong to the process: one test at a time.
static PROCESS: Mutex<()> = Mutex::new(());

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios")
}

#[test]
fn scenarios() {
    let _alone = PROCESS.lock();
    let files = files_in(&folder());
    assert!(!files.is_empty());
    let failed: Vec<String> = files.iter().filter_map(|path| check(path).err()).collect();
    assert!(failed.is_empty(), "\n{}\n{} scenario(s) differ", failed.join("\n"), failed.len());
}

/// Bugs that the swarm's careful members hide are told apart by these.
#[test]
fn reintroduced_bugs_change_scenarios() {
    let _alone = PROCESS.lock();
    for (fault, file) in [
        (Fault::CoordinatorTakesStaleCommits, "stale-generation.txt"),
        (Fault::CoordinatorTakesStaleAssignments, "stale-generation.txt"),
        (Fault::CoordinatorRepeatsGenerations, "restart.txt"),
        (Fault::CoordinatorForgetsRemovals, "absence.txt"),
        (Fault::CoordinatorKeepsNews, "holds.txt"),
    ] {
        let text = fs::read_to_string(folder().join(file)).expect("a readable scenario");
        probe::inject(Some(fault));
        let actual = std::panic::catch_unwind(|| run(file, &text));
        probe::inject(None);
        assert!(actual.is_err() || actual.is_ok_and(|actual| actual != text), "{fault:?}");
    }
}

/// Scenarios in a folder and the folders in it, in the order of their names.
fn files_in(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder of scenarios");
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("a folder entry").path()).collect();
    paths.sort();
    let is_scenario = |path: &PathBuf| path.extension().is_some_and(|it| it == "txt");
    let found = paths.into_iter().flat_map(|path| match path.is_dir() {
        true => files_in(&path),
        false => vec![path],
    });
    found.filter(is_scenario).collect()
}

fn check(path: &Path) -> Result<(), String> {
    let name = path.file_name().expect("a file").to_string_lossy().into_owned();
    let expected = fs::read_to_string(path).expect("a readable scenario");
    assert!(expected.starts_with("# "), "{name}: a scenario opens with why it exists");
    let actual = run(&name, &expected);
    if std::env::var_os("OTTLA_REWRITE").is_some() {
        fs::write(path, actual).expect("a writable scenario");
        return Ok(());
    }
    match expected.lines().zip(actual.lines()).position(|(a, b)| a != b) {
        None if expected == actual => Ok(()),
        at => {
            let at = at.unwrap_or(expected.lines().count().min(actual.lines().count()));
            let show = |text: &str| {
                let lines = text.lines().enumerate().skip(at.saturating_sub(2)).take(8);
                lines.map(|(n, line)| format!("  {:3} {line}\n", n + 1)).collect::<String>()
            };
            Err(format!("{name}: expected\n{}but was\n{}", show(&expected), show(&actual)))
        }
    }
}

/// The file with what its commands bring forth now.
fn run(name: &str, text: &str) -> String {
    let mut stage = Stage::new();
    let mut out = String::new();
    let mut lines = text.lines().peekable();
    let mut commands = Vec::new();
    while let Some(line) = lines.next() {
        out += line;
        out += "\n";
        if line == "----" {
            while lines.peek().is_some_and(|line| !line.is_empty()) {
                lines.next();
            }
            for command in commands.drain(..) {
                if let Err(error) = stage.carry_out(command) {
                    panic!("{name}: {command}: {error}");
                }
            }
            let said = stage.finish_block();
            out += if said.is_empty() { "nothing\n" } else { &said };
        } else if !line.is_empty() && !line.starts_with('#') {
            commands.push(line);
        }
    }
    assert!(commands.is_empty(), "{name}: commands without ---- after them");
    out
}
