//! A group whose offsets lie in a store of the application's own, beside its results: written when
//! partitions go, read when they come. The store here is a map; a database's transaction would
//! hold offset and result together.
//!
//! `cargo run --example e4_own_offsets -- localhost:9092 group topic...`

use ottla_client::{
    Consumer, ConsumerConfig, ConsumerHandle, Offset, OffsetReset, RebalanceListener, Result,
    TopicPartition,
};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

/// The next offset of each partition.
pub type Store = Arc<Mutex<HashMap<TopicPartition, Offset>>>;

struct Keeper(Store);

impl Keeper {
    fn find(&self, partition: &TopicPartition) -> Option<Offset> {
        self.0.lock().ok()?.get(partition).copied()
    }
}

impl RebalanceListener for Keeper {
    async fn assigned(&mut self, consumer: &ConsumerHandle, new: &[TopicPartition]) -> Result<()> {
        for partition in new {
            if let Some(offset) = self.find(partition) {
                consumer.seek(partition, offset)?;
            }
        }
        Ok(())
    }

    async fn revoked(&mut self, consumer: &ConsumerHandle, gone: &[TopicPartition]) -> Result<()> {
        for partition in gone {
            let position = consumer.position(partition).await?;
            if let Ok(mut store) = self.0.lock() {
                store.insert(partition.clone(), position);
            }
        }
        Ok(())
    }
}

/// Reads `count` records, then leaves the group; their values.
pub async fn run(
    brokers: &str,
    group: &str,
    topics: &[&str],
    count: usize,
    store: &Store,
) -> Result<Vec<Vec<u8>>> {
    let config = ConsumerConfig::new(brokers)
        .group_id(group)
        .auto_offset_reset(OffsetReset::Earliest)
        .enable_auto_commit(false);
    let mut consumer = Consumer::new(config)?;
    consumer.set_listener(Keeper(store.clone()));
    consumer.subscribe(topics.iter().copied())?;
    let mut values = Vec::new();
    while values.len() < count {
        values.push(consumer.next().await?.value_bytes().to_vec());
    }
    consumer.close().await?;
    Ok(values)
}

#[tokio::main]
async fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [brokers, group, topics @ ..] = &*arguments else { return Ok(()) };
    let topics: Vec<&str> = topics.iter().map(String::as_str).collect();
    run(brokers, group, &topics, 1_000, &Store::default()).await.map(drop)
}
