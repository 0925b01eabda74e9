//! OffsetCommit (key 8), versions 2-10. No version has an error for the whole: a refusal is one of
//! every partition.
//!
//! - 2-4 say how long to keep the offsets.
//! - 6 adds leader epochs (KIP-320), 7 static members (KIP-345).
//! - 10 names topics by id (KIP-848).

use std::time::Duration;

use ottla_group::message::GroupError;
use ottla_group::message::offsets::{Commit, CommitPartition, CommitTopic, Committed};
use ottla_model::{Generation, LeaderEpoch, Offset, PartitionId, Topic, TopicId, TopicName};

use super::plan::{Answers, PlannedTopic};
use super::{Plan, Told, TopicRef, code, error};
use crate::ErrorCode;
use crate::generated::offset_commit_request::{
    OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic,
};
use crate::generated::offset_commit_response::{
    OffsetCommitResponse, OffsetCommitResponsePartition, OffsetCommitResponseTopic,
};

/// What the request asks of the coordinator, none if `topic` knows no partition of it; and the plan
/// to make the response from.
pub fn ask<'a>(
    request: &OffsetCommitRequest<'a>,
    version: i16,
    topic: impl Fn(TopicRef<'_>) -> Result<&'a Topic, ErrorCode>,
) -> (Option<Commit<'a>>, Plan) {
    let mut plan = Plan::default();
    let mut topics = Vec::with_capacity(request.topics.len());
    for asked in &request.topics {
        let named = topic_ref(asked, version);
        let found = topic(named);
        plan.add(named, found, asked.partitions.iter().map(|p| p.partition_index));
        if let (Ok(found), Some(planned)) = (found, plan.topics.last()) {
            topics.extend(commit_topic(asked, planned, found));
        }
    }
    let ask = Commit {
        group: request.group_id,
        generation: Generation(request.generation_id_or_member_epoch),
        member: request.member_id,
        instance: request.group_instance_id,
        retention: u64::try_from(request.retention_time_ms).ok().map(Duration::from_millis),
        knows_epochs: version >= 9,
        topics,
    };
    ((!plan.asks_nothing()).then_some(ask), plan)
}

fn topic_ref<'a>(topic: &OffsetCommitRequestTopic<'a>, version: i16) -> TopicRef<'a> {
    if version >= 10 { TopicRef::Id(topic.topic_id.into()) } else { TopicRef::Name(topic.name) }
}

/// The part of `asked` that the plan has not refused, if any.
fn commit_topic<'a>(
    asked: &OffsetCommitRequestTopic<'a>,
    planned: &PlannedTopic,
    found: &'a Topic,
) -> Option<CommitTopic<'a>> {
    let accepted = asked.partitions.iter().zip(&planned.partitions);
    let accepted = accepted.filter(|(_, planned)| planned.refused.is_none());
    let partitions: Vec<_> = accepted.map(|(asked, _)| commit_partition(asked)).collect();
    let topic = CommitTopic { topic: &found.name, id: found.id, partitions };
    (!topic.partitions.is_empty()).then_some(topic)
}

fn commit_partition<'a>(asked: &OffsetCommitRequestPartition<'a>) -> CommitPartition<'a> {
    let leader_epoch = asked.committed_leader_epoch;
    CommitPartition {
        partition: PartitionId(asked.partition_index),
        offset: Offset(asked.committed_offset),
        leader_epoch: (leader_epoch >= 0).then_some(LeaderEpoch(leader_epoch)),
        metadata: asked.committed_metadata.unwrap_or_default(),
    }
}

/// The response that tells of `reply`; if the coordinator was not asked, none is needed.
pub fn response<'p>(
    plan: &'p Plan,
    reply: Option<&Result<Committed, GroupError>>,
    version: i16,
) -> OffsetCommitResponse<'p> {
    let none = Vec::new();
    let reply = reply.map_or(Ok(&none), |reply| match reply {
        Ok(committed) => Ok(&committed.topics),
        Err(error) => Err(*error),
    });
    let mut answers = Answers::new(reply);
    let mut topic = |topic: &'p PlannedTopic| OffsetCommitResponseTopic {
        name: if version >= 10 { "" } else { &topic.name },
        topic_id: if version >= 10 { topic.id.into() } else { Default::default() },
        partitions: partitions(topic, &mut answers),
    };
    let topics = plan.topics.iter().map(&mut topic).collect();
    OffsetCommitResponse { topics, ..Default::default() }
}

fn partitions(
    topic: &PlannedTopic,
    answers: &mut Answers<'_, Result<(), GroupError>>,
) -> Vec<OffsetCommitResponsePartition> {
    let partitions = topic.partitions.iter().map(|planned| {
        let outcome = match answers.next(planned) {
            Ok(Ok(())) => ErrorCode::None,
            Ok(Err(error)) => code(*error),
            Err(code) => code,
        };
        // What clients know a commit that is too large by.
        let outcome = match outcome {
            ErrorCode::MessageTooLarge => ErrorCode::InvalidCommitOffsetSize,
            other => other,
        };
        let partition_index = planned.partition.0;
        OffsetCommitResponsePartition { partition_index, error_code: outcome.number() }
    });
    partitions.collect()
}

/// The request that asks it. Below version 10 the ids go unsaid, from 10 on the names; versions
/// that lack a retention lose it, those below 7 cannot carry a static member and refuse to be
/// encoded.
pub fn request<'a>(ask: &Commit<'a>) -> OffsetCommitRequest<'a> {
    let retention = ask.retention.map(|kept| i64::try_from(kept.as_millis()).unwrap_or(i64::MAX));
    OffsetCommitRequest {
        group_id: ask.group,
        generation_id_or_member_epoch: ask.generation.0,
        member_id: ask.member,
        group_instance_id: ask.instance,
        retention_time_ms: retention.unwrap_or(-1),
        topics: ask.topics.iter().map(request_topic).collect(),
    }
}

fn request_topic<'a>(topic: &CommitTopic<'a>) -> OffsetCommitRequestTopic<'a> {
    let partition = |of: &CommitPartition<'a>| OffsetCommitRequestPartition {
        partition_index: of.partition.0,
        committed_offset: of.offset.0,
        committed_leader_epoch: of.leader_epoch.map_or(-1, |epoch| epoch.0),
        committed_metadata: Some(of.metadata),
    };
    OffsetCommitRequestTopic {
        name: topic.topic,
        topic_id: topic.id.into(),
        partitions: topic.partitions.iter().map(partition).collect(),
    }
}

/// What the response tells the member. `name` finds the name of a topic that is named by its id
/// (version 10); a topic it does not find is left out.
///
/// # Errors
/// If a code in it is no refusal of a coordinator.
pub fn reply(
    response: &OffsetCommitResponse<'_>,
    version: i16,
    name: impl Fn(TopicId) -> Option<TopicName>,
) -> Told<Committed> {
    let mut topics = Vec::with_capacity(response.topics.len());
    for topic in &response.topics {
        let known = match version {
            ..=9 => Some(TopicName::from(topic.name)),
            _ => name(topic.topic_id.into()),
        };
        let outcome = |of: &OffsetCommitResponsePartition| {
            let outcome = match ErrorCode::from_number(of.error_code) {
                Some(ErrorCode::InvalidCommitOffsetSize) => Err(GroupError::RecordTooLarge),
                _ => error::result(of.error_code, || ())?,
            };
            Ok((PartitionId(of.partition_index), outcome))
        };
        let partitions = topic.partitions.iter().map(outcome).collect::<Told<Vec<_>>>()?;
        topics.extend(known.map(|name| (name, partitions)));
    }
    Ok(Committed { topics })
}
