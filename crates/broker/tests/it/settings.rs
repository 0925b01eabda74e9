//! Each of the broker's own settings takes effect. Those of connections are in `connections`,
//! those of topics with the topics.

use crate::harness::{Client, TestBroker, batch, create_topic, produce};
use ottla_broker::config::{Config, SETTINGS};
use ottla_wire::generated::join_group_request::JoinGroupRequestProtocol;
use ottla_wire::generated::{
    FindCoordinatorRequest, JoinGroupRequest, JoinGroupResponse, ProduceResponse,
};
use ottla_wire::{ApiKey, ErrorCode};

fn join(client: &mut Client, member: &str, session_timeout_ms: i32) -> ErrorCode {
    client.ask(3, &FindCoordinatorRequest { key: "g", ..Default::default() });
    let request = JoinGroupRequest {
        group_id: "g",
        member_id: member,
        session_timeout_ms,
        rebalance_timeout_ms: 5_000,
        protocol_type: "consumer",
        protocols: vec![JoinGroupRequestProtocol { name: "range", metadata: b"" }],
        ..Default::default()
    };
    let answer = client.ask(2, &request);
    let response: JoinGroupResponse<'_> = answer.read();
    ErrorCode::from_number(response.error_code).expect("a code")
}

#[test]
fn session_timeouts_have_configurable_bounds() {
    let broker = TestBroker::with(&[
        ("group.min.session.timeout.ms", "100"),
        ("group.max.session.timeout.ms", "1000"),
    ]);
    let mut client = broker.connect();
    assert_eq!(join(&mut client, "", 99), ErrorCode::InvalidSessionTimeout);
    assert_eq!(join(&mut client, "", 1_001), ErrorCode::InvalidSessionTimeout);
    assert_eq!(join(&mut client, "", 1_000), ErrorCode::None);
}

#[test]
fn a_group_has_a_largest_size() {
    let broker = TestBroker::with(&[("group.max.size", "1")]);
    assert_eq!(join(&mut broker.connect(), "", 10_000), ErrorCode::None);
    assert_eq!(join(&mut broker.connect(), "", 10_000), ErrorCode::GroupMaxSizeReached);
}

#[test]
fn a_request_has_a_largest_size() {
    let broker = TestBroker::with(&[("socket.request.max.bytes", "2000")]);
    let mut client = broker.connect();
    create_topic(&mut client, "t", 1);
    client.send(9, &produce("t", 0, -1, &batch(&[&"x".repeat(2_000)])));
    assert!(client.is_closed());
}

/// Kafka's durability: the answer does not wait for the disk.
#[test]
fn page_cache_durability_serves_as_well() {
    let mut broker = TestBroker::with(&[("durability", "page-cache")]);
    let mut client = broker.connect();
    create_topic(&mut client, "t", 1);
    for wanted in 0..3 {
        client.send(9, &produce("t", 0, -1, &batch(&["x"])));
        let answer = client.receive(ApiKey::Produce, 9);
        let response: ProduceResponse<'_> = answer.read();
        assert_eq!(response.responses[0].partition_responses[0].base_offset, wanted);
    }
    broker.restart();
    broker.connect().send(9, &produce("t", 0, -1, &batch(&["x"])));
}

/// A directory under another id would look as if all its logs were strangers'.
#[test]
fn the_data_of_another_node_is_refused() {
    let mut broker = TestBroker::start();
    broker.stop();
    let refusal = broker.refusal(&[("node.id", "2")]).expect_err("another's");
    assert!(refusal.contains("node.id=1"), "{refusal}");
    broker.restart();
}

/// DescribeConfigs and the documentation come from the same table as the parser.
#[test]
fn every_setting_names_its_bounds_where_it_has_some() {
    let config = Config::default();
    for setting in SETTINGS {
        let numeric = setting.value(&config).parse::<f64>().is_ok();
        assert_eq!(
            numeric,
            setting.bounds().starts_with(|c: char| c.is_ascii_digit())
                || setting.bounds().starts_with("at least"),
            "{}",
            setting.name
        );
    }
}
