//! Key 37, CreatePartitions, versions 0-3: more partitions for topics that exist (KIP-195).
//!
//! - v1 changes nothing, v2 is flexible, v3 may throttle.
//!
//! The answer waits until the new partitions' logs are open. Left out: `TimeoutMs`, as in
//! CreateTopics.

use super::outcome::{Outcome, count, in_time, of_each, settled};
use super::{Answer, Context};
use ottla_cluster::command::MorePartitions;
use ottla_model::NodeId;
use ottla_wire::ErrorCode;
use ottla_wire::generated::create_partitions_request::CreatePartitionsTopic;
use ottla_wire::generated::create_partitions_response::CreatePartitionsTopicResult;
use ottla_wire::generated::{CreatePartitionsRequest, CreatePartitionsResponse};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Grows what can grow.
pub(super) fn handle(cx: &mut Context<'_>, request: CreatePartitionsRequest<'_>) -> Answer {
    let mut times = BTreeMap::<&str, usize>::new();
    for topic in &request.topics {
        *times.entry(topic.name).or_default() += 1;
    }
    let once = request.topics.iter().filter(|topic| times.get(topic.name) == Some(&1));
    let wanted: Vec<_> = once.map(wish).collect();
    let doubled = times.into_iter().filter(|(_, times)| *times > 1);
    let doubled: Vec<_> = doubled.map(|(name, _)| name.to_owned()).collect();
    let (validate_only, timeout_ms) = (request.validate_only, request.timeout_ms);
    let (broker, to) = (Arc::clone(cx.broker), cx.to);
    Answer::Later(Box::pin(async move {
        let names: Vec<_> = wanted.iter().map(|wish| wish.name.clone()).collect();
        let outcomes =
            in_time(timeout_ms, broker.cluster.create_partitions(wanted, validate_only)).await;
        settled(&broker, timeout_ms).await;
        let outcomes = of_each(names.len(), outcomes);
        let twice = Outcome::failed(ErrorCode::InvalidRequest, "Duplicate topic name.");
        let lines = names.iter().zip(&outcomes).chain(doubled.iter().map(|name| (name, &twice)));
        let line = |(name, outcome): (&'_ String, &'_ Outcome)| (name.clone(), outcome.clone());
        let lines: Vec<_> = lines.map(line).collect();
        let results = lines.iter().map(|(name, outcome)| result(name, outcome)).collect::<Vec<_>>();
        count(&broker, to.key, results.iter().map(|result| result.error_code));
        to.encode(&CreatePartitionsResponse { results, ..Default::default() })
    }))
}

fn wish(topic: &CreatePartitionsTopic<'_>) -> MorePartitions {
    let nodes = |ids: &[i32]| ids.iter().copied().map(NodeId).collect();
    let assignments = topic.assignments.as_ref();
    MorePartitions {
        name: topic.name.to_owned(),
        count: topic.count,
        assignments: assignments.map(|all| all.iter().map(|a| nodes(&a.broker_ids)).collect()),
    }
}

fn result<'a>(name: &'a str, outcome: &'a Outcome) -> CreatePartitionsTopicResult<'a> {
    CreatePartitionsTopicResult {
        name,
        error_code: outcome.number(),
        error_message: outcome.text(),
    }
}
