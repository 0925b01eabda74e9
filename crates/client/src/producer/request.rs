//! Produce requests: made of batches, and what their responses say of each. No task, no retry.

use super::batch::Batch;
use super::delivery::Stored;
use crate::cluster::Snapshot;
use crate::connection::{Answer, Connection};
use crate::{Error, Result};
use bytes::Bytes;
use ottla_model::{Offset, PartitionId, Timestamp, TopicName};
use ottla_wire::generated::ProduceRequest;
use ottla_wire::generated::ProduceResponse;
use ottla_wire::generated::produce_request::{PartitionProduceData, TopicProduceData};
use ottla_wire::{ApiKey, ErrorCode, Records, Uuid};

/// A batch on its way to its partition's leader.
#[derive(Debug)]
pub(super) struct Shipped {
    pub(super) topic: TopicName,
    pub(super) partition: PartitionId,
    pub(super) batch: Batch,
    pub(super) bytes: Bytes,
}

/// What the broker says of one batch.
#[derive(Debug)]
pub(super) struct Told {
    pub(super) code: ErrorCode,
    pub(super) message: Option<String>,
    pub(super) stored: Stored,
}

/// The version to produce in: the newest, unless it needs an id that a topic does not have.
pub(super) fn version(
    connection: &Connection,
    snapshot: &Snapshot,
    shipped: &[Shipped],
) -> Result<i16> {
    let version = connection.version(ApiKey::Produce)?;
    let has_id = |topic: &TopicName| snapshot.topic(topic).is_some_and(|topic| !topic.id.is_zero());
    let all_have = shipped.iter().all(|shipped| has_id(&shipped.topic));
    Ok(if all_have { version } else { version.min(NAMED_MAX) })
}

/// The request that carries these batches.
pub(super) fn request<'a>(
    version: i16,
    snapshot: &Snapshot,
    shipped: &'a [Shipped],
    acks: i16,
    timeout_ms: i32,
) -> ProduceRequest<'a> {
    let mut topic_data: Vec<TopicProduceData<'a>> = Vec::new();
    let mut last: Option<&TopicName> = None;
    for Shipped { topic, partition, bytes, .. } in shipped {
        let records = Some(Records::Shared(bytes.clone()));
        let data = PartitionProduceData { index: partition.0, records };
        // Batches of one topic stand together.
        if last != Some(topic) {
            let id = snapshot.topic(topic).map_or(Uuid::ZERO, |topic| topic.id.into());
            let (name, topic_id) =
                if version > NAMED_MAX { ("", id) } else { (topic.as_str(), Uuid::ZERO) };
            topic_data.push(TopicProduceData { name, topic_id, ..Default::default() });
            last = Some(topic);
        }
        if let Some(topic) = topic_data.last_mut() {
            topic.partition_data.push(data);
        }
    }
    ProduceRequest { transactional_id: None, acks, timeout_ms, topic_data }
}

/// What the response says of each batch, in their order.
///
/// # Errors
/// `Protocol`, if it is no such response.
pub(super) fn told(answer: &Answer, snapshot: &Snapshot, shipped: &[Shipped]) -> Result<Vec<Told>> {
    let response: ProduceResponse<'_> = answer.read()?;
    let is_by_id = answer.version() > NAMED_MAX;
    let find = |topic: &TopicName, partition: PartitionId| {
        let id = snapshot.topic(topic).map_or(Uuid::ZERO, |topic| topic.id.into());
        let mut topics = response.responses.iter();
        let topic = topics.find(|told| match is_by_id {
            true => told.topic_id == id,
            false => told.name == topic.as_str(),
        })?;
        topic.partition_responses.iter().find(|told| told.index == partition.0)
    };
    let mut all = Vec::with_capacity(shipped.len());
    for Shipped { topic, partition, .. } in shipped {
        let told = find(topic, *partition).ok_or_else(|| {
            Error::protocol(format!("the answer to a produce leaves out {topic}-{partition}"))
        })?;
        let code = ErrorCode::from_number(told.error_code);
        let base_offset = (told.base_offset >= 0).then_some(Offset(told.base_offset));
        let append_time =
            (told.log_append_time_ms >= 0).then_some(Timestamp(told.log_append_time_ms));
        all.push(Told {
            code: code.unwrap_or(ErrorCode::UnknownServerError),
            message: told.error_message.map(str::to_owned),
            stored: Stored { base_offset, append_time },
        });
    }
    Ok(all)
}

/// The last version that names topics; later ones have their ids (KIP-516).
const NAMED_MAX: i16 = 12;
