//! Key 1, Fetch, versions 4-18.
//!
//! - v4 and v5 have isolation levels and the log's start; v7 has sessions (KIP-227).
//! - v9 has leader epochs (KIP-320), v11 racks, v12 is flexible and tells where logs part.
//! - v13 names topics by id (KIP-516); v15-v18 changed what followers send, who do not fetch here.
//! - v16 tells a moved leader's address.
//!
//! Left out: replicas (there is one), preferred replicas, aborted transactions (there are no
//! transactions, so everything below the watermark is stable).

use super::lookup::{self, TopicRef};
use super::{Answer, Context};
use crate::broker::Broker;
use crate::fetching::{
    self, Found, Opening, Outcome, Plan, SessionError, TopicKey, Want, Wanted, read_once,
};
use crate::partitions::Hosted;
use ottla_model::{LeaderEpoch, Offset, PartitionId};
use ottla_wire::generated::fetch_response::{
    EpochEndOffset, FetchableTopicResponse, LeaderIdAndEpoch, PartitionData,
};
use ottla_wire::generated::{FetchRequest, FetchResponse};
use ottla_wire::{ErrorCode, Records, Uuid};
use std::sync::Arc;
use std::time::Duration;

/// Reads; waits for more if that is what was asked.
pub(super) fn handle(cx: &mut Context<'_>, request: FetchRequest<'_>) -> Answer {
    let opening = match open(cx, &request) {
        Ok(opening) => opening,
        Err(error) => {
            let error_code = cx.count(session_error(error)).number();
            return cx.reply(&FetchResponse { error_code, ..Default::default() });
        }
    };
    let fetch = Fetch {
        plan: plan(cx.broker, &request, &opening.wanted),
        committed: request.isolation_level == READ_COMMITTED,
        opening,
        broker: Arc::clone(cx.broker),
    };
    let outcome = read_once(&fetch.plan);
    let done = fetch.plan.wait_max.is_zero() || outcome.is_enough(&fetch.plan);
    if done || cx.broker.lifeline.is_draining() {
        let told = fetch.told(&outcome);
        told.iter().for_each(|found| _ = cx.count(found.1.code));
        return cx.reply(&fetch.response(&told));
    }
    let to = cx.to;
    Answer::Later(Box::pin(async move {
        let broker = Arc::clone(&fetch.broker);
        let outcome = match broker.fetches.enter(broker.config.fetch_waiting_max) {
            Some(_place) => fetching::wait(&fetch.plan, outcome, &broker.lifeline).await,
            None => outcome,
        };
        let told = fetch.told(&outcome);
        told.iter().for_each(|found| broker.metrics.errors.count(to.key, found.1.code));
        to.encode(&fetch.response(&told))
    }))
}

/// A fetch under way.
struct Fetch {
    plan: Plan,
    opening: Opening,
    committed: bool,
    broker: Arc<Broker>,
}

fn open(cx: &Context<'_>, request: &FetchRequest<'_>) -> Result<Opening, SessionError> {
    let by_id = cx.version() >= 13;
    let key = |name: &str, id: Uuid| {
        if by_id { TopicKey::Id(id.into()) } else { TopicKey::Name(name.into()) }
    };
    let mut wanted = Vec::new();
    for topic in &request.topics {
        let topic_key = key(topic.topic, topic.topic_id);
        wanted.extend(topic.partitions.iter().map(|part| Wanted {
            topic: topic_key.clone(),
            partition: PartitionId(part.partition),
            offset: Offset(part.fetch_offset),
            bytes_max: usize::try_from(part.partition_max_bytes).unwrap_or(0),
            leader_epoch: part.current_leader_epoch,
            last_epoch:
                (part.last_fetched_epoch >= 0).then_some(LeaderEpoch(part.last_fetched_epoch)),
        }));
    }
    let mut forgotten = Vec::new();
    for topic in &request.forgotten_topics_data {
        let key = key(topic.topic, topic.topic_id);
        forgotten.extend(topic.partitions.iter().map(|part| (key.clone(), PartitionId(*part))));
    }
    // Below version 7 there are no sessions, and the fields are their defaults.
    let at = (request.session_id, request.session_epoch);
    cx.broker.fetch_sessions.open(at, by_id, wanted, forgotten, cx.now.mono)
}

fn plan(broker: &Broker, request: &FetchRequest<'_>, wanted: &[Wanted]) -> Plan {
    let hosted = broker.partitions.hosted();
    let bytes_max = usize::try_from(request.max_bytes).unwrap_or(0);
    let bytes_max = bytes_max.min(broker.config.fetch_max_bytes);
    let wait_max_ms = u64::try_from(request.max_wait_ms).unwrap_or(0);
    Plan {
        wait_max: Duration::from_millis(wait_max_ms).min(WAIT_MAX),
        // More than fits into an answer cannot be waited for.
        bytes_min: usize::try_from(request.min_bytes).unwrap_or(0).min(bytes_max),
        bytes_max,
        wants: wanted.iter().map(|wanted| want(broker, &hosted, wanted)).collect(),
    }
}

fn want(broker: &Broker, hosted: &Hosted, wanted: &Wanted) -> Want {
    let topic = match &wanted.topic {
        TopicKey::Name(name) => TopicRef::Name(name),
        TopicKey::Id(id) => TopicRef::Id(*id),
    };
    let partition = lookup::topic(broker, hosted, topic).and_then(|topic| {
        let partition = lookup::partition(broker, topic, wanted.partition)?;
        lookup::check_epoch(&partition, wanted.leader_epoch)?;
        Ok(partition)
    });
    let Wanted { offset, bytes_max, last_epoch, .. } = *wanted;
    Want { partition, offset, bytes_max, last_epoch }
}

impl Fetch {
    /// The partitions the answer names.
    fn told(&self, outcome: &Outcome) -> Vec<(&Wanted, Found)> {
        let wanted = &self.opening.wanted;
        let told = self.opening.ticket.as_ref().map(|ticket| ticket.note(wanted, &outcome.found));
        let told = told.unwrap_or_else(|| vec![true; wanted.len()]);
        let both = wanted.iter().zip(&outcome.found).zip(told);
        both.filter(|(_, told)| *told).map(|((wanted, found), _)| (wanted, found.clone())).collect()
    }

    fn response<'f>(&self, told: &'f [(&Wanted, Found)]) -> FetchResponse<'f> {
        let runs = told.chunk_by(|one, next| one.0.topic == next.0.topic);
        let responses = runs.map(|run| {
            let (topic, topic_id) = match &run[0].0.topic {
                TopicKey::Name(name) => (name.as_str(), Uuid::ZERO),
                TopicKey::Id(id) => ("", Uuid::from(*id)),
            };
            let partitions = run.iter().map(|(wanted, found)| self.partition(wanted, found));
            FetchableTopicResponse { topic, topic_id, partitions: partitions.collect() }
        });
        FetchResponse {
            session_id: self.opening.ticket.as_ref().map_or(0, |ticket| ticket.id()),
            responses: responses.collect(),
            ..Default::default()
        }
    }

    fn partition<'f>(&self, wanted: &Wanted, found: &Found) -> PartitionData<'f> {
        let moved =
            matches!(found.code, ErrorCode::NotLeaderOrFollower | ErrorCode::FencedLeaderEpoch);
        let leader = || {
            let (topic, hosted) = (&wanted.topic, self.broker.partitions.hosted());
            let topic = match topic {
                TopicKey::Name(name) => hosted.by_name(name),
                TopicKey::Id(id) => hosted.by_id(*id),
            };
            let partition = topic?.partition(wanted.partition)?;
            let leader_epoch = partition.leader_epoch().0;
            Some(LeaderIdAndEpoch { leader_id: self.broker.node.0, leader_epoch })
        };
        let diverging = found
            .diverging
            .map(|(epoch, end)| EpochEndOffset { epoch: epoch.0, end_offset: end.0 });
        PartitionData {
            partition_index: wanted.partition.0,
            error_code: found.code.number(),
            high_watermark: found.high_watermark.0,
            last_stable_offset: found.high_watermark.0,
            log_start_offset: found.start.0,
            diverging_epoch: diverging.unwrap_or_default(),
            current_leader: moved.then(leader).flatten().unwrap_or_default(),
            aborted_transactions: self.committed.then(Vec::new),
            records: Some(Records::Shared(found.records.clone())),
            ..Default::default()
        }
    }
}

fn session_error(error: SessionError) -> ErrorCode {
    match error {
        SessionError::NotFound => ErrorCode::FetchSessionIdNotFound,
        SessionError::WrongEpoch => ErrorCode::InvalidFetchSessionEpoch,
        SessionError::OtherNaming => ErrorCode::FetchSessionTopicIdError,
    }
}

const READ_COMMITTED: i8 = 1;
/// A fetch that asks to wait longer is answered empty after this.
const WAIT_MAX: Duration = Duration::from_mins(5);
