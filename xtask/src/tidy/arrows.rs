//! The crate arrows of ARCHITECTURE.md, held against what `cargo metadata` says.

use crate::shell::cargo_command;
use serde_json::Value;

/// Who may depend on whom, besides crates from outside. A new entry is the rarest change there is.
/// Development dependencies are free: a test may look at anything.
const ARROWS: &[(&str, &[&str])] = &[
    ("model", &[]),
    ("records", &["model"]),
    ("group", &["model"]),
    ("wire", &["group", "records", "model"]),
    ("storage", &["records", "model"]),
    ("cluster", &["storage", "model"]),
    ("broker", &["cluster", "storage", "wire", "records", "group", "model"]),
    ("client", &["wire", "records", "group", "model"]),
    ("cli", &["broker", "client", "model"]),
    ("load", &["wire", "records", "model"]),
];

/// Every dependency between our own crates that the table does not allow.
pub fn breaches() -> Result<Vec<String>, String> {
    let output = cargo_command(&["metadata", "--no-deps", "--format-version", "1"])
        .output()
        .map_err(|error| format!("cannot run cargo metadata: {error}"))?;
    let metadata: Value = serde_json::from_slice(&output.stdout)
        .map_err(|error| format!("cargo metadata printed no JSON: {error}"))?;
    Ok(arrows(&metadata).iter().filter_map(breach).collect())
}

fn breach((from, to): &(String, String)) -> Option<String> {
    let allowed = ARROWS.iter().find(|(name, _)| name == from);
    match allowed {
        None => Some(format!("crate `{from}` has no row in the table of arrows (tidy/arrows.rs)")),
        Some((_, targets)) if targets.contains(&to.as_str()) => None,
        Some(_) => Some(format!("crate `{from}` must not depend on `{to}` (ARCHITECTURE.md)")),
    }
}

/// The pairs (from, to) among the project's own library crates, names without their prefix.
fn arrows(metadata: &Value) -> Vec<(String, String)> {
    let packages = metadata["packages"].as_array().into_iter().flatten();
    packages.flat_map(arrows_of).collect()
}

fn arrows_of(package: &Value) -> Vec<(String, String)> {
    let Some(from) = own_name(&package["name"]) else { return Vec::new() };
    let dependencies = package["dependencies"].as_array().into_iter().flatten();
    dependencies
        .filter(|dependency| dependency["kind"].as_str() != Some("dev"))
        .filter_map(|dependency| Some((from.clone(), own_name(&dependency["name"])?)))
        .collect()
}

fn own_name(name: &Value) -> Option<String> {
    name.as_str()?.strip_prefix("ottla-").map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The check can fail: an arrow that points up is reported, one that points down is not.
    #[test]
    fn upward_arrow_is_a_breach() {
        assert!(breach(&("group".into(), "wire".into())).is_some());
        assert!(breach(&("wire".into(), "group".into())).is_none());
        assert!(breach(&("unheard-of".into(), "model".into())).is_some());
    }

    #[test]
    fn development_dependencies_are_free() {
        let metadata = serde_json::json!({"packages": [{"name": "ottla-group", "dependencies": [
            {"name": "ottla-wire", "kind": "dev"}, {"name": "ottla-model", "kind": null},
            {"name": "thiserror", "kind": null}]}]});
        assert_eq!(arrows(&metadata), [("group".to_owned(), "model".to_owned())]);
    }
}
