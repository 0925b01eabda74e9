//! The broker under test: the real binary as a child process, killed without warning.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

/// A running broker.
pub(crate) struct Broker {
    folder: PathBuf,
    /// Its process.
    pub(crate) process: Child,
    address: SocketAddr,
}

impl Broker {
    /// Starts a broker on a free port with its data in `folder`.
    pub(crate) fn start(folder: &Path) -> Self {
        Self::logging_to(folder, Stdio::inherit())
    }

    /// The same, with its log somewhere else than in the test's.
    pub(crate) fn logging_to(folder: &Path, log: Stdio) -> Self {
        let mut process = Command::new(env!("CARGO_BIN_EXE_ottla"))
            .args(["serve", "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0", "--data"])
            .arg(folder)
            // `OTTLA_*` variables are settings to the broker, and this test has its own.
            .env_clear()
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .expect("the broker starts");
        let out = process.stdout.take().expect("its output is piped");
        let mut lines = BufReader::new(out).lines();
        let address = lines
            .by_ref()
            .map_while(Result::ok)
            .find_map(|line| address_in(&line))
            .expect("it prints where it listens before it ends");
        // Nobody reads on, but a full pipe would block the broker.
        std::thread::spawn(move || lines.for_each(drop));
        Self { folder: folder.to_path_buf(), process, address }
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// SIGKILL, then a new process on the same data. Returns when that began.
    pub(crate) fn kill_and_restart(&mut self) -> Instant {
        self.kill_and_restart_after(|| ())
    }

    /// The same, with something done while no process runs.
    pub(crate) fn kill_and_restart_after(&mut self, meanwhile: impl FnOnce()) -> Instant {
        self.kill();
        meanwhile();
        let began = Instant::now();
        *self = Self::start(&self.folder.clone());
        began
    }

    fn kill(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        self.kill();
    }
}

fn address_in(line: &str) -> Option<SocketAddr> {
    line.split(|c: char| c.is_whitespace() || c == ',').find_map(|word| word.parse().ok())
}
