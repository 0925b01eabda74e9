//! How long a broker takes from its process's start to its first answer, and to the last
//! partition's, after `kill -9` in the midst of a load that has left much log behind. The log is
//! taken out of the page cache first, so that what is read comes from the disk.
//!
//! What must be bounded is what a restart reads, whatever there is: only that is asserted. The
//! times are printed. `OTTLA_LOG_MB` sets how much log there is; the claim is about 1024.

use crate::broker::Broker;
use crate::link::Link;
use ottla_model::Timestamp;
use ottla_records::{Builder, Compression, NewRecord};
use ottla_wire::Records;
use ottla_wire::generated::create_topics_request::CreatableTopic;
use ottla_wire::generated::list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic};
use ottla_wire::generated::produce_request::{PartitionProduceData, TopicProduceData};
use ottla_wire::generated::{
    ApiVersionsRequest, ApiVersionsResponse, CreateTopicsRequest, CreateTopicsResponse,
    ListOffsetsRequest, ListOffsetsResponse, ProduceRequest, ProduceResponse,
};
use rustix::fs::{Advice, fadvise};
use std::collections::VecDeque;
use std::fs::File;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicI64, Ordering};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const LOG_MB: u64 = 96;
const TOPIC: &str = "big";
const PARTITIONS: i32 = 16;
const PRODUCERS: i32 = 4;
const IN_FLIGHT: usize = 3;
const RECORDS_PER_BATCH: i64 = 900;
const RECORD_BYTES: usize = 1_000;

#[test]
fn a_restart_reads_little_of_a_big_log() {
    let log_mb = crate::setting("OTTLA_LOG_MB").unwrap_or(LOG_MB);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut broker = Broker::start(folder.path());
    create_topic(broker.address());
    let acked: [AtomicI64; PARTITIONS as usize] = Default::default();
    let target = (log_mb << 20) as i64 / RECORD_BYTES as i64;
    let (first, last) = thread::scope(|scope| {
        for producer in 0..PRODUCERS {
            let (address, acked) = (broker.address(), &acked);
            scope.spawn(move || produce(address, producer, acked));
        }
        while acked.iter().map(|records| records.load(Ordering::SeqCst)).sum::<i64>() < target {
            thread::sleep(Duration::from_millis(5));
        }
        let started = broker.kill_and_restart_after(|| evict(folder.path()));
        first_answer(broker.address());
        let first = started.elapsed();
        ends(broker.address());
        (first, started.elapsed())
    });
    let [read_mb, from_disk_mb] = ["rchar: ", "read_bytes: "].map(|it| count(&broker, it) >> 20);
    println!(
        "restart: first answer {} ms after the process began, all partitions there after {} ms, \
         {log_mb} MiB of log in {PARTITIONS} partitions, {read_mb} MiB read, {from_disk_mb} MiB \
         of them from the disk",
        first.as_millis(),
        last.as_millis()
    );
    let ends = ends(broker.address());
    for (partition, (end, acked)) in ends.iter().zip(&acked).enumerate() {
        let acked = acked.load(Ordering::SeqCst);
        assert!(*end >= acked, "{partition}: {acked} acked, {end} there");
    }
    // Each log may have to be checked from its last checkpoint on.
    assert!(read_mb < READ_MB_MAX, "{read_mb} MiB were read");
}

/// What a restart may read, whatever there is.
const READ_MB_MAX: u64 = 256;

/// Produces whole batches to its share of the partitions until the broker dies.
fn produce(address: SocketAddr, producer: i32, acked: &[AtomicI64]) {
    let batch = batch();
    let mut partitions = (producer..PARTITIONS).step_by(PRODUCERS as usize).cycle();
    let mut link = Link::open(address).expect("the broker runs");
    let mut in_flight = VecDeque::new();
    loop {
        while in_flight.len() < IN_FLIGHT {
            let partition = partitions.next().expect("they go round");
            if link.send(9, &request(partition, &batch)).is_err() {
                return;
            }
            in_flight.push_back(partition);
        }
        let Ok(answer) = link.receive::<ProduceRequest<'_>>(9) else { return };
        let response: ProduceResponse<'_> = answer.read();
        let outcome = &response.responses[0].partition_responses[0];
        assert_eq!(outcome.error_code, 0, "{:?}", outcome.error_message);
        let partition = in_flight.pop_front().expect("one was answered");
        acked[partition as usize].fetch_add(RECORDS_PER_BATCH, Ordering::SeqCst);
    }
}

fn batch() -> Vec<u8> {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock that is set");
    let now = Timestamp(since.as_millis() as i64);
    let mut builder = Builder::new(Compression::None);
    for _ in 0..RECORDS_PER_BATCH {
        let record = NewRecord::new(now, None, Some(&[7; RECORD_BYTES]));
        builder.append(&record).expect("it fits");
    }
    builder.build().expect("it fits").to_vec()
}

fn request(partition: i32, batch: &[u8]) -> ProduceRequest<'_> {
    let records = Some(Records::Borrowed(batch));
    let topic = TopicProduceData {
        name: TOPIC,
        partition_data: vec![PartitionProduceData { index: partition, records }],
        ..Default::default()
    };
    ProduceRequest { transactional_id: None, acks: -1, timeout_ms: 10_000, topic_data: vec![topic] }
}

fn create_topic(address: SocketAddr) {
    let topic = CreatableTopic {
        name: TOPIC,
        num_partitions: PARTITIONS,
        replication_factor: 1,
        ..Default::default()
    };
    let request =
        CreateTopicsRequest { topics: vec![topic], timeout_ms: 10_000, ..Default::default() };
    let answer = Link::open(address).expect("it runs").ask(5, &request).expect("an answer");
    let response: CreateTopicsResponse<'_> = answer.read();
    assert_eq!(response.topics[0].error_code, 0, "the topic is created");
}

fn first_answer(address: SocketAddr) {
    let mut link = Link::open(address).expect("it has said where it listens");
    let answer = link.ask(0, &ApiVersionsRequest::default()).expect("an answer");
    let response: ApiVersionsResponse<'_> = answer.read();
    assert_eq!(response.error_code, 0);
}

/// Takes every file below `folder` out of the page cache.
fn evict(folder: &Path) {
    for entry in std::fs::read_dir(folder).expect("a folder").map_while(Result::ok) {
        let path = entry.path();
        if path.is_dir() {
            evict(&path);
            continue;
        }
        let file = File::open(&path).expect("nobody removes it");
        file.sync_all().expect("only clean pages can go");
        fadvise(&file, 0, None, Advice::DontNeed).expect("Linux takes the advice");
    }
}

/// What Linux counts of the broker's reads so far, in bytes: `rchar` of all, from files and
/// sockets, `read_bytes` of those that a disk had to serve.
fn count(broker: &Broker, name: &str) -> u64 {
    let path = format!("/proc/{}/io", broker.process.id());
    let text = std::fs::read_to_string(path).expect("Linux counts what a process reads");
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|number| number.parse().ok()).expect("a number")
}

/// Where every partition's log ends, in order, once all are there.
fn ends(address: SocketAddr) -> Vec<i64> {
    let latest = -1;
    let partitions = (0..PARTITIONS).map(|partition_index| ListOffsetsPartition {
        partition_index,
        timestamp: latest,
        ..Default::default()
    });
    let topic = ListOffsetsTopic { name: TOPIC, partitions: partitions.collect() };
    let request = ListOffsetsRequest { replica_id: -1, topics: vec![topic], ..Default::default() };
    let mut link = Link::open(address).expect("it runs");
    loop {
        let answer = link.ask(5, &request).expect("an answer");
        let response: ListOffsetsResponse<'_> = answer.read();
        let partitions = &response.topics[0].partitions;
        if partitions.iter().all(|partition| partition.error_code == 0) {
            return partitions.iter().map(|partition| partition.offset).collect();
        }
        thread::sleep(Duration::from_millis(1));
    }
}
