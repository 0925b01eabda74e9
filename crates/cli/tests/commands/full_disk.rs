//! A broker whose disk is full, killed and started again: a real process on a small file system.

use crate::broker::Broker;
use crate::world::is_ottla;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// Issue 3: a full disk is a retriable error and reading goes on, also after kills: a start needs
/// room that nobody left it. With room again, writing resumes by itself.
#[test]
fn a_broker_starts_on_a_full_disk_and_what_is_there_can_be_read() {
    if !is_ottla() {
        return;
    }
    let Some(disk) = Disk::mount() else {
        println!("skipped: a file system of 12 MiB cannot be mounted");
        return;
    };
    let data = disk.path().join("data");
    let broker = Broker::start(&data);
    broker.ask(&["topic", "create", "t", "--partitions", "3"], "").ok();
    let lines: String = (0..RECORDS).map(|at| format!("{at:0100}\n")).collect();
    broker.ask(&["produce", "t"], &lines).ok();
    let read = ["consume", "t", "--group", "g", "-n", "500", "--idle", "20s"];
    broker.ask(&read, "").ok();
    disk.fill();
    refused(&broker);
    drop(broker);

    // Twice: what the first start took must not be missing from the second.
    for _ in 0..2 {
        disk.fill();
        let broker = Broker::start(&data);
        assert_eq!(all(&broker), RECORDS);
        let group = broker.ask(&["group", "describe", "g"], "").ok();
        assert!(group.out.contains("Empty"), "{group:?}");
        refused(&broker);
        drop(broker);
    }

    disk.fill();
    let broker = Broker::start(&data);
    disk.free();
    broker.ask(&["produce", "t", "--timeout", "30s"], "again\n").ok();
    assert!(all(&broker) > RECORDS);
    broker.ask(&["topic", "create", "t2"], "").ok();
    broker.stop();
}

/// A record that finds no room is refused by the log: without idempotence nothing else is asked.
fn refused(broker: &Broker) {
    let mut config = tempfile::NamedTempFile::new().expect("a file");
    config.write_all(HASTY).expect("written");
    let config = config.path().to_str().expect("text");
    // What fits into the last page of a file may pass.
    let line = "0".repeat(200_000) + "\n";
    let ran = broker.ask(&["produce", "t", "--command-config", config], &line);
    assert_ne!(ran.code, 0, "{ran:?}");
}

/// How many records can be read.
fn all(broker: &Broker) -> usize {
    broker.ask(&["consume", "t"], "").ok().out.lines().count()
}

/// A small file system of its own, for as long as it is held.
struct Disk {
    folder: tempfile::TempDir,
    sudo: bool,
}

impl Disk {
    /// None where mounting is not allowed; in CI it must be.
    fn mount() -> Option<Self> {
        let folder = tempfile::tempdir().expect("a folder");
        for sudo in [false, true] {
            let words = ["mount", "-t", "tmpfs", "-o", "size=12m,mode=777", "tmpfs"];
            if run(sudo, &words, folder.path()) {
                return Some(Self { folder, sudo });
            }
        }
        let in_ci = std::env::var("CI").is_ok_and(|value| value == "true");
        assert!(!in_ci, "a file system of 12 MiB cannot be mounted");
        None
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Leaves no room.
    fn fill(&self) {
        let filling = self.path().join("filling");
        let mut file = File::options().append(true).create(true).open(filling).expect("a file");
        while file.write_all(&[1; 1024]).is_ok() {}
    }

    fn free(&self) {
        std::fs::remove_file(self.path().join("filling")).expect("it was filled");
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        run(self.sudo, &["umount", "--lazy"], self.folder.path());
    }
}

fn run(sudo: bool, words: &[&str], path: &Path) -> bool {
    let words = if sudo { [&["sudo", "-n"], words].concat() } else { words.to_vec() };
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).arg(path).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

const RECORDS: usize = 2_000;
const HASTY: &[u8] =
    b"enable.idempotence=false\nrequest.timeout.ms=500\ndelivery.timeout.ms=1000\n";
