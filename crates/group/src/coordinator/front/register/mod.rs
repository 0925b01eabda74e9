//! Register groups: all members move together, the coordinator assigns (ConsumerMetadata,
//! RegisterConsumer, Heartbeat of the design document; statements S1-S38).
//!
//! ```text
//!   registration, death, leave, topic change          everyone registered, or time is up
//!   Empty/Stable ----------------------> Preparing ---------------------------> Stable
//! ```
//!
//! A generation is assigned, written down and in force in one decision, and told only when that is
//! durable; so a restart finds either the generation before or this one, and no number is ever told
//! twice. It stands on the classic front's roster and barrier: what differs is that there is no
//! sync, that silence is measured in missed heartbeats, that a parked registration is not silent,
//! and that the dead lose their sockets.

mod death;
mod heartbeat;
mod rebalance;
mod registration;
mod terms;
mod topics;

pub(super) use terms::{detection_of, kind_of};

/// The protocol name a register group has in its records and in Kafka's tools (decision 28).
const PROTOCOL: &str = "register";
