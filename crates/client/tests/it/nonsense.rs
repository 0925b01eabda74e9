//! A broker that answers nonsense: damaged bodies, other correlation ids, endless and negative
//! frames. Nothing panics, every call ends, and once the answers make sense again so does the
//! client (must-show 6 of the client's issue).

use crate::harness::{TestBroker, fill, read, reader, unique};
use ottla_client::{
    Admin, AdminConfig, Consumer, NewTopic, Offset, Producer, ProducerConfig, ProducerRecord,
    TopicPartition,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// Seeds of one run; `OTTLA_NONSENSE` asks for more.
fn seeds() -> u64 {
    std::env::var("OTTLA_NONSENSE").ok().and_then(|text| text.parse().ok()).unwrap_or(3)
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

#[tokio::test]
async fn nonsense_neither_panics_nor_lasts() {
    let panics = count_panics();
    for seed in 0..seeds() {
        let (_broker, address, lies) = liar(seed).await;
        let (name, group) = (unique("nonsense"), unique("nonsense"));
        let soon = Duration::from_millis(300);
        let config = AdminConfig::new(&address).default_api_timeout(soon).request_timeout(soon);
        let admin = Admin::new(config).unwrap();
        admin.create_topic(NewTopic::new(&name, 1)).await.unwrap();
        fill(&address, &name, 1, 0, 50).await;
        let patient = |config: ottla_client::ConsumerConfig| {
            config.metadata_max_age(soon).request_timeout(soon).default_api_timeout(soon)
        };
        let mut member = Consumer::new(patient(reader(&address, &group))).unwrap();
        member.subscribe([&*name]).unwrap();
        let mut alone = Consumer::new(patient(reader(&address, &unique("alone")))).unwrap();
        let only = TopicPartition::new(&*name, 0);
        alone.assign([only.clone()]).unwrap();
        let producer = ProducerConfig::new(&address).max_block(soon).request_timeout(soon);
        let producer = Producer::new(producer).unwrap();

        lies.store(true, Ordering::Relaxed);
        for _round in 0..10 {
            // Whatever comes back is right, as long as it comes back.
            let _ = member.poll(Duration::from_millis(20)).await;
            let _ = alone.poll(Duration::from_millis(20)).await;
            let _ = alone.seek(&only, Offset(0));
            drop(member.commit_async());
            drop(producer.send(ProducerRecord::to(&name).value("later")).await);
            let _ = admin.list_topics().await;
            let _ = admin.describe_group(&group).await;
        }
        lies.store(false, Ordering::Relaxed);

        alone.seek(&only, Offset(0)).unwrap();
        while alone.poll(Duration::from_millis(100)).await.map_or(0, |records| records.len()) == 0 {
            let _ = alone.seek(&only, Offset(0));
        }
        let mut late = Consumer::new(reader(&address, &unique("late"))).unwrap();
        late.subscribe([&*name]).unwrap();
        assert_eq!(read(&mut late, 50).await, (0..50).collect::<Vec<_>>());
        assert_eq!(panics.load(Ordering::Relaxed), 0);
    }
}
