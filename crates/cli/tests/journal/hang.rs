//! A rebalance that hangs is told of while it does: a completed one has its line in the log, but
//! one that never ends would have none.

use crate::classic::Classic;
use crate::eventually;
use crate::protocol::{Process, Protocol, settle};
use crate::stage::Stage;
use std::io::{BufRead, BufReader};
use std::sync::mpsc;

#[test]
fn the_log_says_whom_a_hanging_rebalance_waits_for() {
    let (stage, log) = Stage::with_log();
    let (says, said) = mpsc::channel();
    std::thread::spawn(move || {
        for line in BufReader::new(log).lines().map_while(Result::ok) {
            // It is read to its end, or the broker would wait for a reader.
            let _ = says.send(line);
        }
    });
    stage.create_topic("t", 2);
    let mut members = Classic::new("hanging");
    members.enter(&stage, Process::new(&stage, "first", &["t".into()]));
    settle(&stage, &mut members, 0);
    let first = members.cast().remove(0);
    members.enter(&stage, Process::new(&stage, "second", &["t".into()]));
    eventually("the log tells of it", || {
        said.try_iter().any(|line| {
            line.contains("WARN")
                && line.contains("a rebalance hangs")
                && line.contains("group=hanging")
                && line.contains(&first.id)
                && line.contains("owes Join")
        })
    });
}
