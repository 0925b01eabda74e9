//! Getting what a test needs: toolchains from the system, packages through their own clients.
//!
//! On a newcomer's machine a missing toolchain is a reason to skip; in CI it is installed or fatal.

use super::process::create;
use crate::shell::root;
use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

/// A program on the path, and the Debian package that brings it.
pub struct Need {
    /// What is looked for.
    pub program: &'static str,
    /// Installed by apt-get in CI when it is not there.
    pub debian: &'static str,
}

/// Why something cannot run here.
#[derive(Clone, Debug)]
pub enum Missing {
    /// A toolchain a newcomer may well not have.
    Toolchain(String),
    /// Anything else, which is a failure everywhere.
    Broken(String),
}

/// Makes sure that every needed program is there.
pub fn ensure(needs: &[Need]) -> Result<(), Missing> {
    for need in needs {
        if !on_path(need.program) {
            if !in_ci() {
                let text = format!("`{}` is not on the path", need.program);
                return Err(Missing::Toolchain(text));
            }
            apt_get(need.debian).map_err(Missing::Broken)?;
        }
    }
    Ok(())
}

/// Whether this is CI, where nothing may be skipped.
pub fn in_ci() -> bool {
    std::env::var("CI").is_ok_and(|value| value == "true")
}

/// Whether a program can be started by name.
pub fn on_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

/// Installs a Debian package.
pub fn apt_get(package: &str) -> Result<(), String> {
    /// dpkg's lock lets one in at a time.
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _turn = ONE_AT_A_TIME.lock();
    quiet(Command::new("apt-get").args(["update", "-qq"]))?;
    let install = ["install", "-y", "-qq", "--no-install-recommends", package];
    quiet(Command::new("apt-get").args(install).env("DEBIAN_FRONTEND", "noninteractive"))
}

/// Runs `install` unless `folder` was filled by it from the very same inputs before.
pub fn installed(
    folder: &Path,
    inputs: &[&Path],
    install: impl FnOnce() -> Result<(), String>,
) -> Result<(), String> {
    let lock = lock_of(folder);
    let _turn = lock.lock();
    let stamp = folder.join(".installed-from");
    let mut wanted = Vec::new();
    for input in inputs {
        let bytes = fs::read(input).map_err(|error| format!("{}: {error}", input.display()))?;
        wanted.extend(bytes);
    }
    if fs::read(&stamp).is_ok_and(|found| found == wanted) {
        return Ok(());
    }
    fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    println!("  installing into {}", folder.strip_prefix(root()).unwrap_or(folder).display());
    install()?;
    let written = create(&stamp)?.write_all(&wanted);
    written.map_err(|error| format!("{}: {error}", stamp.display()))
}

/// Two clients of one toolchain must not install it side by side; those of two may.
fn lock_of(folder: &Path) -> Arc<Mutex<()>> {
    static LOCKS: Mutex<BTreeMap<PathBuf, Arc<Mutex<()>>>> = Mutex::new(BTreeMap::new());
    let mut locks = LOCKS.lock().unwrap_or_else(PoisonError::into_inner);
    Arc::clone(locks.entry(folder.to_path_buf()).or_default())
}

/// Runs a command whose output matters only when it fails.
pub fn quiet(command: &mut Command) -> Result<(), String> {
    text_of(command).map(drop)
}

/// Runs a command and returns what it printed; its errors carry both outputs.
pub fn text_of(command: &mut Command) -> Result<String, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.stdin(Stdio::null()).output();
    let output = output.map_err(|error| format!("cannot start {name}: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() {
        return Ok(text);
    }
    let errors = String::from_utf8_lossy(&output.stderr);
    Err(format!("{name} failed ({}):\n{text}{errors}", output.status))
}
