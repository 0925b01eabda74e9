//! Everything `/metrics` shows, gathered at one moment.

use crate::broker::Broker;
use crate::partitions::Passes;
use crate::shards::Cell;
use ottla_group::coordinator::{Cause, StateCounts};
use ottla_model::{GroupId, Offset, PartitionId, TopicName, TopicPartition};
use ottla_wire::{APIS, ErrorCode};
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::Instant;

/// The broker in numbers.
#[derive(Debug, Default)]
pub(super) struct Snapshot {
    /// Answered requests by API.
    pub(super) requests: Vec<Requests>,
    /// Errors in replies: API, code, count.
    pub(super) errors: Vec<(String, &'static str, u64)>,
    /// Numbers that only rise: name, what it is, value.
    pub(super) counters: Vec<(&'static str, &'static str, u64)>,
    /// Numbers that rise and fall: name, what it is, value.
    pub(super) gauges: Vec<(&'static str, &'static str, u64)>,
    /// Logs.
    pub(super) logs: Vec<LogNumbers>,
    /// Groups by state.
    pub(super) states: StateCounts,
    /// Rebalances by cause.
    pub(super) rebalances: BTreeMap<Cause, u64>,
    /// How long rebalances took: bounds of buckets in seconds and counts, not cumulated, and the
    /// sum.
    pub(super) rebalance_durations: (Vec<(f64, u64)>, f64),
    /// How long each shard took to load.
    pub(super) loads: Vec<(PartitionId, Duration)>,
    /// Lag by group and partition.
    pub(super) lags: Vec<Lag>,
    /// How many lags there are beyond the bound.
    pub(super) lags_omitted: u64,
}

/// Requests of one API.
#[derive(Debug)]
pub(super) struct Requests {
    /// The API's name.
    pub(super) api: String,
    /// Upper bounds in seconds, and counts, not cumulated.
    pub(super) buckets: Vec<(f64, u64)>,
    /// Seconds of all of them together.
    pub(super) sum: f64,
}

/// One log.
#[derive(Debug)]
pub(super) struct LogNumbers {
    pub(super) at: TopicPartition,
    pub(super) bytes: u64,
    pub(super) start: Offset,
    pub(super) high_watermark: Offset,
}

/// How far a group is behind in one partition.
#[derive(Debug)]
pub(super) struct Lag {
    pub(super) group: GroupId,
    pub(super) topic: TopicName,
    pub(super) partition: PartitionId,
    pub(super) committed: Offset,
    pub(super) lag: i64,
}

impl Snapshot {
    /// The broker as it is. What is not safe yet is waited for, a little.
    pub(super) async fn take(broker: &Broker) -> Self {
        let mut snapshot = Self::default();
        snapshot.requests(broker);
        snapshot.counters(broker);
        snapshot.logs(broker);
        let durations = broker.shards.rebalances();
        snapshot.rebalance_durations = (durations.buckets().collect(), durations.sum());
        let mut room = LAGS_MAX;
        let shards = broker.shards.all();
        let seen: Vec<_> = shards.iter().map(|shard| Observed::of(shard, &mut room)).collect();
        // They all wait for the same disk: none has its time after the others'.
        let until = Instant::now() + SAFE_MAX;
        for observed in seen {
            snapshot.loads.push((observed.shard, observed.load_took));
            if let Some(numbers) = observed.safe(until).await {
                snapshot.add(broker, numbers);
            }
        }
        snapshot
    }

    fn requests(&mut self, broker: &Broker) {
        for api in APIS.iter().filter(|api| api.served) {
            let latency = broker.metrics.requests.of(api.key);
            let buckets: Vec<_> = latency.buckets().collect();
            if buckets.iter().any(|(_, count)| *count > 0) {
                let (api, sum) = (api.key.to_string(), latency.sum());
                self.requests.push(Requests { api, buckets, sum });
            }
        }
        for ((key, code), count) in broker.metrics.errors.snapshot() {
            let api = ottla_wire::Api::from_number(key).map(|api| api.key.to_string());
            let code = ErrorCode::from_number(code).map_or("UNKNOWN", ErrorCode::name);
            self.errors.push((api.unwrap_or_default(), code, count));
        }
    }

    fn counters(&mut self, broker: &Broker) {
        let metrics = &broker.metrics;
        self.counters = vec![
            ("received_bytes", "Bytes read from clients", metrics.bytes_in.value()),
            ("sent_bytes", "Bytes written to clients", metrics.bytes_out.value()),
            (
                "connections_refused",
                "Connections closed at once because a bound was reached",
                metrics.connections_refused.value(),
            ),
            (
                "connections_cut",
                "Connections closed because of what the peer sent or how slow it was",
                metrics.connections_cut.value(),
            ),
        ];
        self.gauges = vec![
            ("connections", "Open connections", broker.admission.count() as u64),
            ("fetches_waiting", "Fetches that wait for records", broker.fetches.count() as u64),
            (
                "heartbeats_held",
                "Heartbeats whose answers are kept until there is something to tell",
                broker.shards.held_heartbeats() as u64,
            ),
            ("fetch_sessions", "Open fetch sessions", broker.fetch_sessions.count() as u64),
        ];
    }

    fn logs(&mut self, broker: &Broker) {
        let logs = broker.partitions.all().into_iter().map(|partition| LogNumbers {
            bytes: partition.size(),
            start: partition.start_offset(),
            high_watermark: partition.high_watermark(),
            at: partition.at.clone(),
        });
        self.logs = logs.collect();
        self.logs.sort_by(|one, other| one.at.cmp(&other.at));
    }

    fn add(&mut self, broker: &Broker, numbers: Numbers) {
        let Numbers { committed, omitted, states, rebalances } = numbers;
        self.lags_omitted += omitted;
        self.states.empty += states.empty;
        self.states.preparing_rebalance += states.preparing_rebalance;
        self.states.completing_rebalance += states.completing_rebalance;
        self.states.assigning += states.assigning;
        self.states.reconciling += states.reconciling;
        self.states.stable += states.stable;
        for (cause, count) in rebalances {
            *self.rebalances.entry(cause).or_default() += count;
        }
        for (group, topic, partition, committed) in committed {
            // Without the log there is nothing to be behind of.
            if let Some(log) = broker.partitions.by_name(&topic, partition) {
                let lag = (log.high_watermark().0 - committed.0).max(0);
                self.lags.push(Lag { group, topic, partition, committed, lag });
            }
        }
    }
}

/// A shard's numbers and what they wait for.
struct Observed {
    shard: PartitionId,
    load_took: Duration,
    numbers: Numbers,
    safe: Option<Passes>,
}

struct Numbers {
    committed: Vec<(GroupId, TopicName, PartitionId, Offset)>,
    omitted: u64,
    states: StateCounts,
    rebalances: Vec<(Cause, u64)>,
}

impl Observed {
    /// A shard as it is, with `room` for so many lags, which is used up.
    fn of(shard: &Cell, room: &mut usize) -> Self {
        let (numbers, safe) = shard.observe(|shard| {
            let mut committed = Vec::new();
            let mut omitted = 0;
            let after = shard.committed(&mut |view| {
                if committed.len() < *room {
                    let topic = view.topic.clone();
                    committed.push((view.group.clone(), topic, view.partition, view.offset));
                } else {
                    omitted += 1;
                }
            });
            let states = shard.states();
            let after = after.max(states.after);
            let rebalances = shard.rebalances().collect();
            (Numbers { committed, omitted, states: states.value, rebalances }, after)
        });
        *room -= numbers.committed.len();
        Self { shard: shard.id(), load_took: shard.load_took(), numbers, safe }
    }

    /// The numbers, if they are safe in time.
    async fn safe(self, until: Instant) -> Option<Numbers> {
        let is_safe = match self.safe {
            Some(safe) => tokio::time::timeout_at(until, safe).await.is_ok_and(|safe| safe.is_ok()),
            None => true,
        };
        is_safe.then_some(self.numbers)
    }
}

/// Lags beyond this many are counted, not listed.
const LAGS_MAX: usize = 50_000;
/// How long the shards' numbers may take to become safe; those that are not are left out this time.
const SAFE_MAX: Duration = Duration::from_secs(1);
