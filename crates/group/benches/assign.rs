//! Our half of `cargo xtask bench assign`: the server assignors on the cells it is told.
//!
//! It answers lines on standard input, as Kafka's half (`matrix/java/assignor`) does. `run` is the
//! assignor: an event is told and an assignment made. `build` also reads the share of every member
//! that needs a record. What comes before the event is prepared and not counted. Times are the
//! CPU time of the thread: what else runs on the machine does not count.

#![expect(clippy::print_stdout, reason = "its answers go to whoever runs it")]

use ottla_group::assign::server::{MemberFacts, ServerAssignor, Share, Target};
use ottla_model::{MemberId, Partition, Topic, TopicId, TopicName, TopicsView};
use rustix::time::{ClockId, clock_gettime};
use std::collections::HashMap;
use std::hint::black_box;
use std::io::BufRead;
use std::sync::Arc;
use std::time::{Duration, Instant};

fn main() {
    if !std::env::args().any(|argument| argument == "serve") {
        println!("run by `cargo xtask bench assign`");
        return;
    }
    let mut scene = None;
    for line in std::io::stdin().lock().lines() {
        let line = line.expect("the bench sends text");
        let words: Vec<&str> = line.split(' ').collect();
        match (words[0], &scene) {
            ("cell", _) => scene = Some(Scene::new(&Cell::parse(&words[1..]))),
            ("moves", Some(scene)) => println!("{} {}", scene.moves(), scene.slice()),
            ("run", Some(scene)) => println!("{}", scene.median_nanos(&words, Scene::assign)),
            ("build", Some(scene)) => println!("{}", scene.median_nanos(&words, Scene::build)),
            _ => panic!("unknown: {line}"),
        }
    }
}

/// A group and what happens to it.
struct Cell {
    assignor: ServerAssignor,
    /// Who subscribes to what: `all`, `disjoint` or `nested`.
    subscription: String,
    has_racks: bool,
    /// Members before, `None` where nothing was ever assigned, and after.
    before: Option<usize>,
    after: usize,
    buckets: usize,
    /// How many topics, at regular intervals, have a partition more than before.
    grown: usize,
    counts: Vec<usize>,
}

impl Cell {
    /// `ASSIGNOR SUBSCRIPTION RACKS BEFORE AFTER BUCKETS GROWN COUNTS`; counts are
    /// `TOPICSxPARTITIONS`, as often as needed.
    fn parse(words: &[&str]) -> Self {
        let number = |word: &str| word.parse::<usize>().expect("a number");
        let counts = words[7].split(',').flat_map(|run| {
            let (topics, count) = run.split_once('x').expect("TOPICSxPARTITIONS");
            std::iter::repeat_n(number(count), number(topics))
        });
        Self {
            assignor: ServerAssignor::named(words[0]).expect("an assignor"),
            subscription: words[1].to_owned(),
            has_racks: words[2] == "racks",
            before: (words[3] != "none").then(|| number(words[3])),
            after: number(words[4]),
            buckets: number(words[5]),
            grown: number(words[6]),
            counts: counts.collect(),
        }
    }

    fn view(&self) -> Arc<TopicsView> {
        let topics = self.counts.iter().enumerate();
        let topics = topics.map(|(topic, count)| Arc::new(self.topic(topic, *count)));
        Arc::new(topics.collect())
    }

    /// Another view: with `grown` topics of one partition more, the rest shared, as a broker does.
    fn next_view(&self, view: &TopicsView) -> Arc<TopicsView> {
        let mut view = view.clone();
        for grown in 0..self.grown {
            let topic = grown * self.counts.len() / self.grown;
            view.insert(Arc::new(self.topic(topic, self.counts[topic] + 1)));
        }
        Arc::new(view)
    }

    fn topic(&self, topic: usize, count: usize) -> Topic {
        let partitions = (0..count).map(|index| self.partition(index)).collect();
        Topic { id: topic_id(topic), name: name_of(topic), partitions }
    }

    /// Two replicas on brokers of neighbouring racks.
    fn partition(&self, index: usize) -> Partition {
        let racks = if self.has_racks { vec![rack(index), rack(index + 1)] } else { Vec::new() };
        Partition { racks: racks.into_iter().map(Arc::from).collect() }
    }

    /// The subscription of each bucket of members, sorted.
    fn subscriptions(&self) -> Vec<Vec<TopicName>> {
        let edge = |bucket: usize| self.counts.len() * bucket / self.buckets;
        let topics = |bucket: usize| match &*self.subscription {
            "disjoint" => edge(bucket)..edge(bucket + 1),
            "nested" => 0..edge(bucket + 1),
            _ => 0..self.counts.len(),
        };
        let names = |bucket| {
            let mut names: Vec<_> = topics(bucket).map(name_of).collect();
            names.sort();
            names
        };
        (0..self.buckets).map(names).collect()
    }
}

/// A cell prepared.
struct Scene {
    /// The group before the event.
    target: Target,
    /// Members that come, with the subscriptions of buckets.
    joins: Vec<(MemberId, usize)>,
    leaves: Vec<MemberId>,
    view: Option<Arc<TopicsView>>,
    subscriptions: Vec<Vec<TopicName>>,
    has_racks: bool,
    after: usize,
}

impl Scene {
    fn new(cell: &Cell) -> Self {
        let view = cell.view();
        let mut scene = Self {
            target: Target::new(cell.assignor, &view),
            joins: Vec::new(),
            leaves: Vec::new(),
            view: None,
            subscriptions: cell.subscriptions(),
            has_racks: cell.has_racks,
            after: cell.after,
        };
        let before = cell.before.unwrap_or(cell.after);
        for member in 0..before {
            let id = member_id(member);
            tell(
                &mut scene.target,
                &id,
                scene.has_racks,
                &scene.subscriptions[member % cell.buckets],
            );
        }
        if cell.before.is_some() {
            scene.target.assign();
            scene.target.take_changed();
            scene.joins =
                (before..cell.after).map(|at| (member_id(at), at % cell.buckets)).collect();
            scene.leaves = (cell.after..before).map(member_id).collect();
            if scene.joins.is_empty() && scene.leaves.is_empty() {
                // A view that differs or, where nothing is to change, one that is only another.
                scene.view = Some(cell.next_view(&view));
            }
        }
        scene
    }

    /// From the fact to an assignment that can be read.
    fn assign(&self, target: &mut Target) {
        self.tell(target);
        target.assign();
    }

    /// From the fact to what the records say.
    fn build(&self, target: &mut Target) -> Vec<(MemberId, Share)> {
        self.assign(target);
        let changed = target.take_changed().into_iter();
        changed.map(|id| (id.clone(), target.share(&id))).collect()
    }

    fn tell(&self, target: &mut Target) {
        for (id, bucket) in &self.joins {
            tell(target, id, self.has_racks, &self.subscriptions[*bucket]);
        }
        self.leaves.iter().for_each(|id| target.remove_member(id));
        if let Some(view) = &self.view {
            target.set_view(view);
        }
    }

    /// Median of as many runs as fit, at least one.
    fn median_nanos<T>(&self, words: &[&str], work: fn(&Self, &mut Target) -> T) -> i64 {
        let time = Duration::from_millis(words[1].parse().expect("a run has its time in ms"));
        let (begin, mut times) = (Instant::now(), Vec::new());
        while times.is_empty() || begin.elapsed() < time {
            let mut target = self.target.clone();
            let start = cpu_nanos();
            black_box(work(self, &mut target));
            times.push(cpu_nanos() - start);
        }
        times.sort_unstable();
        times[times.len() / 2]
    }

    /// How many partitions go from a member that stays to another.
    fn moves(&self) -> usize {
        let mut target = self.target.clone();
        let before = self.owners(&target);
        self.assign(&mut target);
        let after = self.owners(&target);
        let stays = |id: &MemberId| !self.leaves.contains(id);
        let moved = before.iter().filter(|(at, owner)| stays(owner) && after[at] != **owner);
        moved.count()
    }

    fn owners(&self, target: &Target) -> HashMap<(TopicId, i32), MemberId> {
        let members = (0..self.after + self.leaves.len()).map(member_id);
        let owned = members.flat_map(|id| {
            let share = target.share(&id).into_iter();
            share.flat_map(move |(topic, ids)| {
                let id = id.clone();
                ids.into_iter().map(move |at| ((topic, at.0), id.clone()))
            })
        });
        owned.collect()
    }

    /// The longest of the slices in which a coordinator would work, in ns.
    fn slice(&self) -> i64 {
        const BUDGET: usize = 1000;
        let mut target = self.target.clone();
        self.tell(&mut target);
        let mut longest = 0;
        loop {
            let start = cpu_nanos();
            let progress = target.step(BUDGET);
            longest = longest.max(cpu_nanos() - start);
            if progress == ottla_group::assign::server::Progress::Settled {
                return longest;
            }
        }
    }
}

/// CPU time of this thread so far, in ns.
fn cpu_nanos() -> i64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

fn tell(target: &mut Target, id: &MemberId, has_racks: bool, topics: &[TopicName]) {
    let number = id["member".len()..].parse().unwrap_or(0);
    let rack = has_racks.then(|| rack(number));
    target.set_member(MemberFacts { id, instance: None, rack, topics });
}

fn rack(number: usize) -> &'static str {
    ["rack0", "rack1", "rack2"][number % 3]
}

fn member_id(number: usize) -> MemberId {
    MemberId::from(format!("member{number}"))
}

fn name_of(topic: usize) -> TopicName {
    TopicName::from(format!("topic-{topic}"))
}

/// Ids in no order, as real ones are.
fn topic_id(topic: usize) -> TopicId {
    let spread = (topic as u128 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
    TopicId(spread.to_be_bytes())
}
