//! `cargo xtask test`: everything, long parts scaled down with their size printed.

use crate::shell::cargo;
use crate::{Outcome, ci};

/// Runs what CI runs: the checks, then every test.
pub fn run(_arguments: &[String]) -> Outcome {
    ci::run(&[])?;
    cargo(&["test", "--workspace", "--quiet"])
}
