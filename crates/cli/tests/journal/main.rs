//! Issue 4, must-show 7: whatever makes a group rebalance stands in its journal with the right
//! cause, mover and durations, and is still there after a kill -9. For every protocol, against a
//! real broker process over TCP.
//!
//! `table` says which cause there is in which protocol and what to expect of it, and by name which
//! cause a protocol does not have. No test asserts that something is fast; durations must add up
//! and fit into the time the test itself took.

#[path = "../crash/broker.rs"]
mod broker;
mod classic;
mod consumer;
mod expect;
mod hang;
mod migration;
mod protocol;
mod register;
mod stage;
mod table;
#[allow(dead_code, reason = "the register protocol's own tests use more of it")]
#[path = "../register/wire.rs"]
mod wire;

use broker::Broker;
use std::time::{Duration, Instant};

/// Tries until it comes true. No claim is made of how soon, only that it does.
fn eventually(what: &str, mut is_true: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_true() {
        assert!(began.elapsed() < PATIENCE, "{what}: not within {PATIENCE:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// However loaded the machine is, nothing waited for takes longer.
const PATIENCE: Duration = Duration::from_secs(60);
