//! Reading and producing as fast as it goes, as a program of `cargo xtask bench consume`: what
//! `matrix/README.md` calls a speed program.

use ottla_client::{
    Consumer, ConsumerConfig, Delivery, OffsetReset, Producer, ProducerConfig, ProducerRecord,
    TopicPartition,
};
use std::collections::VecDeque;
use std::io::Write as _;
use std::time::{Duration, Instant};

type Outcome<T = ()> = std::result::Result<T, Box<dyn std::error::Error>>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Outcome {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [what, brokers, topic, partitions, warm, records, bytes] = &*words else {
        return Err("usage: read|write BROKERS TOPIC PARTITIONS WARM RECORDS BYTES".into());
    };
    let (partitions, bytes): (i32, usize) = (partitions.parse()?, bytes.parse()?);
    let (warm, records): (u64, u64) = (warm.parse()?, records.parse()?);
    for (word, count) in [("warm", warm), ("done", records)] {
        let began = Instant::now();
        match what.as_str() {
            "read" => read(brokers, topic, partitions, count).await?,
            _ => write(brokers, topic, count, bytes).await?,
        }
        let mut out = std::io::stdout().lock();
        writeln!(out, "{word} {count} {}", began.elapsed().as_secs_f64())?;
        out.flush()?;
        std::io::stdin().read_line(&mut String::new())?;
    }
    Ok(())
}

/// Reads so many records, every partition's in order and without a gap.
async fn read(brokers: &str, topic: &str, partitions: i32, count: u64) -> Outcome {
    let config = ConsumerConfig::new(brokers).auto_offset_reset(OffsetReset::Earliest);
    let mut consumer = Consumer::new(config)?;
    consumer.assign((0..partitions).map(|index| TopicPartition::new(topic, index)))?;
    let mut next = vec![0; usize::try_from(partitions)?];
    let (mut read, mut bytes) = (0, 0);
    while read < count {
        let records = consumer.poll(Duration::from_secs(1)).await?;
        for (partition, _, run) in records.runs() {
            let next = &mut next[usize::try_from(partition.partition.0)?];
            for record in run {
                if record.offset().0 != *next {
                    return Err(format!("{partition}: {} is not {next}", record.offset()).into());
                }
                *next += 1;
                read += 1;
                bytes += record.value().map_or(0, <[u8]>::len);
            }
        }
    }
    if bytes == 0 { Err("nothing but empty records".into()) } else { Ok(()) }
}

/// Produces so many records, and waits until each is stored.
async fn write(brokers: &str, topic: &str, count: u64, bytes: usize) -> Outcome {
    let config = ProducerConfig::new(brokers).set("linger.ms", "5")?.set("batch.size", "16384")?;
    let producer = Producer::new(config)?;
    let value = vec![b'x'; bytes];
    let mut open: VecDeque<Delivery> = VecDeque::new();
    for _ in 0..count {
        open.push_back(producer.send(ProducerRecord::to(topic).value(&value[..])).await?);
        if open.len() > OPEN_MAX
            && let Some(first) = open.pop_front()
        {
            first.await?;
        }
    }
    producer.flush().await?;
    for delivery in open {
        delivery.await?;
    }
    Ok(producer.close().await?)
}

/// Records whose fate is not asked yet: as many as `librdkafka` queues by default.
const OPEN_MAX: usize = 100_000;
