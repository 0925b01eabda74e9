//! Settings over the wire: what is listed, what is refused, what takes effect.

use crate::harness::{Client, TestBroker};
use ottla_wire::ErrorCode;
use ottla_wire::generated::create_topics_request::CreatableTopic;
use ottla_wire::generated::describe_configs_request::DescribeConfigsResource;
use ottla_wire::generated::incremental_alter_configs_request::{
    AlterConfigsResource, AlterableConfig,
};
use ottla_wire::generated::*;

const TOPIC: i8 = 2;
const BROKER: i8 = 4;
const GROUP: i8 = 32;

fn create(client: &mut Client, name: &str) {
    let topic =
        CreatableTopic { name, num_partitions: 1, replication_factor: 1, ..Default::default() };
    let answered =
        client.ask(7, &CreateTopicsRequest { topics: vec![topic], ..Default::default() });
    let response: CreateTopicsResponse<'_> = answered.read();
    assert_eq!(response.topics[0].error_code, 0);
}

/// One change of one resource: code and text.
fn alter(
    client: &mut Client,
    (resource_type, resource_name): (i8, &str),
    name: &str,
    config_operation: i8,
    value: Option<&str>,
) -> (i16, String) {
    let configs = vec![AlterableConfig { name, config_operation, value }];
    let resources = vec![AlterConfigsResource { resource_type, resource_name, configs }];
    let request = IncrementalAlterConfigsRequest { resources, ..Default::default() };
    let answered = client.ask(1, &request);
    let response: IncrementalAlterConfigsResponse<'_> = answered.read();
    let line = &response.responses[0];
    (line.error_code, line.error_message.unwrap_or_default().to_owned())
}

/// One setting as DescribeConfigs tells it: value, source, and the synonyms as name=value@source.
fn describe(
    client: &mut Client,
    (resource_type, resource_name): (i8, &str),
    name: &str,
) -> Option<(String, i8, Vec<String>)> {
    let configuration_keys = Some(vec![name]);
    let resource = DescribeConfigsResource { resource_type, resource_name, configuration_keys };
    let request = DescribeConfigsRequest {
        resources: vec![resource],
        include_synonyms: true,
        ..Default::default()
    };
    let answered = client.ask(4, &request);
    let response: DescribeConfigsResponse<'_> = answered.read();
    let config = response.results[0].configs.first()?;
    let synonyms = config.synonyms.iter();
    let synonyms = synonyms.map(|s| format!("{}={}@{}", s.name, s.value.unwrap_or("-"), s.source));
    Some((config.value.unwrap_or("-").to_owned(), config.config_source, synonyms.collect()))
}

const SET: i8 = 0;
const DELETE: i8 = 1;

/// KIP-226: topic, every broker, file, default; unsetting the stronger shows the weaker.
#[test]
fn a_setting_is_told_with_all_its_sources() {
    let broker = TestBroker::with(&[("log.segment.bytes", "3000000")]);
    let mut client = broker.connect();
    create(&mut client, "t");
    let topic = (TOPIC, "t");
    let set = |client: &mut Client, at, name, value| alter(client, at, name, SET, Some(value));
    assert_eq!(set(&mut client, (BROKER, ""), "log.segment.bytes", "2000000").0, 0);
    assert_eq!(set(&mut client, topic, "segment.bytes", "1500000").0, 0);
    let told = describe(&mut client, topic, "segment.bytes").expect("listed");
    let (own, below) = (
        "segment.bytes=1500000@1".to_owned(),
        [
            "log.segment.bytes=2000000@3".to_owned(),
            "log.segment.bytes=3000000@4".to_owned(),
            "log.segment.bytes=1073741824@5".to_owned(),
        ],
    );
    let all: Vec<_> = [own].into_iter().chain(below.clone()).collect();
    assert_eq!(told, ("1500000".to_owned(), 1, all));
    assert_eq!(alter(&mut client, topic, "segment.bytes", DELETE, None).0, 0);
    let told = describe(&mut client, topic, "segment.bytes").expect("listed");
    assert_eq!(told, ("2000000".to_owned(), 3, below.to_vec()));
}

/// Settings outlive a restart, on topics and on brokers alike.
#[test]
fn settings_survive_a_restart() {
    let mut broker = TestBroker::start();
    let mut client = broker.connect();
    create(&mut client, "t");
    alter(&mut client, (TOPIC, "t"), "retention.ms", SET, Some("77"));
    alter(&mut client, (BROKER, ""), "log.roll.hours", SET, Some("2"));
    broker.restart();
    let mut client = broker.connect();
    let retention = describe(&mut client, (TOPIC, "t"), "retention.ms").expect("listed");
    assert_eq!((&*retention.0, retention.1), ("77", 1));
    let roll = describe(&mut client, (TOPIC, "t"), "segment.ms").expect("listed");
    assert_eq!((&*roll.0, roll.1), ("7200000", 3));
}

/// Issue 3: every setting listed takes effect or is refused; texts are Kafka's.
#[test]
fn bad_changes_are_refused_in_kafkas_words() {
    let broker = TestBroker::start();
    let mut client = broker.connect();
    create(&mut client, "t");
    let (config, request) = (ErrorCode::InvalidConfig, ErrorCode::InvalidRequest);
    let cases = [
        ((TOPIC, "t"), "nosuch", config, "Unknown topic config name: nosuch"),
        (
            (TOPIC, "t"),
            "retention.ms",
            config,
            "Invalid value x for configuration retention.ms: Not a number of type LONG",
        ),
        ((TOPIC, "u"), "nosuch", config, "Unknown topic config name: nosuch"),
        ((TOPIC, ""), "retention.ms", request, "Default topic resources are not allowed."),
        (
            (BROKER, "1"),
            "num.partitions",
            request,
            "Cannot update these configs dynamically: [num.partitions]",
        ),
        (
            (BROKER, "99"),
            "log.retention.ms",
            request,
            "Unexpected broker id, expected 1, but received 99",
        ),
        ((BROKER, "x"), "log.retention.ms", request, "Node id must be an integer, but it is: x"),
        ((GROUP, ""), "nosuch", request, "Default group resources are not allowed."),
        ((GROUP, "g"), "nosuch", config, "Unknown group config name: nosuch"),
        ((0, "t"), "nosuch", request, "Unknown resource type 0"),
    ];
    for (at, name, code, text) in cases {
        let refused = alter(&mut client, at, name, SET, Some("x"));
        assert_eq!(refused, (code.number(), text.to_owned()), "{at:?} {name}");
    }
    let null = alter(&mut client, (TOPIC, "t"), "retention.ms", SET, None);
    assert_eq!(null, (request.number(), "Null value not supported for : retention.ms".into()));
    let unknown = alter(&mut client, (TOPIC, "t"), "retention.ms", 9, Some("1"));
    assert_eq!(unknown, (request.number(), "Unknown operations type 9".into()));
}

/// KIP-133: AlterConfigs drops what it does not name.
#[test]
fn the_older_way_replaces_everything() {
    let broker = TestBroker::start();
    let mut client = broker.connect();
    create(&mut client, "t");
    let mut replace = |name, value| {
        let configs = vec![alter_configs_request::AlterableConfig { name, value: Some(value) }];
        let resources = vec![alter_configs_request::AlterConfigsResource {
            resource_type: TOPIC,
            resource_name: "t",
            configs,
        }];
        let answered = client.ask(2, &AlterConfigsRequest { resources, ..Default::default() });
        let response: AlterConfigsResponse<'_> = answered.read();
        response.responses[0].error_code
    };
    assert_eq!((replace("retention.ms", "5"), replace("segment.ms", "6")), (0, 0));
    let retention = describe(&mut client, (TOPIC, "t"), "retention.ms").expect("listed");
    assert_eq!(retention.1, 5, "its default counts again");
    assert_eq!(describe(&mut client, (TOPIC, "t"), "segment.ms").expect("listed").0, "6");
}

/// KIP-1142, and the older question for client metrics alone.
#[test]
fn resources_with_settings_are_listed_by_kind() {
    let broker = TestBroker::start();
    let mut client = broker.connect();
    create(&mut client, "t");
    let mut list = |version, kinds: &[i8]| {
        let request = ListConfigResourcesRequest { resource_types: kinds.to_vec() };
        let answered = client.ask(version, &request);
        let response: ListConfigResourcesResponse<'_> = answered.read();
        let resources = response.config_resources.iter();
        let named = resources.map(|at| format!("{} {}", at.resource_type, at.resource_name));
        (response.error_code, named.collect::<Vec<_>>())
    };
    assert_eq!(list(0, &[]), (0, Vec::new()));
    assert_eq!(list(1, &[TOPIC]), (0, vec!["2 t".to_owned()]));
    assert_eq!(list(1, &[]).1, ["2 t", "4 1", "8 1"]);
    assert_eq!(list(1, &[7]), (ErrorCode::UnsupportedVersion.number(), Vec::new()));
}
