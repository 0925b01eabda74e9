//! Cross-check with the `kafka-protocol` crate, which others wrote (issue 3, "must show" 6): for
//! every message and version both have, the same bytes in both directions, the same bytes after a
//! change of version, and the same refusal where a version would lose a value.

#![allow(clippy::unwrap_used)]

mod support;

use bytes::{Bytes, BytesMut};
use kafka_protocol::messages as theirs;
use kafka_protocol::protocol::{Decodable, Encodable, Message as _};
use ottla_wire::{Message, generated as ours};
use support::{Random, hex, sample, schema};

/// Samples of each message and version.
const SAMPLES: u64 = 40;

/// Messages that kafka-protocol 0.18 lacks.
const ONLY_OURS: &str = "StreamsGroup UnregisterController ConsumerMetadata Register \
                         GroupJournal ControlRecordTypeSchema Value Key";

/// Messages in which kafka-protocol writes what Kafka refuses: it drops a tagged field that the
/// version lacks, and writes null in versions that do not allow it. `java.rs` shows that Kafka
/// refuses both.
const LENIENT: &[&str] = &[
    "DeleteTopicsResponse",
    "FetchRequest",
    "FetchResponse",
    "JoinGroupResponse",
    "MetadataRequest",
    "MetadataResponse",
    "OffsetFetchRequest",
    "ProduceResponse",
];

macro_rules! cross_check {
    ($($name:ident)*) => {
        const SHARED: &[&str] = &[$(stringify!($name)),*];

        $(
            #[allow(non_snake_case)]
            #[test]
            fn $name() {
                let schema = schema(stringify!($name));
                for version in ours::$name::VERSIONS.iter() {
                    if !is_theirs(&theirs::$name::VERSIONS, version) {
                        continue;
                    }
                    for seed in 0..SAMPLES {
                        let bytes = sample(&schema, version, &mut Random(seed));
                        let what = format!("version {version} seed {seed}: {}", hex(&bytes));
                        let mine = ours::$name::decode_all(&bytes, version)
                            .unwrap_or_else(|error| panic!("{error}: {what}"));
                        let mut left = Bytes::copy_from_slice(&bytes);
                        let other = theirs::$name::decode(&mut left, version).unwrap();
                        assert!(left.is_empty(), "{what}");
                        for other_version in ours::$name::VERSIONS.iter() {
                            if !is_theirs(&theirs::$name::VERSIONS, other_version) {
                                continue;
                            }
                            let mut encoded = BytesMut::new();
                            let outcome = other.encode(&mut encoded, other_version);
                            let mine = mine.to_vec(other_version).ok();
                            let other = outcome.ok().map(|()| encoded.to_vec());
                            if mine.is_none() && LENIENT.contains(&stringify!($name)) {
                                continue;
                            }
                            assert_eq!(
                                mine.as_deref().map(hex),
                                other.as_deref().map(hex),
                                "into {other_version}, {what}"
                            );
                        }
                        assert_eq!(mine.to_vec(version).unwrap(), bytes, "{what}");
                    }
                }
            }
        )*
    };
}

fn is_theirs(range: &kafka_protocol::protocol::VersionRange, version: i16) -> bool {
    range.min <= version && version <= range.max
}

cross_check! {
    AddOffsetsToTxnRequest AddOffsetsToTxnResponse AddPartitionsToTxnRequest
    AddPartitionsToTxnResponse AddRaftVoterRequest AddRaftVoterResponse AlterClientQuotasRequest
    AlterClientQuotasResponse AlterConfigsRequest AlterConfigsResponse
    AlterPartitionReassignmentsRequest AlterPartitionReassignmentsResponse
    AlterReplicaLogDirsRequest AlterReplicaLogDirsResponse AlterShareGroupOffsetsRequest
    AlterShareGroupOffsetsResponse AlterUserScramCredentialsRequest
    AlterUserScramCredentialsResponse ApiVersionsRequest ApiVersionsResponse
    ConsumerGroupDescribeRequest ConsumerGroupDescribeResponse ConsumerGroupHeartbeatRequest
    ConsumerGroupHeartbeatResponse ConsumerProtocolAssignment ConsumerProtocolSubscription
    CreateAclsRequest CreateAclsResponse CreateDelegationTokenRequest
    CreateDelegationTokenResponse CreatePartitionsRequest CreatePartitionsResponse
    CreateTopicsRequest CreateTopicsResponse DefaultPrincipalData DeleteAclsRequest
    DeleteAclsResponse DeleteGroupsRequest DeleteGroupsResponse DeleteRecordsRequest
    DeleteRecordsResponse DeleteShareGroupOffsetsRequest DeleteShareGroupOffsetsResponse
    DeleteShareGroupStateRequest DeleteShareGroupStateResponse DeleteTopicsRequest
    DeleteTopicsResponse DescribeAclsRequest DescribeAclsResponse DescribeClientQuotasRequest
    DescribeClientQuotasResponse DescribeClusterRequest DescribeClusterResponse
    DescribeConfigsRequest DescribeConfigsResponse DescribeDelegationTokenRequest
    DescribeDelegationTokenResponse DescribeGroupsRequest DescribeGroupsResponse
    DescribeLogDirsRequest DescribeLogDirsResponse DescribeProducersRequest
    DescribeProducersResponse DescribeQuorumRequest DescribeQuorumResponse
    DescribeShareGroupOffsetsRequest DescribeShareGroupOffsetsResponse
    DescribeTopicPartitionsRequest DescribeTopicPartitionsResponse DescribeTransactionsRequest
    DescribeTransactionsResponse DescribeUserScramCredentialsRequest
    DescribeUserScramCredentialsResponse ElectLeadersRequest ElectLeadersResponse EndTxnMarker
    EndTxnRequest EndTxnResponse ExpireDelegationTokenRequest ExpireDelegationTokenResponse
    FetchRequest FetchResponse FindCoordinatorRequest FindCoordinatorResponse
    GetTelemetrySubscriptionsRequest GetTelemetrySubscriptionsResponse HeartbeatRequest
    HeartbeatResponse IncrementalAlterConfigsRequest IncrementalAlterConfigsResponse
    InitProducerIdRequest InitProducerIdResponse InitializeShareGroupStateRequest
    InitializeShareGroupStateResponse JoinGroupRequest JoinGroupResponse LeaveGroupRequest
    LeaveGroupResponse ListConfigResourcesRequest ListConfigResourcesResponse ListGroupsRequest
    ListGroupsResponse ListOffsetsRequest ListOffsetsResponse ListPartitionReassignmentsRequest
    ListPartitionReassignmentsResponse ListTransactionsRequest ListTransactionsResponse
    MetadataRequest MetadataResponse OffsetCommitRequest OffsetCommitResponse
    OffsetDeleteRequest OffsetDeleteResponse OffsetFetchRequest OffsetFetchResponse
    OffsetForLeaderEpochRequest OffsetForLeaderEpochResponse ProduceRequest ProduceResponse
    PushTelemetryRequest PushTelemetryResponse ReadShareGroupStateRequest
    ReadShareGroupStateResponse ReadShareGroupStateSummaryRequest
    ReadShareGroupStateSummaryResponse RemoveRaftVoterRequest RemoveRaftVoterResponse
    RenewDelegationTokenRequest RenewDelegationTokenResponse SaslAuthenticateRequest
    SaslAuthenticateResponse SaslHandshakeRequest SaslHandshakeResponse ShareAcknowledgeRequest
    ShareAcknowledgeResponse ShareFetchRequest ShareFetchResponse ShareGroupDescribeRequest
    ShareGroupDescribeResponse ShareGroupHeartbeatRequest ShareGroupHeartbeatResponse
    SyncGroupRequest SyncGroupResponse TxnOffsetCommitRequest TxnOffsetCommitResponse
    UnregisterBrokerRequest UnregisterBrokerResponse UpdateFeaturesRequest
    UpdateFeaturesResponse WriteShareGroupStateRequest WriteShareGroupStateResponse
    WriteTxnMarkersRequest WriteTxnMarkersResponse
}

macro_rules! names {
    ($($name:ident,)*) => { &[$(stringify!($name)),*] };
}

/// A message that is not cross-checked here is one that kafka-protocol lacks.
#[test]
fn every_message_is_shared_or_only_ours() {
    let all: &[&str] = ottla_wire::each_message!(names);
    for name in all {
        let only_ours =
            ONLY_OURS.split_whitespace().any(|part| name.starts_with(part) || name.ends_with(part));
        assert_ne!(SHARED.contains(name), only_ours, "{name}");
    }
}

/// Kafka's clients and kafka-protocol's would try the same again. CONCURRENT_TRANSACTIONS became
/// retriable after the version of Kafka that kafka-protocol follows.
#[test]
fn the_same_errors_are_retriable() {
    use kafka_protocol::ResponseError::{self, Unknown};
    for code in ottla_wire::ErrorCode::ALL.iter().filter(|code| code.is_error()) {
        match ResponseError::try_from_code(code.number()) {
            None | Some(Unknown(_) | ResponseError::ConcurrentTransactions) => {}
            Some(theirs) => assert_eq!(code.is_retriable(), theirs.is_retriable(), "{code}"),
        }
    }
}
