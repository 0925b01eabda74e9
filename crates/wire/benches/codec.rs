//! Decoding and encoding the messages of the hot path, side by side with the kafka-protocol crate
//! (issue 3, "must show" 6). Both see the same bytes, reuse their buffers and take short turns; a
//! figure is the fastest turn, because neighbours on the machine only ever add.
//! `cargo bench -p ottla-wire --bench codec`.

#![allow(clippy::print_stdout, clippy::unwrap_used)]

use bytes::{Bytes, BytesMut};
use kafka_protocol::messages as theirs;
use kafka_protocol::protocol::{Decodable, Encodable};
use ottla_wire::generated::{
    self as ours, consumer_group_heartbeat_request as heartbeat_request,
    consumer_group_heartbeat_response as heartbeat_response, fetch_request, fetch_response,
    offset_commit_request as commit_request, offset_commit_response as commit_response,
    produce_request, produce_response,
};
use ottla_wire::{Message, Output, Records, Uuid};
use std::hint::black_box;
use std::time::{Duration, Instant};

/// How long one side works before the other takes its turn.
const TURN: Duration = Duration::from_millis(2);
const TURNS: usize = 80;

fn main() {
    println!("nanoseconds, fastest of {TURNS} turns; decode + encode");
    println!("{:<46} {:>9} {:>14} {:>7}", "", "ottla", "kafka-protocol", "ratio");
    let mut lowest = f64::MAX;
    macro_rules! compare {
        ($name:ident, $version:literal, $value:expr) => {
            let value = $value;
            let ratio = compare(
                concat!(stringify!($name), " v", stringify!($version)),
                &value.to_vec($version).unwrap(),
                |bytes, out| recode(bytes, $version, &value, out),
                |bytes, buffer| {
                    let message = theirs::$name::decode(&mut bytes.clone(), $version).unwrap();
                    buffer.clear();
                    black_box(&message).encode(buffer, $version).unwrap();
                },
            );
            lowest = lowest.min(ratio);
        };
    }
    compare!(HeartbeatRequest, 4, heartbeat());
    compare!(ConsumerGroupHeartbeatRequest, 1, steady_heartbeat());
    compare!(ConsumerGroupHeartbeatRequest, 1, full_heartbeat());
    compare!(ConsumerGroupHeartbeatResponse, 1, assignment());
    compare!(OffsetCommitRequest, 9, commit(1, 1));
    compare!(OffsetCommitRequest, 9, commit(4, 12));
    compare!(OffsetCommitResponse, 9, committed(4, 12));
    let batch = Bytes::from(vec![7; 1024]);
    compare!(ProduceRequest, 12, produce(1, 1, &batch));
    compare!(ProduceRequest, 12, produce(3, 8, &batch));
    compare!(ProduceResponse, 12, produced(3, 8));
    compare!(FetchRequest, 17, fetch(3, 8));
    compare!(FetchResponse, 17, fetched(1, 1, &batch));
    compare!(FetchResponse, 17, fetched(3, 8, &batch));
    println!("lowest ratio {lowest:.2}");
}

/// Decodes the bytes, and encodes the message they came from: it shares its records instead of
/// borrowing them, as a broker's or producer's message does.
fn recode<'a, M: Message<'a>>(bytes: &'a [u8], version: i16, message: &M, out: &mut Output) {
    black_box(M::decode_all(bytes, version).unwrap());
    out.clear();
    out.reserve(message.size(version));
    black_box(message).encode(version, out).unwrap();
}

/// Prints one row and gives the ratio.
fn compare(
    name: &str,
    bytes: &[u8],
    mut mine: impl FnMut(&'static [u8], &mut Output),
    mut other: impl FnMut(&Bytes, &mut BytesMut),
) -> f64 {
    // Leaked, so that both closures may borrow without further ceremony.
    let bytes: &'static Bytes = Box::leak(Box::new(Bytes::copy_from_slice(bytes)));
    let (mut out, mut buffer) = (Output::new(), BytesMut::new());
    mine(bytes, &mut out);
    other(bytes, &mut buffer);
    assert_eq!(out.clone().into_vec(), buffer, "{name}");
    let mut fastest = (f64::MAX, f64::MAX);
    for _ in 0..TURNS {
        fastest.0 = turn(|| mine(black_box(bytes), &mut out)).min(fastest.0);
        fastest.1 = turn(|| other(black_box(bytes), &mut buffer)).min(fastest.1);
    }
    let (mine, other) = fastest;
    let label = format!("{name}, {} bytes", bytes.len());
    println!("{label:<46} {mine:>9.1} {other:>14.1} {:>6.2}x", other / mine);
    other / mine
}

/// Nanoseconds per call.
fn turn(mut work: impl FnMut()) -> f64 {
    let (started, mut calls) = (Instant::now(), 0_u32);
    while started.elapsed() < TURN {
        (0..64).for_each(|_| work());
        calls += 64;
    }
    started.elapsed().as_nanos() as f64 / f64::from(calls)
}

const GROUP: &str = "orders-projection";
const MEMBER: &str = "consumer-orders-1-3d7f0d0a-5b1c-4f77-9a55-0d2b1c0e8a11";
const TOPICS: [&str; 4] = ["orders", "payments.captured", "shipments-eu-west", "audit"];

fn heartbeat() -> ours::HeartbeatRequest<'static> {
    ours::HeartbeatRequest {
        group_id: GROUP,
        generation_id: 42,
        member_id: MEMBER,
        group_instance_id: None,
    }
}

/// What a member of a stable group sends: nothing changed.
fn steady_heartbeat() -> ours::ConsumerGroupHeartbeatRequest<'static> {
    ours::ConsumerGroupHeartbeatRequest {
        group_id: GROUP,
        member_id: "u4Q2XkVxSGaTq0c2yqXwJg",
        member_epoch: 42,
        ..Default::default()
    }
}

fn full_heartbeat() -> ours::ConsumerGroupHeartbeatRequest<'static> {
    ours::ConsumerGroupHeartbeatRequest {
        rebalance_timeout_ms: 300_000,
        subscribed_topic_names: Some(TOPICS.to_vec()),
        server_assignor: Some("uniform"),
        topic_partitions: Some(
            (0..4)
                .map(|topic| heartbeat_request::TopicPartitions {
                    topic_id: Uuid([topic; 16]),
                    partitions: (0..12).collect(),
                })
                .collect(),
        ),
        ..steady_heartbeat()
    }
}

fn assignment() -> ours::ConsumerGroupHeartbeatResponse<'static> {
    let topic_partitions = (0..4)
        .map(|topic| heartbeat_response::TopicPartitions {
            topic_id: Uuid([topic; 16]),
            partitions: (0..12).collect(),
        })
        .collect();
    ours::ConsumerGroupHeartbeatResponse {
        member_id: Some("u4Q2XkVxSGaTq0c2yqXwJg"),
        member_epoch: 43,
        heartbeat_interval_ms: 5000,
        assignment: Some(heartbeat_response::Assignment { topic_partitions }),
        ..Default::default()
    }
}

fn commit(topics: usize, partitions: i32) -> ours::OffsetCommitRequest<'static> {
    let partition = |index| commit_request::OffsetCommitRequestPartition {
        partition_index: index,
        committed_offset: 1_234_567,
        committed_leader_epoch: 3,
        committed_metadata: Some(""),
    };
    let topic = |name| commit_request::OffsetCommitRequestTopic {
        name,
        partitions: (0..partitions).map(partition).collect(),
        ..Default::default()
    };
    ours::OffsetCommitRequest {
        group_id: GROUP,
        generation_id_or_member_epoch: 42,
        member_id: MEMBER,
        topics: TOPICS[..topics].iter().copied().map(topic).collect(),
        ..Default::default()
    }
}

fn committed(topics: usize, partitions: i32) -> ours::OffsetCommitResponse<'static> {
    let partition = |partition_index| commit_response::OffsetCommitResponsePartition {
        partition_index,
        error_code: 0,
    };
    let topic = |name| commit_response::OffsetCommitResponseTopic {
        name,
        partitions: (0..partitions).map(partition).collect(),
        ..Default::default()
    };
    let topics = TOPICS[..topics].iter().copied().map(topic).collect();
    ours::OffsetCommitResponse { throttle_time_ms: 0, topics }
}

fn produce(topics: usize, partitions: i32, batch: &Bytes) -> ours::ProduceRequest<'static> {
    let partition = |index| produce_request::PartitionProduceData {
        index,
        records: Some(Records::Shared(batch.clone())),
    };
    let topic = |name| produce_request::TopicProduceData {
        name,
        partition_data: (0..partitions).map(partition).collect(),
        ..Default::default()
    };
    ours::ProduceRequest {
        transactional_id: None,
        acks: -1,
        timeout_ms: 30_000,
        topic_data: TOPICS[..topics].iter().copied().map(topic).collect(),
    }
}

fn produced(topics: usize, partitions: i32) -> ours::ProduceResponse<'static> {
    let partition = |index| produce_response::PartitionProduceResponse {
        index,
        base_offset: 1_234_567,
        log_start_offset: 0,
        ..Default::default()
    };
    let topic = |name| produce_response::TopicProduceResponse {
        name,
        partition_responses: (0..partitions).map(partition).collect(),
        ..Default::default()
    };
    let responses = TOPICS[..topics].iter().copied().map(topic).collect();
    ours::ProduceResponse { responses, ..Default::default() }
}

fn fetch(topics: u8, partitions: i32) -> ours::FetchRequest<'static> {
    let partition = |partition| fetch_request::FetchPartition {
        partition,
        fetch_offset: 1_234_567,
        current_leader_epoch: 3,
        partition_max_bytes: 1 << 20,
        ..Default::default()
    };
    let topic = |id| fetch_request::FetchTopic {
        topic_id: Uuid([id; 16]),
        partitions: (0..partitions).map(partition).collect(),
        ..Default::default()
    };
    ours::FetchRequest {
        max_wait_ms: 500,
        min_bytes: 1,
        topics: (1..=topics).map(topic).collect(),
        ..Default::default()
    }
}

fn fetched(topics: u8, partitions: i32, batch: &Bytes) -> ours::FetchResponse<'static> {
    let partition = |partition_index| fetch_response::PartitionData {
        partition_index,
        high_watermark: 1_234_567,
        last_stable_offset: 1_234_567,
        log_start_offset: 0,
        aborted_transactions: None,
        records: Some(Records::Shared(batch.clone())),
        ..Default::default()
    };
    let topic = |id| fetch_response::FetchableTopicResponse {
        topic_id: Uuid([id; 16]),
        partitions: (0..partitions).map(partition).collect(),
        ..Default::default()
    };
    ours::FetchResponse { responses: (1..=topics).map(topic).collect(), ..Default::default() }
}
