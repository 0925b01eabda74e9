//! A broker that answers nonsense: damaged bodies, other correlation ids, endless and negative
//! frames. Nothing panics, every call ends, and once the answers make sense again so does the
//! client (must-show 6 of the client's issue).

use crate::harness::{TestBroker, fill, reader, unique};
use ottla_client::{
    Admin, AdminConfig, Consumer, GroupProtocol, NewTopic, Offset, Producer, ProducerConfig,
    ProducerRecord, TopicPartition,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// Sets of clients of one run, at most [`BATCH`] at a time; `OTTLA_NONSENSE` asks for more.
fn seeds() -> usize {
    std::env::var("OTTLA_NONSENSE").ok().and_then(|text| text.parse().ok()).unwrap_or(16)
}

/// Pseudo-random numbers (xorshift64).
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % sides as u64) as usize
    }
}

/// One answer, as it may arrive.
fn mangled(mut frame: Vec<u8>, dice: &mut Dice) -> Vec<u8> {
    match dice.roll(18) {
        0 => frame[7] ^= 1,
        1 => frame[..4].copy_from_slice(&i32::MAX.to_be_bytes()),
        2 => frame[..4].copy_from_slice(&(-1_i32).to_be_bytes()),
        3 => frame.truncate(8 + dice.roll(frame.len() - 7)),
        4 => frame[8..].fill_with(|| dice.roll(256) as u8),
        5 | 6 if frame.len() > 8 => {
            for _ in 0..4 {
                let at = 8 + dice.roll(frame.len() - 8);
                frame[at] = dice.roll(256) as u8;
            }
        }
        _ => {}
    }
    frame
}

async fn connection(client: TcpStream, target: String, mut dice: Dice, lies: Arc<AtomicBool>) {
    let Ok(broker) = TcpStream::connect(target).await else { return };
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_broker, mut to_broker) = broker.into_split();
    let there = tokio::io::copy(&mut from_client, &mut to_broker);
    let back = async {
        loop {
            let Ok(length) = from_broker.read_i32().await else { return };
            let mut frame = length.to_be_bytes().to_vec();
            frame.resize(4 + usize::try_from(length).expect("a length"), 0);
            if from_broker.read_exact(&mut frame[4..]).await.is_err() {
                return;
            }
            let frame =
                if lies.load(Ordering::Relaxed) { mangled(frame, &mut dice) } else { frame };
            if to_client.write_all(&frame).await.is_err() {
                return;
            }
        }
    };
    tokio::select! {
        _ = there => {}
        () = back => {}
    }
}

/// A broker whose answers cannot be trusted while the switch is on.
async fn liar(seed: u64) -> (TestBroker, String, Arc<AtomicBool>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let advertised = format!("PLAINTEXT://{address}");
    let broker = TestBroker::start_with(&[("advertised.listeners", &advertised)]);
    let lies = Arc::new(AtomicBool::new(false));
    let (target, switch) = (broker.address(), lies.clone());
    tokio::spawn(async move {
        for number in 1.. {
            let Ok((client, _)) = listener.accept().await else { return };
            let dice = Dice((seed + 1) * 7919 + number * 104_729);
            tokio::spawn(connection(client, target.clone(), dice, switch.clone()));
        }
    });
    (broker, address, lies)
}

/// Counts panics, wherever they happen: those of background tasks fail no test by themselves.
fn count_panics() -> Arc<AtomicUsize> {
    let count = Arc::new(AtomicUsize::new(0));
    let (counted, before) = (count.clone(), std::panic::take_hook());
    std::panic::set_hook(Box::new(move |info| {
        if info.location().is_some_and(|at| !at.file().contains("tests/it")) {
            counted.fetch_add(1, Ordering::Relaxed);
        }
        before(info);
    }));
    count
}

/// Every protocol's consumer, a consumer alone, a producer and an administrator.
struct Clients {
    members: [Consumer; 3],
    alone: Consumer,
    producer: Producer,
    admin: Admin,
    topic: String,
    group: String,
}

impl Clients {
    fn new(address: &str, topic: &str) -> Self {
        let (soon, patience) = (Duration::from_millis(200), Duration::from_secs(2));
        let group = unique("nonsense");
        let consumer = |protocol: GroupProtocol| {
            let config = reader(address, &format!("{group}-{protocol:?}"));
            let config = config.group_protocol(protocol).metadata_max_age(soon);
            Consumer::new(config.request_timeout(patience).default_api_timeout(soon)).unwrap()
        };
        let protocols = [GroupProtocol::Classic, GroupProtocol::Consumer, GroupProtocol::Register];
        let mut members = protocols.map(consumer);
        members.iter_mut().for_each(|member| member.subscribe([topic]).unwrap());
        let mut alone = consumer(GroupProtocol::Classic);
        alone.assign([TopicPartition::new(topic, 0)]).unwrap();
        let producer = ProducerConfig::new(address).max_block(soon).request_timeout(patience);
        let admin = AdminConfig::new(address).default_api_timeout(soon).request_timeout(patience);
        Self {
            members,
            alone,
            producer: Producer::new(producer).unwrap(),
            admin: Admin::new(admin).unwrap(),
            topic: topic.to_owned(),
            group,
        }
    }

    /// Whatever comes back is right, as long as it comes back.
    async fn work(&mut self) {
        for member in &mut self.members {
            let _ = member.poll(Duration::from_millis(10)).await;
            drop(member.commit_async());
        }
        let _ = self.alone.poll(Duration::from_millis(10)).await;
        let _ = self.alone.seek(&TopicPartition::new(&*self.topic, 0), Offset(0));
        drop(self.producer.send(ProducerRecord::to(&self.topic).value("later")).await);
        let _ = self.admin.list_topics().await;
        let _ = self.admin.describe_group(&self.group).await;
    }

    /// The broker makes sense again, and so do they.
    async fn recover(mut self) {
        let only = TopicPartition::new(&*self.topic, 0);
        let brief = Duration::from_millis(100);
        let count = |polled: ottla_client::Result<ottla_client::Records>| {
            polled.map_or(0, |records| records.len())
        };
        while count(self.alone.poll(brief).await) == 0 {
            let _ = self.alone.seek(&only, Offset(0));
        }
        // One that was told that nothing helps has stopped for good; every one can be closed.
        for member in self.members {
            let _ = member.close().await;
        }
    }
}

#[tokio::test]
async fn nonsense_neither_panics_nor_lasts() {
    let panics = count_panics();
    let (_broker, address, lies) = liar(1).await;
    let (seeds, mut done) = (seeds(), 0);
    while done < seeds {
        let batch = BATCH.min(seeds - done);
        done += batch;
        let topic = unique("nonsense");
        let admin = Admin::new(AdminConfig::new(&address)).unwrap();
        admin.create_topic(NewTopic::new(&topic, 1)).await.unwrap();
        fill(&address, &topic, 1, 0, 50).await;
        let mut tasks = tokio::task::JoinSet::new();
        let mut clients: Vec<_> = (0..batch).map(|_| Clients::new(&address, &topic)).collect();
        lies.store(true, Ordering::Relaxed);
        for mut set in clients.drain(..) {
            tasks.spawn(async move {
                for _round in 0..10 {
                    set.work().await;
                }
                set
            });
        }
        let clients = tasks.join_all().await;
        lies.store(false, Ordering::Relaxed);
        let mut tasks = tokio::task::JoinSet::new();
        for set in clients {
            tasks.spawn(set.recover());
        }
        tasks.join_all().await;
        let mut late = Consumer::new(reader(&address, &unique("late"))).unwrap();
        late.subscribe([&*topic]).unwrap();
        let mut values = Vec::new();
        while values.len() < 50 {
            let records = late.poll(Duration::from_millis(100)).await.unwrap();
            values.extend(records.iter().filter_map(number));
        }
        assert_eq!(values, (0..50).collect::<Vec<_>>());
        assert_eq!(panics.load(Ordering::Relaxed), 0);
    }
}

fn number(record: ottla_client::Record<'_>) -> Option<i32> {
    std::str::from_utf8(record.value()?).ok()?.parse().ok()
}

/// How a broker goes on once it has said what it speaks.
#[derive(Clone, Copy)]
enum Endless {
    /// A long answer to what was asked that never ends.
    Answer,
    /// Answers to what nobody asked, as fast as they can be sent.
    OtherAnswers,
    /// Zeros, which are empty frames, as fast as they can be sent.
    Zeros,
    /// An answer longer than anything.
    TooLong,
}

impl Endless {
    /// What comes next, and after which pause, where `id` is what was asked.
    fn next(self, id: i32, is_first: bool) -> (Vec<u8>, Duration) {
        let frame = |length: i32, id: i32, body: usize| {
            [&length.to_be_bytes()[..], &id.to_be_bytes()[..], &vec![0; body][..]].concat()
        };
        match self {
            Self::Answer if is_first => (frame(200 << 20, id, 0), Duration::ZERO),
            Self::Answer => (vec![1; 64 << 10], Duration::from_millis(50)),
            Self::OtherAnswers => (frame(100 << 20, id + 1000, 64 << 10), Duration::ZERO),
            Self::Zeros => (vec![0; 64 << 10], Duration::ZERO),
            Self::TooLong => (frame(i32::MAX, id, 64 << 10), Duration::ZERO),
        }
    }
}

async fn endless(client: TcpStream, target: String, kind: Endless) -> std::io::Result<()> {
    let mut broker = TcpStream::connect(target).await?;
    let (mut from_client, mut to_client) = client.into_split();
    // ApiVersions goes through.
    let length = from_client.read_i32().await?;
    let mut request = vec![0; usize::try_from(length).expect("a length")];
    from_client.read_exact(&mut request).await?;
    broker.write_i32(length).await?;
    broker.write_all(&request).await?;
    let length = broker.read_i32().await?;
    let mut answer = vec![0; usize::try_from(length).expect("a length")];
    broker.read_exact(&mut answer).await?;
    to_client.write_i32(length).await?;
    to_client.write_all(&answer).await?;
    let mut header = [0; 12];
    from_client.read_exact(&mut header).await?;
    let id = i32::from_be_bytes(*header.last_chunk().expect("twelve bytes"));
    for number in 0.. {
        let (bytes, pause) = kind.next(id, number == 0);
        to_client.write_all(&bytes).await?;
        tokio::time::sleep(pause).await;
    }
    Ok(())
}

/// Answers that never end fill no memory: nothing is made room for before it is there, and what
/// answers nothing is not collected.
#[tokio::test]
async fn endless_answers_fill_no_memory() {
    for kind in [Endless::Answer, Endless::OtherAnswers, Endless::Zeros, Endless::TooLong] {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let target = crate::harness::ottla();
        let server = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(endless(client, target.clone(), kind));
            }
        });
        let mut clients = Clients::new(&address, "endless");
        let before = resident_mib();
        for _round in 0..5 {
            clients.work().await;
            let grown = resident_mib() - before;
            // Other tests of this program need some meanwhile; a single answer would be 200.
            assert!(grown < 150, "{grown} MiB more");
        }
        server.abort();
    }
}

/// Memory that this process has, in MiB.
fn resident_mib() -> i64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|text| text.trim().strip_suffix("kB")?.trim().parse::<i64>().ok());
    kib.unwrap_or(0) / 1024
}

/// Sets of clients that are lied to at a time, at most.
const BATCH: usize = 32;
