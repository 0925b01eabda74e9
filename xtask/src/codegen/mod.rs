//! `cargo xtask codegen`: the wire codecs, from the schemas in `crates/wire/schema/`.
//!
//! `codegen` writes `crates/wire/src/generated/`; `codegen --check` only says whether it is stale;
//! `codegen import --jar JAR...` rewrites the schemas from Kafka's jars.

mod emit;
mod import;
mod schema;
mod text;

use crate::Outcome;
use crate::shell::root;
use schema::{Kind, Message};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

const USAGE: &str = "usage: cargo xtask codegen [--check | import --jar JAR [--jar JAR]...]";

/// Runs the command.
pub fn run(arguments: &[String]) -> Outcome {
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        [] => generate(false),
        ["--check"] => generate(true),
        ["import", jars @ ..] if !jars.is_empty() => import(jars),
        _ => Err(USAGE.into()),
    }
}

fn generate(check: bool) -> Outcome {
    let modules = emit::modules(&schemas()?)?;
    let scratch = root().join("target/codegen");
    let _ = std::fs::remove_dir_all(&scratch);
    let files: Vec<(String, String)> =
        modules.into_iter().map(|module| (format!("{}.rs", module.name), module.text)).collect();
    write_all(&scratch, &files)?;
    format(&scratch.join("mod.rs"))?;
    let (fresh, kept) = (contents(&scratch)?, contents(&generated_folder()).unwrap_or_default());
    if fresh == kept {
        return Ok(());
    }
    if check {
        return Err(format!("{} is stale: run `cargo xtask codegen`", differing(&fresh, &kept)));
    }
    let _ = std::fs::remove_dir_all(generated_folder());
    write_all(&generated_folder(), &fresh.into_iter().collect::<Vec<_>>())
}

/// Replaces the schemas of Kafka's messages; those of our own (keys from 32000) stay.
fn import(arguments: &[&str]) -> Outcome {
    let jars: Vec<PathBuf> =
        arguments.iter().filter(|word| **word != "--jar").map(PathBuf::from).collect();
    for message in import::import(&jars)? {
        let text = text::print(&message);
        if text::parse(&text).as_ref() != Ok(&message) {
            return Err(format!("{} does not survive its own text", message.name));
        }
        let path = schema_folder().join(format!("{}.txt", emit::snake(&message.name)));
        std::fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    Ok(())
}

/// Every schema, requests and responses by key, then the rest by name.
fn schemas() -> Result<Vec<Message>, String> {
    let mut messages = Vec::new();
    for (name, text) in contents(&schema_folder())? {
        if name.ends_with(".txt") {
            messages.push(text::parse(&text).map_err(|problem| format!("{name}: {problem}"))?);
        }
    }
    messages.sort_by_key(|message| {
        let api = matches!(message.kind, Kind::Request | Kind::Response);
        (!api, message.key.filter(|_| api), message.name.clone())
    });
    Ok(messages)
}

fn schema_folder() -> PathBuf {
    root().join("crates/wire/schema")
}

fn generated_folder() -> PathBuf {
    root().join("crates/wire/src/generated")
}

fn format(entry: &Path) -> Outcome {
    let status = Command::new("rustfmt")
        .args(["--edition", "2024", "--config-path"])
        .arg(root().join("rustfmt.toml"))
        .arg(entry)
        .status()
        .map_err(|error| format!("cannot run rustfmt: {error}"))?;
    if status.success() { Ok(()) } else { Err("rustfmt refuses what was generated".into()) }
}

fn write_all(folder: &Path, files: &[(String, String)]) -> Outcome {
    std::fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    for (name, text) in files {
        let path = folder.join(name);
        std::fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    Ok(())
}

fn contents(folder: &Path) -> Result<BTreeMap<String, String>, String> {
    let problem = |error: std::io::Error| format!("{}: {error}", folder.display());
    let mut files = BTreeMap::new();
    for entry in std::fs::read_dir(folder).map_err(problem)? {
        let path = entry.map_err(problem)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        files.insert(name, std::fs::read_to_string(&path).map_err(problem)?);
    }
    Ok(files)
}

/// The name of one file that only one side has or that differs.
fn differing(fresh: &BTreeMap<String, String>, kept: &BTreeMap<String, String>) -> String {
    let names = fresh.keys().chain(kept.keys());
    let name = names.into_iter().find(|name| fresh.get(*name) != kept.get(*name));
    format!("crates/wire/src/generated/{}", name.map_or("", |name| name))
}
