//! `cargo xtask test`: everything, long parts scaled down with their size printed.
//!
//! `--full` runs the same steps at the sizes the project claims, and the fuzz targets.

use crate::shell::{cargo, cargo_command, root, run as run_command};
use crate::{Outcome, bench, ci, client, kafka, matrix};
use std::path::PathBuf;
use std::time::Instant;

/// How much of the long parts is run.
struct Size {
    /// Seeds of the swarm.
    seeds: &'static str,
    /// Seconds of the search through all states of a small group.
    space_seconds: &'static str,
    /// Rounds of kill -9.
    rounds: &'static str,
    /// Lives of a broker over a disk that fails.
    lives: &'static str,
    /// Lives of a single log over such a disk.
    logs: &'static str,
    /// MiB of log that a restart is timed with.
    log_mb: &'static str,
    /// Records each client of the matrix produces with each codec.
    records: &'static str,
    /// Minutes of the soak.
    soak_minutes: &'static str,
    /// Sets of clients whose broker answers nonsense.
    nonsense_sets: &'static str,
    /// Seconds each fuzz target runs; none where fuzzing is left out.
    fuzz_seconds: Option<u32>,
}

const SCALED: Size = Size {
    seeds: "10000",
    space_seconds: "20",
    rounds: "10",
    lives: "200",
    logs: "400",
    log_mb: "96",
    records: "2000",
    soak_minutes: "1",
    nonsense_sets: "64",
    fuzz_seconds: None,
};
const FULL: Size = Size {
    seeds: "100000",
    space_seconds: "600",
    rounds: "200",
    lives: "5000",
    logs: "50000",
    log_mb: "1024",
    records: "20000",
    soak_minutes: "15",
    nonsense_sets: "500",
    fuzz_seconds: Some(600),
};

/// Runs what CI runs: the checks, then every test.
pub fn run(arguments: &[String]) -> Outcome {
    let size = match arguments {
        [] => SCALED,
        [flag] if flag == "--full" => FULL,
        _ => return Err("usage: cargo xtask test [--full]".into()),
    };
    let Size { seeds, rounds, lives, logs, log_mb, records, soak_minutes, nonsense_sets, .. } =
        size;
    println!(
        "sizes: {seeds} swarm seeds, {rounds} kills, {lives} brokers and {logs} logs over a bad \
         disk, {log_mb} MiB to restart with, {records} records a codec and client, \
         {soak_minutes} minutes of soak, {nonsense_sets} sets of clients lied to"
    );
    step("checks", || ci::run(&[]))?;
    step("tests", || cargo(&["test", "--workspace", "--quiet", "--exclude", "ottla-cli"]))?;
    step("release build", || cargo(&["build", "--release", "--quiet", "--bin", "ottla"]))?;
    step("instructions", || {
        bench::instructions::report();
        Ok(())
    })?;
    let swarm = ["--release", "-p", "ottla-group", "--test", "swarm"];
    step("swarm", || scaled("OTTLA_SEEDS", seeds, &swarm))?;
    let space = ["--release", "-p", "ottla-group", "--test", "space"];
    step("state space", || scaled("OTTLA_SPACE_SECONDS", size.space_seconds, &space))?;
    let bad_logs = ["-p", "ottla-storage", "--lib", "simulation"];
    step("logs over a bad disk", || scaled("OTTLA_SEEDS", logs, &bad_logs))?;
    let bad_disk = ["-p", "ottla-broker", "--lib", "simulation"];
    step("brokers over a bad disk", || scaled("OTTLA_BROKER_SEEDS", lives, &bad_disk))?;
    let command_line = ["--release", "-p", "ottla-cli"];
    step("command line", || scaled("OTTLA_ROUNDS", rounds, &command_line))?;
    let restart = ["--release", "-p", "ottla-cli", "--test", "crash", "restart"];
    step("restart", || scaled("OTTLA_LOG_MB", log_mb, &restart))?;
    let nonsense = ["-p", "ottla-client", "--test", "it", "nonsense"];
    step("nonsense", || scaled("OTTLA_NONSENSE", nonsense_sets, &nonsense))?;
    step("matrix", || matrix::run(&["--records".into(), records.into()]))?;
    step("Kafka's tools", || kafka::tools::run(&[]))?;
    step("client", || client::run(&[]))?;
    step("soak", || matrix::soak::run(&["--minutes".into(), soak_minutes.into()]))?;
    size.fuzz_seconds.map_or(Ok(()), fuzz)
}

/// One part, with the time it took: CI has a limit, and this is how a part that grows shows.
fn step(name: &str, part: impl FnOnce() -> Outcome) -> Outcome {
    let start = Instant::now();
    println!("== {name}");
    part()?;
    println!("== {name}: ok in {} s", start.elapsed().as_secs());
    Ok(())
}

/// Some tests at a size; their summary is shown.
fn scaled(variable: &str, size: &str, selection: &[&str]) -> Outcome {
    let mut command = cargo_command(&["test", "--quiet"]);
    command.args(selection).args(["--", "--nocapture"]).env(variable, size);
    run_command(command)
}

/// Every fuzz target in turn. Needs a nightly toolchain and cargo-fuzz, as libFuzzer does.
fn fuzz(seconds: u32) -> Outcome {
    for target in fuzz_targets()? {
        let mut command = cargo_command(&["+nightly", "fuzz", "run", &target, "--"]);
        command.arg(format!("-max_total_time={seconds}"));
        run_command(command)?;
    }
    Ok(())
}

fn fuzz_targets() -> Result<Vec<String>, String> {
    let folder = root().join("fuzz/fuzz_targets");
    let entries = std::fs::read_dir(&folder).map_err(|error| format!("fuzz: {error}"))?;
    let files = entries.filter_map(|entry| Some(PathBuf::from(entry.ok()?.file_name())));
    let mut names: Vec<String> =
        files.filter_map(|file| Some(file.file_stem()?.to_str()?.to_owned())).collect();
    names.sort();
    Ok(names)
}
