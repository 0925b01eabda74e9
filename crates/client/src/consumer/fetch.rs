//! Fetch requests and responses: from a session's plan to bytes of each partition. No task here.

use super::aborted::Aborted;
use super::session::{Plan, Wish};
use crate::connection::{Answer, Connection};
use crate::{ConsumerConfig, IsolationLevel, Result};
use bytes::Bytes;
use ottla_model::{NodeId, Offset, ProducerId, TopicId, TopicPartition};
use ottla_wire::generated::fetch_request::{FetchPartition, FetchTopic, ForgottenTopic};
use ottla_wire::generated::fetch_response::PartitionData;
use ottla_wire::generated::{FetchRequest, FetchResponse};
use ottla_wire::{ApiKey, ErrorCode, Uuid};
use std::sync::Arc;

/// What a response says of one partition.
#[derive(Debug)]
pub(super) struct Fetched {
    pub(super) topic: TopicRef,
    pub(super) partition: i32,
    pub(super) code: ErrorCode,
    pub(super) high_watermark: Offset,
    pub(super) replica: Option<NodeId>,
    pub(super) aborted: Option<Aborted>,
    pub(super) bytes: Bytes,
}

/// A topic as a response names it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum TopicRef {
    Name(String),
    Id(TopicId),
}

/// What a response says.
#[derive(Debug)]
pub(super) struct Fetch {
    pub(super) code: ErrorCode,
    pub(super) session_id: i32,
    pub(super) partitions: Vec<Fetched>,
}

/// The version to fetch in: the newest, unless it needs an id that a topic does not have.
pub(super) fn version(connection: &Connection, plan: &Plan) -> Result<i16> {
    let version = connection.version(ApiKey::Fetch)?;
    let named = plan.named.iter().map(|(_, wish)| wish.topic_id);
    let mut ids = named.chain(plan.forgotten.iter().map(|(_, id)| *id));
    Ok(if ids.any(|id| id.is_zero()) { version.min(NAMED_MAX) } else { version })
}

/// The request that says the plan.
pub(super) fn request<'a>(
    version: i16,
    plan: &'a Plan,
    config: &'a ConsumerConfig,
    bytes_max: i32,
) -> FetchRequest<'a> {
    let mut topics: Vec<FetchTopic<'a>> = Vec::new();
    for (partition, wish) in &plan.named {
        let (topic, topic_id) = named(version, partition, wish.topic_id);
        let item = fetch_partition(version, partition, wish);
        match topics.last_mut() {
            Some(last) if last.topic == topic && last.topic_id == topic_id => {
                last.partitions.push(item);
            }
            _ => topics.push(FetchTopic { topic, topic_id, partitions: vec![item] }),
        }
    }
    let mut forgotten: Vec<ForgottenTopic<'a>> = Vec::new();
    for (partition, id) in &plan.forgotten {
        let (topic, topic_id) = named(version, partition, *id);
        let partitions = vec![partition.partition.0];
        forgotten.push(ForgottenTopic { topic, topic_id, partitions });
    }
    FetchRequest {
        max_wait_ms: i32::try_from(config.fetch_max_wait.as_millis()).unwrap_or(i32::MAX),
        min_bytes: config.fetch_min_bytes,
        max_bytes: bytes_max,
        isolation_level: config.isolation_level.number(),
        session_id: if version >= 7 { plan.session_id } else { 0 },
        session_epoch: if version >= 7 { plan.epoch } else { -1 },
        topics,
        forgotten_topics_data: if version >= 7 { forgotten } else { Vec::new() },
        rack_id: if version >= 11 { &config.client.client_rack } else { "" },
        ..Default::default()
    }
}

fn named(version: i16, partition: &TopicPartition, id: TopicId) -> (&str, Uuid) {
    if version > NAMED_MAX { ("", id.into()) } else { (&partition.topic, Uuid::ZERO) }
}

fn fetch_partition(version: i16, partition: &TopicPartition, wish: &Wish) -> FetchPartition {
    FetchPartition {
        partition: partition.partition.0,
        current_leader_epoch: if version >= 9 { wish.leader_epoch } else { -1 },
        fetch_offset: wish.offset,
        partition_max_bytes: wish.bytes_max,
        ..Default::default()
    }
}

/// What the response says; the records are views of its bytes.
///
/// # Errors
/// `Protocol`, if it is no such response.
pub(super) fn read(answer: &Answer, isolation: IsolationLevel) -> Result<Fetch> {
    let response: FetchResponse<'_> = answer.read()?;
    let mut partitions = Vec::new();
    for topic in &response.responses {
        let named = match answer.version() {
            ..=NAMED_MAX => TopicRef::Name(topic.topic.to_owned()),
            _ => TopicRef::Id(topic.topic_id.into()),
        };
        for partition in &topic.partitions {
            partitions.push(fetched(named.clone(), partition, answer.bytes(), isolation));
        }
    }
    Ok(Fetch { code: known(response.error_code), session_id: response.session_id, partitions })
}

fn fetched(
    topic: TopicRef,
    from: &PartitionData<'_>,
    frame: &Bytes,
    isolation: IsolationLevel,
) -> Fetched {
    let replica = from.preferred_read_replica;
    let aborted = (isolation == IsolationLevel::ReadCommitted).then(|| {
        let transactions = from.aborted_transactions.iter().flatten();
        Aborted::new(
            transactions.map(|one| (Offset(one.first_offset), ProducerId(one.producer_id))),
        )
    });
    Fetched {
        topic,
        partition: from.partition_index,
        code: known(from.error_code),
        high_watermark: Offset(from.high_watermark),
        replica: (replica >= 0).then_some(NodeId(replica)),
        aborted,
        bytes: from.records.as_ref().map_or_else(Bytes::new, |records| records.to_bytes(frame)),
    }
}

fn known(code: i16) -> ErrorCode {
    ErrorCode::from_number(code).unwrap_or(ErrorCode::UnknownServerError)
}

impl TopicRef {
    /// Whether it is the topic of this partition, under this id.
    pub(super) fn is(&self, partition: &Arc<TopicPartition>, id: TopicId) -> bool {
        match self {
            Self::Name(name) => *name == *partition.topic,
            Self::Id(of) => *of == id,
        }
    }
}

/// The last version that names topics; later ones have their ids (KIP-516).
const NAMED_MAX: i16 = 12;
