//! The scenes, one file each. A scene prepares, loads, checks what it was answered, and reports.

pub(crate) mod commits;
pub(crate) mod crowd;
pub(crate) mod echo;
pub(crate) mod heartbeats;
pub(crate) mod latency;
pub(crate) mod limits;
pub(crate) mod memory;
pub(crate) mod rebalance;
pub(crate) mod recall;
