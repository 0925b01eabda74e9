//! Looking offsets up by time, at each partition's leader (ListOffsets).

use super::{Cluster, Purpose, Retry, Snapshot};
use crate::{Error, IsolationLevel, Result};
use ottla_model::{LeaderEpoch, NodeId, Offset, Timestamp, TopicPartition};
use ottla_wire::generated::list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic};
use ottla_wire::generated::{ListOffsetsRequest, ListOffsetsResponse};
use ottla_wire::{ApiKey, ErrorCode};
use std::collections::BTreeMap;

/// Which offset of a partition is looked for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum OffsetSpec {
    /// The first one there is.
    Earliest,
    /// The one behind the last: where the next record will be.
    Latest,
    /// The first whose record is not older than this.
    At(Timestamp),
    /// That of the record with the latest timestamp (KIP-734).
    MaxTimestamp,
}

/// An offset that was found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FoundOffset {
    /// The offset; none if no record is as young as was asked for.
    pub offset: Option<Offset>,
    /// Its record's time, where a time was asked for.
    pub timestamp: Option<Timestamp>,
    /// The leader epoch it belongs to, if the broker tells.
    pub leader_epoch: Option<LeaderEpoch>,
}

impl OffsetSpec {
    fn number(self) -> i64 {
        match self {
            Self::Latest => -1,
            Self::Earliest => -2,
            Self::MaxTimestamp => -3,
            Self::At(timestamp) => timestamp.0,
        }
    }
}

type Wanted = (TopicPartition, OffsetSpec);
/// What came of each partition in one round.
type Round = Vec<(TopicPartition, Result<FoundOffset>)>;

impl Cluster {
    /// Looks offsets up, again and again until each is found or final or `retry` is over. Answers
    /// in no order. Cancel safe: it changes nothing.
    pub(crate) async fn list_offsets(
        &self,
        wanted: Vec<Wanted>,
        isolation: IsolationLevel,
        mut retry: Retry,
    ) -> Round {
        let mut left = wanted;
        let mut done = Vec::new();
        for round in 0.. {
            let mut again = Vec::new();
            let mut last = None;
            for (partition, outcome) in self.list_offsets_once(&left, isolation).await {
                match outcome {
                    // A topic that is on its way is waited for, one that nobody has is not.
                    Err(error) if error.is_retriable() && !is_unknown(&error, round) => {
                        again.extend(left.iter().find(|(wanted, _)| *wanted == partition).cloned());
                        last = Some(error);
                    }
                    outcome => done.push((partition, outcome)),
                }
            }
            left = again;
            let Some(error) = last else { break };
            self.ask();
            if let Err(error) = retry.pause(error).await {
                done.extend(left.drain(..).map(|(partition, _)| (partition, Err(error.clone()))));
                break;
            }
        }
        done
    }

    async fn list_offsets_once(&self, wanted: &[Wanted], isolation: IsolationLevel) -> Round {
        let snapshot = self.snapshot();
        let (led, mut round) = by_leader(&snapshot, wanted);
        let mut asked = Vec::new();
        for (leader, items) in led {
            match self.start_list_offsets(leader, &items, isolation, &snapshot).await {
                Ok(awaited) => asked.push((items, awaited)),
                Err(error) => round.extend(failed(&items, &error)),
            }
        }
        for (items, awaited) in asked {
            let answered = awaited.answer().await.and_then(|answer| {
                let response: ListOffsetsResponse<'_> = answer.read()?;
                Ok(found(&items, &response))
            });
            match answered {
                Ok(found) => round.extend(found),
                Err(error) => round.extend(failed(&items, &error)),
            }
        }
        round
    }

    async fn start_list_offsets(
        &self,
        leader: NodeId,
        items: &[Wanted],
        isolation: IsolationLevel,
        snapshot: &Snapshot,
    ) -> Result<crate::connection::Awaited> {
        let connection = self.connection(leader, Purpose::General).await?;
        let mut topics: Vec<ListOffsetsTopic<'_>> = Vec::new();
        for (partition, spec) in items {
            let known = snapshot.partition(&partition.topic, partition.partition);
            let epoch = known.and_then(|known| known.leader_epoch);
            let item = ListOffsetsPartition {
                partition_index: partition.partition.0,
                current_leader_epoch: epoch.map_or(-1, |epoch| epoch.0),
                timestamp: spec.number(),
            };
            match topics.iter_mut().find(|topic| topic.name == partition.topic.as_str()) {
                Some(topic) => topic.partitions.push(item),
                None => {
                    topics.push(ListOffsetsTopic { name: &partition.topic, partitions: vec![item] })
                }
            }
        }
        let version = connection.version(ApiKey::ListOffsets)?;
        let timeout = self.config().request_timeout;
        let isolation_level = if version >= 2 { isolation.number() } else { 0 };
        let timeout_ms = if version >= 10 { timeout.as_millis() as i32 } else { 0 };
        let request = ListOffsetsRequest { replica_id: -1, isolation_level, topics, timeout_ms };
        connection.start(version, &request, timeout)
    }
}

/// Partitions by who leads them; and those that nobody leads, as far as is known.
fn by_leader(snapshot: &Snapshot, wanted: &[Wanted]) -> (BTreeMap<NodeId, Vec<Wanted>>, Round) {
    let (mut led, mut homeless) = (BTreeMap::<_, Vec<Wanted>>::new(), Vec::new());
    for (partition, spec) in wanted {
        match leader(snapshot, partition) {
            Ok(leader) => led.entry(leader).or_default().push((partition.clone(), *spec)),
            Err(error) => homeless.push((partition.clone(), Err(error))),
        }
    }
    (led, homeless)
}

/// Who leads a partition.
///
/// # Errors
/// The code that says why nobody is known to.
pub(crate) fn leader(snapshot: &Snapshot, partition: &TopicPartition) -> Result<NodeId> {
    let code = match snapshot.topics.get(&partition.topic).map(|topic| topic.error) {
        Some(Some(code)) => code,
        Some(None) => match snapshot.partition(&partition.topic, partition.partition) {
            Some(known) => match known.leader {
                Some(leader) => return Ok(leader),
                None => ErrorCode::LeaderNotAvailable,
            },
            None => ErrorCode::UnknownTopicOrPartition,
        },
        None => ErrorCode::UnknownTopicOrPartition,
    };
    Err(Error::of(code, format!("nobody is known to lead {partition}")))
}

fn is_unknown(error: &Error, round: usize) -> bool {
    round >= UNKNOWN_ROUNDS && error.code() == Some(ErrorCode::UnknownTopicOrPartition)
}

fn failed(items: &[Wanted], error: &Error) -> Round {
    items.iter().map(|(partition, _)| (partition.clone(), Err(error.clone()))).collect()
}

/// What the response says of each of `items`; what it leaves out is nonsense.
fn found(items: &[Wanted], response: &ListOffsetsResponse<'_>) -> Round {
    let find = |partition: &TopicPartition| {
        let topic = response.topics.iter().find(|topic| topic.name == &*partition.topic)?;
        let mut partitions = topic.partitions.iter();
        partitions.find(|found| found.partition_index == partition.partition.0)
    };
    let outcome = |(partition, _): &Wanted| {
        let what = || format!("cannot look up an offset of {partition}");
        let found = find(partition).ok_or_else(|| Error::protocol(what()));
        let found = found.and_then(|found| {
            Error::check(found.error_code, what)?;
            Ok(FoundOffset {
                offset: (found.offset >= 0).then_some(Offset(found.offset)),
                timestamp: (found.timestamp >= 0).then_some(Timestamp(found.timestamp)),
                leader_epoch: (found.leader_epoch >= 0).then_some(LeaderEpoch(found.leader_epoch)),
            })
        });
        (partition.clone(), found)
    };
    items.iter().map(outcome).collect()
}

/// After so many rounds a topic that nobody knows is believed not to be.
const UNKNOWN_ROUNDS: usize = 5;
