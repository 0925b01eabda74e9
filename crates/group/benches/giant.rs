//! The longest call of a coordinator whose group is a giant: what other groups of its shard wait.
//!
//! `cargo bench -p ottla-group --bench giant`. 5,000 members of the consumer protocol over 10,000
//! partitions start, one joins, one leaves, a topic grows; CPU times, by kind of call.

#![expect(clippy::print_stdout, reason = "a bench prints its figures")]

use ottla_group::coordinator::{Config, Shard};
use ottla_group::message::consumer::{Heartbeat, Standing};
use ottla_group::message::{Ask, Client, Request, Token};
use ottla_model::{
    ConnectionId, Instant, Now, OwnershipEpoch, Partition, PartitionId, Timestamp, Topic, TopicId,
    TopicName, TopicsView,
};
use rustix::time::{ClockId, clock_gettime};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

const MEMBERS: usize = 5000;

fn main() {
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    for topics in [10, 100, 1000] {
        let mut giant = Giant::new(topics, 10_000 / topics);
        for member in 0..MEMBERS {
            giant.join("start: a join", member);
            giant.pass("start: work on time", Duration::from_micros(100));
        }
        giant.pass("start: work on time", Duration::from_secs(1));
        giant.join("one joins", MEMBERS);
        giant.pass("one joins: work on time", Duration::from_secs(1));
        giant.leave("one leaves", MEMBERS / 2);
        giant.pass("one leaves: work on time", Duration::from_secs(1));
        giant.grow("a topic grows");
        giant.pass("a topic grows: work on time", Duration::from_secs(1));
        println!("{MEMBERS} members, {topics} topics, 10,000 partitions:");
        for (what, Times { calls, longest, all }) in &giant.times {
            let [longest, all] = [longest, all].map(|nanos| *nanos as f64 / 1e6);
            println!("  {what}: {calls} calls, longest {longest:.2} ms, all {all:.1} ms");
        }
    }
}

struct Giant {
    shard: Shard,
    now: Now,
    serial: u64,
    names: Vec<String>,
    view: Arc<TopicsView>,
    times: BTreeMap<&'static str, Times>,
}

#[derive(Default)]
struct Times {
    calls: usize,
    longest: i64,
    all: i64,
}

impl Giant {
    fn new(topics: usize, partitions: usize) -> Self {
        let names: Vec<_> = (0..topics).map(|topic| format!("topic-{topic}")).collect();
        let view = names.iter().zip(1_u128..).map(|(name, id)| Topic {
            id: TopicId(id.to_be_bytes()),
            name: TopicName::from(name.as_str()),
            partitions: vec![Partition::default(); partitions],
        });
        let view = Arc::new(TopicsView::new(view));
        let now = Now { mono: Instant::from_millis(1), wall: Timestamp(1) };
        let mut shard = Shard::new(Config::default(), PartitionId(0));
        shard.handle_owned(OwnershipEpoch(1), Instant::from_nanos(u64::MAX), now);
        shard.handle_topics(Arc::clone(&view), now);
        shard.handle_loaded(now);
        Self { shard, now, serial: 0, names, view, times: BTreeMap::new() }
    }

    fn join(&mut self, what: &'static str, member: usize) {
        let topics = self.names.clone();
        let topics = topics.iter().map(String::as_str).collect();
        self.ask(what, member, Standing::Joining, Some(topics));
    }

    fn leave(&mut self, what: &'static str, member: usize) {
        self.ask(what, member, Standing::Leaving, None);
    }

    fn grow(&mut self, what: &'static str) {
        let mut view = (*self.view).clone();
        let mut topic = view.topics().next().expect("there are topics").clone();
        topic.partitions.push(Partition::default());
        view.insert(Arc::new(topic));
        let (view, now) = (Arc::new(view), self.now);
        self.timed(what, |shard| shard.handle_topics(view, now));
    }

    fn ask(
        &mut self,
        what: &'static str,
        member: usize,
        standing: Standing,
        topics: Option<Vec<&str>>,
    ) {
        self.serial += 1;
        let is_join = topics.is_some();
        let mut fresh = [0; 16];
        fresh[..8].copy_from_slice(&self.serial.to_be_bytes());
        let member = format!("member-{member}");
        let body = Ask::ConsumerHeartbeat(Heartbeat {
            group: "giant",
            member: &member,
            standing,
            instance: None,
            rack: None,
            rebalance_timeout: is_join.then_some(Duration::from_secs(300)),
            topics,
            regex: None,
            assignor: None,
            owned: is_join.then(Vec::new),
        });
        let request = Request {
            token: Token(self.serial),
            connection: ConnectionId(self.serial),
            client: Client { id: "giant", host: "/127.0.0.1", ..Client::default() },
            fresh,
            now: self.now,
            body,
        };
        self.timed(what, |shard| shard.handle_request(request));
    }

    /// Time passes; what is due is done.
    fn pass(&mut self, what: &'static str, time: Duration) {
        let until = self.now.mono + time;
        while let Some(due) = self.shard.poll_timeout().filter(|due| *due <= until) {
            self.now.mono = self.now.mono.max(due);
            let now = self.now;
            self.timed(what, |shard| shard.handle_timeout(now));
        }
        self.now.mono = until;
    }

    fn timed(&mut self, what: &'static str, call: impl FnOnce(&mut Shard)) {
        let start = cpu_nanos();
        call(&mut self.shard);
        let took = cpu_nanos() - start;
        let times = self.times.entry(what).or_default();
        (times.calls, times.all) = (times.calls + 1, times.all + took);
        times.longest = times.longest.max(took);
        while self.shard.poll_append().is_some() {}
        self.shard.handle_durable(self.shard.last_index());
        while self.shard.poll_reply().is_some() {}
    }
}

/// CPU time of this thread so far, in ns.
fn cpu_nanos() -> i64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}
