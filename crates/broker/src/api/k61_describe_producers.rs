//! Key 61, DescribeProducers, version 0: who writes to a partition (KIP-664).
//!
//! - Nothing is transactional, so no producer has a coordinator epoch or an open transaction.
//! - A partition that is named twice is told of once: Kafka repeats it, and four bytes more of a
//!   request would be all producers once more in the answer. A topic of which nothing is left to
//!   tell is left out, as Kafka leaves one out that names no partition.

use super::lookup::{self, TopicRef};
use super::{Answer, Context};
use ottla_model::PartitionId;
use ottla_wire::ErrorCode;
use ottla_wire::generated::describe_producers_response::{
    PartitionResponse, ProducerState, TopicResponse,
};
use ottla_wire::generated::{DescribeProducersRequest, DescribeProducersResponse};
use std::collections::BTreeSet;

/// Asks each log, once.
pub(super) fn handle(cx: &mut Context<'_>, mut request: DescribeProducersRequest<'_>) -> Answer {
    let mut asked = BTreeSet::new();
    for topic in &mut request.topics {
        topic.partition_indexes.retain(|index| asked.insert((topic.name, *index)));
    }
    request.topics.retain(|topic| !topic.partition_indexes.is_empty());
    let mut topics = Vec::with_capacity(request.topics.len());
    for topic in &request.topics {
        let parts = topic.partition_indexes.iter().map(|index| {
            let (code, active_producers) = match producers(cx, topic.name, *index) {
                Ok(producers) => (ErrorCode::None, producers),
                Err(code) => (cx.count(code), Vec::new()),
            };
            let (partition_index, error_code) = (*index, code.number());
            PartitionResponse {
                partition_index,
                error_code,
                active_producers,
                ..Default::default()
            }
        });
        let partitions = parts.collect();
        topics.push(TopicResponse { name: topic.name, partitions });
    }
    cx.reply(&DescribeProducersResponse { topics, ..Default::default() })
}

fn producers(cx: &Context<'_>, topic: &str, index: i32) -> Result<Vec<ProducerState>, ErrorCode> {
    let hosted = cx.broker.partitions.hosted();
    let topic = lookup::topic(cx.broker, &hosted, TopicRef::Name(topic))?;
    let partition = lookup::partition(cx.broker, topic, PartitionId(index))?;
    Ok(partition.with_log(|log| {
        let states = log.producers().map(|(id, producer)| {
            let last = producer.batches.back();
            ProducerState {
                producer_id: id.0,
                producer_epoch: producer.epoch.0.into(),
                last_sequence: last.map_or(-1, |last| last.last_sequence),
                last_timestamp: last.map_or(-1, |last| last.timestamp.0),
                coordinator_epoch: -1,
                current_txn_start_offset: -1,
            }
        });
        states.collect()
    }))
}
