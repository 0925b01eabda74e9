//! Server-side assignment for the consumer protocol (KIP-848): who should own what, kept up as
//! members and topics come and go.
//!
//! A [`Target`] is told facts (members, topics, what the log says members own), works towards a
//! balanced assignment in steps of bounded length, and names the members whose share changed. One
//! join or leave costs what it changes, not what the group is. Nothing here knows epochs, records,
//! timers or connections.

mod facts;
mod range;
mod target;
mod uniform;

#[cfg(test)]
mod tests;

pub use target::{MemberFacts, Progress, Share, Target};

/// The assignors a consumer group's members may name (KIP-848: `group.remote.assignor`).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum ServerAssignor {
    /// Balanced over all topics, moving as little as possible; the default, as in Kafka.
    #[default]
    Uniform,
    /// Each topic's partitions in contiguous runs over its subscribers in the order of their
    /// ids; equal topics come out alike (co-partitioned).
    Range,
}

impl ServerAssignor {
    /// All of them, the default first: the order of Kafka's `group.consumer.assignors`.
    pub const ALL: [Self; 2] = [Self::Uniform, Self::Range];

    /// The name members vote with.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Uniform => "uniform",
            Self::Range => "range",
        }
    }

    /// The assignor of this name, if it is one of ours.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|assignor| assignor.name() == name)
    }
}
