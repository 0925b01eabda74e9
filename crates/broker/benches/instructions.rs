//! The hot paths without sockets and tasks, for `cargo xtask bench instructions`, which counts the
//! instructions of so many rounds with callgrind: `instructions PATH ROUNDS`. A path begins with a
//! request's frame and ends with its response's; the kernel's share is not in it.

use ottla_group::assign::server::{MemberFacts, ServerAssignor, Target};
use ottla_group::coordinator::{Config, Shard};
use ottla_group::message::{Ask, Client, Reply, Request, Token};
use ottla_model::{
    ConnectionId, Instant, LeaderEpoch, MemberId, Now, Offset, OwnershipEpoch, Partition,
    PartitionId, Timestamp, Topic, TopicId, TopicName, TopicsView,
};
use ottla_records::{
    Builder, Compression, NewRecord, ProduceRules, TimestampType, validate_produced,
};
use ottla_storage::fs::Disk;
use ottla_storage::{AppendContext, Log, LogConfig, Origin};
use ottla_wire::convert::{commit, consumer_heartbeat, known_topics};
use ottla_wire::generated::fetch_response::{FetchableTopicResponse, PartitionData};
use ottla_wire::generated::offset_commit_request::{
    OffsetCommitRequestPartition, OffsetCommitRequestTopic,
};
use ottla_wire::generated::produce_request::{PartitionProduceData, TopicProduceData};
use ottla_wire::generated::{
    ConsumerGroupHeartbeatRequest, FetchRequest, FetchResponse, OffsetCommitRequest,
    ProduceRequest, ProduceResponse,
};
use ottla_wire::header::RequestHeader;
use ottla_wire::{Message, Output, Reader, Records, Uuid, frame};
use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

fn main() {
    let words: Vec<String> = std::env::args().collect();
    let [_, path, rounds, ..] = &words[..] else { return };
    let Ok(rounds) = rounds.parse() else { return };
    match &**path {
        "heartbeat" => heartbeats(rounds),
        "commit" => commits(rounds),
        "produce" => produce(rounds),
        "fetch" => fetch(rounds),
        "assign" => assign(rounds),
        _ => {}
    }
}

/// A coordinator with a topic of 100 partitions.
struct World {
    shard: Shard,
    view: Arc<TopicsView>,
    serial: u64,
}

impl World {
    fn new() -> Self {
        let view = Arc::new(TopicsView::new([topic(100)]));
        let mut shard = Shard::new(Config::default(), PartitionId(0));
        shard.handle_owned(OwnershipEpoch(1), Instant::from_nanos(u64::MAX), now(0));
        shard.handle_topics(Arc::clone(&view), now(0));
        shard.handle_loaded(now(0));
        Self { shard, view, serial: 0 }
    }

    fn ask(&mut self, body: Ask<'_>) -> Reply {
        self.serial += 1;
        let mut fresh = [0; 16];
        fresh[..8].copy_from_slice(&self.serial.to_be_bytes());
        self.shard.handle_request(Request {
            token: Token(self.serial),
            connection: ConnectionId(1),
            client: Client { id: "client", host: "/127.0.0.1", ..Client::default() },
            fresh,
            now: now(self.serial),
            body,
        });
        while self.shard.poll_append().is_some() {}
        self.shard.handle_durable(self.shard.last_index());
        self.shard.poll_reply().expect("an answer").reply
    }

    /// A heartbeat's way from its frame to its answer's; the member's epoch.
    fn beat(&mut self, frame: &[u8], out: &mut Output) -> i32 {
        let (header, mut reader) = opened(frame);
        let request = ConsumerGroupHeartbeatRequest::decode(&mut reader, header.version);
        let request = request.expect("a request");
        let ask = consumer_heartbeat::ask(&request, header.version).expect("a heartbeat");
        let Reply::ConsumerHeartbeat(reply) = self.ask(Ask::ConsumerHeartbeat(ask)) else {
            unreachable!("a heartbeat is answered as one")
        };
        let response = consumer_heartbeat::response(&reply);
        answer(out, header, &response);
        assert_eq!(response.error_code, 0);
        response.member_epoch
    }
}

/// Stable members of 100 groups of one beat in turn.
fn heartbeats(rounds: usize) {
    let (mut world, mut out, mut beats) = (World::new(), Output::new(), Vec::new());
    for number in 0..100 {
        let group = format!("group-{number}");
        let mut request = ConsumerGroupHeartbeatRequest {
            group_id: &group,
            member_id: "member",
            rebalance_timeout_ms: 300_000,
            subscribed_topic_names: Some(vec!["topic"]),
            topic_partitions: Some(Vec::new()),
            ..Default::default()
        };
        let member_epoch = world.beat(&framed(1, &request), &mut out);
        request = ConsumerGroupHeartbeatRequest {
            group_id: &group,
            member_id: "member",
            member_epoch,
            ..Default::default()
        };
        beats.push(framed(1, &request));
    }
    for round in 0..rounds {
        black_box(world.beat(&beats[round % beats.len()], &mut out));
    }
}

/// Groups without members commit one offset each, in turn.
fn commits(rounds: usize) {
    let (mut world, mut out) = (World::new(), Output::new());
    let requests: Vec<_> = (0..100).map(commit_frame).collect();
    for round in 0..rounds {
        let (header, mut reader) = opened(&requests[round % requests.len()]);
        let request = OffsetCommitRequest::decode(&mut reader, header.version);
        let request = request.expect("a request");
        let view = Arc::clone(&world.view);
        let (ask, plan) = commit::ask(&request, header.version, known_topics(&view));
        let Reply::Commit(reply) = world.ask(Ask::Commit(ask.expect("a known topic"))) else {
            unreachable!("a commit is answered as one")
        };
        answer(&mut out, header, &commit::response(&plan, Some(&reply), header.version));
    }
}

fn commit_frame(number: i32) -> Vec<u8> {
    let partition = OffsetCommitRequestPartition {
        partition_index: 7,
        committed_offset: 1000,
        ..Default::default()
    };
    let topic = OffsetCommitRequestTopic {
        name: "topic",
        partitions: vec![partition],
        ..Default::default()
    };
    let group = format!("group-{number}");
    let request =
        OffsetCommitRequest { group_id: &group, topics: vec![topic], ..Default::default() };
    framed(9, &request)
}

/// Batches of 160 records of 100 B (16 KB, a Java producer's default) are checked and appended.
fn produce(rounds: usize) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (mut log, mut out, mut scratch) = (open(&folder), Output::new(), Vec::new());
    let batch = batch();
    let data = PartitionProduceData { index: 0, records: Some(Records::Borrowed(&batch)) };
    let topic =
        TopicProduceData { name: "topic", partition_data: vec![data], ..Default::default() };
    let request = ProduceRequest {
        acks: -1,
        timeout_ms: 30_000,
        topic_data: vec![topic],
        ..Default::default()
    };
    let frame = framed(12, &request);
    for _ in 0..rounds {
        let (header, mut reader) = opened(&frame);
        let request = ProduceRequest::decode(&mut reader, header.version).expect("a request");
        let records = &request.topic_data[0].partition_data[0].records;
        let Some(Records::Borrowed(bytes)) = records else { unreachable!("decoding borrows") };
        validate_produced(bytes, &rules(), &mut scratch).expect("a batch that keeps the rules");
        let mut bytes = bytes.to_vec();
        black_box(log.append(&mut bytes, context()).expect("room"));
        answer(&mut out, header, &ProduceResponse::default());
    }
}

/// A consumer that reads on and on, 64 KiB at a time.
fn fetch(rounds: usize) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (mut log, mut out, mut bytes) = (open(&folder), Output::new(), batch());
    for _ in 0..100 {
        log.append(&mut bytes, context()).expect("room");
    }
    let (reader, end, mut next) = (log.reader(), log.end_offset(), Offset(0));
    let frame = framed(12, &FetchRequest::default());
    for _ in 0..rounds {
        let (header, mut body) = opened(&frame);
        black_box(FetchRequest::decode(&mut body, header.version).expect("a request"));
        let read = reader.read(next, 64 << 10, end, usize::MAX).expect("in range");
        next = if read.next >= end { Offset(0) } else { read.next };
        let records = Some(Records::Shared(read.bytes));
        let partition = PartitionData { records, ..Default::default() };
        let topic = FetchableTopicResponse {
            topic: "topic",
            topic_id: Uuid::ZERO,
            partitions: vec![partition],
        };
        answer(&mut out, header, &FetchResponse { responses: vec![topic], ..Default::default() });
    }
}

/// One of 1,000 members of 5,000 partitions leaves, and comes again.
fn assign(rounds: usize) {
    let topic = topic(5000);
    let topics = [topic.name.clone()];
    let view = Arc::new(TopicsView::new([topic]));
    let ids: Vec<_> = (0..1000).map(|n| MemberId::from(format!("member{n}"))).collect();
    let uniform = ServerAssignor::named("uniform").expect("an assignor");
    let mut target = Target::new(uniform, &view);
    let facts = |id| MemberFacts { id, instance: None, rack: None, topics: &topics };
    ids.iter().for_each(|id| target.set_member(facts(id)));
    target.assign();
    target.take_changed();
    for round in 0..rounds {
        let id = &ids[round * 7 % ids.len()];
        target.remove_member(id);
        target.assign();
        target.set_member(facts(id));
        target.assign();
        black_box(target.take_changed());
    }
}

fn topic(partitions: usize) -> Topic {
    Topic {
        id: TopicId([1; 16]),
        name: TopicName::from("topic"),
        partitions: vec![Partition::default(); partitions],
    }
}

/// A request's frame without its length.
fn framed<'a, R: ottla_wire::Request<'a>>(version: i16, request: &R) -> Vec<u8> {
    let mut out = Output::new();
    frame::write_request(&mut out, version, 1, Some("client"), request).expect("a request");
    out.into_vec().split_off(frame::PREFIX)
}

fn opened(frame: &[u8]) -> (RequestHeader<'_>, Reader<'_>) {
    let mut reader = Reader::new(frame);
    (RequestHeader::decode(&mut reader).expect("a header"), reader)
}

fn answer<'a>(out: &mut Output, header: RequestHeader<'_>, response: &impl Message<'a>) {
    out.clear();
    let (key, version, id) = (header.key, header.version, header.correlation_id);
    frame::write_response(out, key, version, id, response).expect("a response");
    black_box(out.len());
}

fn open(folder: &tempfile::TempDir) -> Log {
    let dir = folder.path().join("log");
    let config = LogConfig::default();
    Log::open(Arc::new(Disk), &dir, TopicId([1; 16]), config, now(0)).expect("it opens").0
}

fn batch() -> Vec<u8> {
    let mut builder = Builder::new(Compression::None);
    for _ in 0..160 {
        let record = NewRecord::new(now(0).wall, Some(b"8 bytes!"), Some(&[b'v'; 92]));
        builder.append(&record).expect("room");
    }
    builder.build().expect("nothing to pack")
}

fn rules() -> ProduceRules {
    ProduceRules {
        batch_bytes_max: 1 << 20,
        unpacked_bytes_max: 1 << 24,
        compacted: false,
        timestamp_type: TimestampType::Create,
        timestamp_before_max_ms: i64::MAX,
        timestamp_after_max_ms: i64::MAX,
        now: now(0).wall,
        zstd_allowed: true,
        transactional_allowed: false,
    }
}

fn context() -> AppendContext {
    AppendContext { leader_epoch: LeaderEpoch(0), now: now(0), origin: Origin::Client }
}

/// So many microseconds after the start of the world.
fn now(micros: u64) -> Now {
    let mono = Instant::from_millis(1) + Duration::from_micros(micros);
    Now { mono, wall: Timestamp(1_700_000_000_000) }
}
