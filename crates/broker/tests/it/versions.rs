//! Key 18, ApiVersions, as a client meets it.

use crate::harness::TestBroker;
use ottla_wire::generated::{
    ApiVersionsRequest, ApiVersionsResponse, DescribeClusterRequest, DescribeClusterResponse,
};
use ottla_wire::{APIS, ApiKey, ErrorCode, Message};

fn asking() -> ApiVersionsRequest<'static> {
    ApiVersionsRequest {
        client_software_name: "test",
        client_software_version: "1.0",
        ..Default::default()
    }
}

#[test]
fn every_version_names_what_is_served() {
    let broker = TestBroker::start();
    let mut client = broker.connect();
    for version in ApiVersionsRequest::VERSIONS.iter() {
        let answer = client.ask(version, &asking());
        let response: ApiVersionsResponse<'_> = answer.read();
        assert_eq!(response.error_code, 0);
        let served = APIS.iter().filter(|api| api.served).count();
        assert_eq!(response.api_keys.len(), served, "version {version}");
        let produce = response.api_keys[0];
        assert_eq!((produce.min_version, produce.max_version), (0, 13), "KAFKA-18659");
    }
}

/// KIP-511: the answer to an unknown version is readable, and the connection lives on.
#[test]
fn an_unknown_version_is_answered_in_version_0() {
    let broker = TestBroker::start();
    let mut client = broker.connect();
    let mut request = vec![0, 0, 0, 11];
    request.extend_from_slice(&[0, 18, 0x7f, 0xff, 0, 0, 0, 9, 0xff, 0xff, 0]);
    client.send_raw(&request);
    let answer = client.receive(ApiKey::ApiVersions, 0);
    assert_eq!(answer.correlation_id(), 9);
    let response: ApiVersionsResponse<'_> = answer.read();
    assert_eq!(response.error_code, ErrorCode::UnsupportedVersion.number());
    let line = response.api_keys[0];
    assert_eq!((line.api_key, line.min_version, line.max_version), (18, 0, 5));
    let answer = client.ask(3, &asking());
    assert_eq!(answer.read::<ApiVersionsResponse<'_>>().error_code, 0);
}

/// KIP-511: a name that is not one is refused.
#[test]
fn a_bad_software_name_is_an_invalid_request() {
    let broker = TestBroker::start();
    let request = ApiVersionsRequest { client_software_name: "a b", ..asking() };
    let answer = broker.connect().ask(4, &request);
    let response: ApiVersionsResponse<'_> = answer.read();
    assert_eq!(response.error_code, ErrorCode::InvalidRequest.number());
}

/// KIP-1242: a client that expects another cluster or node must look for it anew, and learns so
/// before it sends anything that would hurt here.
#[test]
fn a_client_that_expects_somebody_else_is_sent_to_bootstrap() {
    let broker = TestBroker::start();
    let mut client = broker.connect();
    let cluster = client.ask(0, &DescribeClusterRequest::default());
    let cluster: DescribeClusterResponse<'_> = cluster.read();
    let (ours, node) = (cluster.cluster_id, cluster.controller_id);
    let mut told = |version, cluster_id, node_id| {
        let request = ApiVersionsRequest { cluster_id, node_id, ..asking() };
        let answer = client.ask(version, &request);
        answer.read::<ApiVersionsResponse<'_>>().error_code
    };
    let elsewhere = ErrorCode::RebootstrapRequired.number();
    assert_eq!(told(5, Some(ours), node), 0);
    assert_eq!(told(5, None, node + 1), 0, "no expectation");
    assert_eq!(told(5, Some(ours), node + 1), elsewhere);
    assert_eq!(told(5, Some("another"), node), elsewhere);
    assert_eq!(told(4, Some("another"), node), 0, "version 4 cannot say it");
}
