//! Running the load generator (`crates/load`), the same binary for every broker, and reading the
//! figures it prints.

use crate::kafka::broker::Broker;
use crate::kafka::process::Call;
use crate::shell::{cargo, root};
use serde_json::Value;
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

/// A named number; the name ends with its unit.
pub type Figure = (String, f64);

/// Longer than any scene takes.
const TIMEOUT: Duration = Duration::from_secs(1800);

/// Runs a scene on a broker.
pub fn on(broker: &Broker, scene: &str, options: &[&str]) -> Result<Vec<Figure>, String> {
    let id = broker.id().to_string();
    let target = ["--bootstrap", &broker.bootstrap, "--pid", &id];
    run(scene, &[&target, options].concat())
}

/// Runs a scene to its end.
pub fn run(scene: &str, options: &[&str]) -> Result<Vec<Figure>, String> {
    let text = start(scene, options)?.wait(TIMEOUT);
    figures(&text.map_err(|error| format!("{scene} {}: {error}", options.join(" ")))?)
}

/// Starts a scene that runs beside others.
pub fn start(scene: &str, options: &[&str]) -> Result<Call, String> {
    let mut command = Command::new(binary()?);
    command.arg(scene).args(options);
    Call::start(command, &root().join("target/bench").join(format!("load-{scene}.log")), "")
}

/// The figures in a scene's last line.
pub fn figures(text: &str) -> Result<Vec<Figure>, String> {
    let last = text.lines().last().unwrap_or_default();
    let value: Value =
        serde_json::from_str(last).map_err(|error| format!("no figures ({error}):\n{text}"))?;
    let pairs = value["figures"].as_array().into_iter().flatten();
    let figure = |pair: &Value| Some((pair[0].as_str()?.to_owned(), pair[1].as_f64()?));
    Ok(pairs.filter_map(figure).collect())
}

fn binary() -> Result<PathBuf, String> {
    static BUILT: OnceLock<Result<(), String>> = OnceLock::new();
    BUILT.get_or_init(|| cargo(&["build", "--release", "--quiet", "-p", "ottla-load"])).clone()?;
    Ok(root().join("target/release/ottla-load"))
}
