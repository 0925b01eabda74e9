//! What can be done with a consumer besides polling it: positions, commits, pauses, lookups.

use super::assignment::not_assigned;
use super::partition::Position;
use super::shared::{Shared, ToCommit};
use crate::admin::CommittedOffset;
use crate::cluster::{FoundOffset, OffsetSpec, Snapshot, TopicInfo};
use crate::{Error, ErrorKind, Result, clock};
use ottla_model::{Offset, Timestamp, TopicName, TopicPartition};
use ottla_wire::ErrorCode;
use ottla_wire::generated::MetadataResponse;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use tokio::sync::oneshot;

/// A handle to a consumer: everything but polling and subscribing. Cheap to clone, usable from
/// other tasks, from a [`RebalanceListener`](super::RebalanceListener), and while a stream borrows
/// the consumer. A [`Consumer`](super::Consumer) dereferences to its own.
///
/// It does not keep the consumer alive: calls on a closed one are `Closed`.
#[derive(Clone, Debug)]
pub struct ConsumerHandle {
    pub(super) shared: Arc<Shared>,
}

/// What happened to a consumer so far, and what it holds now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct ConsumerMetrics {
    /// Records handed out.
    pub records: u64,
    /// Bytes fetched, as they travelled.
    pub bytes: u64,
    /// Fetches answered.
    pub fetches: u64,
    /// Rebalances that ended.
    pub rebalances: u64,
    /// Bytes fetched and not handed out yet.
    pub prefetched_bytes: usize,
}

/// The outcome of a commit that was started. Dropping it does not take the commit back.
#[must_use = "a commit that was refused is only told here"]
#[derive(Debug)]
pub struct PendingCommit(oneshot::Receiver<Result<()>>);

impl Future for PendingCommit {
    type Output = Result<()>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        let outcome = std::task::ready!(Pin::new(&mut self.0).poll(context));
        Poll::Ready(outcome.unwrap_or_else(|_| Err(Error::closed())))
    }
}

impl ConsumerHandle {
    /// The partitions that are read now.
    pub fn assignment(&self) -> Vec<TopicPartition> {
        self.shared.assignment.lock().keys().collect()
    }

    /// The next offset that will be handed out of a partition; waits until it is known.
    /// Cancel safe.
    ///
    /// # Errors
    /// `State`, if the partition is not assigned; `Retriable`, if it has no position in time.
    pub async fn position(&self, partition: &TopicPartition) -> Result<Offset> {
        let deadline = clock::now() + self.shared.config.client.default_api_timeout;
        loop {
            {
                let assignment = self.shared.assignment.lock();
                let one = assignment.get(partition).ok_or_else(|| not_assigned(partition))?;
                if let Some(position) = one.position() {
                    return Ok(position.offset);
                }
            }
            if clock::now() >= deadline {
                let message = format!("the position in {partition} was not found in time");
                return Err(Error::new(ErrorKind::Retriable, message));
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }

    /// Reads a partition on from this offset. Records fetched before are not handed out.
    ///
    /// # Errors
    /// `State`, if the partition is not assigned.
    pub fn seek(&self, partition: &TopicPartition, offset: Offset) -> Result<()> {
        let to = Position { offset, epoch: None };
        self.shared.assignment.lock().seek(partition, to)?;
        self.shared.fetch_wake.notify_one();
        Ok(())
    }

    /// Reads partitions on from their first records.
    ///
    /// # Errors
    /// `State`, if one is not assigned.
    pub fn seek_to_beginning(&self, partitions: &[TopicPartition]) -> Result<()> {
        self.seek_to(partitions, OffsetSpec::Earliest)
    }

    /// Reads partitions on behind their last records.
    ///
    /// # Errors
    /// `State`, if one is not assigned.
    pub fn seek_to_end(&self, partitions: &[TopicPartition]) -> Result<()> {
        self.seek_to(partitions, OffsetSpec::Latest)
    }

    /// Reads partitions on from the first record that is not older than `time`; from the end, if
    /// none is.
    ///
    /// # Errors
    /// `State`, if one is not assigned.
    pub fn seek_to_time(&self, partitions: &[TopicPartition], time: Timestamp) -> Result<()> {
        self.seek_to(partitions, OffsetSpec::At(time))
    }

    fn seek_to(&self, partitions: &[TopicPartition], spec: OffsetSpec) -> Result<()> {
        let mut assignment = self.shared.assignment.lock();
        for partition in partitions {
            assignment.seek_to(partition, spec)?;
        }
        drop(assignment);
        self.shared.fetch_wake.notify_one();
        Ok(())
    }

    /// Hands out nothing of these until they are resumed; they stay this consumer's.
    ///
    /// # Errors
    /// `State`, if one is not assigned.
    pub fn pause(&self, partitions: &[TopicPartition]) -> Result<()> {
        let mut assignment = self.shared.assignment.lock();
        partitions.iter().try_for_each(|partition| assignment.pause(partition, true))
    }

    /// Hands out records of these again.
    ///
    /// # Errors
    /// `State`, if one is not assigned.
    pub fn resume(&self, partitions: &[TopicPartition]) -> Result<()> {
        let mut assignment = self.shared.assignment.lock();
        partitions.iter().try_for_each(|partition| assignment.pause(partition, false))?;
        drop(assignment);
        self.shared.fetch_wake.notify_one();
        self.shared.news.notify_one();
        Ok(())
    }

    /// The partitions that are paused.
    pub fn paused(&self) -> Vec<TopicPartition> {
        self.shared.assignment.lock().paused()
    }

    /// How many records of a partition are left to be handed out, as far as the last fetch knew;
    /// none before there was one.
    pub fn lag(&self, partition: &TopicPartition) -> Option<i64> {
        let assignment = self.shared.assignment.lock();
        let one = assignment.get(partition)?;
        Some((one.high_watermark?.0 - one.position()?.offset.0).max(0))
    }

    /// Commits the positions of all partitions: everything handed out. Waits for the coordinator,
    /// however often it takes. Cancel safe: a commit that was begun goes on.
    ///
    /// # Errors
    /// `Rebalanced`, if a partition is another's meanwhile: poll again; others as the coordinator
    /// refuses.
    pub async fn commit(&self) -> Result<()> {
        self.commit_async()?.await
    }

    /// Starts what [`Self::commit`] does; commits take effect in the order they are started.
    ///
    /// # Errors
    /// `Config` without a group; `Closed`.
    pub fn commit_async(&self) -> Result<PendingCommit> {
        let positions = self.shared.assignment.lock().positions();
        let offsets: Vec<ToCommit> = positions.into_iter().map(to_commit).collect();
        self.shared.start_commit(&offsets).map(PendingCommit)
    }

    /// Commits these offsets, each the *next* one to be read: that of the last record done, plus
    /// one.
    ///
    /// # Errors
    /// As [`Self::commit`].
    pub async fn commit_offsets(
        &self,
        offsets: impl IntoIterator<Item = (TopicPartition, CommittedOffset)>,
    ) -> Result<()> {
        self.commit_offsets_async(offsets)?.await
    }

    /// Starts what [`Self::commit_offsets`] does.
    ///
    /// # Errors
    /// `Config` without a group; `Closed`.
    pub fn commit_offsets_async(
        &self,
        offsets: impl IntoIterator<Item = (TopicPartition, CommittedOffset)>,
    ) -> Result<PendingCommit> {
        let offsets = offsets.into_iter().map(|(partition, item)| ToCommit {
            partition,
            offset: item.offset,
            epoch: item.leader_epoch,
            metadata: item.metadata,
        });
        let offsets: Vec<ToCommit> = offsets.collect();
        self.shared.start_commit(&offsets).map(PendingCommit)
    }

    /// The group's committed offsets of these partitions, in their order; none where there is
    /// none. Cancel safe.
    ///
    /// # Errors
    /// `Config` without a group; as the coordinator refuses.
    pub async fn committed(
        &self,
        partitions: &[TopicPartition],
    ) -> Result<Vec<(TopicPartition, Option<CommittedOffset>)>> {
        let limit = self.shared.config.client.default_api_timeout;
        let fetched = self.shared.fetch_committed(partitions.to_vec());
        let fetched = tokio::time::timeout(limit, fetched).await.map_err(|_| {
            let message = "the group's coordinator did not tell the committed offsets in time";
            Error::new(ErrorKind::Retriable, message)
        })??;
        let find = |partition: &TopicPartition| {
            let found = fetched.iter().find(|(of, _)| of == partition);
            let found = found.and_then(|(_, found)| found.as_ref());
            let found = found.map(|found| CommittedOffset {
                offset: found.offset,
                leader_epoch: found.leader_epoch,
                metadata: found.metadata.to_string(),
            });
            (partition.clone(), found)
        };
        Ok(partitions.iter().map(find).collect())
    }

    /// For each partition the first offset whose record is not older than the time; none if none
    /// is. Cancel safe.
    ///
    /// # Errors
    /// The first that one of the lookups failed with.
    pub async fn offsets_for_times(
        &self,
        times: impl IntoIterator<Item = (TopicPartition, Timestamp)>,
    ) -> Result<Vec<(TopicPartition, FoundOffset)>> {
        let times = times.into_iter();
        self.list_offsets(times.map(|(of, time)| (of, OffsetSpec::At(time))).collect()).await
    }

    /// The first offset of each partition. Cancel safe.
    ///
    /// # Errors
    /// The first that one of the lookups failed with.
    pub async fn beginning_offsets(
        &self,
        partitions: &[TopicPartition],
    ) -> Result<Vec<(TopicPartition, Offset)>> {
        self.ends(partitions, OffsetSpec::Earliest).await
    }

    /// The offset behind the last record of each partition, as the isolation level lets it be
    /// read. Cancel safe.
    ///
    /// # Errors
    /// The first that one of the lookups failed with.
    pub async fn end_offsets(
        &self,
        partitions: &[TopicPartition],
    ) -> Result<Vec<(TopicPartition, Offset)>> {
        self.ends(partitions, OffsetSpec::Latest).await
    }

    async fn ends(
        &self,
        partitions: &[TopicPartition],
        spec: OffsetSpec,
    ) -> Result<Vec<(TopicPartition, Offset)>> {
        let wanted = partitions.iter().map(|partition| (partition.clone(), spec)).collect();
        let found = self.list_offsets(wanted).await?;
        Ok(found.into_iter().filter_map(|(of, found)| Some((of, found.offset?))).collect())
    }

    async fn list_offsets(
        &self,
        wanted: Vec<(TopicPartition, OffsetSpec)>,
    ) -> Result<Vec<(TopicPartition, FoundOffset)>> {
        let cluster = &self.shared.cluster;
        let order: Vec<TopicPartition> = wanted.iter().map(|(of, _)| of.clone()).collect();
        let mut is_new = false;
        for partition in &order {
            is_new |= cluster.add_interest(&partition.topic);
        }
        if is_new {
            cluster.refreshed(&cluster.retry()).await?;
        }
        let level = self.shared.config.isolation_level;
        let found = cluster.list_offsets(wanted, level, cluster.retry()).await;
        let mut all = Vec::with_capacity(order.len());
        for partition in order {
            let Some((_, found)) = found.iter().find(|(of, _)| *of == partition) else { continue };
            all.push((partition, found.clone()?));
        }
        Ok(all)
    }

    /// What is known of a topic.
    ///
    /// # Errors
    /// `Retriable` with the broker's code, if there is none.
    pub async fn partitions_for(&self, topic: &str) -> Result<TopicInfo> {
        let names = std::iter::once(TopicName::from(topic)).collect();
        let mut topics = self.topics(crate::cluster::Interest::Topics(names)).await?;
        let what = || format!("cannot describe topic `{topic}`");
        match topics.pop() {
            Some(TopicInfo { error: Some(code), .. }) => Err(Error::of(code, what())),
            Some(topic) => Ok(topic),
            None => Err(Error::of(ErrorCode::UnknownTopicOrPartition, what())),
        }
    }

    /// Every topic there is.
    ///
    /// # Errors
    /// `Retriable`, if no broker answers in time.
    pub async fn list_topics(&self) -> Result<Vec<TopicInfo>> {
        self.topics(crate::cluster::Interest::All).await
    }

    async fn topics(&self, interest: crate::cluster::Interest) -> Result<Vec<TopicInfo>> {
        let cluster = &self.shared.cluster;
        let request = interest.request(false);
        let tried = || async { cluster.any().await?.call(&request).await };
        let answer = cluster.retry().run(tried).await?;
        let response: MetadataResponse<'_> = answer.read()?;
        let snapshot = Snapshot::default().after(&response, &interest, 0);
        Ok(snapshot.topics.into_values().map(Arc::unwrap_or_clone).collect())
    }

    /// What happened so far.
    pub fn metrics(&self) -> ConsumerMetrics {
        let counters = &self.shared.counters;
        ConsumerMetrics {
            records: counters.records.load(Ordering::Relaxed),
            bytes: counters.bytes.load(Ordering::Relaxed),
            fetches: counters.fetches.load(Ordering::Relaxed),
            rebalances: counters.rebalances.load(Ordering::Relaxed),
            prefetched_bytes: self.shared.assignment.lock().held(),
        }
    }
}

pub(super) fn to_commit((partition, position): (TopicPartition, Position)) -> ToCommit {
    let Position { offset, epoch } = position;
    ToCommit { partition, offset, epoch, metadata: String::new() }
}

/// Positions are found by others; whoever waits for one looks this often.
const LOOK_AGAIN: std::time::Duration = std::time::Duration::from_millis(5);
