//! A member's requests as bytes for whichever version the coordinator has, and its answers in the
//! member's words. The versions' quirks are `ottla_wire::convert`'s; only the choice is made here.

use crate::cluster::Snapshot;
use crate::connection::{Answer, Awaited, Connection};
use crate::{Error, Result};
use ottla_group::member::Request;
use ottla_group::message::offsets::Committed;
use ottla_group::message::{Ask, GroupError, Reply};
use ottla_model::{TopicId, TopicName};
use ottla_wire::generated as messages;
use ottla_wire::{ApiKey, ErrorCode, convert};
use std::time::Duration;

/// Which question an answer is to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    Join,
    Register,
    Sync,
    Heartbeat,
    RegisterHeartbeat,
    Beat,
    Leave,
    Commit,
    Fetch,
}

/// Sends a request; its answer must come within `patience`. Where `regex` is some, a member's
/// heartbeat that tells of topics tells of this pattern instead, or that there is none any more.
///
/// # Errors
/// `Unsupported`, if the coordinator lacks the API or a version that can say it; `Retriable`, if
/// the connection is gone.
pub(super) fn send(
    connection: &Connection,
    request: &Request,
    snapshot: &Snapshot,
    (patience, regex): (Duration, Option<&str>),
) -> Result<(Kind, Awaited)> {
    let id = |topic: &str| snapshot.topic(topic).map(|topic| topic.id).filter(|id| !id.is_zero());
    let sent = match request.ask() {
        Ask::Join(ask) => {
            let version = connection.version(ApiKey::JoinGroup)?;
            (Kind::Join, connection.start(version, &convert::join::request(&ask), patience)?)
        }
        Ask::Register(ask) => {
            let version = connection.version(ApiKey::RegisterConsumer)?;
            let request = convert::register_consumer::request(&ask);
            (Kind::Register, connection.start(version, &request, patience)?)
        }
        Ask::RegisterHeartbeat(ask) => {
            let version = connection.version(ApiKey::RegisterHeartbeat)?;
            let request = convert::register_heartbeat::request(&ask);
            (Kind::RegisterHeartbeat, connection.start(version, &request, patience)?)
        }
        Ask::ConsumerHeartbeat(mut ask) => {
            if let (Some(topics), Some(pattern)) = (&mut ask.topics, regex) {
                ask.regex = Some(pattern);
                if !pattern.is_empty() {
                    topics.clear();
                }
            }
            let version = connection.version(ApiKey::ConsumerGroupHeartbeat)?;
            let request = convert::consumer_heartbeat::request(&ask);
            (Kind::Beat, connection.start(version, &request, patience)?)
        }
        Ask::Sync(ask) => {
            let version = connection.version(ApiKey::SyncGroup)?;
            (Kind::Sync, connection.start(version, &convert::sync::request(&ask), patience)?)
        }
        Ask::Heartbeat(ask) => {
            let version = connection.version(ApiKey::Heartbeat)?;
            let request = convert::heartbeat::request(&ask);
            (Kind::Heartbeat, connection.start(version, &request, patience)?)
        }
        Ask::Leave(ask) => {
            let version = connection.version(ApiKey::LeaveGroup)?;
            let request = convert::leave::request(&ask, version)?;
            (Kind::Leave, connection.start(version, &request, patience)?)
        }
        Ask::Commit(ask) => {
            let version = connection.version(ApiKey::OffsetCommit)?;
            let has_ids = ask.topics.iter().all(|topic| !topic.id.is_zero());
            let version = if has_ids { version } else { version.min(NAMED_MAX) };
            let request = convert::commit::request(&ask);
            (Kind::Commit, connection.start(version, &request, patience)?)
        }
        Ask::FetchOffsets(ask) => {
            let version = connection.version(ApiKey::OffsetFetch)?;
            let topics = ask.topics.as_ref();
            let has_ids =
                topics.is_some_and(|topics| topics.iter().all(|(of, _)| id(of).is_some()));
            let version = if has_ids { version } else { version.min(NAMED_MAX) };
            let mut request = convert::fetch_offsets::request(&[ask], version, id)?;
            // KIP-447: an offset of a transaction that is still open is none to go on from.
            request.require_stable = version >= 7;
            (Kind::Fetch, connection.start(version, &request, patience)?)
        }
        _ => return Err(Error::protocol("a request that no member sends")),
    };
    Ok(sent)
}

/// What the answer tells the member.
///
/// # Errors
/// A code that is no coordinator's refusal, or `Protocol`.
pub(super) fn read(kind: Kind, answer: &Answer, snapshot: &Snapshot) -> Result<Reply> {
    let name = |id: TopicId| -> Option<TopicName> { snapshot.name(id).cloned() };
    let reply = match kind {
        Kind::Join => {
            let response: messages::JoinGroupResponse<'_> = answer.read()?;
            convert::join::reply(&response).map(Reply::Join)
        }
        Kind::Register => {
            let response: messages::RegisterConsumerResponse<'_> = answer.read()?;
            convert::register_consumer::reply(&response).map(Reply::Register)
        }
        Kind::RegisterHeartbeat => {
            let response: messages::RegisterHeartbeatResponse<'_> = answer.read()?;
            convert::register_heartbeat::reply(&response).map(Reply::RegisterHeartbeat)
        }
        Kind::Beat => {
            let response: messages::ConsumerGroupHeartbeatResponse<'_> = answer.read()?;
            // Every answer names the member, but for those of the first versions that refuse.
            convert::consumer_heartbeat::reply(&response, "").map(Reply::ConsumerHeartbeat)
        }
        Kind::Sync => {
            let response: messages::SyncGroupResponse<'_> = answer.read()?;
            convert::sync::reply(&response).map(Reply::Sync)
        }
        Kind::Heartbeat => {
            let response: messages::HeartbeatResponse = answer.read()?;
            convert::heartbeat::reply(&response).map(Reply::Heartbeat)
        }
        Kind::Leave => {
            let response: messages::LeaveGroupResponse<'_> = answer.read()?;
            convert::leave::reply(&response).map(Reply::Leave)
        }
        Kind::Commit => {
            let response: messages::OffsetCommitResponse<'_> = answer.read()?;
            let reply = convert::commit::reply(&response, answer.version(), name);
            reply.map(|committed| Reply::Commit(whole(committed)))
        }
        Kind::Fetch => {
            let response: messages::OffsetFetchResponse<'_> = answer.read()?;
            let replies = convert::fetch_offsets::reply(&response, answer.version(), name);
            let first = |replies: Vec<convert::fetch_offsets::GroupReply>| {
                replies.into_iter().next().map(|(_, reply)| reply)
            };
            let absent = Err(GroupError::NotAvailable);
            replies.map(|replies| Reply::FetchOffsets(first(replies).unwrap_or(absent)))
        }
    };
    reply.map_err(|foreign| {
        let code = ErrorCode::from_number(foreign.0).unwrap_or(ErrorCode::UnknownServerError);
        Error::of(code, "the group's coordinator refuses")
    })
}

/// A commit has no place for a refusal of the whole: it is one of every partition, and means the
/// group, not them.
fn whole(committed: Committed) -> Result<Committed, GroupError> {
    let is_of_partition = |error: &GroupError| {
        matches!(
            error,
            GroupError::UnknownTopicOrPartition
                | GroupError::OffsetMetadataTooLarge
                | GroupError::RecordTooLarge
        )
    };
    let outcomes = committed.topics.iter().flat_map(|(_, partitions)| partitions);
    let mut errors = outcomes.filter_map(|(_, outcome)| outcome.as_ref().err());
    match errors.find(|error| !is_of_partition(error)) {
        Some(error) => Err(*error),
        None => Ok(committed),
    }
}

/// The last version of OffsetCommit and OffsetFetch that names topics; later ones have their ids.
const NAMED_MAX: i16 = 9;
