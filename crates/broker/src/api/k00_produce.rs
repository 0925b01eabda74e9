//! Key 0, Produce, versions 3-13 (0-2 are advertised for old librdkafka, KAFKA-18659).
//!
//! - v3 carries record batches v2 and transactional ids, v5 tells the log's start.
//! - v7 allows zstd (KIP-110), v8 tells which records were refused (KIP-467).
//! - v9 is flexible, v10 tells the current leader (KIP-951), v13 names topics by id (KIP-516).
//! - v11 and v12 belong to transactions, which do not exist yet: a transactional id is refused
//!   with a code that is fatal to every client.
//!
//! The batches are appended before this returns, in the order of the connection's requests; only
//! the reply waits, until they are safe. acks=1 waits for that too (decision 4); acks=0 has no
//! reply, and an error closes the connection, which is the only way to be heard.

use super::error_map::{append_error, produce_error};
use super::lookup::{self, TopicRef};
use super::{Answer, Context};
use crate::broker::Broker;
use crate::partitions::{HostedTopic, Partition, Passes, codec, produce_rules};
use ottla_model::{Now, Offset, PartitionId, TopicId, TopicName};
use ottla_records::{ProduceError, ProduceRules, TimestampType, validate_produced};
use ottla_storage::Origin;
use ottla_wire::generated::produce_request::TopicProduceData;
use ottla_wire::generated::produce_response::{
    BatchIndexAndErrorMessage, LeaderIdAndEpoch, PartitionProduceResponse, TopicProduceResponse,
};
use ottla_wire::generated::{ProduceRequest, ProduceResponse};
use ottla_wire::{ErrorCode, Records};
use std::sync::Arc;

/// Appends; answers when all of it is safe.
pub(super) fn handle(cx: &mut Context<'_>, request: ProduceRequest<'_>) -> Answer {
    let refused = if request.transactional_id.is_some() {
        Some(ErrorCode::TransactionalIdAuthorizationFailed)
    } else if !matches!(request.acks, -1..=1) {
        Some(ErrorCode::InvalidRequiredAcks)
    } else {
        None
    };
    let mut outcomes: Vec<TopicOutcome> = {
        let topics = request.topic_data.iter();
        topics.map(|topic| produce_topic(cx, topic, refused)).collect()
    };
    let parts = outcomes.iter().flat_map(|topic| &topic.partitions);
    parts.for_each(|part| _ = cx.count(part.code));
    if request.acks == 0 {
        let failed = outcomes.iter().flat_map(|topic| &topic.partitions);
        let failed = failed.map(|part| part.code).find(|code| code.is_error());
        return failed.map_or(Answer::Silent, Answer::Close);
    }
    if outcomes.iter().all(|topic| topic.partitions.iter().all(|part| part.waits.is_none())) {
        return cx.reply(&response(cx.broker, &outcomes));
    }
    let (broker, to) = (Arc::clone(cx.broker), cx.to);
    Answer::Later(Box::pin(async move {
        for part in outcomes.iter_mut().flat_map(|topic| &mut topic.partitions) {
            if let Some(waits) = part.waits.take()
                && waits.await.is_err()
            {
                // Whether the records are there is not known; an idempotent producer finds out.
                part.code = ErrorCode::KafkaStorageError;
                broker.metrics.errors.count(to.key, part.code);
            }
        }
        to.encode(&response(&broker, &outcomes))
    }))
}

struct TopicOutcome {
    name: TopicName,
    id: TopicId,
    partitions: Vec<PartOutcome>,
}

struct PartOutcome {
    index: i32,
    code: ErrorCode,
    message: Option<String>,
    faults: Vec<(i32, String)>,
    base_offset: Offset,
    log_append_time_ms: i64,
    partition: Option<Arc<Partition>>,
    waits: Option<Passes>,
}

impl PartOutcome {
    fn refused(index: i32, code: ErrorCode, message: Option<String>) -> Self {
        Self {
            index,
            code,
            message,
            faults: Vec::new(),
            base_offset: Offset(-1),
            log_append_time_ms: -1,
            partition: None,
            waits: None,
        }
    }
}

fn produce_topic(
    cx: &Context<'_>,
    data: &TopicProduceData<'_>,
    refused: Option<ErrorCode>,
) -> TopicOutcome {
    let by_id = cx.version() >= 13;
    let hosted = cx.broker.partitions.hosted();
    let topic = match refused {
        Some(code) => Err(code),
        None => lookup::topic(cx.broker, &hosted, TopicRef::new(by_id, data.name, data.topic_id))
            .and_then(|topic| if is_ours(topic) { Err(TOPIC_IS_OURS) } else { Ok(topic) }),
    };
    let parts = data.partition_data.iter();
    let partitions = parts.map(|part| match topic {
        Ok(topic) => produce(cx, topic, part.index, part.records.as_ref()),
        Err(code) => PartOutcome::refused(part.index, code, None),
    });
    TopicOutcome {
        name: data.name.into(),
        id: data.topic_id.into(),
        partitions: partitions.collect(),
    }
}

fn produce(
    cx: &Context<'_>,
    topic: &HostedTopic,
    index: i32,
    records: Option<&Records<'_>>,
) -> PartOutcome {
    let partition = match lookup::partition(cx.broker, topic, PartitionId(index)) {
        Ok(partition) => partition,
        Err(code) => return PartOutcome::refused(index, code, None),
    };
    let bytes = match records {
        Some(Records::Borrowed(bytes)) => *bytes,
        // A decoded request borrows; there is no other form to meet here.
        _ => &[],
    };
    match append(cx.now, cx.version(), topic, &partition, bytes) {
        Ok((base_offset, log_append_time_ms, waits)) => PartOutcome {
            base_offset,
            log_append_time_ms,
            waits: Some(waits).filter(|waits| waits.outcome() != Some(Ok(()))),
            partition: Some(partition),
            ..PartOutcome::refused(index, ErrorCode::None, None)
        },
        Err((code, message, faults)) => {
            let partition = Some(partition);
            PartOutcome { faults, partition, ..PartOutcome::refused(index, code, Some(message)) }
        }
    }
}

type Refused = (ErrorCode, String, Vec<(i32, String)>);

fn append(
    now: Now,
    version: i16,
    topic: &HostedTopic,
    partition: &Arc<Partition>,
    bytes: &[u8],
) -> Result<(Offset, i64, Passes), Refused> {
    let rules = produce_rules(&topic.settings, now.wall, version >= 7);
    let produced = validate_produced(bytes, &rules, &mut Vec::new())
        .map_err(|error| (produce_error(&error), error.to_string(), faults(&error)))?;
    let packed = packed(topic, bytes, &rules)?;
    let bytes = packed.as_deref().unwrap_or(bytes);
    let max = produced.max_timestamp;
    let stamped = rules.timestamp_type == TimestampType::LogAppend;
    let (appended, passes) = partition
        .append(bytes, now, Origin::Client, |batch| {
            if !stamped {
                batch.set_max_create_time(max);
            }
        })
        .map_err(|error| (append_error(&error), error.to_string(), Vec::new()))?;
    let time = appended.log_append_time.map_or(-1, |time| time.0);
    Ok((appended.first, time, passes))
}

/// The batches as `compression.type` wants them, where that is not how they came.
fn packed(
    topic: &HostedTopic,
    bytes: &[u8],
    rules: &ProduceRules,
) -> Result<Option<Vec<u8>>, Refused> {
    let Some(codec) = codec(&topic.settings) else { return Ok(None) };
    let packed = ottla_records::recode(bytes, codec, rules.unpacked_bytes_max);
    let packed =
        packed.map_err(|error| (ErrorCode::CorruptMessage, error.to_string(), Vec::new()))?;
    match packed {
        Some(packed) if packed.len() > rules.batch_bytes_max => {
            let length = packed.len();
            let message = format!("the batch takes {length} bytes as this topic packs it");
            Err((ErrorCode::MessageTooLarge, message, Vec::new()))
        }
        packed => Ok(packed),
    }
}

fn faults(error: &ProduceError) -> Vec<(i32, String)> {
    match error {
        ProduceError::Records(faults) => {
            faults.iter().map(|fault| (fault.index, fault.reason.to_string())).collect()
        }
        _ => Vec::new(),
    }
}

/// Whoever wrote there could undo commits of any group.
fn is_ours(topic: &HostedTopic) -> bool {
    ottla_cluster::names::is_internal(&topic.name)
}

fn response<'o>(broker: &Broker, outcomes: &'o [TopicOutcome]) -> ProduceResponse<'o> {
    let topics = outcomes.iter().map(|topic| TopicProduceResponse {
        name: &topic.name,
        topic_id: topic.id.into(),
        partition_responses: topic.partitions.iter().map(|part| told(broker, part)).collect(),
    });
    ProduceResponse { responses: topics.collect(), ..Default::default() }
}

fn told<'o>(broker: &Broker, part: &'o PartOutcome) -> PartitionProduceResponse<'o> {
    let start = part.partition.as_ref().map_or(Offset(-1), |partition| partition.start_offset());
    let moved = part.code == ErrorCode::NotLeaderOrFollower;
    let leader = part.partition.as_ref().filter(|_| moved).map(|partition| LeaderIdAndEpoch {
        leader_id: broker.node.0,
        leader_epoch: partition.leader_epoch().0,
    });
    let faults = part.faults.iter().map(|(index, message)| BatchIndexAndErrorMessage {
        batch_index: *index,
        batch_index_error_message: Some(message),
    });
    PartitionProduceResponse {
        index: part.index,
        error_code: part.code.number(),
        base_offset: part.base_offset.0,
        log_append_time_ms: part.log_append_time_ms,
        log_start_offset: start.0,
        record_errors: faults.collect(),
        error_message: part.message.as_deref(),
        current_leader: leader.unwrap_or_default(),
    }
}

const TOPIC_IS_OURS: ErrorCode = ErrorCode::InvalidTopicException;
