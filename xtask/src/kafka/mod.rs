//! Apache Kafka 4.4 beside us: its jars, its node and its command-line tools.
//!
//! Kafka comes through Maven's ordinary client into `target/kafka`, so nothing is installed and
//! nothing is downloaded twice. What is tested with it lives elsewhere.

pub mod broker;
pub mod install;
pub mod node;
pub mod process;
pub mod tools;

use crate::shell::root;
use install::{Need, installed, quiet};
use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// Flags that keep a short-lived JVM small and quick: no second compiler, no parallel collector.
const QUICK_JVM: &[&str] = &["-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"];

/// What running Kafka's classes takes on this machine.
pub const NEEDS: &[Need] = &[
    Need { program: "java", debian: "default-jdk-headless" },
    Need { program: "mvn", debian: "maven" },
];

/// The folder with Kafka's jars and all they depend on, fetched on first use.
pub fn jars() -> Result<PathBuf, String> {
    maven("matrix/kafka/pom.xml", "target/kafka")
}

/// Fetches the dependencies of a pom into `TARGET/libs`, once per text of the pom.
pub fn maven(pom: &str, target: &str) -> Result<PathBuf, String> {
    let libs = root().join(target).join("libs");
    installed(&root().join(target), &[&root().join(pom)], || {
        // Jars of another version would shadow the ones wanted.
        let _ = fs::remove_dir_all(&libs);
        let mut command = Command::new("mvn");
        command.args(["--quiet", "--batch-mode", "-Dstyle.color=never", "--file", pom]);
        command.arg("dependency:copy-dependencies");
        command.arg(format!("-DoutputDirectory={}", libs.display())).current_dir(root());
        quiet(&mut command)
    })?;
    Ok(libs)
}

/// A command that runs one of Kafka's classes in a small JVM.
pub fn java_class(class: &str) -> Result<Command, String> {
    let mut command = java(&[format!("{}/*", jars()?.display())]);
    command.arg(class);
    Ok(command)
}

/// A small JVM with this class path, still without a class to run.
pub fn java(class_path: &[String]) -> Command {
    let mut command = Command::new("java");
    let log4j = root().join("matrix/kafka/log4j2.xml");
    command.args(QUICK_JVM).arg(format!("-Dlog4j2.configurationFile={}", log4j.display()));
    command.arg("-cp").arg(class_path.join(":"));
    command
}
