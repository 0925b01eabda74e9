//! The broker under test: ours, Apache Kafka to compare with, or one that runs already.

use super::node::{self, answers};
use super::process::Background;
use crate::shell::{cargo, root};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const START_TIMEOUT: Duration = Duration::from_secs(30);
const STOP_TIMEOUT: Duration = Duration::from_secs(60);

/// Which broker a command tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Ours, built in release mode (`BROKER_BIN` names a binary to use instead; every
    /// `OTTLA_*` variable is a setting of the broker).
    Ottla,
    /// Apache Kafka 4.4, to tell a client's own faults from ours.
    Kafka,
}

impl Kind {
    /// Reads the value of `--broker`.
    pub fn parse(text: &str) -> Result<Self, String> {
        match text {
            "ottla" => Ok(Self::Ottla),
            "kafka" => Ok(Self::Kafka),
            _ => Err(format!("--broker takes `ottla` or `kafka`, not `{text}`")),
        }
    }
}

/// A running broker with a data folder of its own, which it starts empty.
pub struct Broker {
    /// The `host:port` clients start from.
    pub bootstrap: String,
    /// Where its partitions' folders lie.
    pub data: PathBuf,
    /// How long it took from its process's start to its first answer.
    pub start_time: Duration,
    process: Background,
    kind: Kind,
    settings: Vec<String>,
}

impl Broker {
    /// Starts a broker in `folder`, which is emptied first, and waits until it answers.
    pub fn start(kind: Kind, folder: &Path) -> Result<Self, String> {
        Self::start_with(kind, folder, &[])
    }

    /// As [`Broker::start`], with settings of the broker, each `name=value`.
    pub fn start_with(kind: Kind, folder: &Path, settings: &[&str]) -> Result<Self, String> {
        let _ = fs::remove_dir_all(folder);
        let data = folder.join("data");
        let (process, bootstrap) = match kind {
            Kind::Kafka => node::start(folder, settings)?,
            Kind::Ottla => start_ottla(folder, "127.0.0.1:0", settings)?,
        };
        let start_time = process.age();
        let settings = settings.iter().map(|setting| (*setting).to_owned()).collect();
        Ok(Self { bootstrap, data, start_time, process, kind, settings })
    }

    /// Stops it in good order and starts it again on its data, at the same address.
    pub fn restart(self) -> Result<Self, String> {
        self.start_again(|process| process.terminate(STOP_TIMEOUT))
    }

    /// Kills it (SIGKILL) and starts it again on its data, at the same address.
    pub fn crash(self) -> Result<Self, String> {
        self.start_again(|process| {
            drop(process);
            Ok(())
        })
    }

    fn start_again(
        self,
        stop: impl FnOnce(Background) -> Result<(), String>,
    ) -> Result<Self, String> {
        let Self { bootstrap, data, process, kind, settings, .. } = self;
        stop(process)?;
        let folder = data.parent().ok_or("data without a folder")?;
        let lines: Vec<&str> = settings.iter().map(String::as_str).collect();
        let process = match kind {
            Kind::Kafka => node::start_again(folder, &bootstrap)?,
            Kind::Ottla => start_ottla(folder, &bootstrap, &lines)?.0,
        };
        let start_time = process.age();
        Ok(Self { bootstrap, data, start_time, process, kind, settings })
    }

    /// Its process's id.
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// When its process was started, in milliseconds since 1970.
    pub fn started_ms(&self) -> Result<String, String> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_err(|e| e.to_string())?;
        Ok(((now - self.process.age()).as_secs_f64() * 1e3).to_string())
    }

    /// Where it writes what it has to say.
    pub fn log(&self) -> &Path {
        self.process.log()
    }

    /// Stops it in good order, so that its data folder is complete and closed.
    pub fn stop(self) -> Result<PathBuf, String> {
        self.process.terminate(STOP_TIMEOUT)?;
        Ok(self.data)
    }
}

fn start_ottla(
    folder: &Path,
    listen: &str,
    settings: &[&str],
) -> Result<(Background, String), String> {
    let mut command = Command::new(ottla_binary()?);
    command.args(["serve", "--listen", listen, "--http", "127.0.0.1:0", "--data"]);
    command.arg(folder.join("data"));
    for setting in settings {
        command.args(["--set", setting]);
    }
    let mut process = Background::start("ottla", command, &folder.join("ottla.log"))?;
    let bootstrap = process.wait_for(START_TIMEOUT, |log| {
        let text = fs::read_to_string(log).ok()?;
        printed_address(&text).filter(|address| answers(address))
    })?;
    Ok((process, bootstrap))
}

/// The binary to test: built here unless `BROKER_BIN` names one.
fn ottla_binary() -> Result<PathBuf, String> {
    if let Some(path) = std::env::var_os("BROKER_BIN") {
        return Ok(path.into());
    }
    cargo(&["build", "--release", "--quiet", "--bin", "ottla"])?;
    Ok(root().join("target/release/ottla"))
}

/// The first loopback address after the word "listen": the broker says where it listens for
/// Kafka's protocol before anything else.
fn printed_address(text: &str) -> Option<String> {
    let after = &text[text.to_lowercase().find("listen")?..];
    let start = after.find("127.0.0.1:")?;
    let port: String =
        after[start + "127.0.0.1:".len()..].chars().take_while(char::is_ascii_digit).collect();
    (!port.is_empty()).then(|| format!("127.0.0.1:{port}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_is_found_in_a_sentence_and_in_a_log_line() {
        let sentence = "ottla 0.1.0\nListening for Kafka clients on 127.0.0.1:4711.\n";
        assert_eq!(printed_address(sentence).as_deref(), Some("127.0.0.1:4711"));
        let log_line = "INFO listening listener=default address=127.0.0.1:9 http=127.0.0.1:8";
        assert_eq!(printed_address(log_line).as_deref(), Some("127.0.0.1:9"));
        assert_eq!(printed_address("starting on 127.0.0.1:1"), None);
    }
}
