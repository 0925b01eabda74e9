//! Rules on single files: a module doc first, narrow lines, a size one can read in one sitting.

use crate::shell::root;
use std::fs;
use std::path::{Path, PathBuf};

/// Columns a line may have; rustfmt leaves comments and strings alone, this does not.
const COLUMNS_MAX: usize = 100;
/// Lines a file may have before its tests begin.
const LINES_MAX: usize = 500;
/// Lines a file named in [`LARGE`] may have.
const LINES_MAX_LARGE: usize = 800;
/// Files that may pass [`LINES_MAX`], each because splitting it would hide what it is: one table.
const LARGE: &[&str] = &[];
/// Code that a program writes; it answers to its generator.
const GENERATED: &str = "/generated/";

/// Every breach in every Rust file of the workspace.
pub fn breaches() -> Result<Vec<String>, String> {
    let mut files = Vec::new();
    for folder in ["crates", "xtask", "matrix", "fuzz"] {
        collect(&root().join(folder), &mut files)?;
    }
    let mut found = Vec::new();
    for file in files {
        let text = fs::read_to_string(&file).map_err(|e| format!("{}: {e}", file.display()))?;
        let name = file.strip_prefix(root()).unwrap_or(&file).display().to_string();
        found.extend(breaches_in(&name, &text));
    }
    Ok(found)
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), String> {
    let Ok(entries) = fs::read_dir(folder) else { return Ok(()) };
    for entry in entries {
        let path = entry.map_err(|error| format!("{}: {error}", folder.display()))?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() && !["target", "node_modules"].contains(&name.as_str()) {
            collect(&path, files)?;
        } else if name.ends_with(".rs") {
            files.push(path);
        }
    }
    Ok(())
}

fn breaches_in(name: &str, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    if !text.starts_with("//!") {
        found.push(format!("{name}: opens without a `//!` paragraph"));
    }
    if name.contains(GENERATED) {
        return found;
    }
    for (index, line) in text.lines().enumerate() {
        if line.chars().count() > COLUMNS_MAX {
            found.push(format!("{name}:{}: wider than {COLUMNS_MAX} columns", index + 1));
        }
    }
    let lines = lines_before_tests(text);
    let most = if LARGE.contains(&name) { LINES_MAX_LARGE } else { LINES_MAX };
    if lines > most && !is_test(name) {
        found.push(format!("{name}: {lines} lines before its tests, {most} at most"));
    }
    found
}

fn lines_before_tests(text: &str) -> usize {
    text.lines().take_while(|line| *line != "mod tests {").count()
}

fn is_test(name: &str) -> bool {
    name.contains("/tests/") || name.ends_with("/tests.rs") || name.contains("/benches/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_module_doc_wide_line_and_long_file_are_breaches() {
        assert!(breaches_in("crates/a/src/a.rs", "//! Fine.\n").is_empty());
        assert_eq!(breaches_in("crates/a/src/a.rs", "fn a() {}\n").len(), 1);
        let wide = format!("//! {}\n", "x".repeat(COLUMNS_MAX));
        assert_eq!(breaches_in("crates/a/src/a.rs", &wide).len(), 1);
        let long = "//! Long.\n".repeat(LINES_MAX + 1);
        assert_eq!(breaches_in("crates/a/src/a.rs", &long).len(), 1);
        assert!(breaches_in("crates/a/src/a/tests.rs", &long).is_empty());
    }

    #[test]
    fn tests_at_the_end_do_not_count() {
        let tested = format!("//! Doc.\n#[cfg(test)]\nmod tests {{\n{}", "// x\n".repeat(900));
        assert!(breaches_in("crates/a/src/a.rs", &tested).is_empty());
    }
}
