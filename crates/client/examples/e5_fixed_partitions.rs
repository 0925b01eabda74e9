//! Fixed partitions, from the committed offsets to what was their end at the start; then it commits
//! and ends. The group keeps the offsets and knows of no member.
//!
//! `cargo run --example e5_fixed_partitions -- localhost:9092 group topic...`

use ottla_client::{Consumer, ConsumerConfig, OffsetReset, Result, TopicPartition};
use std::collections::HashMap;
use std::time::Duration;

/// Reads every partition of the topics up to its present end; how many records there were.
pub async fn run(brokers: &str, group: &str, topics: &[&str]) -> Result<usize> {
    let config = ConsumerConfig::new(brokers)
        .group_id(group)
        .auto_offset_reset(OffsetReset::Earliest)
        .enable_auto_commit(false);
    let mut consumer = Consumer::new(config)?;
    let mut partitions = Vec::new();
    for topic in topics {
        let count = consumer.partitions_for(topic).await?.partitions.len();
        partitions.extend((0..).take(count).map(|index| TopicPartition::new(*topic, index)));
    }
    let ends: HashMap<_, _> = consumer.end_offsets(&partitions).await?.into_iter().collect();
    consumer.assign(partitions.iter().cloned())?;
    let mut read = 0;
    loop {
        // Every partition has to be there, not only the one that was looked at last.
        let mut is_done = true;
        for (partition, end) in &ends {
            is_done &= consumer.position(partition).await? >= *end;
        }
        if is_done {
            break;
        }
        read += consumer.poll(Duration::from_millis(500)).await?.len();
    }
    consumer.commit().await?;
    consumer.close().await?;
    Ok(read)
}

#[tokio::main]
async fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [brokers, group, topics @ ..] = &*arguments else { return Ok(()) };
    let topics: Vec<&str> = topics.iter().map(String::as_str).collect();
    run(brokers, group, &topics).await.map(drop)
}
