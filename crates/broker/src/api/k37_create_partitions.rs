//! Key 37, CreatePartitions, versions 0-3: more partitions for topics (KIP-195).
//!
//! - v2 is flexible, v3 lets the broker throttle. Nothing that a handler sees changes.
//!
//! The reply is sent when the new partitions' logs are open.
//!
//! Left out: waiting no longer than the request's timeout. The change takes one transaction.

use super::error_map::{change_error, refusal};
use super::{Answer, Context};
use ottla_cluster::command::{MorePartitions, Refusal};
use ottla_model::NodeId;
use ottla_wire::ErrorCode;
use ottla_wire::generated::create_partitions_request::CreatePartitionsTopic;
use ottla_wire::generated::create_partitions_response::CreatePartitionsTopicResult;
use ottla_wire::generated::{CreatePartitionsRequest, CreatePartitionsResponse};
use std::sync::Arc;

/// Adds the partitions and answers when their logs are open.
pub(super) fn handle(cx: &mut Context<'_>, request: CreatePartitionsRequest<'_>) -> Answer {
    let topics: Vec<MorePartitions> = request.topics.iter().map(wish).collect();
    let validate_only = request.validate_only;
    let (broker, to) = (Arc::clone(cx.broker), cx.to);
    Answer::Later(Box::pin(async move {
        let names: Vec<String> = topics.iter().map(|topic| topic.name.clone()).collect();
        let outcomes: Vec<_> = match broker.cluster.create_partitions(topics, validate_only).await {
            Ok(outcomes) => outcomes.into_iter().map(judged).collect(),
            Err(error) => {
                let failed = (change_error(&error), Some(error.to_string()));
                vec![failed; names.len()]
            }
        };
        broker.partitions.applied(broker.cluster.image().revision()).await;
        for (code, _) in &outcomes {
            broker.metrics.errors.count(to.key, *code);
        }
        let results = names.iter().zip(&outcomes).map(result).collect();
        to.encode(&CreatePartitionsResponse { results, ..Default::default() })
    }))
}

fn wish(topic: &CreatePartitionsTopic<'_>) -> MorePartitions {
    let assignments = topic.assignments.as_ref().map(|given| {
        let replicas =
            given.iter().map(|one| one.broker_ids.iter().map(|id| NodeId(*id)).collect());
        replicas.collect()
    });
    MorePartitions { name: topic.name.to_owned(), count: topic.count, assignments }
}

fn judged(outcome: Result<(), Refusal>) -> (ErrorCode, Option<String>) {
    match outcome {
        Ok(()) => (ErrorCode::None, None),
        Err(why) => (refusal(why.kind), Some(why.message)),
    }
}

fn result<'a>(
    (name, (code, message)): (&'a String, &'a (ErrorCode, Option<String>)),
) -> CreatePartitionsTopicResult<'a> {
    let error_message = message.as_deref();
    CreatePartitionsTopicResult { name, error_code: code.number(), error_message }
}
