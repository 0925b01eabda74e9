//! Bugs of the driver and of the log, for the tests of the tests.

use ottla_group::probe::{self, Fault};

/// The log takes appends of deposed owners.
pub fn log_has_no_fence() -> bool {
    probe::has(Fault::LogWithoutFence)
}

/// Neither shard nor driver looks at T.
pub fn driver_ignores_silence() -> bool {
    probe::has(Fault::CoordinatorOutlivesOwnership)
}

/// Of a batch under way when its process dies, the log keeps a part.
pub fn log_tears_batches() -> bool {
    probe::has(Fault::LogTearsBatches)
}
