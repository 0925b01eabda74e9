//! Produce, Fetch and ListOffsets against a real broker.

use crate::harness::{Client, TestBroker, batch, create_topic, produce, records_of};
use ottla_wire::generated::fetch_request::{FetchPartition, FetchTopic};
use ottla_wire::generated::fetch_response::PartitionData;
use ottla_wire::generated::list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic};
use ottla_wire::generated::{
    FetchRequest, FetchResponse, InitProducerIdRequest, InitProducerIdResponse, ListOffsetsRequest,
    ListOffsetsResponse, ProduceRequest, ProduceResponse,
};
use ottla_wire::{ApiKey, ErrorCode, Message as _};

const PRODUCE: i16 = 9;
const FETCH: i16 = 12;

/// Produces and returns the code and the base offset.
fn produced(client: &mut Client, request: &ProduceRequest<'_>) -> (ErrorCode, i64) {
    let answer = client.ask(PRODUCE, request);
    let response: ProduceResponse<'_> = answer.read();
    let part = &response.responses[0].partition_responses[0];
    (ErrorCode::from_number(part.error_code).expect("a code"), part.base_offset)
}

fn fetch(topic: &str, partition: i32, offset: i64, wait_ms: i32) -> FetchRequest<'_> {
    let partition = FetchPartition {
        partition,
        fetch_offset: offset,
        current_leader_epoch: -1,
        partition_max_bytes: 1 << 20,
        ..Default::default()
    };
    FetchRequest {
        max_wait_ms: wait_ms,
        min_bytes: 1,
        max_bytes: 1 << 20,
        session_epoch: -1,
        topics: vec![FetchTopic { topic, partitions: vec![partition], ..Default::default() }],
        ..Default::default()
    }
}

fn only<'r, 'a>(response: &'r FetchResponse<'a>) -> &'r PartitionData<'a> {
    &response.responses[0].partitions[0]
}

#[test]
fn what_was_acknowledged_is_fetched_and_survives_a_restart() {
    let mut broker = TestBroker::start();
    let mut client = broker.connect();
    create_topic(&mut client, "t", 2);
    let first = batch(&["a", "b"]);
    for acks in [-1, 1] {
        let wanted = if acks == -1 { 0 } else { 2 };
        let outcome = produced(&mut client, &produce("t", 1, acks, &first));
        assert_eq!(outcome, (ErrorCode::None, wanted));
    }
    broker.restart();
    let answer = broker.connect().ask(FETCH, &fetch("t", 1, 1, 0));
    let response: FetchResponse<'_> = answer.read();
    let part = only(&response);
    assert_eq!((part.error_code, part.high_watermark), (0, 4));
    assert_eq!(records_of(part), ["a", "b", "a", "b"], "whole batches");
}

/// Decisions are taken in the order of the requests, whatever their replies wait for.
#[test]
fn pipelined_appends_keep_their_order() {
    let broker = TestBroker::start();
    let mut client = broker.connect();
    create_topic(&mut client, "t", 1);
    let bytes = batch(&["x"]);
    for _ in 0..50 {
        client.send(PRODUCE, &produce("t", 0, -1, &bytes));
    }
    for wanted in 0..50 {
        let answer = client.receive(ApiKey::Produce, PRODUCE);
        let response: ProduceResponse<'_> = answer.read();
        assert_eq!(response.responses[0].partition_responses[0].base_offset, wanted);
    }
}

#[test]
fn a_refused_batch_says_why_and_appends_nothing() {
    let broker = TestBroker::start();
    let mut client = broker.connect();
    create_topic(&mut client, "t", 1);
    let mut bytes = batch(&["x"]);
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    let cases: [(&str, i32, i16, &[u8], ErrorCode); 6] = [
        ("t", 0, -1, &bytes, ErrorCode::CorruptMessage),
        ("t", 0, -1, b"", ErrorCode::InvalidRecord),
        ("t", 7, -1, &batch(&["x"]), ErrorCode::UnknownTopicOrPartition),
        ("nosuch", 0, -1, &batch(&["x"]), ErrorCode::UnknownTopicOrPartition),
        ("t", 0, 3, &batch(&["x"]), ErrorCode::InvalidRequiredAcks),
        ("t", 0, -1, &batch(&[&"y".repeat(2_000_000)]), ErrorCode::MessageTooLarge),
    ];
    for (topic, partition, acks, bytes, wanted) in cases {
        let outcome = produced(&mut client, &produce(topic, partition, acks, bytes));
        assert_eq!(outcome, (wanted, -1), "{topic}-{partition}");
    }
    let outcome = produced(&mut client, &produce("t", 0, -1, &batch(&["x"])));
    assert_eq!(outcome, (ErrorCode::None, 0));
}

/// acks=0 has no reply, so an error can only be told by closing.
#[test]
fn without_acknowledgements_an_error_closes_the_connection() {
    let broker = TestBroker::start();
    let mut client = broker.connect();
    create_topic(&mut client, "t", 1);
    client.send(PRODUCE, &produce("t", 0, 0, &batch(&["x"])));
    let outcome = produced(&mut client, &produce("t", 0, -1, &batch(&["x"])));
    assert_eq!(outcome, (ErrorCode::None, 1), "the next answer is the next request's");
    client.send(PRODUCE, &produce("nosuch", 0, 0, &batch(&["x"])));
    assert!(client.is_closed());
}

/// A transactional producer fails at once instead of trying for ever.
#[test]
fn transactional_ids_are_refused_for_good() {
    let broker = TestBroker::start();
    let mut client = broker.connect();
    let request = InitProducerIdRequest { transactional_id: Some("tx"), ..Default::default() };
    let answer = client.ask(4, &request);
    let response: InitProducerIdResponse = answer.read();
    let wanted = ErrorCode::TransactionalIdAuthorizationFailed.number();
    assert_eq!((response.error_code, response.producer_id), (wanted, -1));
    let idempotent = InitProducerIdRequest { transactional_id: None, ..request };
    let answer = client.ask(4, &idempotent);
    let first: InitProducerIdResponse = answer.read();
    let answer = client.ask(4, &idempotent);
    let second: InitProducerIdResponse = answer.read();
    assert_eq!((first.error_code, second.error_code), (0, 0));
    assert_ne!(first.producer_id, second.producer_id);
}

/// A fetch that waits is woken by an append, long before its own limit.
#[test]
fn a_waiting_fetch_is_woken_by_records() {
    let broker = TestBroker::start();
    let mut client = broker.connect();
    create_topic(&mut client, "t", 1);
    let mut reader = broker.connect();
    reader.send(FETCH, &fetch("t", 0, 0, 300_000));
    produced(&mut client, &produce("t", 0, -1, &batch(&["x"])));
    let answer = reader.receive(ApiKey::Fetch, FETCH);
    assert_eq!(records_of(only(&answer.read())), ["x"]);
}

/// The bound's answer: what there is, at once.
#[test]
fn beyond_the_bound_fetches_do_not_wait() {
    let broker = TestBroker::with(&[("fetch.waiting.max", "0")]);
    let mut client = broker.connect();
    create_topic(&mut client, "t", 1);
    let answer = client.ask(FETCH, &fetch("t", 0, 0, 60_000));
    assert!(records_of(only(&answer.read())).is_empty());
}

#[test]
fn a_shutdown_answers_waiting_fetches() {
    let mut broker = TestBroker::start();
    let mut client = broker.connect();
    create_topic(&mut client, "t", 1);
    client.send(FETCH, &fetch("t", 0, 0, 60_000));
    // The request must have arrived before the drain; another one's answer shows that it has.
    let mut other = broker.connect();
    assert!(other.is_open());
    while broker.waiting_fetches() == 0 {
        std::thread::yield_now();
    }
    assert!(broker.stop(), "in time");
    let answer = client.receive(ApiKey::Fetch, FETCH);
    assert_eq!(only(&answer.read()).error_code, 0);
}

#[test]
fn fetches_out_of_range_and_of_other_epochs_are_refused() {
    let broker = TestBroker::start();
    let mut client = broker.connect();
    create_topic(&mut client, "t", 1);
    produced(&mut client, &produce("t", 0, -1, &batch(&["x"])));
    let code = |client: &mut Client, request: &FetchRequest<'_>| {
        let answer = client.ask(FETCH, request);
        let code = only(&answer.read()).error_code;
        ErrorCode::from_number(code).expect("a code")
    };
    assert_eq!(code(&mut client, &fetch("t", 0, 2, 0)), ErrorCode::OffsetOutOfRange);
    assert_eq!(code(&mut client, &fetch("t", 0, 1, 0)), ErrorCode::None);
    let mut ahead = fetch("t", 0, 0, 0);
    ahead.topics[0].partitions[0].current_leader_epoch = 9;
    assert_eq!(code(&mut client, &ahead), ErrorCode::UnknownLeaderEpoch);
    assert_eq!(code(&mut client, &fetch("t", 5, 0, 0)), ErrorCode::UnknownTopicOrPartition);
}

/// KIP-227 over the wire: the second fetch names nothing and is told only what is new.
#[test]
fn a_session_is_told_only_what_is_new() {
    let broker = TestBroker::start();
    let mut client = broker.connect();
    create_topic(&mut client, "t", 2);
    let mut request = fetch("t", 0, 0, 0);
    let other = FetchPartition { partition: 1, ..request.topics[0].partitions[0] };
    request.topics[0].partitions.push(other);
    request.session_epoch = 0;
    let answer = client.ask(FETCH, &request);
    let first: FetchResponse<'_> = answer.read();
    assert_ne!(first.session_id, 0);
    assert_eq!(first.responses[0].partitions.len(), 2);
    produced(&mut client, &produce("t", 1, -1, &batch(&["x"])));
    let next = FetchRequest {
        session_id: first.session_id,
        session_epoch: 1,
        topics: Vec::new(),
        ..fetch("t", 0, 0, 1_000)
    };
    let answer = client.ask(FETCH, &next);
    let second: FetchResponse<'_> = answer.read();
    assert_eq!(second.responses[0].partitions.len(), 1);
    assert_eq!(only(&second).partition_index, 1);
    let answer = client.ask(FETCH, &next);
    let third: FetchResponse<'_> = answer.read();
    assert_eq!(third.error_code, ErrorCode::InvalidFetchSessionEpoch.number());
}

#[test]
fn offsets_are_listed_by_end_and_by_time() {
    let broker = TestBroker::start();
    let mut client = broker.connect();
    create_topic(&mut client, "t", 1);
    produced(&mut client, &produce("t", 0, -1, &batch(&["a", "b", "c"])));
    // The harness stamps its records 1000, 1001, ...
    for (timestamp, wanted) in
        [(-1, (-1, 3)), (-2, (-1, 0)), (-3, (1_002, 2)), (1_001, (1_001, 1)), (5_000, (-1, -1))]
    {
        let partition =
            ListOffsetsPartition { timestamp, current_leader_epoch: -1, ..Default::default() };
        let topics = vec![ListOffsetsTopic { name: "t", partitions: vec![partition] }];
        let request = ListOffsetsRequest { replica_id: -1, topics, ..Default::default() };
        let answer = client.ask(7, &request);
        let response: ListOffsetsResponse<'_> = answer.read();
        let part = &response.topics[0].partitions[0];
        assert_eq!(part.error_code, 0);
        assert_eq!((part.timestamp, part.offset), wanted, "for {timestamp}");
    }
}

/// kafka-go, aiokafka and kafkajs ask in versions whose replies have no room for a leader epoch.
#[test]
fn the_end_is_told_in_every_version() {
    let broker = TestBroker::start();
    let mut client = broker.connect();
    create_topic(&mut client, "t", 1);
    produced(&mut client, &produce("t", 0, -1, &batch(&["a"])));
    for version in ListOffsetsRequest::VERSIONS.iter() {
        let partition =
            ListOffsetsPartition { timestamp: -1, current_leader_epoch: -1, ..Default::default() };
        let topics = vec![ListOffsetsTopic { name: "t", partitions: vec![partition] }];
        let request = ListOffsetsRequest { replica_id: -1, topics, ..Default::default() };
        let answer = client.ask(version, &request);
        let response: ListOffsetsResponse<'_> = answer.read();
        let part = &response.topics[0].partitions[0];
        assert_eq!((part.offset, part.leader_epoch >= 0), (1, version >= 4), "version {version}");
    }
}

/// KIP-74: a fetch gets one batch whatever its bounds, so that a reader always gets on.
#[test]
fn a_batch_larger_than_the_bounds_is_fetched_alone() {
    let broker = TestBroker::with(&[("fetch.max.bytes", "2000")]);
    let mut client = broker.connect();
    create_topic(&mut client, "t", 1);
    for _ in 0..3 {
        produced(&mut client, &produce("t", 0, -1, &batch(&[&"x".repeat(3_000)])));
    }
    let mut request = fetch("t", 0, 0, 0);
    request.topics[0].partitions[0].partition_max_bytes = 100;
    let answer = client.ask(FETCH, &request);
    assert_eq!(records_of(only(&answer.read())).len(), 1);
}

/// An answer aims at what fits into a processor's cache, and nobody's records wait for another's.
#[test]
fn partitions_with_records_share_an_answer() {
    let broker = TestBroker::start();
    let mut client = broker.connect();
    create_topic(&mut client, "t", 3);
    for partition in [0, 2] {
        for _ in 0..9 {
            let records = batch(&[&"x".repeat(99_000)]);
            produced(&mut client, &produce("t", partition, -1, &records));
        }
    }
    produced(&mut client, &produce("t", 1, -1, &batch(&[&"x".repeat(700_000)])));
    let mut request = fetch_of_three();
    assert_eq!(given(&mut client, &request), [3, 1, 3], "a third of a MiB, or one batch");
    request.min_bytes = 2;
    assert_eq!(given(&mut client, &request), [9, 1, 9], "all there is");
}

/// Of partitions 0 to 2 of `t`, from their start.
fn fetch_of_three() -> FetchRequest<'static> {
    let mut request = fetch("t", 0, 0, 0);
    request.max_bytes = 8 << 20;
    let first = request.topics[0].partitions[0];
    let others = (1..3).map(|partition| FetchPartition { partition, ..first });
    request.topics[0].partitions.extend(others);
    request
}

/// How many records of each partition an answer brings.
fn given(client: &mut Client, request: &FetchRequest<'_>) -> Vec<usize> {
    let answer = client.ask(FETCH, request);
    let response: FetchResponse<'_> = answer.read();
    response.responses[0].partitions.iter().map(|part| records_of(part).len()).collect()
}

/// A partition whose batches are larger than its share gives one of them, not all it has.
#[test]
fn a_batch_larger_than_its_share_comes_alone() {
    let broker = TestBroker::start();
    let mut client = broker.connect();
    create_topic(&mut client, "t", 3);
    for partition in 0..3 {
        for _ in 0..2 {
            let records = batch(&[&"x".repeat(400_000)]);
            produced(&mut client, &produce("t", partition, -1, &records));
        }
    }
    let request = fetch_of_three();
    assert_eq!(given(&mut client, &request), [1, 1, 1], "a third of a MiB is less than a batch");
}

/// Replies that wait behind an elder are bounded too: the connection is not read on meanwhile.
#[test]
fn answers_behind_a_waiting_one_do_not_pile_up() {
    let broker = TestBroker::start();
    let mut client = broker.connect();
    create_topic(&mut client, "empty", 1);
    create_topic(&mut client, "full", 1);
    for _ in 0..4 {
        produced(&mut client, &produce("full", 0, -1, &batch(&[&"x".repeat(900_000)])));
    }
    client.send(FETCH, &fetch("empty", 0, 0, 1_000));
    let mut large = fetch("full", 0, 0, 0);
    large.max_bytes = 8 << 20;
    // Who waits for more is not given a share only.
    large.min_bytes = 2;
    large.topics[0].partitions[0].partition_max_bytes = 8 << 20;
    for _ in 0..20 {
        client.send(FETCH, &large);
    }
    assert!(records_of(only(&client.receive(ApiKey::Fetch, FETCH).read())).is_empty());
    for _ in 0..20 {
        let answer = client.receive(ApiKey::Fetch, FETCH);
        assert_eq!(records_of(only(&answer.read())).len(), 4);
    }
}
