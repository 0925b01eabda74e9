//! RegisterConsumer (key 32011, the register protocol), version 0.
//!
//! The response echoes group and consumer id. A refusal has generation -1, owns nothing, and
//! echoes the id of the request.

use ottla_group::assign::Partitions;
use ottla_group::message::GroupError;
use ottla_group::message::register::{NO_GENERATION, Register, Registered};
use ottla_model::{Generation, GroupId, MemberId, PartitionId, TopicPartition};

use super::{Told, code_of, duration, error, millis};
use crate::generated::register_consumer_request::RegisterConsumerRequest;
use crate::generated::register_consumer_response::{RegisterConsumerResponse, TopicPartitions};

/// What the request asks.
pub fn ask<'a>(request: &RegisterConsumerRequest<'a>) -> Register<'a> {
    Register {
        group: request.group_id,
        member: request.consumer_id,
        host: request.consumer_host,
        session_timeout: duration(request.session_timeout),
        heartbeat_frequency: request.heartbeat_frequency,
        failed_heartbeat_threshold: request.failed_heartbeat_threshold,
        topics: request.topics.clone(),
    }
}

/// The response that tells of `reply` to whoever asked as consumer `member` of `group`.
pub fn response<'a>(
    reply: &'a Result<Registered, GroupError>,
    group: &'a str,
    member: &'a str,
) -> RegisterConsumerResponse<'a> {
    let Ok(registered) = reply else {
        return RegisterConsumerResponse {
            error_code: code_of(reply),
            group_generation_id: NO_GENERATION.0,
            group_id: group,
            consumer_id: member,
            partitions_to_own: Vec::new(),
        };
    };
    let owned = registered.partitions.by_topic().map(|(topic, partitions)| TopicPartitions {
        topic,
        partitions: partitions.iter().map(|partition| partition.0).collect(),
    });
    RegisterConsumerResponse {
        error_code: 0,
        group_generation_id: registered.generation.0,
        group_id: &registered.group,
        consumer_id: &registered.member,
        partitions_to_own: owned.collect(),
    }
}

/// The request that asks it.
pub fn request<'a>(ask: &Register<'a>) -> RegisterConsumerRequest<'a> {
    RegisterConsumerRequest {
        group_id: ask.group,
        consumer_id: ask.member,
        consumer_host: ask.host,
        session_timeout: millis(ask.session_timeout),
        heartbeat_frequency: ask.heartbeat_frequency,
        failed_heartbeat_threshold: ask.failed_heartbeat_threshold,
        topics: ask.topics.clone(),
    }
}

/// What the response tells the consumer.
///
/// # Errors
/// If its code is no refusal of a coordinator.
pub fn reply(response: &RegisterConsumerResponse<'_>) -> Told<Result<Registered, GroupError>> {
    error::result(response.error_code, || Registered {
        group: GroupId::from(response.group_id),
        generation: Generation(response.group_generation_id),
        member: MemberId::from(response.consumer_id),
        partitions: partitions(&response.partitions_to_own),
    })
}

fn partitions(topics: &[TopicPartitions<'_>]) -> Partitions {
    let each = topics.iter().flat_map(|topic| {
        let partition = |index: &i32| TopicPartition {
            topic: topic.topic.into(),
            partition: PartitionId(*index),
        };
        topic.partitions.iter().map(partition)
    });
    each.collect()
}
