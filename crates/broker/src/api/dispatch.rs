//! From the bytes of one request to its handler: header, version, body, call.
//!
//! [`handle`] is the one place that ties keys to handlers; which keys and versions are served is
//! the wire crate's table, which ApiVersions and the compatibility page read too.

use super::*;
use crate::broker::Broker;
use crate::net::Session;
use ottla_model::Now;
use ottla_wire::header::RequestHeader;
use ottla_wire::{Api, ApiKey, DecodeError, ErrorCode, Message, Reader};
use std::sync::Arc;
use thiserror::Error;

/// Why a request's connection is closed instead of answered. The peer is at fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub(crate) enum Cut {
    /// No request can begin like this.
    #[error("not a request: key {key}, version {version}")]
    NotARequest {
        /// Where the key would be.
        key: i16,
        /// Where the version would be.
        version: i16,
    },
    /// The header cannot be read, or names no API.
    #[error("malformed header: {0}")]
    Header(DecodeError),
    /// A key or version that ApiVersions does not name.
    #[error("{key} version {version} is not served here")]
    NotServed {
        /// The API.
        key: ApiKey,
        /// What was asked for.
        version: i16,
    },
    /// A request that wants no answer was refused.
    #[error("{key} was refused: {code}")]
    Refused {
        /// The API.
        key: ApiKey,
        /// Why.
        code: ErrorCode,
    },
    /// The body cannot be read.
    #[error("malformed {key} version {version}: {error}")]
    Body {
        /// The API.
        key: ApiKey,
        /// The version it claims to have.
        version: i16,
        /// What is wrong with it.
        error: DecodeError,
    },
}

/// Handles one request; `body` is its frame without the length. Says also which API it was. An
/// answer of [`Answer::Long`] comes to [`Pace::Quick`] alone.
///
/// # Errors
/// The connection must be closed.
pub(crate) fn dispatch(
    broker: &Arc<Broker>,
    session: &mut Session,
    (now, pace): (Now, Pace),
    scratch: &mut Vec<u8>,
    body: &[u8],
) -> Result<(ApiKey, Answer), Cut> {
    let mut reader = Reader::new(body);
    let header = RequestHeader::decode(&mut reader).map_err(Cut::Header)?;
    let RequestHeader { key, version, correlation_id, client_id } = header;
    let to = ReplyTo { key, version, correlation_id };
    let client_id = client_id.unwrap_or_default();
    let mut cx = Context { broker, session, client_id, now, to, pace, scratch };
    if !header.is_accepted() || !key.api().served {
        if key == ApiKey::ApiVersions {
            return Ok((key, k18_api_versions::refuse_version(&mut cx)));
        }
        return Err(Cut::NotServed { key, version });
    }
    match handle(&mut cx, &mut reader)? {
        Answer::Close(code) => Err(Cut::Refused { key, code }),
        answer => Ok((key, answer)),
    }
}

/// Whether the beginning of a connection's first request, as far as it has arrived, can be one.
///
/// # Errors
/// It cannot.
pub(crate) fn check_greeting(start: &[u8]) -> Result<(), Cut> {
    let mut reader = Reader::new(start);
    let (Ok(key), Ok(version)) = (reader.i16(""), reader.i16("")) else { return Ok(()) };
    match Api::from_number(key) {
        Some(api) if api.served && api.accepted.contains(version) => Ok(()),
        _ => Err(Cut::NotARequest { key, version }),
    }
}

/// Calls the handler of the request's key.
macro_rules! handlers {
    ($cx:ident, $reader:ident, $($key:ident => $handler:path,)+) => {
        match $cx.to.key {
            $( ApiKey::$key => {
                let request = body($cx.to, $reader)?;
                Ok($handler($cx, request))
            } )+
            key => Err(Cut::NotServed { key, version: $cx.to.version }),
        }
    };
}

fn handle(cx: &mut Context<'_>, reader: &mut Reader<'_>) -> Result<Answer, Cut> {
    handlers! { cx, reader,
        Produce => k00_produce::handle,
        Fetch => k01_fetch::handle,
        ListOffsets => k02_list_offsets::handle,
        Metadata => k03_metadata::handle,
        OffsetCommit => k08_offset_commit::handle,
        OffsetFetch => k09_offset_fetch::handle,
        FindCoordinator => k10_find_coordinator::handle,
        JoinGroup => k11_join_group::handle,
        Heartbeat => k12_heartbeat::handle,
        LeaveGroup => k13_leave_group::handle,
        SyncGroup => k14_sync_group::handle,
        DescribeGroups => k15_describe_groups::handle,
        ListGroups => k16_list_groups::handle,
        ApiVersions => k18_api_versions::handle,
        CreateTopics => k19_create_topics::handle,
        DeleteTopics => k20_delete_topics::handle,
        DeleteRecords => k21_delete_records::handle,
        InitProducerId => k22_init_producer_id::handle,
        OffsetForLeaderEpoch => k23_offset_for_leader_epoch::handle,
        DescribeConfigs => k32_describe_configs::handle,
        AlterConfigs => k33_alter_configs::handle,
        DescribeLogDirs => k35_describe_log_dirs::handle,
        CreatePartitions => k37_create_partitions::handle,
        DeleteGroups => k42_delete_groups::handle,
        ElectLeaders => k43_elect_leaders::handle,
        IncrementalAlterConfigs => k44_incremental_alter_configs::handle,
        ListPartitionReassignments => k46_list_partition_reassignments::handle,
        OffsetDelete => k47_offset_delete::handle,
        DescribeQuorum => k55_describe_quorum::handle,
        UpdateFeatures => k57_update_features::handle,
        DescribeCluster => k60_describe_cluster::handle,
        DescribeProducers => k61_describe_producers::handle,
        ConsumerGroupHeartbeat => k68_consumer_group_heartbeat::handle,
        ConsumerGroupDescribe => k69_consumer_group_describe::handle,
        ListConfigResources => k74_list_config_resources::handle,
        DescribeTopicPartitions => k75_describe_topic_partitions::handle,
        ConsumerMetadata => k32010_consumer_metadata::handle,
        RegisterConsumer => k32011_register_consumer::handle,
        RegisterHeartbeat => k32012_register_heartbeat::handle,
        GroupJournal => k32020_group_journal::handle,
    }
}

fn body<'a, M: Message<'a>>(to: ReplyTo, reader: &mut Reader<'a>) -> Result<M, Cut> {
    let ReplyTo { key, version, .. } = to;
    let decoded = M::decode(reader, version).and_then(|request| {
        reader.finish(M::NAME)?;
        Ok(request)
    });
    decoded.map_err(|error| Cut::Body { key, version, error })
}
