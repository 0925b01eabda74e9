//! The broker the tests talk to: Ottla in this process or, where `KAFKA_BOOTSTRAP` names one, the
//! Apache Kafka that runs there. The tests are the same.

use ottla_broker::Server;
use ottla_broker::config::{Config, Source};
use ottla_client::{
    Admin, AdminConfig, Consumer, ConsumerConfig, GroupProtocol, NewTopic, OffsetReset, OffsetSpec,
    Producer, ProducerConfig, ProducerRecord, TopicPartition,
};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{LazyLock, Mutex};
use std::time::Duration;

/// A broker that all tests of the program share.
pub(crate) fn bootstrap() -> String {
    std::env::var("KAFKA_BOOTSTRAP").unwrap_or_else(|_| ottla())
}

/// The same, but always ours.
pub(crate) fn ottla() -> String {
    SHARED.clone()
}

static SHARED: LazyLock<String> = LazyLock::new(|| {
    // It has to outlive the test that happened to start it, so it has a runtime of its own.
    let broker = Box::leak(Box::new(TestBroker::start()));
    broker.address()
});

/// A broker of one test's own; dropping it stops it and removes its data.
pub(crate) struct TestBroker {
    runtime: Option<tokio::runtime::Runtime>,
    server: Mutex<Option<Server>>,
    settings: Vec<(String, String)>,
    folder: Folder,
}

impl TestBroker {
    /// A broker on a free port.
    pub(crate) fn start() -> Self {
        Self::start_with(&[])
    }

    /// The same, with more settings.
    pub(crate) fn start_with(more: &[(&str, &str)]) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .expect("threads");
        let listeners = ("listeners", "127.0.0.1:0");
        let settings = [listeners].into_iter().chain(more.iter().copied());
        let settings = settings.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let settings = settings.collect();
        let mut broker = Self {
            runtime: Some(runtime),
            server: Mutex::new(None),
            settings,
            folder: Folder::new(),
        };
        broker.boot();
        // A restarted broker comes back where it was.
        broker.settings[0].1 = broker.address();
        broker
    }

    /// Starts it again over the same data, on the same port.
    pub(crate) fn boot(&self) {
        let mut config = Config::default();
        let mut set = |name: &str, value: &str| {
            config.set(name, value, Source::Flag).expect("a good setting");
        };
        set("http.listen", "");
        set("log.dirs", self.folder.0.to_str().expect("a path of text"));
        for (name, value) in &self.settings {
            set(name, value);
        }
        let starting = Server::start(config);
        let server = self.block_on(starting).expect("the broker starts");
        *self.server.lock().expect("no panic before") = Some(server);
    }

    /// Stops it, if it runs.
    pub(crate) fn stop(&self) {
        let server = self.server.lock().expect("no panic before").take();
        if let Some(server) = server {
            self.block_on(server.stop());
        }
    }

    /// Its `host:port`.
    pub(crate) fn address(&self) -> String {
        let server = self.server.lock().expect("no panic before");
        let server = server.as_ref().expect("running");
        server.listeners().next().expect("a listener").bound.to_string()
    }

    /// Runs on the broker's own threads, so that it may be called from within a test's runtime.
    fn block_on<T: Send + 'static>(&self, future: impl Future<Output = T> + Send + 'static) -> T {
        let (done, wait) = std::sync::mpsc::channel();
        self.runtime.as_ref().expect("not dropped").spawn(async move {
            let _ = done.send(future.await);
        });
        wait.recv().expect("the broker's threads run")
    }
}

impl Drop for TestBroker {
    fn drop(&mut self) {
        self.stop();
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// A folder that is removed in the end.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("client-{}-{number}", std::process::id());
        Self(Path::new(env!("CARGO_TARGET_TMPDIR")).join(name))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A name no other test has, on whatever broker.
pub(crate) fn unique(what: &str) -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("{what}-{}-{number}", std::process::id())
}

/// An administrator of the shared broker.
pub(crate) fn admin() -> Admin {
    Admin::new(AdminConfig::new(bootstrap())).expect("good settings")
}

/// Makes a topic on the shared broker.
pub(crate) async fn topic(what: &str, partitions: i32) -> String {
    let name = unique(what);
    admin().create_topic(NewTopic::new(&name, partitions)).await.expect("a new topic");
    name
}

/// The offset behind a partition's last record.
pub(crate) async fn end(admin: &Admin, topic: &str, partition: i32) -> i64 {
    let partition = TopicPartition::new(topic, partition);
    let found = admin.list_offsets([(partition, OffsetSpec::Latest)]).await;
    let found = found.expect("a broker that answers").remove(0).1;
    found.expect("a partition").offset.expect("an end").0
}

/// Produces `count` records to the partitions in turn, the values counting from `from`.
pub(crate) async fn fill(bootstrap: &str, topic: &str, partitions: i32, from: i32, count: i32) {
    let producer = Producer::new(ProducerConfig::new(bootstrap)).expect("good settings");
    let mut reports = Vec::new();
    for number in from..from + count {
        let value = number.to_string();
        let record = ProducerRecord::to(topic).partition(number % partitions).value(&value);
        reports.push(producer.send(record).await.expect("room"));
    }
    for report in reports {
        report.await.expect("stored");
    }
    producer.close().await.expect("all stored");
}

/// Settings of a consumer that reads from the beginning and notices failures soon; a classic
/// member, because the times of the other protocols' members are their broker's.
pub(crate) fn reader(bootstrap: &str, group: &str) -> ConsumerConfig {
    ConsumerConfig::new(bootstrap)
        .group_id(group)
        .group_protocol(GroupProtocol::Classic)
        .auto_offset_reset(OffsetReset::Earliest)
        .session_timeout(Duration::from_secs(6))
        .heartbeat_interval(Duration::from_millis(200))
        .enable_auto_commit(false)
}

/// Polls until so many records came; their values.
pub(crate) async fn read(consumer: &mut Consumer, count: usize) -> Vec<i32> {
    let mut values = Vec::new();
    while values.len() < count {
        let records = consumer.poll(Duration::from_millis(200)).await.expect("records");
        let value = |value: &[u8]| std::str::from_utf8(value).ok()?.parse::<i32>().ok();
        values.extend(records.iter().filter_map(|record| value(record.value()?)));
    }
    values
}
