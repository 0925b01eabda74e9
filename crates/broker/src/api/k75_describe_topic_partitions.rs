//! Key 75, DescribeTopicPartitions, version 0: topics page by page (KIP-966).
//!
//! Topics come in the order of their names, at most so many partitions per answer as the client
//! says (and we allow); the cursor says where to go on. No topic asked for means all of them.
//!
//! Left out: eligible leader replicas, which mean something only where replicas may fall behind.

use super::k03_metadata::absence;
use super::outcome::count;
use super::topology::{TOPIC_OPERATIONS, Topology};
use super::{Answer, Context};
use ottla_cluster::image::Topic;
use ottla_model::PartitionId;
use ottla_wire::ErrorCode;
use ottla_wire::generated::describe_topic_partitions_response::{
    Cursor, DescribeTopicPartitionsResponsePartition as PartitionLine,
    DescribeTopicPartitionsResponseTopic as TopicLine,
};
use ottla_wire::generated::{DescribeTopicPartitionsRequest, DescribeTopicPartitionsResponse};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Answers from the image.
pub(super) fn handle(cx: &mut Context<'_>, request: DescribeTopicPartitionsRequest<'_>) -> Answer {
    let image = cx.broker.cluster.image();
    let hosted = cx.broker.partitions.hosted();
    let listener = Arc::clone(&cx.session.listener);
    let topology = Topology::new(cx.broker, &image, &hosted, &listener);
    let response = if is_sound(&request) { page(topology, &request) } else { refused(&request) };
    count(cx.broker, cx.to.key, response.topics.iter().map(|topic| topic.error_code));
    cx.reply(&response)
}

/// The cursor must name a topic of the list, and a partition there can be.
fn is_sound(request: &DescribeTopicPartitionsRequest<'_>) -> bool {
    request.cursor.as_ref().is_none_or(|cursor| {
        let mut topics = request.topics.iter();
        let listed = request.topics.is_empty() || topics.any(|t| t.name == cursor.topic_name);
        listed && cursor.partition_index >= 0
    })
}

fn refused<'a>(
    request: &DescribeTopicPartitionsRequest<'a>,
) -> DescribeTopicPartitionsResponse<'a> {
    let error_code = ErrorCode::InvalidRequest.number();
    let topics = request.topics.iter();
    let line = |name| TopicLine { error_code, name: Some(name), ..Default::default() };
    let topics = topics.map(|topic| line(topic.name)).collect();
    DescribeTopicPartitionsResponse { topics, ..Default::default() }
}

fn page<'a>(
    topology: Topology<'a>,
    request: &DescribeTopicPartitionsRequest<'a>,
) -> DescribeTopicPartitionsResponse<'a> {
    let (from, first) = match &request.cursor {
        Some(cursor) => (cursor.topic_name, cursor.partition_index),
        None => ("", 0),
    };
    let mut left = request.response_partition_limit.clamp(1, PARTITIONS_MAX);
    let mut response = DescribeTopicPartitionsResponse::default();
    for name in names(topology, request, from) {
        let start = if name == from { first } else { 0 };
        if left == 0 {
            response.next_cursor = Some(Cursor { topic_name: name, partition_index: 0 });
            break;
        }
        let Some(topic) = topology.image.topic(name) else {
            let error_code = absence(name).number();
            response.topics.push(TopicLine { error_code, name: Some(name), ..Default::default() });
            continue;
        };
        let end = topic.partition_count().min(start.saturating_add(left));
        response.topics.push(line(topology, topic, start, end));
        if end < topic.partition_count() {
            response.next_cursor = Some(Cursor { topic_name: name, partition_index: end });
            break;
        }
        left -= (end - start).max(0);
    }
    response
}

/// What is asked for, once each, in order, from the cursor on.
fn names<'a>(
    topology: Topology<'a>,
    request: &DescribeTopicPartitionsRequest<'a>,
    from: &'a str,
) -> Box<dyn Iterator<Item = &'a str> + 'a> {
    if request.topics.is_empty() {
        return Box::new(topology.image.topics_from(from).map(|topic| &*topic.name));
    }
    let names: BTreeSet<_> = request.topics.iter().map(|topic| topic.name).collect();
    Box::new(names.into_iter().filter(move |name| *name >= from))
}

fn line<'a>(topology: Topology<'a>, topic: &'a Topic, start: i32, end: i32) -> TopicLine<'a> {
    let partition = |index| {
        let partition = topology.image.partition_of(topic, PartitionId(index))?;
        let seen = topology.see(topic, &partition);
        Some(PartitionLine {
            error_code: seen.error.number(),
            partition_index: index,
            leader_id: seen.leader,
            leader_epoch: seen.leader_epoch,
            replica_nodes: seen.replicas,
            isr_nodes: seen.in_sync,
            eligible_leader_replicas: Some(Vec::new()),
            last_known_elr: Some(Vec::new()),
            offline_replicas: seen.offline,
        })
    };
    TopicLine {
        name: Some(&topic.name),
        topic_id: topic.id.into(),
        is_internal: topic.is_internal(),
        partitions: (start..end).filter_map(partition).collect(),
        topic_authorized_operations: TOPIC_OPERATIONS,
        ..Default::default()
    }
}

/// Partitions in one answer, as Kafka's `max.request.partition.size.limit`.
const PARTITIONS_MAX: i32 = 2000;
