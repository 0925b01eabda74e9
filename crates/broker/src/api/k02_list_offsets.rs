//! Key 2, ListOffsets, versions 1-11: offsets by time, and the log's ends.
//!
//! - v2 has isolation levels, v4 leader epochs (KIP-320), v6 is flexible.
//! - v7 asks for the greatest timestamp (KIP-734), v8 for the earliest local offset (KIP-405),
//!   v9 for the latest offset in remote storage, v10 has a timeout, v11 asks for the earliest
//!   offset not yet in remote storage (KIP-1023).
//!
//! There is no remote storage: the earliest local offset is the earliest, and what would lie
//! remotely does not exist. Nothing is transactional, so both isolation levels see the same.

use super::answer::aside;
use super::error_map::read_error;
use super::lookup::{self, TopicRef};
use super::{Answer, Context};
use crate::broker::Broker;
use crate::partitions::{HostedTopic, Partition, UNPACKED_BYTES_MAX};
use ottla_model::{LeaderEpoch, Offset, PartitionId, Timestamp, TopicName};
use ottla_storage::TimedOffset;
use ottla_wire::ErrorCode;
use ottla_wire::generated::list_offsets_request::ListOffsetsPartition;
use ottla_wire::generated::list_offsets_response::{
    ListOffsetsPartitionResponse, ListOffsetsTopicResponse,
};
use ottla_wire::generated::{ListOffsetsRequest, ListOffsetsResponse};
use std::sync::Arc;

/// Looks each one up; those by time on a thread that may wait for the disk.
pub(super) fn handle(cx: &mut Context<'_>, request: ListOffsetsRequest<'_>) -> Answer {
    let with_epochs = cx.version() >= FIRST_WITH_EPOCHS;
    let hosted = cx.broker.partitions.hosted();
    let topics = request.topics.iter().map(|topic| {
        let found = lookup::topic(cx.broker, &hosted, TopicRef::Name(topic.name));
        let parts = topic.partitions.iter();
        let asks = parts.map(|part| ask(cx.broker, found, part)).collect();
        (TopicName::from(topic.name), asks)
    });
    let topics: Vec<(TopicName, Vec<Ask>)> = topics.collect();
    if !topics.iter().flat_map(|(_, asks)| asks).any(Ask::reads) {
        let told = tell(&topics, with_epochs);
        count(cx.broker, cx.to.key, &told);
        return cx.reply(&response(&topics, told));
    }
    let (broker, to) = (Arc::clone(cx.broker), cx.to);
    Answer::Later(Box::pin(async move {
        let (told, topics) = aside(move || (tell(&topics, with_epochs), topics)).await;
        count(&broker, to.key, &told);
        to.encode(&response(&topics, told))
    }))
}

/// One question: where, what.
struct Ask {
    index: i32,
    partition: Result<Arc<Partition>, ErrorCode>,
    timestamp: i64,
}

impl Ask {
    /// Whether the answer has to be read from the log.
    fn reads(&self) -> bool {
        self.partition.is_ok() && (self.timestamp >= 0 || self.timestamp == MAX_TIMESTAMP)
    }
}

fn ask(
    broker: &Broker,
    topic: Result<&Arc<HostedTopic>, ErrorCode>,
    part: &ListOffsetsPartition,
) -> Ask {
    let partition = topic.and_then(|topic| {
        let partition = lookup::partition(broker, topic, PartitionId(part.partition_index))?;
        lookup::check_epoch(&partition, part.current_leader_epoch)?;
        Ok(partition)
    });
    Ask { index: part.partition_index, partition, timestamp: part.timestamp }
}

fn tell(
    topics: &[(TopicName, Vec<Ask>)],
    with_epochs: bool,
) -> Vec<Vec<ListOffsetsPartitionResponse>> {
    let told = topics.iter().map(|(_, asks)| asks.iter().map(|ask| answer(ask, with_epochs)));
    told.map(Iterator::collect).collect()
}

fn answer(ask: &Ask, with_epochs: bool) -> ListOffsetsPartitionResponse {
    let partition_index = ask.index;
    let found = ask.partition.as_ref().map_err(|code| *code);
    match found.and_then(|partition| find(partition, ask.timestamp)) {
        Ok(Some(TimedOffset { timestamp, offset, leader_epoch })) => ListOffsetsPartitionResponse {
            partition_index,
            timestamp: timestamp.0,
            offset: offset.0,
            leader_epoch: if with_epochs { leader_epoch.0 } else { -1 },
            ..Default::default()
        },
        Ok(None) => ListOffsetsPartitionResponse { partition_index, ..Default::default() },
        Err(code) => ListOffsetsPartitionResponse {
            partition_index,
            error_code: code.number(),
            ..Default::default()
        },
    }
}

fn find(partition: &Partition, timestamp: i64) -> Result<Option<TimedOffset>, ErrorCode> {
    let end = partition.high_watermark();
    let looked = match timestamp {
        LATEST => return Ok(Some(place(partition.leader_epoch(), end))),
        EARLIEST | EARLIEST_LOCAL => {
            let start = partition.start_offset();
            let epoch = partition.with_log(|log| log.epoch_of(start));
            return Ok(Some(place(epoch.unwrap_or(partition.leader_epoch()), start)));
        }
        LATEST_TIERED | EARLIEST_PENDING => return Ok(None),
        MAX_TIMESTAMP => partition.reader().find_latest_time(UNPACKED_BYTES_MAX),
        0.. => partition.reader().find_by_time(Timestamp(timestamp), UNPACKED_BYTES_MAX),
        _ => return Err(ErrorCode::UnsupportedVersion),
    };
    let found = looked.map_err(|error| {
        tracing::error!(partition = %partition.at, %error, "cannot look up a time");
        read_error(&error)
    })?;
    // What is not safe yet is not shown.
    Ok(found.filter(|found| found.offset < end))
}

fn place(leader_epoch: LeaderEpoch, offset: Offset) -> TimedOffset {
    TimedOffset { timestamp: Timestamp::NONE, offset, leader_epoch }
}

fn count(broker: &Broker, key: ottla_wire::ApiKey, told: &[Vec<ListOffsetsPartitionResponse>]) {
    for part in told.iter().flatten() {
        let code = ErrorCode::from_number(part.error_code).unwrap_or(ErrorCode::None);
        broker.metrics.errors.count(key, code);
    }
}

fn response(
    topics: &[(TopicName, Vec<Ask>)],
    told: Vec<Vec<ListOffsetsPartitionResponse>>,
) -> ListOffsetsResponse<'_> {
    let both = topics.iter().zip(told);
    let topics = both.map(|((name, _), partitions)| ListOffsetsTopicResponse { name, partitions });
    ListOffsetsResponse { topics: topics.collect(), ..Default::default() }
}

/// KIP-320; earlier versions have no room for them.
const FIRST_WITH_EPOCHS: i16 = 4;
const LATEST: i64 = -1;
const EARLIEST: i64 = -2;
const MAX_TIMESTAMP: i64 = -3;
const EARLIEST_LOCAL: i64 = -4;
const LATEST_TIERED: i64 = -5;
const EARLIEST_PENDING: i64 = -6;
