//! What every thread of the test shares: where the broker is, whether to stop, what went wrong.

use crate::GROUPS;
use crate::link::Link;
use ottla_wire::generated::create_topics_request::CreatableTopic;
use ottla_wire::generated::{
    CreateTopicsRequest, CreateTopicsResponse, FindCoordinatorRequest, FindCoordinatorResponse,
};
use std::net::SocketAddr;
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The topic under load.
pub(crate) const TOPIC: &str = "load";

/// Shared by all threads; lives as long as the process.
pub(crate) struct World {
    address: Mutex<SocketAddr>,
    stopping: AtomicBool,
    violations: Mutex<Vec<String>>,
    ledger: Ledger,
    records: AtomicU64,
    commits: AtomicU64,
    reads: AtomicU64,
    heartbeats: AtomicU64,
}

/// Per group, the highest offset sent and the highest acknowledged.
#[derive(Default)]
pub(crate) struct Ledger {
    /// Sent at least once.
    pub sent: [AtomicI64; GROUPS],
    /// Acknowledged.
    pub acked: [AtomicI64; GROUPS],
}

/// What a thread made progress with.
#[derive(Clone, Copy)]
pub(crate) enum Progress {
    /// Acked records, so many.
    Records(u64),
    /// An acked commit.
    Commit,
    /// An answered OffsetFetch.
    Read,
    /// An answered heartbeat.
    Heartbeat,
}

impl World {
    /// The world around a broker.
    pub(crate) fn new(address: SocketAddr) -> &'static Self {
        Box::leak(Box::new(Self {
            address: Mutex::new(address),
            stopping: AtomicBool::new(false),
            violations: Mutex::default(),
            ledger: Ledger::default(),
            records: AtomicU64::new(0),
            commits: AtomicU64::new(0),
            reads: AtomicU64::new(0),
            heartbeats: AtomicU64::new(0),
        }))
    }

    /// Connects, again and again until it works or the test ends.
    pub(crate) fn connect(&self) -> Option<Link> {
        while !self.is_stopping() {
            let address = *self.address.lock().expect("no thread panics holding it");
            if let Ok(link) = Link::open(address) {
                return Some(link);
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        None
    }

    /// Connects although the test has ended.
    pub(crate) fn connect_to_verify(&self) -> Link {
        let address = *self.address.lock().expect("no thread panics holding it");
        Link::open(address).expect("the last broker still runs")
    }

    /// The broker restarted elsewhere.
    pub(crate) fn moved_to(&self, address: SocketAddr) {
        *self.address.lock().expect("no thread panics holding it") = address;
    }

    /// Creates [`TOPIC`].
    pub(crate) fn create_topic(&self, partitions: i32) {
        let request = CreateTopicsRequest {
            topics: vec![CreatableTopic {
                name: TOPIC,
                num_partitions: partitions,
                replication_factor: 1,
                ..Default::default()
            }],
            timeout_ms: 10_000,
            ..Default::default()
        };
        let answer = self.connect_to_verify().ask(5, &request).expect("an answer");
        let response: CreateTopicsResponse<'_> = answer.read();
        assert_eq!(response.topics[0].error_code, 0, "the topic is created");
    }

    /// Asks for a group's coordinator, which makes the offsets topic.
    pub(crate) fn find_coordinator(&self) {
        let request = FindCoordinatorRequest { key: "any", ..Default::default() };
        let answer = self.connect_to_verify().ask(2, &request).expect("an answer");
        let response: FindCoordinatorResponse<'_> = answer.read();
        assert!([0, 15].contains(&response.error_code), "code {}", response.error_code);
    }

    /// Tells the threads to finish.
    pub(crate) fn stop(&self) {
        self.stopping.store(true, Ordering::SeqCst);
    }

    /// Tells the threads to finish when the guard goes, also by a panic.
    pub(crate) fn stop_at_end(&'static self) -> impl Drop {
        struct Stop(&'static World);
        impl Drop for Stop {
            fn drop(&mut self) {
                self.0.stop();
            }
        }
        Stop(self)
    }

    /// Whether to finish.
    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::SeqCst)
    }

    /// Offsets sent and acknowledged.
    pub(crate) fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Something happened that must not.
    pub(crate) fn violation(&self, what: String) {
        self.violations.lock().expect("no thread panics holding it").push(what);
    }

    /// All that happened that must not.
    pub(crate) fn violations(&self) -> Vec<String> {
        self.violations.lock().expect("no thread panics holding it").clone()
    }

    /// Counts progress.
    pub(crate) fn count(&self, progress: Progress) {
        let (counter, by) = match progress {
            Progress::Records(count) => (&self.records, count),
            Progress::Commit => (&self.commits, 1),
            Progress::Read => (&self.reads, 1),
            Progress::Heartbeat => (&self.heartbeats, 1),
        };
        counter.fetch_add(by, Ordering::SeqCst);
    }

    /// Waits until records, commits, reads and heartbeats have all moved on: the load is running.
    pub(crate) fn wait_for_progress(&self) {
        let before = self.counts();
        let started = Instant::now();
        while self.counts().iter().zip(before).any(|(now, before)| *now == before) {
            assert!(started.elapsed() < STUCK, "no progress: {:?}", self.counts());
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// What was done, for people.
    pub(crate) fn summary(&self) -> String {
        let [records, commits, reads, heartbeats] = self.counts();
        format!(
            "{records} records and {commits} commits acked, {reads} reads of commits and \
             {heartbeats} heartbeats answered, no violation"
        )
    }

    fn counts(&self) -> [u64; 4] {
        [&self.records, &self.commits, &self.reads, &self.heartbeats]
            .map(|counter| counter.load(Ordering::SeqCst))
    }
}

/// A broker that restarts and does not serve again within this time hangs.
const STUCK: Duration = Duration::from_secs(60);

/// A small generator of numbers: the same seed, the same run.
pub(crate) struct Random(u64);

impl Random {
    /// From a seed.
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed ^ 0x9e37_79b9_7f4a_7c15)
    }

    /// A number of the range.
    pub(crate) fn within(&mut self, range: Range<u64>) -> u64 {
        // xorshift64*: good enough to spread moments, and nothing to depend on.
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let scrambled = self.0.wrapping_mul(0x2545_f491_4f6c_dd1d);
        range.start + (scrambled >> 33) % (range.end - range.start)
    }
}

/// A seed nobody chose.
pub(crate) fn entropy() -> u64 {
    use std::hash::{BuildHasher, Hasher, RandomState};
    RandomState::new().build_hasher().finish()
}
