//! A group with automatic commits: subscribe, take records, process them.
//!
//! `cargo run --example e1_automatic_commits -- localhost:9092 group topic...`

use ottla_client::{Consumer, ConsumerConfig, OffsetReset, Result};

/// Reads `count` records, then leaves the group.
pub async fn run(brokers: &str, group: &str, topics: &[&str], count: usize) -> Result<usize> {
    let config =
        ConsumerConfig::new(brokers).group_id(group).auto_offset_reset(OffsetReset::Earliest);
    let mut consumer = Consumer::new(config)?;
    consumer.subscribe(topics.iter().copied())?;
    let mut bytes = 0;
    for _ in 0..count {
        let record = consumer.next().await?;
        bytes += record.value_bytes().len();
    }
    consumer.close().await?;
    Ok(bytes)
}

#[tokio::main]
async fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [brokers, group, topics @ ..] = &*arguments else { return Ok(()) };
    let topics: Vec<&str> = topics.iter().map(String::as_str).collect();
    run(brokers, group, &topics, usize::MAX).await.map(drop)
}
