//! One block of an experiment by the rules of a fair run: the contestants take turns (A B A B ...),
//! the machine's limits are measured before and after, and a block in which they moved too far is
//! repeated, and published as noisy if they never keep still.

use super::load::{self, Figure};
use super::process;
use super::sheet::{Named, Sheet};
use crate::Outcome;
use crate::shell::root;
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// How much is measured.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Minutes instead of hours: smaller sizes, one repetition, no block repeated.
    pub quick: bool,
    /// Turns of each contestant.
    pub repeat: usize,
}

/// Limits that bind what is measured in CPU time; those of the disk are shown and not judged.
const JUDGED: [&str; 4] = [
    "crc32c, GB/s",
    "bare system call, ns",
    "loopback 1 MiB writes, GB/s",
    "echo of 64 B, depth 16, per server CPU-s",
];
/// How far a limit may move within a block.
const MOVED_MAX: f64 = 0.15;
/// How often a block is tried.
const TRIES: usize = 3;

/// Runs `turn` for each contestant in turn, prints the table and writes JSON beside.
pub fn run<C: Named>(
    name: &str,
    plan: Plan,
    contestants: &[C],
    turn: impl Fn(C, Plan) -> Result<Vec<Figure>, String>,
) -> Outcome {
    let tries = if plan.quick { 1 } else { TRIES };
    for tried in 1..=tries {
        let before = limits()?;
        let mut sheet = Sheet::default();
        for repetition in 1..=plan.repeat {
            for contestant in contestants {
                println!("{name}, turn {repetition} of {}: {}", plan.repeat, contestant.name());
                sheet.add(*contestant, turn(*contestant, plan)?);
            }
        }
        let after = limits()?;
        let moved = moved(&before, &after);
        let is_noisy = moved > MOVED_MAX;
        println!("\n{}", sheet.markdown());
        println!("limits moved {:.0} % within the block, load {}", moved * 100.0, process::load());
        // Also if it is repeated: whoever stops the run then keeps the noisy figures.
        publish(name, plan, &sheet, (&before, &after), is_noisy)?;
        if !is_noisy {
            break;
        }
        if tried < tries {
            println!("too far: the block is repeated");
        }
    }
    Ok(())
}

/// The machine's limits right now.
pub fn limits() -> Result<Vec<Figure>, String> {
    let folder = root().join("target/bench/limits").display().to_string();
    load::run("limits", &["--folder", &folder, "--millis", "300"])
}

/// The farthest that any judged limit moved, as a share of what it was.
fn moved(before: &[Figure], after: &[Figure]) -> f64 {
    let of = |figures: &[Figure], name| {
        figures.iter().find(|(known, _)| known == name).map(|(_, figure)| *figure)
    };
    let moves = JUDGED.iter().filter_map(|name| {
        let (before, after) = (of(before, name)?, of(after, name)?);
        Some((before - after).abs() / before.max(after))
    });
    moves.fold(0.0, f64::max)
}

/// Full runs are checked in and drawn; quick ones stay in the target folder.
pub fn folder(quick: bool) -> PathBuf {
    root().join(if quick { "target/bench/results" } else { "docs/bench" })
}

fn publish(
    name: &str,
    plan: Plan,
    sheet: &Sheet,
    (before, after): (&[Figure], &[Figure]),
    is_noisy: bool,
) -> Outcome {
    let mut value = json!({
        "bench": name,
        "quick": plan.quick,
        "noisy": is_noisy,
        "date": said("date", &["-u", "+%Y-%m-%d"]),
        "machine": process::machine(),
        "kernel": said("uname", &["-r"]),
        "load": process::load(),
        "versions": {
            "ottla": said("git", &["describe", "--always", "--dirty"]),
            "kafka": "4.4.0",
            "rust": said("rustc", &["--version"]),
            "java": java(),
        },
        "repetitions": plan.repeat,
        "limits": { "before": object(before), "after": object(after) },
    });
    value["sheet"] = sheet.json();
    let path = folder(plan.quick).join(format!("{name}.json"));
    let text = serde_json::to_string_pretty(&value).map_err(|error| error.to_string())?;
    fs::create_dir_all(folder(plan.quick))
        .and_then(|()| fs::write(&path, text + "\n"))
        .map_err(|error| format!("{}: {error}", path.display()))?;
    println!("{}{}", if is_noisy { "NOISY; " } else { "" }, path.display());
    Ok(())
}

fn object(figures: &[Figure]) -> Value {
    Value::Object(figures.iter().map(|(name, figure)| (name.clone(), json!(figure))).collect())
}

/// The first line that a program prints; empty if it cannot be asked.
fn said(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).current_dir(root()).output();
    let text = output.map(|output| output.stdout).unwrap_or_default();
    String::from_utf8_lossy(&text).lines().next().unwrap_or_default().to_owned()
}

/// Java says its version on standard error.
fn java() -> String {
    let output = Command::new("java").arg("-version").output();
    let text = output.map(|output| output.stderr).unwrap_or_default();
    String::from_utf8_lossy(&text).lines().nth(1).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_farthest_judged_limit_counts() {
        let limits = |crc: f64, memcpy: f64| {
            vec![("crc32c, GB/s".to_owned(), crc), ("memcpy, GB/s".to_owned(), memcpy)]
        };
        assert!(moved(&limits(10.0, 1.0), &limits(9.0, 9.0)) < MOVED_MAX);
        assert!(moved(&limits(10.0, 1.0), &limits(5.0, 1.0)) > MOVED_MAX);
    }
}
