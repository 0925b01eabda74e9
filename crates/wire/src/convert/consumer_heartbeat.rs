//! ConsumerGroupHeartbeat (key 68, KIP-848), versions 0-1.
//!
//! - 1 adds the pattern a member subscribes to, and has members name themselves (KIP-1082).
//!
//! The protocol squeezes joining and leaving into the epoch; our words keep them apart.

use std::time::Duration;

use ottla_group::message::GroupError;
use ottla_group::message::consumer::{Beat, Heartbeat, Partitions, Standing};
use ottla_model::{MemberId, PartitionId, TopicId};

use super::{Told, code_of, error, millis};
use crate::generated::consumer_group_heartbeat_request::{
    ConsumerGroupHeartbeatRequest, TopicPartitions as Owned,
};
use crate::generated::consumer_group_heartbeat_response::{
    Assignment, ConsumerGroupHeartbeatResponse, TopicPartitions,
};

/// From this version on a member names itself, before it first joins.
const NAMES_ITSELF: i16 = 1;

/// What the request asks.
///
/// # Errors
/// [`GroupError::InvalidRequest`] for an epoch that means nothing, or a member without a name
/// where it must have one.
pub fn ask<'a>(
    request: &ConsumerGroupHeartbeatRequest<'a>,
    version: i16,
) -> Result<Heartbeat<'a>, GroupError> {
    let standing = Standing::from_epoch(request.member_epoch)?;
    let may_lack_name = version < NAMES_ITSELF && standing == Standing::Joining;
    if request.member_id.is_empty() && !may_lack_name {
        return Err(GroupError::InvalidRequest);
    }
    Ok(Heartbeat {
        group: request.group_id,
        member: request.member_id,
        standing,
        instance: request.instance_id,
        rack: request.rack_id,
        rebalance_timeout: timeout(request.rebalance_timeout_ms),
        topics: request.subscribed_topic_names.clone(),
        regex: request.subscribed_topic_regex,
        assignor: request.server_assignor,
        owned: request.topic_partitions.as_deref().map(owned),
    })
}

/// The response that tells of `reply`.
pub fn response(reply: &Result<Beat, GroupError>) -> ConsumerGroupHeartbeatResponse<'_> {
    match reply {
        Ok(beat) => ConsumerGroupHeartbeatResponse {
            member_id: Some(&beat.member),
            member_epoch: beat.standing.epoch(),
            heartbeat_interval_ms: millis(beat.interval),
            assignment: beat.assignment.as_ref().map(assignment),
            ..Default::default()
        },
        Err(refusal) => ConsumerGroupHeartbeatResponse {
            error_code: code_of(reply),
            error_message: error::advice(*refusal),
            member_id: None,
            ..Default::default()
        },
    }
}

/// The request that asks it.
pub fn request<'a>(ask: &Heartbeat<'a>) -> ConsumerGroupHeartbeatRequest<'a> {
    let owned = |(topic, partitions): &(TopicId, Vec<PartitionId>)| Owned {
        topic_id: (*topic).into(),
        partitions: numbers(partitions),
    };
    ConsumerGroupHeartbeatRequest {
        group_id: ask.group,
        member_id: ask.member,
        member_epoch: ask.standing.epoch(),
        instance_id: ask.instance,
        rack_id: ask.rack,
        rebalance_timeout_ms: ask.rebalance_timeout.map_or(UNCHANGED, millis),
        subscribed_topic_names: ask.topics.clone(),
        subscribed_topic_regex: ask.regex,
        server_assignor: ask.assignor,
        topic_partitions: ask.owned.as_ref().map(|topics| topics.iter().map(owned).collect()),
    }
}

/// What the response tells member `member`, whose id version 0 may be told here.
///
/// # Errors
/// If its code is no refusal of a coordinator.
pub fn reply(
    response: &ConsumerGroupHeartbeatResponse<'_>,
    member: &str,
) -> Told<Result<Beat, GroupError>> {
    let standing = Standing::from_epoch(response.member_epoch).unwrap_or(Standing::Joining);
    error::result(response.error_code, || Beat {
        member: MemberId::from(response.member_id.unwrap_or(member)),
        standing,
        interval: super::duration(response.heartbeat_interval_ms),
        assignment: response.assignment.as_ref().map(told),
    })
}

/// A rebalance timeout that has not changed.
const UNCHANGED: i32 = -1;

/// A timeout below zero is one that has not changed.
fn timeout(ms: i32) -> Option<Duration> {
    u64::try_from(ms).ok().map(Duration::from_millis)
}

/// What a request says its member owns, each topic once and none without partitions.
fn owned(topics: &[Owned]) -> Partitions {
    gathered(topics.iter().map(|topic| (topic.topic_id.into(), &topic.partitions[..])))
}

/// What a response says its member may own, likewise.
fn told(assignment: &Assignment) -> Partitions {
    let topics = &assignment.topic_partitions;
    gathered(topics.iter().map(|topic| (topic.topic_id.into(), &topic.partitions[..])))
}

/// Nothing on the wire keeps a topic from being named twice, or a partition.
fn gathered<'p>(topics: impl Iterator<Item = (TopicId, &'p [i32])>) -> Partitions {
    let mut gathered: Partitions = topics
        .filter(|(_, partitions)| !partitions.is_empty())
        .map(|(topic, partitions)| (topic, partitions.iter().copied().map(PartitionId).collect()))
        .collect();
    gathered.sort_by_key(|(topic, _)| *topic);
    gathered.dedup_by(|later, kept| {
        let same = later.0 == kept.0;
        if same {
            kept.1.append(&mut later.1);
        }
        same
    });
    for (_, partitions) in &mut gathered {
        partitions.sort_unstable();
        partitions.dedup();
    }
    gathered
}

fn assignment(partitions: &Partitions) -> Assignment {
    let topic = |(topic, partitions): &(TopicId, Vec<PartitionId>)| TopicPartitions {
        topic_id: (*topic).into(),
        partitions: numbers(partitions),
    };
    Assignment { topic_partitions: partitions.iter().map(topic).collect() }
}

fn numbers(partitions: &[PartitionId]) -> Vec<i32> {
    partitions.iter().map(|partition| partition.0).collect()
}
