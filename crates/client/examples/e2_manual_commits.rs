//! A group whose offsets the application commits, every hundred records; where processing fails, it
//! seeks back. That concerns this consumer alone: nobody rebalances.
//!
//! `cargo run --example e2_manual_commits -- localhost:9092 group topic...`

use ottla_client::{Consumer, ConsumerConfig, Offset, OffsetReset, Record, Result, TopicPartition};
use std::collections::HashMap;
use std::time::Duration;

/// Processes `count` records by `process`, which may fail, and leaves the group.
pub async fn run(
    brokers: &str,
    group: &str,
    topics: &[&str],
    count: usize,
    mut process: impl FnMut(Record<'_>) -> bool,
) -> Result<()> {
    let config = ConsumerConfig::new(brokers)
        .group_id(group)
        .auto_offset_reset(OffsetReset::Earliest)
        .enable_auto_commit(false);
    let mut consumer = Consumer::new(config)?;
    consumer.subscribe(topics.iter().copied())?;
    let (mut done, mut committed) = (0, 0);
    while done < count {
        let records = consumer.poll(Duration::from_secs(1)).await?;
        let mut failed: HashMap<&TopicPartition, Offset> = HashMap::new();
        for record in records.iter() {
            // What comes behind a failure waits for it.
            if failed.contains_key(record.partition()) {
                continue;
            }
            if process(record) {
                done += 1;
            } else {
                failed.insert(record.partition(), record.offset());
            }
        }
        for (partition, offset) in failed {
            consumer.seek(partition, offset)?;
        }
        if done - committed >= 100 || done >= count {
            consumer.commit().await?;
            committed = done;
        }
    }
    consumer.close().await
}

#[tokio::main]
async fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [brokers, group, topics @ ..] = &*arguments else { return Ok(()) };
    let topics: Vec<&str> = topics.iter().map(String::as_str).collect();
    run(brokers, group, &topics, usize::MAX, |record| record.value().is_some()).await
}
