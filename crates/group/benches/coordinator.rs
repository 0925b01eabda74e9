//! What a shard's hot paths cost: heartbeats, commits, loading, and a large group's rebalance.
//!
//! `cargo bench -p ottla-group --bench coordinator`. Allocations are counted beside the times: a
//! heartbeat has none.

use divan::counter::ItemsCount;
use divan::{AllocProfiler, Bencher};
use ottla_group::coordinator::record::{OffsetCommit, OffsetCommitValue, Record};
use ottla_group::coordinator::{Config, RecordAt, Shard};
use ottla_group::message::classic::{Heartbeat, Join, Joined, Protocol, Sync};
use ottla_group::message::offsets::{Commit, CommitPartition, CommitTopic};
use ottla_group::message::{Ask, Client, Reply, Request, Token};
use ottla_model::{
    ConnectionId, Generation, GroupId, Instant, Now, Offset, OwnershipEpoch, PartitionId,
    Timestamp, TopicId, TopicName,
};
use std::time::Duration;

#[global_allocator]
static ALLOCATOR: AllocProfiler = AllocProfiler::system();

fn main() {
    divan::main();
}

struct Bench {
    shard: Shard,
    now: Now,
    serial: u64,
}

impl Bench {
    fn new() -> Self {
        let now = Now { mono: Instant::from_millis(1), wall: Timestamp(1) };
        let config = Config { initial_rebalance_delay: Duration::ZERO, ..Config::default() };
        let mut shard = Shard::new(config, PartitionId(0));
        shard.handle_owned(OwnershipEpoch(1), Instant::from_nanos(u64::MAX), now);
        Self { shard, now, serial: 0 }
    }

    fn loaded() -> Self {
        let mut bench = Self::new();
        bench.shard.handle_loaded(bench.now);
        bench
    }

    fn ask(&mut self, body: Ask<'_>) {
        self.serial += 1;
        let mut fresh = [0; 16];
        fresh[..8].copy_from_slice(&self.serial.to_be_bytes());
        self.shard.handle_request(Request {
            token: Token(self.serial),
            connection: ConnectionId(1),
            client: Client { id: "consumer-bench-1", host: "/127.0.0.1", ..Client::default() },
            fresh,
            now: self.now,
            body,
        });
    }

    fn drain(&mut self) -> Vec<Reply> {
        while self.shard.poll_append().is_some() {}
        self.shard.handle_durable(self.shard.last_index());
        std::iter::from_fn(|| self.shard.poll_reply()).map(|outgoing| outgoing.reply).collect()
    }

    /// Joins members that are new, or come again, and answers the generation they form.
    fn rebalance(&mut self, group: &str, members: &[String]) -> Vec<Joined> {
        for member in members {
            self.ask(Ask::Join(Join {
                group,
                member,
                instance: None,
                protocol_type: "consumer",
                protocols: vec![Protocol { name: "range", metadata: &[7; 100] }],
                session_timeout: Duration::from_secs(45),
                rebalance_timeout: Duration::from_secs(300),
                requires_known_id: false,
                can_skip_assignment: true,
                reason: None,
            }));
        }
        self.shard.handle_timeout(self.now);
        let mut joined = Vec::new();
        for reply in self.drain() {
            if let Reply::Join(Ok(one)) = reply {
                joined.push(one);
            }
        }
        assert_eq!(joined.len(), members.len());
        joined.sort_by_key(|one| one.member == one.leader);
        for one in &joined {
            let parts = one.members.iter().map(|member| (&*member.member, &[7; 50][..]));
            self.ask(Ask::Sync(Sync {
                group,
                generation: one.generation,
                member: &one.member,
                instance: None,
                protocol_type: None,
                protocol: None,
                assignments: parts.collect(),
            }));
        }
        assert_eq!(self.drain().len(), members.len());
        joined
    }
}

/// Stable members of 20 groups beat in turn, as on one of 50 shards.
#[divan::bench(args = [10, 100, 1000], sample_size = 1000)]
fn heartbeat(bencher: Bencher<'_, '_>, members_per_group: usize) {
    let mut bench = Bench::loaded();
    let mut members = Vec::new();
    for group in 0..20 {
        let group = format!("group-of-the-bench-{group}");
        for joined in bench.rebalance(&group, &vec![String::new(); members_per_group]) {
            members.push((group.clone(), joined));
        }
    }
    let mut next = 0;
    bencher.counter(ItemsCount::new(1_usize)).bench_local(|| {
        let (group, joined) = &members[next % members.len()];
        next += 7;
        bench.ask(Ask::Heartbeat(Heartbeat {
            group,
            generation: joined.generation,
            member: &joined.member,
            instance: None,
        }));
        bench.shard.poll_reply()
    });
}

/// A member commits so many partitions of one topic at once.
#[divan::bench(args = [1, 10, 1000], sample_size = 100)]
fn commit(bencher: Bencher<'_, '_>, partitions: i32) {
    let mut bench = Bench::loaded();
    let joined = bench.rebalance("g", &[String::new()]).remove(0);
    bencher.counter(ItemsCount::new(partitions as usize)).bench_local(|| {
        let partitions = (0..partitions).map(|partition| CommitPartition {
            partition: PartitionId(partition),
            offset: Offset(bench.serial as i64),
            leader_epoch: None,
            metadata: "",
        });
        let topics = vec![CommitTopic {
            topic: "topic-of-the-bench",
            id: TopicId([1; 16]),
            partitions: partitions.collect(),
        }];
        bench.ask(Ask::Commit(Commit {
            group: "g",
            generation: joined.generation,
            member: &joined.member,
            instance: None,
            retention: None,
            knows_epochs: true,
            topics,
        }));
        let append = bench.shard.poll_append();
        bench.shard.handle_durable(bench.shard.last_index());
        (append, bench.shard.poll_reply())
    });
}

/// Reading the log: 100,000 commits to 1,000 groups, each partition many times.
#[divan::bench(sample_count = 10)]
fn load(bencher: Bencher<'_, '_>) {
    let records: Vec<_> = (0..100_000_i32)
        .map(|index| {
            Record::OffsetCommit(OffsetCommit {
                group: GroupId::from(format!("group-of-the-bench-{}", index % 1_000)),
                topic: TopicName::from("topic-of-the-bench"),
                partition: PartitionId(index / 1_000 % 20),
                value: Some(OffsetCommitValue {
                    offset: Offset(index.into()),
                    leader_epoch: None,
                    metadata: Default::default(),
                    committed_at: Timestamp(1),
                    expires_at: None,
                    topic_id: TopicId([1; 16]),
                }),
            })
        })
        .collect();
    let at = RecordAt { offset: Offset(0), appended_at: Timestamp(1) };
    bencher
        .counter(ItemsCount::new(records.len()))
        .with_inputs(|| (Bench::new(), records.clone()))
        .bench_local_values(|(mut bench, records)| {
            for record in records {
                bench.shard.replay(record, at);
            }
            bench.shard.handle_loaded(bench.now);
            bench.shard
        });
}

/// Everyone of a large group rejoins and syncs.
#[divan::bench(args = [100, 1_000, 10_000], sample_count = 10, sample_size = 1)]
fn rebalance(bencher: Bencher<'_, '_>, members: usize) {
    let mut bench = Bench::loaded();
    let joined = bench.rebalance("g", &vec![String::new(); members]);
    let mut ids: Vec<_> = joined.iter().map(|one| one.member.to_string()).collect();
    // The leader came last above; it must come first to begin a rebalance.
    ids.reverse();
    bencher.counter(ItemsCount::new(members)).bench_local(|| {
        let joined = bench.rebalance("g", &ids);
        assert!(joined[0].generation > Generation(1));
    });
}
