//! `cargo xtask docs`: writes the pages of `docs/` that are made from tables in the code.

use crate::Outcome;
use crate::shell::{cargo_command, run as run_command};

/// Rewrites the pages. An ordinary test run fails where one of them is stale.
pub fn run(_arguments: &[String]) -> Outcome {
    let mut command = cargo_command(&["test", "--quiet", "-p", "ottla-broker", "--test", "docs"]);
    command.env("OTTLA_REWRITE", "1");
    run_command(command)
}
