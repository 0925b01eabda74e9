//! A broker to ask and the command line to ask with.

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Output, Stdio};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// What a command printed, and how it ended.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Ran {
    /// What it printed as JSON.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The same run, if it ended well.
    pub(crate) fn ok(self) -> Self {
        assert_eq!(self.code, 0, "{self:?}");
        self
    }
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
        let code = output.status.code().expect("ended by itself");
        Self { code, out: text(output.stdout), err: text(output.stderr) }
    }
}

/// Runs `ottla` with these words against the shared broker.
pub(crate) fn ottla(words: &[&str]) -> Ran {
    piped(words, "")
}

/// The same, printing JSON.
pub(crate) fn json(words: &[&str]) -> Value {
    ottla(&[words, &["--output", "json"]].concat()).ok().json()
}

/// The same with something on its standard input.
pub(crate) fn piped(words: &[&str], input: &str) -> Ran {
    let mut child = command(words).stdin(Stdio::piped()).spawn().expect("it starts");
    let mut stdin = child.stdin.take().expect("piped");
    // One that wants no input may be gone.
    let _ = stdin.write_all(input.as_bytes());
    drop(stdin);
    child.wait_with_output().expect("it ends").into()
}

/// The command, with its output caught.
pub(crate) fn command(words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ottla"));
    command.args(words).env_clear().env("OTTLA_BROKERS", &*BROKERS).env("TZ", "UTC");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// A consumer in a group, for as long as it is held.
pub(crate) struct Member(Child);

impl Member {
    /// Starts it; returns when the group is at rest with it in it.
    pub(crate) fn start(topic: &str, group: &str) -> Self {
        let before = members(group);
        let member = Self::spawn(topic, group);
        let deadline = Instant::now() + Duration::from_secs(30);
        while members(group) != before + 1 {
            assert!(Instant::now() < deadline, "it did not join {group}");
            std::thread::sleep(Duration::from_millis(20));
        }
        member
    }

    /// Starts it, a classic one; who knows when it joins.
    pub(crate) fn spawn(topic: &str, group: &str) -> Self {
        let properties = ["--property", "client.id=reader", "--property", "group.protocol=classic"];
        let words = [&["consume", topic, "--group", group], &properties[..]].concat();
        Self(command(&words).stdout(Stdio::null()).spawn().expect("it starts"))
    }

    /// Tells it to stop; returns when it has.
    pub(crate) fn stop(mut self) {
        self.signal(Signal::TERM);
        self.0.wait().expect("it ends");
    }

    /// Sends it a signal.
    pub(crate) fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.0.id()).ok().and_then(Pid::from_raw).expect("a process");
        kill_process(pid, signal).expect("it is there");
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// How many members a group at rest has.
fn members(group: &str) -> usize {
    let described = ottla(&["group", "describe", group, "--output", "json"]);
    let described: Value = serde_json::from_str(&described.out).unwrap_or_default();
    let is_stable = described[0]["state"] == "Stable";
    let members = described[0]["members"].as_array().map_or(0, Vec::len);
    if is_stable { members } else { 0 }
}

/// A name that no other test uses, whatever broker it is.
pub(crate) fn unique(what: &str) -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("{what}-{}-{number}", std::process::id())
}

/// A topic of its own with these many partitions.
pub(crate) fn topic(what: &str, partitions: u16) -> String {
    let name = unique(what);
    ottla(&["topic", "create", &name, "--partitions", &partitions.to_string()]).ok();
    name
}

static BROKERS: LazyLock<String> = LazyLock::new(|| match std::env::var("KAFKA_BOOTSTRAP") {
    Ok(brokers) => brokers,
    Err(_) => start(),
});

/// Whether it is Ottla that is asked, not an Apache Kafka.
pub(crate) fn is_ottla() -> bool {
    std::env::var_os("KAFKA_BOOTSTRAP").is_none()
}

/// Starts the broker that all tests share. It ends with this process: when nobody holds the
/// other end of its standard input, `sh` kills it.
fn start() -> String {
    let folder = tempfile::tempdir().expect("a folder");
    let script = "trap '' INT; \"$0\" serve --listen 127.0.0.1:0 --http off --data \"$1\" & \
                  pid=$!; exec >&2; cat >/dev/null; kill -9 $pid; rm -rf \"$1\"";
    let mut shell: Child = Command::new("/bin/sh")
        .args(["-c", script, env!("CARGO_BIN_EXE_ottla")])
        .arg(folder.keep())
        // `OTTLA_*` variables are settings to the broker, and other tests have theirs.
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the broker starts");
    let out = shell.stdout.take().expect("piped");
    let mut lines = BufReader::new(out).lines().map_while(Result::ok);
    let address = lines
        .by_ref()
        .find_map(|line| Some(line.split_once("clients connect to ")?.1.trim().to_owned()))
        .expect("it says where it listens");
    // The pipe into the shell stays open for as long as this process lives.
    std::mem::forget(shell);
    std::thread::spawn(move || lines.for_each(drop));
    address
}
