//! Java programs of the matrix: compiling them once, running them in small JVMs.

use crate::kafka::install::{installed, quiet};
use crate::kafka::java;
use crate::shell::root;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Compiles the sources against the jars in `libs` into `target/matrix/java/NAME/classes`.
pub fn compile(name: &str, sources: &[&str], libs: &Path) -> Result<(), String> {
    let classes = classes(name);
    let sources: Vec<PathBuf> = sources.iter().map(|source| root().join(source)).collect();
    let inputs: Vec<&Path> = sources.iter().map(PathBuf::as_path).collect();
    installed(&classes, &inputs, || {
        let mut javac = Command::new("javac");
        javac.arg("-d").arg(&classes).arg("-cp").arg(format!("{}/*", libs.display()));
        quiet(javac.args(&sources))
    })
}

/// A JVM with the compiled classes of `name` and the jars, still without a class to run.
pub fn jvm(name: &str, libs: &Path) -> Command {
    java(&[classes(name).display().to_string(), format!("{}/*", libs.display())])
}

/// Where the classes of `name` are.
pub fn classes(name: &str) -> PathBuf {
    root().join(format!("target/matrix/java/{name}/classes"))
}
