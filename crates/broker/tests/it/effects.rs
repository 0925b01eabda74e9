//! Every topic setting that a produce or a log obeys, seen to take effect (issue 3: a setting
//! that is listed takes effect or is refused).

use crate::harness::{Client, TestBroker};
use ottla_model::Timestamp;
use ottla_records::{Batches, Builder, Compression, NewRecord};
use ottla_wire::generated::create_topics_request::{CreatableTopic, CreatableTopicConfig};
use ottla_wire::generated::fetch_request::{FetchPartition, FetchTopic};
use ottla_wire::generated::produce_request::{PartitionProduceData, TopicProduceData};
use ottla_wire::generated::*;
use ottla_wire::{ErrorCode, Records};

fn create(client: &mut Client, name: &str, configs: &[(&str, &str)]) {
    let configs =
        configs.iter().map(|(name, value)| CreatableTopicConfig { name, value: Some(value) });
    let topic = CreatableTopic {
        name,
        num_partitions: 1,
        replication_factor: 1,
        configs: configs.collect(),
        ..Default::default()
    };
    let request = CreateTopicsRequest { topics: vec![topic], ..Default::default() };
    let answered = client.ask(7, &request);
    let response: CreateTopicsResponse<'_> = answered.read();
    assert_eq!(response.topics[0].error_message, None);
}

/// A batch of one record of this key and value size, stamped then.
fn batch(codec: Compression, stamp: i64, key: Option<&str>, value_bytes: usize) -> Vec<u8> {
    let mut builder = Builder::new(codec);
    let value = vec![7; value_bytes];
    let key = key.map(str::as_bytes);
    builder.append(&NewRecord::new(Timestamp(stamp), key, Some(&value))).expect("room");
    builder.build().expect("a batch")
}

fn produce(client: &mut Client, topic: &str, bytes: &[u8]) -> ErrorCode {
    let partition = PartitionProduceData { index: 0, records: Some(Records::Borrowed(bytes)) };
    let partition_data = vec![partition];
    let data = TopicProduceData { name: topic, partition_data, ..Default::default() };
    let request = ProduceRequest {
        acks: -1,
        timeout_ms: 9_000,
        topic_data: vec![data],
        ..Default::default()
    };
    let answered = client.ask(9, &request);
    let response: ProduceResponse<'_> = answered.read();
    let code = response.responses[0].partition_responses[0].error_code;
    ErrorCode::from_number(code).expect("a known code")
}

/// The codec and stamp of each batch there is, and how many records they hold.
fn fetched(client: &mut Client, topic: &str) -> Vec<(Compression, i64, usize)> {
    let partition = FetchPartition {
        current_leader_epoch: -1,
        partition_max_bytes: 1 << 20,
        ..Default::default()
    };
    let request = FetchRequest {
        max_bytes: 1 << 20,
        session_epoch: -1,
        topics: vec![FetchTopic { topic, partitions: vec![partition], ..Default::default() }],
        ..Default::default()
    };
    let answered = client.ask(12, &request);
    let response: FetchResponse<'_> = answered.read();
    let records = response.responses[0].partitions[0].records.as_ref().expect("records");
    let bytes: Vec<u8> = records.chunks().flat_map(|chunk| chunk.iter().copied()).collect();
    let line = |batch: ottla_records::Batch<'_>| {
        batch.verify_crc().expect("sound");
        let header = batch.header();
        let codec = header.attributes().compression().expect("a codec");
        (codec, header.max_timestamp().0, batch.records(1 << 20).expect("records").len())
    };
    Batches::new(&bytes).map(|batch| line(batch.expect("a batch"))).collect()
}

#[test]
fn compression_type_packs_what_is_stored() {
    let broker = TestBroker::start();
    let mut client = broker.connect();
    let codecs = [
        ("uncompressed", Compression::None),
        ("gzip", Compression::Gzip),
        ("snappy", Compression::Snappy),
        ("lz4", Compression::Lz4),
        ("zstd", Compression::Zstd),
    ];
    for (name, stored) in codecs {
        create(&mut client, name, &[("compression.type", name)]);
        for (_, sent) in codecs {
            assert_eq!(produce(&mut client, name, &batch(sent, 5, None, 300)), ErrorCode::None);
        }
        assert_eq!(fetched(&mut client, name), [(stored, 5, 1); 5]);
    }
    create(&mut client, "as-it-comes", &[]);
    for (_, sent) in codecs {
        produce(&mut client, "as-it-comes", &batch(sent, 5, None, 300));
    }
    let as_sent = codecs.map(|(_, sent)| (sent, 5, 1));
    assert_eq!(fetched(&mut client, "as-it-comes"), as_sent);
}

/// As in Kafka the bound holds for what is stored, too.
#[test]
fn max_message_bytes_bounds_a_batch_as_it_comes_and_as_it_is_stored() {
    let broker = TestBroker::start();
    let mut client = broker.connect();
    create(&mut client, "t", &[("max.message.bytes", "1000")]);
    let plain = batch(Compression::None, 5, None, 2000);
    assert_eq!(produce(&mut client, "t", &plain), ErrorCode::MessageTooLarge);
    let packed = batch(Compression::Gzip, 5, None, 2000);
    assert_eq!(produce(&mut client, "t", &packed), ErrorCode::None);
    let unpacks = [("max.message.bytes", "1000"), ("compression.type", "uncompressed")];
    create(&mut client, "u", &unpacks);
    assert_eq!(produce(&mut client, "u", &packed), ErrorCode::MessageTooLarge);
}

#[test]
fn message_timestamp_type_says_who_stamps() {
    let broker = TestBroker::start();
    let mut client = broker.connect();
    create(&mut client, "t", &[("message.timestamp.type", "LogAppendTime")]);
    produce(&mut client, "t", &batch(Compression::None, 5, None, 10));
    assert!(fetched(&mut client, "t")[0].1 > 1_600_000_000_000);
}

#[test]
fn message_timestamp_bounds_refuse_what_lies_outside() {
    let broker = TestBroker::start();
    let mut client = broker.connect();
    create(&mut client, "past", &[("message.timestamp.before.max.ms", "60000")]);
    create(&mut client, "future", &[]);
    let mut at =
        |topic, stamp| produce(&mut client, topic, &batch(Compression::None, stamp, None, 1));
    assert_eq!(at("past", 5), ErrorCode::InvalidTimestamp);
    assert_eq!(at("future", 5), ErrorCode::None);
    assert_eq!(at("future", 99_999_999_999_999), ErrorCode::InvalidTimestamp);
}

#[test]
fn a_compacted_topic_takes_no_record_without_a_key() {
    let broker = TestBroker::start();
    let mut client = broker.connect();
    create(&mut client, "t", &[("cleanup.policy", "compact")]);
    let mut with = |key| produce(&mut client, "t", &batch(Compression::None, 5, key, 1));
    assert_eq!(with(None), ErrorCode::InvalidRecord);
    assert_eq!(with(Some("k")), ErrorCode::None);
}

/// Also when it changes while the topic is in use.
#[test]
fn segment_bytes_and_index_interval_shape_the_files() {
    let broker = TestBroker::start();
    let mut client = broker.connect();
    let shape = [("segment.bytes", "1048576"), ("index.interval.bytes", "0")];
    create(&mut client, "t", &shape);
    for _ in 0..5 {
        let code = produce(&mut client, "t", &batch(Compression::None, 5, None, 600_000));
        assert_eq!(code, ErrorCode::None);
    }
    let folder = broker.data().join("t-0");
    let files = std::fs::read_dir(folder).expect("its folder").filter_map(Result::ok);
    let logs = files.filter(|file| file.path().extension().is_some_and(|ending| ending == "log"));
    assert_eq!(logs.count(), 5);
}
