//! Offsets of partitions, and deleting the records before one.

use super::{Admin, Outcomes, by_topic};
use crate::cluster::{FoundOffset, OffsetSpec, Purpose, leader};
use crate::{Error, IsolationLevel, Result};
use ottla_model::{NodeId, Offset, TopicPartition};
use ottla_wire::generated::delete_records_request::{DeleteRecordsPartition, DeleteRecordsTopic};
use ottla_wire::generated::{DeleteRecordsRequest, DeleteRecordsResponse};
use std::collections::BTreeMap;

impl Admin {
    /// Looks up an offset of each partition.
    ///
    /// # Errors
    /// For each partition that has no such topic, no leader, or no answer in time.
    pub async fn list_offsets(
        &self,
        wanted: impl IntoIterator<Item = (TopicPartition, OffsetSpec)>,
    ) -> Result<Outcomes<TopicPartition, FoundOffset>> {
        let wanted: Vec<_> = wanted.into_iter().collect();
        let order: Vec<TopicPartition> = wanted.iter().map(|(of, _)| of.clone()).collect();
        self.know(order.iter()).await?;
        let retry = self.cluster.retry();
        let level = IsolationLevel::ReadUncommitted;
        let found = self.cluster.list_offsets(wanted, level, retry).await;
        let mut found: BTreeMap<_, _> = found.into_iter().collect();
        let in_order = order.into_iter().filter_map(|of| found.remove_entry(&of));
        Ok(in_order.collect())
    }

    /// Deletes the records before an offset of each partition; [`Offset`]`(-1)` for all there are.
    /// Answers the first offset left.
    ///
    /// # Errors
    /// As a whole if the leaders cannot be learnt; for each partition as its leader refuses.
    pub async fn delete_records(
        &self,
        before: impl IntoIterator<Item = (TopicPartition, Offset)>,
    ) -> Result<Outcomes<TopicPartition, Offset>> {
        let before: Vec<_> = before.into_iter().collect();
        self.know(before.iter().map(|(partition, _)| partition)).await?;
        let snapshot = self.cluster.snapshot();
        let mut led: BTreeMap<NodeId, Vec<(TopicPartition, Offset)>> = BTreeMap::new();
        let mut outcomes = Vec::new();
        for (partition, offset) in before {
            match leader(&snapshot, &partition) {
                Ok(node) => led.entry(node).or_default().push((partition, offset)),
                Err(error) => outcomes.push((partition, Err(error))),
            }
        }
        for (node, items) in led {
            match self.delete_records_at(node, &items).await {
                Ok(deleted) => outcomes.extend(deleted),
                Err(error) => {
                    outcomes.extend(items.into_iter().map(|(of, _)| (of, Err(error.clone()))));
                }
            }
        }
        Ok(outcomes)
    }

    async fn delete_records_at(
        &self,
        node: NodeId,
        items: &[(TopicPartition, Offset)],
    ) -> Result<Outcomes<TopicPartition, Offset>> {
        let mut retry = self.cluster.retry();
        let connect = || async { self.cluster.connection(node, Purpose::General).await };
        let connection = retry.run(connect).await?;
        let topics = by_topic(items).into_iter().map(|(name, partitions)| DeleteRecordsTopic {
            name,
            partitions: partitions
                .into_iter()
                .map(|(partition_index, offset)| DeleteRecordsPartition {
                    partition_index,
                    offset: offset.0,
                })
                .collect(),
        });
        let request =
            DeleteRecordsRequest { topics: topics.collect(), timeout_ms: self.timeout_ms() };
        let answer = retry.bound(connection.call(&request)).await?;
        let response: DeleteRecordsResponse<'_> = answer.read()?;
        let mut outcomes = Vec::new();
        for topic in &response.topics {
            for result in &topic.partitions {
                let partition = TopicPartition::new(topic.name, result.partition_index);
                let what = || format!("cannot delete records of {partition}");
                let deleted = Error::check(result.error_code, what);
                let deleted = deleted.map(|()| Offset(result.low_watermark));
                outcomes.push((partition, deleted));
            }
        }
        Ok(outcomes)
    }

    /// Has the leaders of these partitions known.
    async fn know(&self, partitions: impl Iterator<Item = &TopicPartition>) -> Result<()> {
        let snapshot = self.cluster.snapshot();
        let mut is_known = true;
        for partition in partitions {
            is_known &= leader(&snapshot, partition).is_ok();
            self.cluster.add_interest(&partition.topic);
        }
        if !is_known {
            self.cluster.refreshed(&self.cluster.retry()).await?;
        }
        Ok(())
    }
}
