//! Key 23, OffsetForLeaderEpoch, versions 2-4: where a reign ended (KIP-101, KIP-320).
//!
//! - v3 tells whether a follower or a consumer asks, v4 is flexible.
//!
//! A consumer asks after a change of leader whether what it has read is still there.

use super::lookup::{self, TopicRef};
use super::{Answer, Context};
use ottla_model::{LeaderEpoch, PartitionId};
use ottla_wire::ErrorCode;
use ottla_wire::generated::offset_for_leader_epoch_response::{
    EpochEndOffset, OffsetForLeaderTopicResult,
};
use ottla_wire::generated::{OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse};

/// Asks each log.
pub(super) fn handle(cx: &mut Context<'_>, request: OffsetForLeaderEpochRequest<'_>) -> Answer {
    let mut topics = Vec::with_capacity(request.topics.len());
    for topic in &request.topics {
        let parts = topic.partitions.iter().map(|part| {
            let asked = LeaderEpoch(part.leader_epoch);
            let found = end(cx, topic.topic, part.partition, part.current_leader_epoch, asked);
            let (error_code, end) = match found {
                Ok(end) => (ErrorCode::None, end),
                Err(code) => (cx.count(code), None),
            };
            let (leader_epoch, end_offset) = end.unwrap_or((-1, -1));
            EpochEndOffset {
                error_code: error_code.number(),
                partition: part.partition,
                leader_epoch,
                end_offset,
            }
        });
        let partitions = parts.collect();
        topics.push(OffsetForLeaderTopicResult { topic: topic.topic, partitions });
    }
    cx.reply(&OffsetForLeaderEpochResponse { topics, ..Default::default() })
}

fn end(
    cx: &Context<'_>,
    topic: &str,
    index: i32,
    believed: i32,
    asked: LeaderEpoch,
) -> Result<Option<(i32, i64)>, ErrorCode> {
    let hosted = cx.broker.partitions.hosted();
    let topic = lookup::topic(cx.broker, &hosted, TopicRef::Name(topic))?;
    let partition = lookup::partition(cx.broker, topic, PartitionId(index))?;
    lookup::check_epoch(&partition, believed)?;
    let end = partition.with_log(|log| log.epoch_end(asked));
    Ok(end.map(|(epoch, offset)| (epoch.0, offset.0)))
}
