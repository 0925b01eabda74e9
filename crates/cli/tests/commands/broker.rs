//! A broker of a test's own, on data of its own.

use crate::world::{Ran, command};
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Stdio};

/// A broker process. It is killed when dropped.
pub(crate) struct Broker {
    process: Child,
    address: String,
}

impl Broker {
    /// Starts one on a free port with its data in `folder`.
    pub(crate) fn start(folder: &Path) -> Self {
        let mut process = command(&["serve", "--listen", "127.0.0.1:0", "--http", "off"])
            .arg("--data")
            .arg(folder)
            // `OTTLA_*` variables are settings to the broker.
            .env_clear()
            .stderr(Stdio::inherit())
            .spawn()
            .expect("the broker starts");
        let out = process.stdout.take().expect("its output is piped");
        let mut lines = BufReader::new(out).lines().map_while(Result::ok);
        let address = lines
            .by_ref()
            .find_map(|line| Some(line.split_once("clients connect to ")?.1.trim().to_owned()))
            .expect("it says where it listens");
        // Nobody reads on, but a full pipe would block the broker.
        std::thread::spawn(move || lines.for_each(drop));
        Self { process, address }
    }

    /// Runs `ottla` with these words and this input against it.
    pub(crate) fn ask(&self, words: &[&str], input: &str) -> Ran {
        let mut child = command(words)
            .env("OTTLA_BROKERS", &self.address)
            .stdin(Stdio::piped())
            .spawn()
            .expect("it starts");
        let mut stdin = child.stdin.take().expect("piped");
        // One that wants no input may be gone.
        let _ = stdin.write_all(input.as_bytes());
        drop(stdin);
        child.wait_with_output().expect("it ends").into()
    }

    /// Tells it to stop; returns once it has, in good order.
    pub(crate) fn stop(mut self) {
        let pid = i32::try_from(self.process.id()).ok().and_then(Pid::from_raw);
        kill_process(pid.expect("a process"), Signal::TERM).expect("it is there");
        assert!(self.process.wait().expect("it ends").success());
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
