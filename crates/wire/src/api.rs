//! The one table of API keys: which versions are accepted, which are advertised, which keys this
//! broker serves. ApiVersions and `docs/compatibility.md` are made from it, so they cannot lie.

use crate::generated::*;
use crate::{Message, Request, Versions};

pub use crate::generated::api_key::ApiKey;

/// One row of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Api {
    /// Its key.
    pub key: ApiKey,
    /// The versions a request may come in: those Kafka 4.4 answers without unstable ones.
    pub accepted: Versions,
    /// The versions ApiVersions names. Wider than `accepted` only for Produce, whose versions 0-2
    /// old librdkafka wants to see named before it produces at all (KAFKA-18659).
    pub advertised: Versions,
    /// The first version with a flexible header, or `i16::MAX`.
    pub flexible: i16,
    /// Whether this broker serves it. A key that it does not serve is not advertised.
    pub served: bool,
}

const SERVED: bool = true;
const LATER: bool = false;

/// Every API of Kafka 4.4's brokers, and the register protocol's three, by key.
pub const APIS: [Api; 83] = [
    Api::of::<ProduceRequest>(SERVED).advertised_from(0),
    Api::of::<FetchRequest>(SERVED),
    Api::of::<ListOffsetsRequest>(SERVED),
    Api::of::<MetadataRequest>(SERVED),
    Api::of::<OffsetCommitRequest>(SERVED),
    Api::of::<OffsetFetchRequest>(SERVED),
    Api::of::<FindCoordinatorRequest>(SERVED),
    Api::of::<JoinGroupRequest>(SERVED),
    Api::of::<HeartbeatRequest>(SERVED),
    Api::of::<LeaveGroupRequest>(SERVED),
    Api::of::<SyncGroupRequest>(SERVED),
    Api::of::<DescribeGroupsRequest>(SERVED),
    Api::of::<ListGroupsRequest>(SERVED),
    Api::of::<SaslHandshakeRequest>(LATER),
    Api::of::<ApiVersionsRequest>(SERVED),
    Api::of::<CreateTopicsRequest>(SERVED),
    Api::of::<DeleteTopicsRequest>(SERVED),
    Api::of::<DeleteRecordsRequest>(SERVED),
    Api::of::<InitProducerIdRequest>(SERVED).accepted_to(5),
    Api::of::<OffsetForLeaderEpochRequest>(SERVED),
    Api::of::<AddPartitionsToTxnRequest>(LATER),
    Api::of::<AddOffsetsToTxnRequest>(LATER),
    Api::of::<EndTxnRequest>(LATER),
    Api::of::<WriteTxnMarkersRequest>(LATER),
    Api::of::<TxnOffsetCommitRequest>(LATER),
    Api::of::<DescribeAclsRequest>(LATER),
    Api::of::<CreateAclsRequest>(LATER),
    Api::of::<DeleteAclsRequest>(LATER),
    Api::of::<DescribeConfigsRequest>(SERVED),
    Api::of::<AlterConfigsRequest>(SERVED),
    Api::of::<AlterReplicaLogDirsRequest>(LATER),
    Api::of::<DescribeLogDirsRequest>(SERVED),
    Api::of::<SaslAuthenticateRequest>(LATER),
    Api::of::<CreatePartitionsRequest>(SERVED),
    Api::of::<CreateDelegationTokenRequest>(LATER),
    Api::of::<RenewDelegationTokenRequest>(LATER),
    Api::of::<ExpireDelegationTokenRequest>(LATER),
    Api::of::<DescribeDelegationTokenRequest>(LATER),
    Api::of::<DeleteGroupsRequest>(SERVED),
    Api::of::<ElectLeadersRequest>(SERVED),
    Api::of::<IncrementalAlterConfigsRequest>(SERVED),
    Api::of::<AlterPartitionReassignmentsRequest>(LATER),
    Api::of::<ListPartitionReassignmentsRequest>(SERVED),
    Api::of::<OffsetDeleteRequest>(SERVED),
    Api::of::<DescribeClientQuotasRequest>(LATER),
    Api::of::<AlterClientQuotasRequest>(LATER),
    Api::of::<DescribeUserScramCredentialsRequest>(LATER),
    Api::of::<AlterUserScramCredentialsRequest>(LATER),
    Api::of::<DescribeQuorumRequest>(SERVED),
    Api::of::<UpdateFeaturesRequest>(SERVED),
    Api::of::<DescribeClusterRequest>(SERVED),
    Api::of::<DescribeProducersRequest>(SERVED),
    Api::of::<UnregisterBrokerRequest>(LATER),
    Api::of::<DescribeTransactionsRequest>(LATER),
    Api::of::<ListTransactionsRequest>(LATER),
    Api::of::<ConsumerGroupHeartbeatRequest>(SERVED),
    Api::of::<ConsumerGroupDescribeRequest>(SERVED),
    Api::of::<GetTelemetrySubscriptionsRequest>(LATER),
    Api::of::<PushTelemetryRequest>(LATER),
    Api::of::<ListConfigResourcesRequest>(SERVED),
    Api::of::<DescribeTopicPartitionsRequest>(SERVED),
    Api::of::<ShareGroupHeartbeatRequest>(LATER),
    Api::of::<ShareGroupDescribeRequest>(LATER),
    Api::of::<ShareFetchRequest>(LATER),
    Api::of::<ShareAcknowledgeRequest>(LATER),
    Api::of::<AddRaftVoterRequest>(LATER),
    Api::of::<RemoveRaftVoterRequest>(LATER),
    Api::of::<InitializeShareGroupStateRequest>(LATER),
    Api::of::<ReadShareGroupStateRequest>(LATER),
    Api::of::<WriteShareGroupStateRequest>(LATER),
    Api::of::<DeleteShareGroupStateRequest>(LATER),
    Api::of::<ReadShareGroupStateSummaryRequest>(LATER),
    Api::of::<StreamsGroupHeartbeatRequest>(LATER),
    Api::of::<StreamsGroupDescribeRequest>(LATER),
    Api::of::<DescribeShareGroupOffsetsRequest>(LATER),
    Api::of::<AlterShareGroupOffsetsRequest>(LATER),
    Api::of::<DeleteShareGroupOffsetsRequest>(LATER),
    Api::of::<StreamsGroupTopologyDescriptionUpdateRequest>(LATER),
    Api::of::<UnregisterControllerRequest>(LATER),
    Api::of::<ConsumerMetadataRequest>(SERVED),
    Api::of::<RegisterConsumerRequest>(SERVED),
    Api::of::<RegisterHeartbeatRequest>(SERVED),
    Api::of::<GroupJournalRequest>(SERVED),
];

impl Api {
    const fn of<R: Request<'static>>(served: bool) -> Self {
        let accepted = <R as Message>::VERSIONS;
        Self { key: R::KEY, accepted, advertised: accepted, flexible: R::FLEXIBLE, served }
    }

    const fn advertised_from(mut self, min: i16) -> Self {
        self.advertised.min = min;
        self
    }

    const fn accepted_to(mut self, max: i16) -> Self {
        self.accepted.max = max;
        self.advertised.max = max;
        self
    }

    /// The row of the key with this number, unless there is none.
    pub fn from_number(number: i16) -> Option<&'static Self> {
        let index = APIS.binary_search_by_key(&number, |api| api.key.number()).ok()?;
        Some(&APIS[index])
    }

    /// Whether a request of this version has a header with tagged fields (KIP-482).
    pub const fn has_flexible_request_header(&self, version: i16) -> bool {
        version >= self.flexible
    }

    /// Whether a response of this version has a header with tagged fields. Never for ApiVersions:
    /// its client does not know yet what the broker speaks (KIP-511).
    pub const fn has_flexible_response_header(&self, version: i16) -> bool {
        version >= self.flexible && !matches!(self.key, ApiKey::ApiVersions)
    }
}

impl ApiKey {
    /// Its row.
    pub fn api(self) -> &'static Api {
        Api::from_number(self.number()).expect("the table has every key, a test says so")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_every_key_once_in_ascending_order() {
        let keys: Vec<ApiKey> = APIS.iter().map(|api| api.key).collect();
        assert_eq!(keys, ApiKey::ALL);
        assert!(keys.is_sorted_by_key(|key| key.number()));
    }

    /// KAFKA-18659, and the unstable version that a 4.4 broker does not answer by default.
    #[test]
    fn only_produce_is_advertised_wider_than_it_is_accepted() {
        for api in &APIS {
            assert!(api.advertised.contains(api.accepted.min), "{}", api.key);
            assert_eq!(api.advertised == api.accepted, api.key != ApiKey::Produce, "{}", api.key);
        }
        assert_eq!(ApiKey::Produce.api().advertised, Versions::new(0, 13));
        assert_eq!(ApiKey::Produce.api().accepted, Versions::new(3, 13));
        assert_eq!(ApiKey::InitProducerId.api().accepted, Versions::new(0, 5));
    }

    /// KIP-511: the client must be able to read the answer whatever the broker speaks.
    #[test]
    fn the_response_header_of_api_versions_is_never_flexible() {
        let api = ApiKey::ApiVersions.api();
        assert!(api.has_flexible_request_header(3));
        assert!(!api.has_flexible_response_header(4));
        assert!(ApiKey::Metadata.api().has_flexible_response_header(9));
        assert!(!ApiKey::Metadata.api().has_flexible_response_header(8));
        assert!(!ApiKey::SaslHandshake.api().has_flexible_request_header(1));
    }
}
