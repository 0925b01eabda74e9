//! The register protocol against a real broker process over TCP: what its statements (S1-S38,
//! `docs/register-protocol.md`) say of sockets, times and brokers.
//!
//! What they say of rules is told by the scenarios of the group crate. No test asserts that
//! something is fast; where time is the point, the order of events and lower bounds are.

#[path = "../crash/broker.rs"]
mod broker;
mod death;
mod failover;
mod hostile;
mod journal;
mod member;
mod page;
mod steady;
mod transcript;
mod wire;

use broker::Broker;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use wire::Wire;

/// A broker with a topic `t` of four partitions.
struct Stage {
    broker: Broker,
    _folder: TempDir,
}

impl Stage {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let stage = Self { broker: Broker::start(folder.path()), _folder: folder };
        let wire = &mut stage.wire();
        wire.create_topic("t", 4);
        // The first who asks makes the offsets topic.
        wire.metadata("any");
        stage
    }

    fn wire(&self) -> Wire {
        Wire::open(self.broker.address())
    }
}

/// Tries until it comes true. No claim is made of how soon, only that it does.
fn eventually(what: &str, mut is_true: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_true() {
        assert!(began.elapsed() < PATIENCE, "{what}: not within {PATIENCE:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// However loaded the machine is, nothing waited for takes longer.
const PATIENCE: Duration = Duration::from_secs(20);
