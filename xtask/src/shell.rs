//! Running other programs: each is announced before it starts and timed when it ends.

use crate::Outcome;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

/// The root of the workspace.
pub fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().expect("xtask lies in the workspace").to_path_buf()
}

/// Runs cargo in the workspace's root and fails if it does.
pub fn cargo(arguments: &[&str]) -> Outcome {
    run(cargo_command(arguments))
}

/// A cargo command to be given more environment before it runs.
pub fn cargo_command(arguments: &[&str]) -> Command {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(arguments).current_dir(root());
    command
}

/// Runs a prepared command to its end and fails if it does.
pub fn run(mut command: Command) -> Outcome {
    let shown = shown(&command);
    println!("$ {shown}");
    let started = Instant::now();
    let status = command.status().map_err(|error| format!("cannot start `{shown}`: {error}"))?;
    println!("  {} s", started.elapsed().as_secs());
    if status.success() { Ok(()) } else { Err(format!("`{shown}` failed ({status})")) }
}

fn shown(command: &Command) -> String {
    let program = Path::new(command.get_program());
    let mut words = vec![program.file_name().unwrap_or_default().to_string_lossy().into_owned()];
    words.extend(command.get_args().map(|word| word.to_string_lossy().into_owned()));
    words.join(" ")
}
