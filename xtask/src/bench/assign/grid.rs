//! The cells of Kafka's own ConsumerAssignorBenchmark: sizes, subscriptions and events.
//!
//! What a cell is made of is worked out here, once, and told to both halves.

/// Buckets of members that subscribe differently, at most.
const BUCKETS_MAX: usize = 5;
/// The events that change many change one in so many.
const MANY: usize = 10;

/// Kafka's assignors.
const ASSIGNORS: [&str; 2] = ["uniform", "range"];
/// The events, in the order of the summary.
const EVENTS: [Event; 7] = [
    Event::JoinOne,
    Event::LeaveOne,
    Event::JoinMany,
    Event::LeaveMany,
    Event::PartitionsAdded,
    Event::Stable,
    Event::Full,
];

/// One group and what happens to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell {
    /// `uniform` or `range`.
    pub assignor: &'static str,
    /// `all`, `disjoint` or `nested`: who subscribes to what.
    pub subscription: &'static str,
    /// What happens.
    pub event: Event,
    /// Whether members and replicas have racks.
    pub has_racks: bool,
    /// Whether most topics have one partition and a few have many.
    pub is_skewed: bool,
    /// Members after the event.
    pub members: usize,
    /// Topics.
    pub topics: usize,
    /// Partitions of all topics before the event.
    pub partitions: usize,
}

/// What happened before the assignment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// One member joined.
    JoinOne,
    /// One member left.
    LeaveOne,
    /// A tenth of the members joined.
    JoinMany,
    /// A tenth of the members left.
    LeaveMany,
    /// A tenth of the topics have a partition more.
    PartitionsAdded,
    /// Nothing that changes anything.
    Stable,
    /// Nobody owned anything.
    Full,
}

/// The corners: a large group, a small one, very many topics; for every change.
pub fn quick() -> Vec<Cell> {
    let mut cells = Vec::new();
    for assignor in ASSIGNORS {
        for subscription in ["all", "disjoint", "nested"] {
            for event in EVENTS {
                for (members, topics) in [(5000, 500), (50, 5000), (50, 50)] {
                    let cell = Cell { assignor, subscription, event, members, topics, ..PLAIN };
                    cells.push(cell);
                }
            }
        }
    }
    // One run of Kafka's takes seconds there.
    cells.retain(|cell| cell.subscription != "nested" || cell.members * cell.topics < 1_000_000);
    cells
}

/// Small groups, for every change under uniform without racks.
pub fn small() -> Vec<Cell> {
    let mut cells = Vec::new();
    for subscription in ["all", "disjoint", "nested"] {
        for event in EVENTS.into_iter().filter(|event| *event != Event::Full) {
            for (members, topics, partitions) in [(6, 5, 50), (10, 10, 100), (20, 6, 90)] {
                for is_skewed in [false, true] {
                    let cell = Cell { subscription, event, is_skewed, members, ..PLAIN };
                    cells.push(Cell { topics, partitions, ..cell });
                }
            }
        }
    }
    cells
}

/// The three runs that the benchmark names: by size, a large group, very many topics.
pub fn full() -> Vec<Cell> {
    let mut cells = Vec::new();
    for assignor in ASSIGNORS {
        for event in EVENTS {
            for partitions in [5000, 10_000, 20_000] {
                let plain = Cell { assignor, event, partitions, ..PLAIN };
                by_size(plain, &mut cells);
                for is_skewed in [false, true] {
                    let large = Cell { is_skewed, members: 5000, topics: 500, ..plain };
                    cells.push(large);
                    cells.push(Cell { subscription: "nested", ..large });
                    if assignor == "uniform" {
                        cells.push(Cell { has_racks: true, ..large });
                    }
                    cells.push(Cell { is_skewed, members: 50, topics: 5000, ..plain });
                }
            }
        }
    }
    let mut known = Vec::new();
    cells.retain(|cell| {
        !known.contains(cell) && {
            known.push(*cell);
            true
        }
    });
    cells
}

fn by_size(plain: Cell, cells: &mut Vec<Cell>) {
    if !matches!(plain.event, Event::Full | Event::Stable | Event::JoinOne) {
        return;
    }
    for members in [5, 50, 500, 5000] {
        for topics in [5, 50, 500, 5000] {
            cells.push(Cell { members, topics, ..plain });
        }
    }
}

impl Cell {
    /// The cell as both halves understand it.
    pub fn line(&self) -> String {
        let Self { assignor, subscription, members, .. } = self;
        let racks = if self.has_racks { "racks" } else { "plain" };
        let many = members.div_ceil(MANY);
        let before = match self.event {
            Event::Full => "none".into(),
            Event::JoinOne => (members - 1).to_string(),
            Event::JoinMany => (members - many).to_string(),
            Event::LeaveOne => (members + 1).to_string(),
            Event::LeaveMany => (members + many).to_string(),
            Event::PartitionsAdded | Event::Stable => members.to_string(),
        };
        let buckets = match *subscription {
            "all" => 1,
            _ => BUCKETS_MAX.min(*members).min(self.topics),
        };
        let is_grown = self.event == Event::PartitionsAdded;
        let grown = if is_grown { self.topics.div_ceil(MANY) } else { 0 };
        let counts = counts(self.topics, self.partitions, self.is_skewed);
        let runs = counts.chunk_by(|a, b| a == b).map(|run| format!("{}x{}", run.len(), run[0]));
        let runs = runs.collect::<Vec<_>>().join(",");
        format!(
            "cell {assignor} {subscription} {racks} {before} {members} {buckets} {grown} {runs}"
        )
    }

    /// Its group's size in words.
    pub fn size(&self) -> String {
        let Self { members, topics, partitions, .. } = self;
        let skew = if self.is_skewed { ", skewed" } else { "" };
        format!("{members} members, {topics} topics, {partitions} partitions{skew}")
    }

    /// What the summary puts together.
    pub fn kind(&self) -> String {
        let racks = if self.has_racks { ", racks" } else { "" };
        let subscription = match self.subscription {
            "all" => "one subscription",
            other => other,
        };
        format!("{}, {subscription}{racks}: {}", self.assignor, self.event.name())
    }
}

impl Event {
    /// In words.
    pub const fn name(self) -> &'static str {
        match self {
            Self::JoinOne => "one joins",
            Self::LeaveOne => "one leaves",
            Self::JoinMany => "a tenth joins",
            Self::LeaveMany => "a tenth leaves",
            Self::PartitionsAdded => "a tenth of the topics grows",
            Self::Stable => "nothing changes",
            Self::Full => "from nothing",
        }
    }
}

/// The partitions of each topic, largest first: evenly, or in tiers of a third of the topics each,
/// the first with one partition, each further one with twice as many per topic.
fn counts(topics: usize, partitions: usize, is_skewed: bool) -> Vec<usize> {
    if !is_skewed || topics == 1 {
        return spread(topics, partitions);
    }
    let mut tiers = Vec::new();
    let (mut fraction, mut rest) = (2.0 / 3.0, topics);
    while rest > 0 {
        let size = ((topics as f64 * fraction).round() as usize).clamp(1, rest);
        tiers.push(size);
        rest -= size;
        fraction /= 3.0;
    }
    let (small, large) = (tiers[0], topics - tiers[0]);
    let shared = large.max(partitions.saturating_sub(small));
    let weigh = |tier: usize| tiers[tier] << (tier - 1);
    let weight: usize = (1..tiers.len()).map(weigh).sum();
    let mut counts = Vec::new();
    if weight > shared {
        counts = spread(large, shared);
    } else {
        let (mut weighed, mut given) = (0, 0);
        for tier in (1..tiers.len()).rev() {
            weighed += weigh(tier);
            let share = shared * weighed / weight - given;
            given += share;
            counts.extend(spread(tiers[tier], share));
        }
    }
    counts.extend(std::iter::repeat_n(1, small));
    counts
}

/// Evenly, the first ones one more; at least one each.
fn spread(topics: usize, partitions: usize) -> Vec<usize> {
    let (each, longer) = (partitions / topics, partitions % topics);
    (0..topics).map(|topic| (each + usize::from(topic < longer)).max(1)).collect()
}

/// What most cells have in common.
const PLAIN: Cell = Cell {
    assignor: "uniform",
    subscription: "all",
    event: Event::Full,
    has_racks: false,
    is_skewed: false,
    members: 0,
    topics: 0,
    partitions: 10_000,
};

#[cfg(test)]
mod tests {
    use super::*;

    /// As ConsumerAssignorBenchmark splits 10,000 partitions over 500 topics: tiers of 333 (one
    /// partition each), 111, 37, 12, 4, 1, 1 and 1 topics.
    #[test]
    fn skewed_topics_come_in_tiers() {
        let counts = counts(500, 10_000, true);
        assert_eq!((counts.len(), counts.iter().sum::<usize>()), (500, 10_000));
        assert_eq!(counts.iter().filter(|count| **count == 1).count(), 333);
        assert!(counts.is_sorted_by(|a, b| a >= b), "{counts:?}");
    }

    #[test]
    fn a_line_says_what_was_before() {
        let cell = Cell { event: Event::LeaveMany, members: 15, topics: 3, ..PLAIN };
        assert_eq!(cell.line(), "cell uniform all plain 17 15 1 0 1x3334,2x3333");
    }

    #[test]
    fn the_grid_is_that_of_kafka() {
        assert!(full().len() > 500 && quick().len() > 50);
        assert!(full().iter().all(|cell| cell.members > 0 && cell.topics > 0));
    }
}
