//! The broker: listeners, connections, API handlers, shard drivers, metrics.
//!
//! This is where tokio, clocks and threads live. It moves bytes and time between clients, logs and
//! coordinator shards, and keeps bounds and order. Invariant: it contains no rule of a group
//! protocol, no codec and no file format; it prints nothing and reads no environment.

mod api;
mod broker;
mod clock;
pub mod config;
mod entropy;
mod fetching;
mod http;
mod identity;
mod metrics;
mod net;
mod partitions;
pub mod patience;
mod server;
mod shards;
#[cfg(test)]
mod simulation;
mod stewards;

pub use identity::IdentityError;
pub use net::Listener;
pub use server::{Server, StartError};
