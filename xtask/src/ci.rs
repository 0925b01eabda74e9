//! `cargo xtask ci`: what every commit must pass, and quickly.

use crate::shell::{cargo, cargo_command, root, run as run_command};
use crate::{Outcome, codegen, tidy};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Format, lints, docs, licences, tidy, in the order in which a failure is cheapest to learn of.
pub fn run(_arguments: &[String]) -> Outcome {
    cargo(&["fmt", "--all", "--check"])?;
    tidy::run(&[])?;
    codegen::run(&["--check".into()])?;
    cargo(&["clippy", "--workspace", "--all-targets", "--quiet", "--", "-D", "warnings"])?;
    docs()?;
    deny()
}

fn docs() -> Outcome {
    let mut command = cargo_command(&["doc", "--workspace", "--no-deps", "--quiet"]);
    command.env("RUSTDOCFLAGS", "-D warnings");
    run_command(command)
}

/// Licences, sources and advisories of every dependency.
///
/// Advisories need their database, which comes by git. Where it cannot be fetched that one check is
/// named and left out; an advisory that is found fails like anything else.
fn deny() -> Outcome {
    let program = deny_program()?;
    run_command(deny_check(&program, &["licenses", "bans", "sources"]))?;
    let fetched = deny_command(&program).arg("fetch").arg("db").output();
    if !fetched.is_ok_and(|output| output.status.success()) {
        println!("skipped: advisories (their database cannot be fetched from here)");
        return Ok(());
    }
    run_command(deny_check(&program, &["advisories"]))
}

fn deny_check(program: &Path, checks: &[&str]) -> Command {
    let mut command = deny_command(program);
    command.args(["--log-level", "error", "check", "--hide-inclusion-graph"]).args(checks);
    command
}

fn deny_command(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.current_dir(root());
    command
}

/// Builds cargo-deny once into the target folder; unoptimised, since it runs for a second.
fn deny_program() -> Result<PathBuf, String> {
    let tools = root().join("target/tools");
    let program = tools.join("bin/cargo-deny");
    if !program.exists() {
        let mut install = cargo_command(&["install", "--quiet", "--debug", "--locked"]);
        install.args(["--no-default-features", "--version", DENY_VERSION, "cargo-deny"]);
        install.arg("--root").arg(&tools);
        run_command(install)?;
    }
    Ok(program)
}

/// The release the project's licences were checked with.
const DENY_VERSION: &str = "0.20.2";
