//! The broker: listeners, connections, API handlers, shard drivers, metrics.
