//! The broker's process as the operating system accounts for it.

use crate::{Outcome, Target};
use clap::Args;
use std::fs;
use std::process::Command;
use std::time::Duration;

/// The process of the broker under load.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Process(pub(crate) u32);

impl Process {
    /// CPU seconds spent so far, in user and system mode together.
    pub(crate) fn cpu_seconds(self) -> Outcome<f64> {
        /// Linux counts in these ticks for every program.
        const TICKS_PER_SECOND: f64 = 100.0;
        let stat = read(&format!("/proc/{}/stat", self.0))?;
        // The command's name may hold spaces; fields are counted from behind its bracket.
        let after = stat.rsplit_once(')').map_or("", |(_, after)| after);
        let words = after.split_whitespace().skip(11).take(2);
        let ticks: Vec<f64> = words.filter_map(|word| word.parse().ok()).collect();
        match ticks[..] {
            [user, system] => Ok((user + system) / TICKS_PER_SECOND),
            _ => Err(format!("no CPU time of process {}", self.0)),
        }
    }

    /// Memory of its own (not of files) that is resident, in bytes.
    pub(crate) fn resident_bytes(self) -> Outcome<f64> {
        let status = read(&format!("/proc/{}/status", self.0))?;
        let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
        let kib = line.and_then(|text| text.trim().strip_suffix("kB")?.trim().parse::<f64>().ok());
        kib.map(|kib| kib * 1024.0).ok_or_else(|| format!("no RssAnon of process {}", self.0))
    }
}

/// A broker whose memory is looked at.
#[derive(Args, Clone, Debug)]
pub(crate) struct Weighed {
    #[command(flatten)]
    pub(crate) target: Target,
    /// The broker is a JVM: ask it for its live bytes
    #[arg(long)]
    jvm: bool,
}

impl Weighed {
    /// Bytes that it holds now: resident memory of its own or, of a JVM, what is live.
    pub(crate) fn held(&self) -> Outcome<f64> {
        std::thread::sleep(REST);
        match self.jvm {
            true => live_bytes(self.target.pid),
            false => self.target.process().resident_bytes(),
        }
    }
}

/// The last line of the class histogram, for which the JVM collects first.
fn live_bytes(pid: u32) -> Outcome<f64> {
    let output = Command::new("jcmd").args([&pid.to_string(), "GC.class_histogram"]).output();
    let text = output.map_err(|error| format!("jcmd: {error}"))?.stdout;
    let text = String::from_utf8_lossy(&text);
    let total = text.lines().rev().find_map(|line| line.trim().strip_prefix("Total"));
    let bytes = total.and_then(|rest| rest.split_whitespace().nth(1)?.parse().ok());
    bytes.ok_or_else(|| "jcmd printed no total".into())
}

fn read(path: &str) -> Outcome<String> {
    fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))
}

/// Before it is looked: what is let go of late is not held.
const REST: Duration = Duration::from_secs(1);
