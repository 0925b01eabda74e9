//! A broker in this process, on a free port and in a folder of its own, and a client that does
//! nothing but frames.

use ottla_broker::Server;
use ottla_broker::config::{Config, Source};
use ottla_model::Timestamp;
use ottla_records::{Batches, Builder, Compression, NewRecord};
use ottla_wire::generated::create_topics_request::CreatableTopic;
use ottla_wire::generated::fetch_response::PartitionData;
use ottla_wire::generated::produce_request::{PartitionProduceData, TopicProduceData};
use ottla_wire::generated::{CreateTopicsRequest, CreateTopicsResponse, ProduceRequest};
use ottla_wire::header::decode_response;
use ottla_wire::{ApiKey, Message, Output, Reader, Records, Request, frame};
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// A running broker; dropping it stops it and removes its data.
pub(crate) struct TestBroker {
    runtime: tokio::runtime::Runtime,
    server: Option<Server>,
    settings: Vec<(String, String)>,
    folder: Folder,
}

impl TestBroker {
    /// A broker with default settings.
    pub(crate) fn start() -> Self {
        Self::with(&[])
    }

    /// A broker with these settings, each `(name, value)`.
    pub(crate) fn with(settings: &[(&str, &str)]) -> Self {
        let settings = settings.iter().map(|(name, value)| (name.to_string(), value.to_string()));
        let mut broker = Self {
            runtime: tokio::runtime::Builder::new_multi_thread()
                .worker_threads(2)
                .enable_all()
                .build()
                .expect("threads"),
            server: None,
            settings: settings.collect(),
            folder: Folder::new(),
        };
        broker.boot();
        broker
    }

    /// Stops the broker, if it runs, and starts it again over the same data.
    pub(crate) fn restart(&mut self) {
        self.stop();
        self.boot();
    }

    /// The same with these settings besides.
    pub(crate) fn restart_with(&mut self, more: &[(&str, &str)]) {
        self.settings.extend(more.iter().map(|(name, value)| ((*name).into(), (*value).into())));
        self.restart();
    }

    /// Drains and stops the broker; true if that was done in time.
    pub(crate) fn stop(&mut self) -> bool {
        self.server.take().is_none_or(|server| self.runtime.block_on(server.stop()))
    }

    fn boot(&mut self) {
        let config = self.config();
        let server = self.runtime.block_on(Server::start(config)).expect("the broker starts");
        self.server = Some(server);
    }

    /// Starts another broker on the same data; why it could not.
    pub(crate) fn rival(&self) -> Result<(), String> {
        let started = self.runtime.block_on(Server::start(self.config()));
        started.map(|_| ()).map_err(|error| error.to_string())
    }

    /// Starts a stopped broker with more settings; why it could not.
    pub(crate) fn refusal(&mut self, more: &[(&str, &str)]) -> Result<(), String> {
        let before = self.settings.clone();
        let more = more.iter().map(|(name, value)| (name.to_string(), value.to_string()));
        self.settings.extend(more);
        let outcome = self.rival();
        self.settings = before;
        outcome
    }

    fn config(&self) -> Config {
        let mut config = Config::default();
        let mut set = |name: &str, value: &str| {
            config.set(name, value, Source::Flag).expect("a good setting");
        };
        set("listeners", "127.0.0.1:0");
        set("http.listen", "");
        set("log.dirs", self.folder.0.to_str().expect("a path of text"));
        for (name, value) in &self.settings {
            set(name, value);
        }
        config
    }

    /// The address of its first listener.
    pub(crate) fn address(&self) -> SocketAddr {
        self.addresses()[0]
    }

    /// The addresses of all its listeners.
    pub(crate) fn addresses(&self) -> Vec<SocketAddr> {
        let server = self.server.as_ref().expect("running");
        server.listeners().map(|listener| listener.bound).collect()
    }

    /// Where it serves HTTP.
    pub(crate) fn http_address(&self) -> SocketAddr {
        self.server.as_ref().and_then(Server::http_address).expect("running, with HTTP")
    }

    /// Fetches that wait for records now.
    pub(crate) fn waiting_fetches(&self) -> usize {
        self.server.as_ref().map_or(0, Server::waiting_fetches)
    }

    /// Heartbeats whose answers are held now.
    pub(crate) fn held_heartbeats(&self) -> usize {
        self.server.as_ref().map_or(0, Server::held_heartbeats)
    }

    /// Its data directory.
    pub(crate) fn data(&self) -> &Path {
        &self.folder.0
    }

    /// A fresh connection to it.
    pub(crate) fn connect(&self) -> Client {
        Client::connect(self.address())
    }
}

/// A folder that is removed in the end.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("broker-{}-{number}", std::process::id());
        Self(Path::new(env!("CARGO_TARGET_TMPDIR")).join(name))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

impl Drop for TestBroker {
    fn drop(&mut self) {
        self.stop();
    }
}

/// One connection that sends and reads frames.
pub(crate) struct Client {
    stream: TcpStream,
    correlation_id: i32,
}

/// A response's bytes, to be read as what it is.
pub(crate) struct Answered {
    key: ApiKey,
    version: i16,
    bytes: Vec<u8>,
}

impl Client {
    /// Connects. Nothing it does takes longer than a test should wait.
    pub(crate) fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).expect("the broker listens");
        stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a socket option");
        stream.set_nodelay(true).expect("a socket option");
        Self { stream, correlation_id: 0 }
    }

    /// Sends a request and waits for its answer.
    pub(crate) fn ask<'a, R: Request<'a>>(&mut self, version: i16, request: &R) -> Answered {
        self.send(version, request);
        self.receive(R::KEY, version)
    }

    /// Sends a request.
    pub(crate) fn send<'a, R: Request<'a>>(&mut self, version: i16, request: &R) {
        self.correlation_id += 1;
        let mut out = Output::new();
        frame::write_request(&mut out, version, self.correlation_id, Some("test"), request)
            .expect("a request this version can carry");
        self.send_raw(&out.into_vec());
    }

    /// Sends bytes as they are.
    pub(crate) fn send_raw(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).expect("the broker reads");
    }

    /// Sends bytes as they are, unless the broker has closed the connection.
    pub(crate) fn try_send_raw(&mut self, bytes: &[u8]) -> bool {
        self.stream.write_all(bytes).is_ok()
    }

    /// Waits for the answer to the request that was sent first and not answered yet.
    pub(crate) fn receive(&mut self, key: ApiKey, version: i16) -> Answered {
        let bytes = self.receive_raw().expect("an answer, not a closed connection");
        Answered { key, version, bytes }
    }

    /// Waits for a frame; `None` if the broker closed the connection instead.
    pub(crate) fn receive_raw(&mut self) -> Option<Vec<u8>> {
        let mut length = [0; 4];
        match self.stream.read_exact(&mut length) {
            Ok(()) => {}
            Err(error) if is_closed(error.kind()) => return None,
            Err(error) => panic!("no answer: {error}"),
        }
        let mut bytes = vec![0; u32::from_be_bytes(length) as usize];
        self.stream.read_exact(&mut bytes).expect("a whole frame");
        Some(bytes)
    }

    /// Whether nothing has come, neither an answer nor an end.
    pub(crate) fn is_quiet(&self) -> bool {
        self.stream.set_nonblocking(true).expect("a socket option");
        let peeked = self.stream.peek(&mut [0]);
        self.stream.set_nonblocking(false).expect("a socket option");
        peeked.is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
    }

    /// Whether the broker keeps the connection and answers on it.
    pub(crate) fn is_open(&mut self) -> bool {
        let request = [0, 0, 0, 10, 0, 18, 0, 0, 0, 0, 0, 1, 0xff, 0xff];
        self.try_send_raw(&request) && self.receive_raw().is_some()
    }

    /// Whether the broker closes the connection without another word.
    pub(crate) fn is_closed(&mut self) -> bool {
        self.receive_raw().is_none()
    }
}

impl Answered {
    /// The correlation id of its header.
    pub(crate) fn correlation_id(&self) -> i32 {
        let mut reader = Reader::new(&self.bytes);
        decode_response(&mut reader, self.key, self.version).expect("a header")
    }

    /// The response.
    pub(crate) fn read<'a, M: Message<'a>>(&'a self) -> M {
        let mut reader = Reader::new(&self.bytes);
        decode_response(&mut reader, self.key, self.version).expect("a header");
        let response = M::decode(&mut reader, self.version).expect("a response");
        reader.finish(M::NAME).expect("nothing left");
        response
    }
}

fn is_closed(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset | ErrorKind::BrokenPipe)
}

/// Creates a topic and waits until it is there.
pub(crate) fn create_topic(client: &mut Client, name: &str, partitions: i32) {
    let topic = CreatableTopic {
        name,
        num_partitions: partitions,
        replication_factor: 1,
        ..Default::default()
    };
    let request =
        CreateTopicsRequest { topics: vec![topic], timeout_ms: 10_000, ..Default::default() };
    let answer = client.ask(7, &request);
    let response: CreateTopicsResponse<'_> = answer.read();
    assert_eq!(response.topics[0].error_code, 0, "{:?}", response.topics[0].error_message);
}

/// A frame with this request, to be sent whole or in pieces.
pub(crate) fn framed<'a, R: Request<'a>>(version: i16, request: &R) -> Vec<u8> {
    let mut out = Output::new();
    frame::write_request(&mut out, version, 1, Some("test"), request)
        .expect("a request this version can carry");
    out.into_vec()
}

/// A batch that is small and unpacks to `len` bytes.
pub(crate) fn bomb(len: usize) -> Vec<u8> {
    let mut builder = Builder::new(Compression::Zstd);
    let value = vec![0; len];
    builder.append(&NewRecord::new(Timestamp(1_000), None, Some(&value))).expect("room");
    builder.build().expect("a batch")
}

/// A batch of records with these values, stamped 1000, 1001 and so on.
pub(crate) fn batch(values: &[&str]) -> Vec<u8> {
    let mut builder = Builder::new(Compression::None);
    for (timestamp, value) in (1_000..).zip(values) {
        let record = NewRecord::new(Timestamp(timestamp), None, Some(value.as_bytes()));
        builder.append(&record).expect("room");
    }
    builder.build().expect("a batch")
}

/// A request that produces one partition's batch.
pub(crate) fn produce<'a>(
    topic: &'a str,
    partition: i32,
    acks: i16,
    bytes: &'a [u8],
) -> ProduceRequest<'a> {
    let records = Some(Records::Borrowed(bytes));
    let partition_data = vec![PartitionProduceData { index: partition, records }];
    let data = TopicProduceData { name: topic, partition_data, ..Default::default() };
    let topic_data = vec![data];
    ProduceRequest { transactional_id: None, acks, timeout_ms: 10_000, topic_data }
}

/// The values of the records a fetch found.
pub(crate) fn records_of(part: &PartitionData<'_>) -> Vec<String> {
    let bytes = part.records.as_ref().map(|records| {
        records.chunks().flat_map(|chunk| chunk.iter().copied()).collect::<Vec<u8>>()
    });
    let bytes = bytes.unwrap_or_default();
    let mut values = Vec::new();
    for batch in Batches::new(&bytes) {
        let records = batch.expect("a batch").records(1 << 20).expect("records");
        for record in &records {
            let value = record.expect("a record").value.expect("a value");
            values.push(String::from_utf8(value.to_vec()).expect("text"));
        }
    }
    values
}
