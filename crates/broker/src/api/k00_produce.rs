//! Key 0, Produce, versions 3-13 (0-2 are advertised for old librdkafka, KAFKA-18659).
//!
//! - v3 carries record batches v2 and transactional ids, v5 tells the log's start.
//! - v7 allows zstd (KIP-110), v8 tells which records were refused (KIP-467).
//! - v9 is flexible, v10 tells the current leader (KIP-951), v13 names topics by id (KIP-516).
//! - v11 and v12 belong to transactions, which do not exist yet: a transactional id is refused
//!   with a code that is fatal to every client.
//!
//! All batches are validated first, which takes long for those that unpack to much: then nothing is
//! decided, and the request comes again where that harms nobody. The batches are appended before
//! this returns, in the order of the connection's requests; only
//! the reply waits, until they are safe. acks=1 waits for that too (decision 4); acks=0 has no
//! reply, and an error closes the connection, which is the only way to be heard.

use super::error_map::{append_error, produce_error};
use super::lookup::{self, TopicRef};
use super::outcome::patience;
use super::{Answer, Context, Pace};
use crate::broker::Broker;
use crate::partitions::{HostedTopic, Partition, Passes, codec, produce_rules};
use ottla_model::{Now, Offset, PartitionId, Timestamp, TopicId, TopicName};
use ottla_records::{Compression, ProduceError, ProduceRules, TimestampType, validate_produced};
use ottla_storage::Origin;
use ottla_wire::generated::produce_request::TopicProduceData;
use ottla_wire::generated::produce_response::{
    BatchIndexAndErrorMessage, LeaderIdAndEpoch, PartitionProduceResponse, TopicProduceResponse,
};
use ottla_wire::generated::{ProduceRequest, ProduceResponse};
use ottla_wire::{ErrorCode, Records};
use std::borrow::Cow;
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
    let mut unpacked = Unpacked::new(cx.pace);
    let prepared: Option<Vec<TopicPrepared<'_>>> = {
        let topics = request.topic_data.iter();
        topics.map(|topic| prepare_topic(cx, topic, refused, &mut unpacked)).collect()
    };
    let Some(prepared) = prepared else { return Answer::Long };
    let mut outcomes: Vec<TopicOutcome> =
        prepared.into_iter().map(|topic| topic.append(cx.now)).collect();
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
    let patience = patience(request.timeout_ms);
    Answer::Later(Box::pin(async move {
        let until = tokio::time::Instant::now() + patience;
        for part in outcomes.iter_mut().flat_map(|topic| &mut topic.partitions) {
            if part.waits.is_some() {
                part.settle(until).await;
                broker.metrics.errors.count(to.key, part.code);
            }
        }
        to.encode(&response(&broker, &outcomes))
    }))
}

/// A topic's batches, each ready to be appended or refused already.
struct TopicPrepared<'a> {
    name: TopicName,
    id: TopicId,
    partitions: Vec<Result<Prepared<'a>, PartOutcome>>,
}

/// A batch that keeps the rules, and where it goes.
struct Prepared<'a> {
    index: i32,
    partition: Arc<Partition>,
    /// As it came, or packed as the topic wants it.
    bytes: Cow<'a, [u8]>,
    /// The latest time in it, where the header is to tell that.
    max_create_time: Option<Timestamp>,
}

/// What the batches of one request are unpacked into, and how much of that is quick.
struct Unpacked {
    left: usize,
    scratch: Vec<u8>,
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

    /// Waits until the records are safe. If that fails or takes too long it is not known whether
    /// they are there; an idempotent producer finds out.
    async fn settle(&mut self, until: tokio::time::Instant) {
        if let Some(waits) = self.waits.take() {
            self.code = match tokio::time::timeout_at(until, waits).await {
                Ok(Ok(())) => ErrorCode::None,
                Ok(Err(_)) => ErrorCode::KafkaStorageError,
                Err(_) => ErrorCode::RequestTimedOut,
            };
        }
    }

    fn faulty(index: i32, partition: Arc<Partition>, (code, message, faults): Refused) -> Self {
        let partition = Some(partition);
        Self { faults, partition, ..Self::refused(index, code, Some(message)) }
    }
}

/// None if that would take long.
fn prepare_topic<'a>(
    cx: &Context<'_>,
    data: &TopicProduceData<'a>,
    refused: Option<ErrorCode>,
    unpacked: &mut Unpacked,
) -> Option<TopicPrepared<'a>> {
    let by_id = cx.version() >= 13;
    let hosted = cx.broker.partitions.hosted();
    let topic = match refused {
        Some(code) => Err(code),
        None => lookup::topic(cx.broker, &hosted, TopicRef::new(by_id, data.name, data.topic_id))
            .and_then(|topic| if is_ours(topic) { Err(TOPIC_IS_OURS) } else { Ok(topic) }),
    };
    let parts = data.partition_data.iter();
    let partitions = parts.map(|part| match topic {
        Ok(topic) => prepare(cx, topic, part.index, bytes(part.records.as_ref()), unpacked),
        Err(code) => Some(Err(PartOutcome::refused(part.index, code, None))),
    });
    Some(TopicPrepared {
        name: data.name.into(),
        id: data.topic_id.into(),
        partitions: partitions.collect::<Option<_>>()?,
    })
}

fn bytes<'a>(records: Option<&Records<'a>>) -> &'a [u8] {
    match records {
        Some(Records::Borrowed(bytes)) => bytes,
        // A decoded request borrows; there is no other form to meet here.
        _ => &[],
    }
}

/// None if that would take long.
fn prepare<'a>(
    cx: &Context<'_>,
    topic: &HostedTopic,
    index: i32,
    bytes: &'a [u8],
    unpacked: &mut Unpacked,
) -> Option<Result<Prepared<'a>, PartOutcome>> {
    let partition = match lookup::partition(cx.broker, topic, PartitionId(index)) {
        Ok(partition) => partition,
        Err(code) => return Some(Err(PartOutcome::refused(index, code, None))),
    };
    let rules = produce_rules(&topic.settings, cx.now.wall, cx.version() >= 7);
    let prepared = match unpacked.validate(bytes, &rules)? {
        Ok(max_timestamp) => unpacked.pack(topic, bytes, &rules)?.map(|packed| Prepared {
            index,
            partition: Arc::clone(&partition),
            bytes: packed.map_or(Cow::Borrowed(bytes), Cow::Owned),
            max_create_time: (rules.timestamp_type == TimestampType::Create)
                .then_some(max_timestamp),
        }),
        Err(refused) => Err(refused),
    };
    Some(prepared.map_err(|refused| PartOutcome::faulty(index, partition, refused)))
}

type Refused = (ErrorCode, String, Vec<(i32, String)>);

impl Unpacked {
    fn new(pace: Pace) -> Self {
        let left = match pace {
            Pace::Quick => QUICK_BYTES_MAX,
            Pace::Long => usize::MAX,
        };
        Self { left, scratch: Vec::new() }
    }

    /// The latest time in a batch that keeps the rules; none if finding out would take long.
    fn validate(
        &mut self,
        bytes: &[u8],
        rules: &ProduceRules,
    ) -> Option<Result<Timestamp, Refused>> {
        self.left = self.left.checked_sub(bytes.len())?;
        let most = rules.unpacked_bytes_max.min(self.left);
        let within = ProduceRules { unpacked_bytes_max: most, ..*rules };
        self.scratch.clear();
        let validated = validate_produced(bytes, &within, &mut self.scratch);
        let above = matches!(validated, Err(ProduceError::UnpacksTooLarge { .. }));
        if above && most < rules.unpacked_bytes_max {
            return None;
        }
        self.left = self.left.saturating_sub(self.scratch.len());
        let refused =
            |error: ProduceError| (produce_error(&error), error.to_string(), faults(&error));
        Some(validated.map(|produced| produced.max_timestamp).map_err(refused))
    }

    /// The batch just validated as `compression.type` wants it, where that is not how it came;
    /// none if packing it would take long.
    fn pack(
        &mut self,
        topic: &HostedTopic,
        bytes: &[u8],
        rules: &ProduceRules,
    ) -> Option<Result<Option<Vec<u8>>, Refused>> {
        let Some(codec) = codec(&topic.settings) else { return Some(Ok(None)) };
        let plain = self.scratch.len().max(bytes.len());
        self.left = self.left.checked_sub(plain.saturating_mul(PACKING_COSTS))?;
        Some(packed(codec, bytes, rules))
    }
}

impl TopicPrepared<'_> {
    fn append(self, now: Now) -> TopicOutcome {
        let partitions = self.partitions.into_iter();
        let partitions = partitions.map(|part| match part {
            Ok(prepared) => prepared.append(now),
            Err(refused) => refused,
        });
        TopicOutcome { name: self.name, id: self.id, partitions: partitions.collect() }
    }
}

impl Prepared<'_> {
    fn append(self, now: Now) -> PartOutcome {
        let Self { index, partition, bytes, max_create_time } = self;
        let appended = partition.append(&bytes, now, Origin::Client, |batch| {
            if let Some(max) = max_create_time {
                batch.set_max_create_time(max);
            }
        });
        match appended {
            Ok((appended, waits)) => PartOutcome {
                base_offset: appended.first,
                log_append_time_ms: appended.log_append_time.map_or(-1, |time| time.0),
                waits: Some(waits).filter(|waits| waits.outcome() != Some(Ok(()))),
                partition: Some(partition),
                ..PartOutcome::refused(index, ErrorCode::None, None)
            },
            Err(error) => {
                let refused = (append_error(&error), error.to_string(), Vec::new());
                PartOutcome::faulty(index, partition, refused)
            }
        }
    }
}

fn packed(
    codec: Compression,
    bytes: &[u8],
    rules: &ProduceRules,
) -> Result<Option<Vec<u8>>, Refused> {
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
/// A request whose batches have more bytes, sent and unpacked, is decided where others do not wait:
/// this much takes some ten milliseconds.
const QUICK_BYTES_MAX: usize = 8 << 20;
/// Packing a byte takes as long as unpacking this many.
const PACKING_COSTS: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::partitions::tests::{appended, partition_of};
    use ottla_storage::LogConfig;
    use ottla_storage::fs::sim::SimFs;
    use tokio::time::Instant;

    /// A disk that hangs is told in the request's time, and what is late is not told as done.
    #[tokio::test]
    async fn a_write_that_takes_too_long_times_out() {
        let partition = partition_of(&SimFs::new(1), LogConfig::default());
        let mut part = PartOutcome::refused(0, ErrorCode::None, None);
        part.waits = Some(appended(&partition, "a"));
        part.settle(Instant::now()).await;
        assert_eq!(part.code, ErrorCode::RequestTimedOut);
        part.waits = Some(appended(&partition, "b"));
        partition.sync();
        part.settle(Instant::now()).await;
        assert_eq!(part.code, ErrorCode::None);
    }
}
