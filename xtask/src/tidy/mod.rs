//! `cargo xtask tidy`: the rules of CONTRIBUTING.md that a program can check.
//!
//! What rustfmt and clippy already enforce (format, function length, missing docs) is not repeated.

mod arrows;
mod files;

use crate::Outcome;

/// Runs every rule and lists every breach at once.
pub fn run(_arguments: &[String]) -> Outcome {
    let mut breaches = arrows::breaches()?;
    breaches.extend(files::breaches()?);
    if breaches.is_empty() {
        println!("tidy: no breach");
        return Ok(());
    }
    Err(format!("{} breaches of CONTRIBUTING.md:\n  {}", breaches.len(), breaches.join("\n  ")))
}
