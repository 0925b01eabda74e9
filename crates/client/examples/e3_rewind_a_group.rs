//! Rewinds a whole group: whenever partitions come, each goes back a hundred records from where the
//! group had committed. Restart the members one by one with the flag; each restart is a rebalance,
//! until everyone has rewound. Restart them without it afterwards.
//!
//! `cargo run --example e3_rewind_a_group -- localhost:9092 group topic...`

use ottla_client::{
    Consumer, ConsumerConfig, ConsumerHandle, Offset, OffsetReset, RebalanceListener, Result,
    TopicPartition,
};

/// How many records each partition goes back.
pub const BACK: i64 = 100;

struct Rewind {
    is_asked_for: bool,
}

impl RebalanceListener for Rewind {
    async fn assigned(&mut self, consumer: &ConsumerHandle, new: &[TopicPartition]) -> Result<()> {
        if !self.is_asked_for {
            return Ok(());
        }
        for (partition, committed) in consumer.committed(new).await? {
            if let Some(committed) = committed {
                consumer.seek(&partition, Offset((committed.offset.0 - BACK).max(0)))?;
            }
        }
        Ok(())
    }

    async fn revoked(&mut self, consumer: &ConsumerHandle, _: &[TopicPartition]) -> Result<()> {
        consumer.commit().await
    }
}

/// Reads `count` records, from further back if `rewinds`; the first one's offset.
pub async fn run(
    brokers: &str,
    group: &str,
    topics: &[&str],
    (count, rewinds): (usize, bool),
) -> Result<Option<Offset>> {
    let config = ConsumerConfig::new(brokers)
        .group_id(group)
        .auto_offset_reset(OffsetReset::Earliest)
        .enable_auto_commit(false);
    let mut consumer = Consumer::new(config)?;
    consumer.set_listener(Rewind { is_asked_for: rewinds });
    consumer.subscribe(topics.iter().copied())?;
    let mut first = None;
    for _ in 0..count {
        let record = consumer.next().await?;
        first.get_or_insert(record.offset);
    }
    // Leaving commits, through the listener.
    consumer.close().await?;
    Ok(first)
}

#[tokio::main]
async fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [brokers, group, topics @ ..] = &*arguments else { return Ok(()) };
    let topics: Vec<&str> = topics.iter().map(String::as_str).collect();
    run(brokers, group, &topics, (usize::MAX, true)).await.map(drop)
}
