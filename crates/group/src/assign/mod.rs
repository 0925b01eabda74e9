//! Who should own what: pure functions from subscriptions and topics to an assignment.
//!
//! A classic leader calls them on what JoinGroup gave it; a coordinator that assigns by itself
//! calls them on its roster. Nothing here knows generations' rules, timers or connections, and
//! the same input gives the same output on every machine. [`subscription`] holds the bytes in
//! which classic members tell each other about all this.

mod partitions;
mod problem;
mod range;
mod roundrobin;
pub mod server;
mod sticky;
pub mod subscription;

#[cfg(test)]
mod tests;

pub use partitions::Partitions;

use alloc::vec::Vec;
use ottla_model::{Generation, TopicName, TopicsView};
use problem::Problem;

/// One member as an assignor sees it.
#[derive(Clone, Copy, Debug)]
pub struct Subscriber<'a> {
    /// Its member id.
    pub member: &'a str,
    /// Its `group.instance.id`, if static: it then keeps its place in the order across restarts.
    pub instance: Option<&'a str>,
    /// The topics it wants; those the view does not know are ignored.
    pub topics: &'a [TopicName],
    /// What it says it owns.
    pub owned: &'a Partitions,
    /// The generation in which it came to own that; `None` where it does not say.
    pub generation: Option<Generation>,
}

/// The assignors every Kafka client knows by name.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Assignor {
    /// Contiguous ranges per topic; topics with the same subscribers and as many partitions are
    /// co-partitioned.
    Range,
    /// All partitions of all topics dealt out in turn.
    RoundRobin,
    /// Balanced, moving as little as possible (KIP-54).
    Sticky,
    /// As sticky, but a partition changes hands only after its owner gave it up (KIP-429).
    CooperativeSticky,
}

/// How members of a group give up partitions when it rebalances (KIP-429).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Handover {
    /// Everyone gives up everything before it joins.
    Eager,
    /// Everyone keeps what it has until the assignment takes it away; then there is a second
    /// rebalance to hand it on.
    Cooperative,
}

impl Assignor {
    /// All of them.
    pub const ALL: [Self; 4] =
        [Self::Range, Self::RoundRobin, Self::Sticky, Self::CooperativeSticky];

    /// The name members vote with, as in Java's `partition.assignment.strategy`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Range => "range",
            Self::RoundRobin => "roundrobin",
            Self::Sticky => "sticky",
            Self::CooperativeSticky => "cooperative-sticky",
        }
    }

    /// The assignor of this name, if it is one of ours.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|assignor| assignor.name() == name)
    }

    /// How a group under this assignor hands over partitions.
    pub const fn handover(self) -> Handover {
        match self {
            Self::Range | Self::RoundRobin | Self::Sticky => Handover::Eager,
            Self::CooperativeSticky => Handover::Cooperative,
        }
    }

    /// One set of partitions per subscriber, in the order of `subscribers`. Every partition of a
    /// known topic goes to exactly one of the topic's subscribers, except that
    /// [`Self::CooperativeSticky`] withholds what another member still holds.
    pub fn assign(self, subscribers: &[Subscriber<'_>], view: &TopicsView) -> Vec<Partitions> {
        let problem = Problem::new(subscribers, view);
        match self {
            Self::Range => problem.solution(&range::assign(&problem)),
            Self::RoundRobin => problem.solution(&roundrobin::assign(&problem)),
            Self::Sticky => problem.solution(&sticky::assign(&problem, subscribers)),
            Self::CooperativeSticky => {
                let mut owners = sticky::assign(&problem, subscribers);
                sticky::withhold_held_elsewhere(&problem, subscribers, &mut owners);
                problem.solution(&owners)
            }
        }
    }
}
