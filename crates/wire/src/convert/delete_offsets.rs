//! OffsetDelete (key 47), version 0 (KIP-496).

use ottla_group::message::GroupError;
use ottla_group::message::offsets::{Delete, Deleted};
use ottla_model::Topic;

use super::plan::{Answers, PlannedTopic};
use super::{Plan, TopicRef, code};
use crate::ErrorCode;
use crate::generated::offset_delete_request::OffsetDeleteRequest;
use crate::generated::offset_delete_response::{
    OffsetDeleteResponse, OffsetDeleteResponsePartition, OffsetDeleteResponseTopic,
};

/// What the request asks of the coordinator, none if `topic` knows no partition of it; and the plan
/// to make the response from.
pub fn ask<'a>(
    request: &OffsetDeleteRequest<'a>,
    topic: impl Fn(TopicRef<'_>) -> Result<&'a Topic, ErrorCode>,
) -> (Option<Delete<'a>>, Plan) {
    let mut plan = Plan::default();
    let mut topics = Vec::with_capacity(request.topics.len());
    for asked in &request.topics {
        let named = TopicRef::Name(asked.name);
        plan.add(named, topic(named), asked.partitions.iter().map(|p| p.partition_index));
        let planned = plan.topics.last().map_or(&[][..], |topic| &topic.partitions);
        let accepted = planned.iter().filter(|planned| planned.refused.is_none());
        let partitions: Vec<_> = accepted.map(|planned| planned.partition).collect();
        if !partitions.is_empty() {
            topics.push((asked.name, partitions));
        }
    }
    let ask = Delete { group: request.group_id, topics };
    ((!plan.asks_nothing()).then_some(ask), plan)
}

/// The response that tells of `reply`; if the coordinator was not asked, none is needed.
pub fn response<'p>(
    plan: &'p Plan,
    reply: Option<&Result<Deleted, GroupError>>,
) -> OffsetDeleteResponse<'p> {
    let none = Vec::new();
    let answered = match reply {
        None => &none,
        Some(Ok(deleted)) => &deleted.topics,
        Some(Err(error)) => {
            let error_code = code(*error).number();
            return OffsetDeleteResponse { error_code, ..Default::default() };
        }
    };
    let mut answers = Answers::new(Ok(answered));
    let mut topic = |topic: &'p PlannedTopic| OffsetDeleteResponseTopic {
        name: &topic.name,
        partitions: partitions(topic, &mut answers),
    };
    let topics = plan.topics.iter().map(&mut topic).collect();
    OffsetDeleteResponse { topics, ..Default::default() }
}

fn partitions(
    topic: &PlannedTopic,
    answers: &mut Answers<'_, Result<(), GroupError>>,
) -> Vec<OffsetDeleteResponsePartition> {
    let partitions = topic.partitions.iter().map(|planned| {
        let outcome = match answers.next(planned) {
            Ok(Ok(())) => ErrorCode::None,
            Ok(Err(error)) => code(*error),
            Err(code) => code,
        };
        let partition_index = planned.partition.0;
        OffsetDeleteResponsePartition { partition_index, error_code: outcome.number() }
    });
    partitions.collect()
}
