//! Fixed partitions and a store of the application's own: no group at all. Reads from the stored
//! offsets to what was the end at the start.
//!
//! `cargo run --example e6_fixed_partitions_own_offsets -- localhost:9092 topic...`

use ottla_client::{Consumer, ConsumerConfig, Offset, Result, TopicPartition};
use std::collections::HashMap;
use std::time::Duration;

/// Reads partition 0 of each topic up to its present end and stores where it stopped; how many
/// records there were.
pub async fn run(
    brokers: &str,
    topics: &[&str],
    store: &mut HashMap<TopicPartition, Offset>,
) -> Result<usize> {
    let mut consumer = Consumer::new(ConsumerConfig::new(brokers))?;
    let partitions: Vec<_> = topics.iter().map(|topic| TopicPartition::new(*topic, 0)).collect();
    consumer.assign(partitions.iter().cloned())?;
    for partition in &partitions {
        let from = store.get(partition).copied().unwrap_or(Offset(0));
        consumer.seek(partition, from)?;
    }
    let ends: HashMap<_, _> = consumer.end_offsets(&partitions).await?.into_iter().collect();
    let mut read = 0;
    loop {
        let mut is_done = true;
        for (partition, end) in &ends {
            let position = consumer.position(partition).await?;
            store.insert(partition.clone(), position);
            is_done &= position >= *end;
        }
        if is_done {
            return Ok(read);
        }
        read += consumer.poll(Duration::from_millis(500)).await?.len();
    }
}

#[tokio::main]
async fn main() -> Result<()> {
    let topics: Vec<String> = std::env::args().skip(1).collect();
    let [brokers, topics @ ..] = &*topics else { return Ok(()) };
    let topics: Vec<&str> = topics.iter().map(String::as_str).collect();
    run(brokers, &topics, &mut HashMap::new()).await.map(drop)
}
