//! The machine: a disk, a broker that runs on it, and the steps that its threads would take.

use super::client::Call;
use crate::api::{Answer, Pace, dispatch};
use crate::broker::{Broker, Parts};
use crate::clock;
use crate::config::{Config, Source};
use crate::net::{Listener, Session, Shutdown};
use crate::partitions::{Partitions, SyncQueue, upkeep_round};
use crate::server::{StartError, open_cluster, take_office};
use crate::stewards;
use ottla_cluster::store::embedded::Embedded;
use ottla_model::ConnectionId;
use ottla_storage::fs::sim::{Rng, SimFs};
use ottla_storage::fs::{File, Fs, OpenMode};
use ottla_wire::{Output, Request, frame};
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::task::JoinSet;

/// A machine and its disk.
pub(super) struct Machine {
    /// The disk, as the test sees it.
    pub(super) fs: SimFs,
    config: Config,
}

/// A broker at work, until its boot ends.
pub(super) struct Run {
    fs: SimFs,
    broker: Arc<Broker>,
    syncs: SyncQueue,
    stewards: JoinSet<()>,
    session: Mutex<Session>,
    _shutdown: Shutdown,
}

impl Machine {
    /// One with an empty disk, and settings that make much happen in little time.
    pub(super) fn new(rng: &mut Rng) -> Self {
        let fs = SimFs::new(rng.next_u64());
        fs.create_dir(Path::new(DATA)).expect("the root is there");
        fs.sync_dir(Path::new("/")).expect("nothing fails yet");
        let mut config = Config::default();
        let mut set = |name: &str, value: u64| {
            config.set(name, &value.to_string(), Source::File).expect("a setting that fits");
        };
        set("offsets.topic.num.partitions", 2);
        set("group.initial.rebalance.delay.ms", 0);
        set("log.roll.ms", 1 + rng.below(40));
        set("log.index.interval.bytes", rng.below(2_000));
        set("log.segment.delete.delay.ms", rng.below(20));
        config.set("log.cleaner.min.cleanable.ratio", "0.1", Source::File).expect("a setting");
        config.set("log.dirs", DATA, Source::File).expect("a setting");
        Self { fs, config }
    }

    /// Starts a broker on what the disk holds.
    pub(super) async fn start(&self) -> Result<Run, StartError> {
        let fs = self.fs.boot();
        let file = fs.open(&Path::new(DATA).join("cluster.redb"), OpenMode::Create);
        let file = file.and_then(|file| fs.sync_dir(Path::new(DATA)).map(|()| file));
        let unusable = |error: &dyn std::fmt::Display| StartError::Metadata(error.to_string());
        let store = Embedded::open_backend(Backend(file.map_err(|error| unusable(&error))?));
        let store = Arc::new(store.map_err(|error| unusable(&error))?);
        let mut tasks = JoinSet::new();
        let (cluster, driver) = open_cluster(store, &self.config).await?;
        tasks.spawn(stewards::drive(driver));
        let syncs = SyncQueue::unserved();
        let over = Arc::new(fs.clone());
        let partitions = Arc::new(Partitions::new(self.config.clone(), over, syncs.clone()));
        let shutdown = Shutdown::new();
        let address = SocketAddr::from(([127, 0, 0, 1], 9092));
        let listener = Arc::new(Listener {
            name: "PLAINTEXT".into(),
            bound: address,
            advertised_host: "localhost".into(),
            advertised_port: 9092,
        });
        let parts = Parts {
            config: self.config.clone(),
            listeners: vec![Arc::clone(&listener)],
            cluster,
            partitions,
            lifeline: shutdown.lifeline(),
        };
        let (broker, _) = take_office(parts, &mut tasks).await?;
        let line = broker.lines.open(ConnectionId(1));
        let session = Mutex::new(Session::new(ConnectionId(1), address, listener, line));
        Ok(Run { fs, broker, syncs, stewards: tasks, session, _shutdown: shutdown })
    }
}

impl Run {
    /// Whether the process has ended.
    pub(super) fn is_over(&self) -> bool {
        self.fs.is_over()
    }

    /// Puts a request to the broker, as a connection would.
    pub(super) fn call<'a, R: Request<'a>>(&self, version: i16, request: &R) -> Call {
        let mut out = Output::new();
        frame::write_request(&mut out, version, 1, Some("sim"), request).expect("it fits");
        let bytes = out.into_vec();
        let mut session = self.session.lock().expect("no panic while it is held");
        let body = &bytes[size_of::<i32>()..];
        let when = (clock::now(), Pace::Long);
        let answer = dispatch(&self.broker, &mut session, when, &mut Vec::new(), body);
        let later = match answer {
            Ok((_, Answer::Now(reply))) => Box::pin(std::future::ready(reply)),
            Ok((_, Answer::Later(later) | Answer::Held(later, _))) => later,
            other => panic!("{other:?}"),
        };
        Call::new(R::KEY, version, tokio::spawn(later))
    }

    /// Syncs the log that has waited longest, as a thread of the broker would. False if none waits.
    pub(super) fn sync_one(&self) -> bool {
        self.syncs.take().map(|partition| partition.sync()).is_some()
    }

    /// Lets upkeep look at every log. Returns how many compactions it ran.
    pub(super) fn upkeep(&self) -> usize {
        upkeep_round(&self.broker.partitions)
    }

    /// Closes the logs, as a shutdown does at its end.
    pub(super) fn close(&self) {
        self.broker.partitions.all().iter().for_each(|partition| partition.close());
    }

    /// Waits until every shard answers. False if the machine ended before.
    pub(super) async fn until_ready(&self) -> bool {
        for _ in 0..PATIENCE_MS {
            while self.sync_one() {}
            let cells = self.broker.shards.all();
            if !cells.is_empty() && cells.iter().all(|cell| cell.is_active()) {
                return !self.is_over();
            }
            if self.is_over() {
                return false;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        panic!("the shards do not load");
    }

    /// The process is over: nothing of it goes on.
    pub(super) fn forget(&mut self) {
        self.stewards.abort_all();
        self.broker.shards.resign();
        // A parked partition holds its log, and the log its handles.
        while self.syncs.take().is_some() {}
    }
}

/// A `redb` file on the machine's disk.
#[derive(Debug)]
struct Backend(Arc<dyn File>);

impl redb::StorageBackend for Backend {
    fn len(&self) -> io::Result<u64> {
        self.0.size()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let mut bytes = Vec::with_capacity(out.len());
        self.0.read_at(offset, out.len(), &mut bytes)?;
        if bytes.len() < out.len() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        out.copy_from_slice(&bytes);
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.0.sync()
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.0.write_at(offset, data)
    }
}

const DATA: &str = "/data";
/// A broker that takes longer than this hangs.
const PATIENCE_MS: u64 = 20_000;
