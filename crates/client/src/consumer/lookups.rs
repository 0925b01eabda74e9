//! Finding positions: committed offsets, offsets by time, and whether a log was cut before one
//! (KIP-320). Each question runs in a task of its own and ends in a [`Lookup`].

use super::Shared;
use super::assignment::Assignment;
use super::fetcher::Event;
use super::partition::{Position, Standing};
use crate::cluster::{Cluster, FoundOffset, OffsetSpec, Purpose, Snapshot, leader};
use crate::{Error, ErrorKind, Result, clock};
use ottla_model::{Instant, LeaderEpoch, NodeId, Offset, TopicPartition};
use ottla_wire::ApiKey;
use ottla_wire::generated::offset_for_leader_epoch_request::{
    OffsetForLeaderPartition, OffsetForLeaderTopic,
};
use ottla_wire::generated::{OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse};
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::mpsc::UnboundedSender;

/// What came of a question, partition by partition.
pub(super) enum Lookup {
    Committed(Vec<(TopicPartition, Result<Option<Position>>)>),
    Found(Vec<(TopicPartition, OffsetSpec, Result<FoundOffset>)>),
    Validated(Vec<(TopicPartition, Option<LeaderEpoch>, Result<Position>)>),
}

/// Starts whatever questions partitions have.
pub(super) fn start(
    shared: &Arc<Shared>,
    assignment: &mut Assignment,
    snapshot: &Snapshot,
    now: Instant,
    events: &UnboundedSender<Event>,
) {
    let (mut committed, mut wanted) = (Vec::new(), Vec::new());
    let mut doubtful: BTreeMap<NodeId, Vec<Doubt>> = BTreeMap::new();
    for partition in assignment.iter_mut() {
        if partition.is_asked || partition.wait_until > now {
            continue;
        }
        let key = TopicPartition::clone(&partition.key);
        match partition.standing {
            Standing::Committed => committed.push(key),
            Standing::Lookup(spec) => wanted.push((key, spec)),
            Standing::Validation => {
                let known = snapshot.partition(&key.topic, key.partition);
                let (Ok(node), Some(epoch)) = (leader(snapshot, &key), partition.fetch_at.epoch)
                else {
                    continue;
                };
                let current = known.and_then(|known| known.leader_epoch);
                doubtful.entry(node).or_default().push(Doubt { partition: key, epoch, current });
            }
            _ => continue,
        }
        partition.is_asked = true;
    }
    let tell = |lookup: Lookup, events: &UnboundedSender<Event>| {
        let _ = events.send(Event::LookedUp(lookup));
    };
    if !committed.is_empty() {
        let (shared, events) = (shared.clone(), events.clone());
        tokio::spawn(async move { tell(look_up_committed(&shared, committed).await, &events) });
    }
    if !wanted.is_empty() {
        let (shared, events) = (shared.clone(), events.clone());
        tokio::spawn(async move { tell(look_up(&shared, wanted).await, &events) });
    }
    for (node, doubts) in doubtful {
        let (cluster, events) = (shared.cluster.clone(), events.clone());
        tokio::spawn(async move {
            tell(Lookup::Validated(validate(&cluster, node, doubts).await), &events);
        });
    }
}

async fn look_up_committed(shared: &Shared, partitions: Vec<TopicPartition>) -> Lookup {
    let fetched = shared.fetch_committed(partitions.clone()).await;
    let outcomes = partitions.into_iter().map(|partition| {
        let found = fetched.as_ref().map_err(Error::clone).map(|fetched| {
            let found = fetched.iter().find(|(of, _)| *of == partition)?.1.as_ref()?;
            Some(Position { offset: found.offset, epoch: found.leader_epoch })
        });
        (partition, found)
    });
    Lookup::Committed(outcomes.collect())
}

async fn look_up(shared: &Shared, wanted: Vec<(TopicPartition, OffsetSpec)>) -> Lookup {
    let specs: BTreeMap<_, _> = wanted.iter().cloned().collect();
    let isolation = shared.config.isolation_level;
    // One round and a bit: what fails is asked again with all that waits then.
    let retry = shared.cluster.retry_for(shared.config.client.request_timeout);
    let found = shared.cluster.list_offsets(wanted, isolation, retry).await;
    let found = found.into_iter().filter_map(|(partition, found)| {
        let spec = *specs.get(&partition)?;
        Some((partition, spec, found))
    });
    Lookup::Found(found.collect())
}

/// A position that a new leader has to confirm.
struct Doubt {
    partition: TopicPartition,
    epoch: LeaderEpoch,
    current: Option<LeaderEpoch>,
}

async fn validate(
    cluster: &Cluster,
    node: NodeId,
    doubts: Vec<Doubt>,
) -> Vec<(TopicPartition, Option<LeaderEpoch>, Result<Position>)> {
    let ends = ask_ends(cluster, node, &doubts).await;
    let outcome = |Doubt { partition, current, .. }: Doubt| {
        let end = ends.as_ref().map_err(Error::clone).and_then(|ends| {
            let end = ends.iter().find(|(of, _)| *of == partition);
            let none = || Error::protocol(format!("the answer leaves out {partition}"));
            end.map_or_else(|| Err(none()), |(_, end)| end.clone())
        });
        (partition, current, end)
    };
    doubts.into_iter().map(outcome).collect()
}

async fn ask_ends(
    cluster: &Cluster,
    node: NodeId,
    doubts: &[Doubt],
) -> Result<Vec<(TopicPartition, Result<Position>)>> {
    let connection = cluster.connection(node, Purpose::General).await?;
    let nowhere = Position { offset: Offset(i64::MAX), epoch: None };
    let version = match connection.version(ApiKey::OffsetForLeaderEpoch) {
        Ok(version @ 3..) => version,
        // An older broker has no answer for consumers; nothing contradicts the position.
        _ => {
            return Ok(doubts.iter().map(|doubt| (doubt.partition.clone(), Ok(nowhere))).collect());
        }
    };
    let topics = doubts.iter().map(|doubt| OffsetForLeaderTopic {
        topic: &doubt.partition.topic,
        partitions: vec![OffsetForLeaderPartition {
            partition: doubt.partition.partition.0,
            current_leader_epoch: doubt.current.map_or(-1, |epoch| epoch.0),
            leader_epoch: doubt.epoch.0,
        }],
    });
    let request = OffsetForLeaderEpochRequest { replica_id: -1, topics: topics.collect() };
    let answer = connection.call_at(version, &request).await?;
    let response: OffsetForLeaderEpochResponse<'_> = answer.read()?;
    let mut ends = Vec::new();
    for topic in &response.topics {
        for told in &topic.partitions {
            let partition = TopicPartition::new(topic.topic, told.partition);
            let what = || format!("cannot validate the position in {partition}");
            let end = Error::check(told.error_code, what).map(|()| match told.end_offset {
                // The leader knows nothing of that epoch.
                ..0 => nowhere,
                offset => {
                    let epoch = (told.leader_epoch >= 0).then_some(LeaderEpoch(told.leader_epoch));
                    Position { offset: Offset(offset), epoch }
                }
            });
            ends.push((partition, end));
        }
    }
    Ok(ends)
}

/// Puts the answers where they belong; what failed is asked again, or told.
pub(super) fn finish(shared: &Shared, lookup: Lookup) {
    let mut assignment = shared.assignment.lock();
    match lookup {
        Lookup::Committed(outcomes) => {
            for (partition, outcome) in outcomes {
                match outcome {
                    Ok(found) => assignment.on_committed(&partition, found),
                    Err(error) => put_off(shared, &mut assignment, &partition, error),
                }
            }
        }
        Lookup::Found(outcomes) => {
            for (partition, spec, outcome) in outcomes {
                match outcome {
                    // Nothing is as young as was asked for: that is the end, as seeks have it.
                    Ok(FoundOffset { offset: None, .. }) => {
                        if let Some(one) = assignment.get_mut(&partition)
                            && one.standing == Standing::Lookup(spec)
                        {
                            one.look_for(OffsetSpec::Latest);
                        }
                    }
                    Ok(FoundOffset { offset: Some(offset), leader_epoch, .. }) => {
                        assignment.on_found(&partition, spec, offset, leader_epoch);
                    }
                    Err(error) => put_off(shared, &mut assignment, &partition, error),
                }
            }
        }
        Lookup::Validated(outcomes) => {
            for (partition, current, outcome) in outcomes {
                match outcome {
                    Ok(end) => assignment.on_validated(&partition, end, current),
                    Err(error) => put_off(shared, &mut assignment, &partition, error),
                }
            }
        }
    }
    drop(assignment);
    shared.news.notify_one();
    shared.fetch_wake.notify_one();
}

/// A question that failed is asked again after a pause; the application is told what a pause will
/// not mend.
fn put_off(shared: &Shared, assignment: &mut Assignment, partition: &TopicPartition, error: Error) {
    let Some(partition) = assignment.get_mut(partition) else { return };
    partition.is_asked = false;
    partition.wait_until = clock::now() + shared.config.client.retry_backoff;
    shared.cluster.ask();
    if error.is_retriable() || matches!(error.kind(), ErrorKind::Rebalanced | ErrorKind::Closed) {
        tracing::debug!(partition = %partition.key, %error, "a position is looked for again");
    } else {
        partition.wait_until = clock::now() + shared.config.client.retry_backoff_max;
        partition.fail(error);
    }
}
