//! Key 21, DeleteRecords, versions 0-2: raise the start of logs (KIP-107).
//!
//! - v1 changes nothing, v2 is flexible.
//!
//! Offset -1 means everything there is. The new start is durable when the answer leaves. Left out:
//! `TimeoutMs`; there are no followers to wait for.

use super::answer::aside;
use super::outcome::count;
use super::{Answer, Context};
use crate::broker::Broker;
use ottla_model::{Offset, PartitionId};
use ottla_wire::ErrorCode;
use ottla_wire::generated::delete_records_response::{
    DeleteRecordsPartitionResult, DeleteRecordsTopicResult,
};
use ottla_wire::generated::{DeleteRecordsRequest, DeleteRecordsResponse};
use std::sync::Arc;

/// Raises starts; off the connection's thread, because it waits for the disk.
pub(super) fn handle(cx: &mut Context<'_>, request: DeleteRecordsRequest<'_>) -> Answer {
    let wanted: Vec<Wanted> = request.topics.iter().map(Wanted::of).collect();
    let (broker, to) = (Arc::clone(cx.broker), cx.to);
    Answer::Later(Box::pin(async move {
        let deleting = Arc::clone(&broker);
        let delete = move || wanted.into_iter().map(|topic| topic.delete(&deleting)).collect();
        let done: Vec<_> = aside(delete).await;
        let topics: Vec<_> = done
            .iter()
            .map(|(name, partitions)| DeleteRecordsTopicResult {
                name,
                partitions: partitions.clone(),
            })
            .collect();
        let lines = topics.iter().flat_map(|topic| &topic.partitions);
        count(&broker, to.key, lines.map(|line| line.error_code));
        to.encode(&DeleteRecordsResponse { topics, ..Default::default() })
    }))
}

struct Wanted {
    topic: String,
    partitions: Vec<(i32, i64)>,
}

impl Wanted {
    fn of(topic: &ottla_wire::generated::delete_records_request::DeleteRecordsTopic<'_>) -> Self {
        let partitions = topic.partitions.iter().map(|p| (p.partition_index, p.offset)).collect();
        Self { topic: topic.name.to_owned(), partitions }
    }

    fn delete(self, broker: &Broker) -> (String, Vec<DeleteRecordsPartitionResult>) {
        let line = |(index, offset)| match self.delete_before(broker, index, offset) {
            Ok(Offset(low_watermark)) => DeleteRecordsPartitionResult {
                partition_index: index,
                low_watermark,
                error_code: 0,
            },
            Err(code) => DeleteRecordsPartitionResult {
                partition_index: index,
                low_watermark: -1,
                error_code: code.number(),
            },
        };
        let lines = self.partitions.iter().copied().map(line).collect();
        (self.topic, lines)
    }

    fn delete_before(&self, broker: &Broker, index: i32, offset: i64) -> Result<Offset, ErrorCode> {
        if ottla_cluster::names::is_internal(&self.topic) {
            return Err(ErrorCode::InvalidTopicException);
        }
        let image = broker.cluster.image();
        let topic = image.topic(&self.topic).ok_or(ErrorCode::UnknownTopicOrPartition)?;
        if !topic.settings.cleanup_policy.delete && topic.settings.cleanup_policy.compact {
            return Err(ErrorCode::PolicyViolation);
        }
        if !(0..topic.partition_count()).contains(&index) {
            return Err(ErrorCode::UnknownTopicOrPartition);
        }
        let partition = broker.partitions.by_name(&self.topic, PartitionId(index));
        let partition = partition.ok_or(ErrorCode::NotLeaderOrFollower)?;
        let end = partition.high_watermark();
        let before = if offset == TO_THE_END { end } else { Offset(offset) };
        if before > end || before.0 < 0 {
            return Err(ErrorCode::OffsetOutOfRange);
        }
        let deleted = partition.delete_records_before(before);
        deleted.map_err(|error| {
            tracing::warn!(%error, topic = self.topic, index, "records could not be deleted");
            ErrorCode::KafkaStorageError
        })
    }
}

const TO_THE_END: i64 = -1;
