//! Our moves against those of Kafka's own uniform assignor, from what it had assigned before.
//!
//! `kafka-moves.txt` is written by `cargo xtask bench assign --fixture`: the line of a cell, how
//! many partitions Kafka moved between members that stayed, and who owned what before, topic by
//! topic.

use super::super::ServerAssignor;
use super::world::{At, Member, Topics, World, moves, plain, topic_id};
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::vec::Vec;
use core::iter::repeat_n;
use ottla_model::{MemberId, PartitionId};

const FIXTURE: &str = include_str!("kafka-moves.txt");

/// A small group of Kafka's grid, and what Kafka made of it.
struct Cell<'a> {
    line: &'a str,
    subscription: &'a str,
    before: usize,
    after: usize,
    buckets: usize,
    grown: usize,
    counts: Vec<usize>,
    moves: usize,
    /// Member numbers by topic and partition.
    owners: Vec<Vec<usize>>,
}

/// Issue 4: without racks never more moves than Kafka's.
#[test]
fn uniform_never_moves_more_than_kafka() {
    let cells: Vec<_> = FIXTURE.lines().map(Cell::parse).collect();
    assert!(cells.len() > 50 && cells.iter().any(|cell| cell.moves > 0), "the fixture is whole");
    for cell in cells {
        let mut world = cell.world();
        let before = world.owners();
        cell.happen(&mut world);
        world.assign();
        world.check_whole();
        world.check_even();
        let moved = moves(&world.keepable(&before), &world.owners());
        assert!(moved <= cell.moves, "{moved} where Kafka moves {}: {}", cell.moves, cell.line);
    }
}

impl<'a> Cell<'a> {
    /// `cell ASSIGNOR SUBSCRIPTION RACKS BEFORE AFTER BUCKETS GROWN COUNTS MOVES OWNERS`
    fn parse(line: &'a str) -> Self {
        let words: Vec<_> = line.split(' ').collect();
        let number = |word: &str| word.parse::<usize>().expect("a number");
        let runs = words[8].split(',').map(|run| run.split_once('x').expect("TOPICSxPARTITIONS"));
        let owners = words[10].split(';').map(|topic| topic.split(',').map(number).collect());
        Self {
            line,
            subscription: words[2],
            before: number(words[4]),
            after: number(words[5]),
            buckets: number(words[6]),
            grown: number(words[7]),
            counts: runs
                .flat_map(|(topics, each)| repeat_n(number(each), number(topics)))
                .collect(),
            moves: number(words[9]),
            owners: owners.collect(),
        }
    }

    /// The group as Kafka had assigned it before the event.
    fn world(&self) -> World {
        let mut world = World::new(ServerAssignor::Uniform, self.topics(0));
        (0..self.before).for_each(|member| world.set(&name_of(member), self.member(member)));
        let mut shares: BTreeMap<usize, Vec<_>> = BTreeMap::new();
        for (topic, owners) in (0..).zip(&self.owners) {
            for (index, owner) in (0..).zip(owners) {
                let at = (topic_id(topic, 0), PartitionId(index));
                shares.entry(*owner).or_default().push(at);
            }
        }
        for (owner, share) in shares {
            world.target.restore(&name_of(owner), share);
        }
        for member in 0..self.before {
            let id = MemberId::from(name_of(member));
            world.recorded.insert(id.clone(), world.target.share(&id));
        }
        let owned: BTreeMap<At, MemberId> = world.owners();
        assert_eq!(owned.len(), self.counts.iter().sum::<usize>(), "{}", self.line);
        world
    }

    fn happen(&self, world: &mut World) {
        (self.before..self.after).for_each(|at| world.set(&name_of(at), self.member(at)));
        (self.after..self.before).for_each(|at| world.leave(&name_of(at)));
        if self.grown > 0 {
            world.set_topics(self.topics(self.grown));
        }
    }

    fn topics(&self, grown: usize) -> Topics {
        let mut counts = self.counts.clone();
        (0..grown).for_each(|at| counts[at * self.counts.len() / grown] += 1);
        plain(&counts)
    }

    fn member(&self, number: usize) -> Member {
        let edge = |bucket: usize| (self.counts.len() * bucket / self.buckets) as u8;
        let bucket = number % self.buckets;
        let topics = match self.subscription {
            "disjoint" => edge(bucket)..edge(bucket + 1),
            "nested" => 0..edge(bucket + 1),
            _ => 0..edge(self.buckets),
        };
        Member { instance: None, rack: None, topics: topics.collect() }
    }
}

fn name_of(member: usize) -> alloc::string::String {
    format!("member{member}")
}
