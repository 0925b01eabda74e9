//! A group's committed offsets, from outside the group.

use super::{Admin, Outcomes, by_topic};
use crate::connection::Connection;
use crate::{Error, Result};
use ottla_model::{LeaderEpoch, Offset, TopicPartition};
use ottla_wire::ApiKey;
use ottla_wire::generated::offset_commit_request::{
    OffsetCommitRequestPartition, OffsetCommitRequestTopic,
};
use ottla_wire::generated::offset_delete_request::{
    OffsetDeleteRequestPartition, OffsetDeleteRequestTopic,
};
use ottla_wire::generated::offset_fetch_request::OffsetFetchRequestGroup;
use ottla_wire::generated::{
    OffsetCommitRequest, OffsetCommitResponse, OffsetDeleteRequest, OffsetDeleteResponse,
    OffsetFetchRequest, OffsetFetchResponse,
};

/// A committed offset.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CommittedOffset {
    /// The next offset to read.
    pub offset: Offset,
    /// The leader epoch of the last record read, if the committer knew it (KIP-320).
    pub leader_epoch: Option<LeaderEpoch>,
    /// The committer's own note.
    pub metadata: String,
}

impl CommittedOffset {
    /// An offset without epoch and note.
    pub fn new(offset: Offset) -> Self {
        Self { offset, leader_epoch: None, metadata: String::new() }
    }
}

impl Admin {
    /// Every committed offset of a group, by partition.
    ///
    /// # Errors
    /// `Retriable`, if the coordinator does not answer in time. A group that is not there has no
    /// offsets; that is no error.
    pub async fn list_group_offsets(
        &self,
        group: &str,
    ) -> Result<Vec<(TopicPartition, CommittedOffset)>> {
        let tried = || async { self.list_group_offsets_once(group).await };
        let mut offsets = self.cluster.retry().run(tried).await?;
        offsets.sort_by(|(a, _), (b, _)| a.cmp(b));
        Ok(offsets)
    }

    async fn list_group_offsets_once(
        &self,
        group: &str,
    ) -> Result<Vec<(TopicPartition, CommittedOffset)>> {
        let connection = self.coordinator(group).await?;
        // Up to the last version that names topics: which ones there are is what is asked.
        let version = connection.version(ApiKey::OffsetFetch)?.min(NAMED_FETCH_MAX);
        let request = match version {
            8.. => OffsetFetchRequest {
                groups: vec![OffsetFetchRequestGroup {
                    group_id: group,
                    topics: None,
                    ..Default::default()
                }],
                require_stable: true,
                ..Default::default()
            },
            _ => OffsetFetchRequest {
                group_id: group,
                topics: None,
                require_stable: version >= 7,
                ..Default::default()
            },
        };
        let answer = connection.call_at(version, &request).await?;
        let response: OffsetFetchResponse<'_> = answer.read()?;
        let what = || format!("cannot read the offsets of group `{group}`");
        Error::check(response.error_code, what)?;
        let mut offsets = Vec::new();
        for topic in &response.topics {
            for found in &topic.partitions {
                let partition = TopicPartition::new(topic.name, found.partition_index);
                Error::check(found.error_code, what)?;
                let (offset, epoch) = (found.committed_offset, found.committed_leader_epoch);
                offsets.extend(committed(partition, offset, epoch, found.metadata));
            }
        }
        for listed in &response.groups {
            Error::check(listed.error_code, what)?;
            for topic in &listed.topics {
                for found in &topic.partitions {
                    let partition = TopicPartition::new(topic.name, found.partition_index);
                    Error::check(found.error_code, what)?;
                    let (offset, epoch) = (found.committed_offset, found.committed_leader_epoch);
                    offsets.extend(committed(partition, offset, epoch, found.metadata));
                }
            }
        }
        Ok(offsets)
    }

    /// Sets a group's committed offsets. The group must have no members.
    ///
    /// # Errors
    /// As a whole if the coordinator does not answer in time; for each partition as it refuses
    /// (UNKNOWN_MEMBER_ID for all of them if the group has members).
    pub async fn alter_group_offsets(
        &self,
        group: &str,
        offsets: impl IntoIterator<Item = (TopicPartition, CommittedOffset)>,
    ) -> Result<Outcomes<TopicPartition, ()>> {
        let offsets: Vec<_> = offsets.into_iter().collect();
        // Setting the same offsets twice is harmless.
        let tried = || async {
            let outcomes = self.alter_group_offsets_once(group, &offsets).await?;
            whole(&outcomes).map_or(Ok(outcomes), Err)
        };
        self.cluster.retry().run(tried).await
    }

    async fn alter_group_offsets_once(
        &self,
        group: &str,
        offsets: &[(TopicPartition, CommittedOffset)],
    ) -> Result<Outcomes<TopicPartition, ()>> {
        let connection = self.coordinator(group).await?;
        let version = connection.version(ApiKey::OffsetCommit)?.min(NAMED_COMMIT_MAX);
        let topics =
            by_topic(offsets).into_iter().map(|(name, partitions)| OffsetCommitRequestTopic {
                name,
                partitions: partitions
                    .into_iter()
                    .map(|(partition_index, item)| commit_partition(partition_index, item))
                    .collect(),
                ..Default::default()
            });
        let request =
            OffsetCommitRequest { group_id: group, topics: topics.collect(), ..Default::default() };
        let answer = connection.call_at(version, &request).await?;
        let response: OffsetCommitResponse<'_> = answer.read()?;
        let mut outcomes = Vec::new();
        for topic in &response.topics {
            for result in &topic.partitions {
                let partition = TopicPartition::new(topic.name, result.partition_index);
                let what = || format!("cannot set the offset of {partition} in group `{group}`");
                let set = Error::check(result.error_code, what);
                outcomes.push((partition, set));
            }
        }
        Ok(outcomes)
    }

    /// Deletes a group's committed offsets of some partitions. No member may be subscribed to
    /// their topics (KIP-496).
    ///
    /// # Errors
    /// As a whole if there is no such group or no answer in time; for each partition with
    /// GROUP_SUBSCRIBED_TO_TOPIC.
    pub async fn delete_group_offsets(
        &self,
        group: &str,
        partitions: impl IntoIterator<Item = TopicPartition>,
    ) -> Result<Outcomes<TopicPartition, ()>> {
        let partitions: Vec<_> = partitions.into_iter().map(|partition| (partition, ())).collect();
        let tried =
            || async { delete_offsets(&self.coordinator(group).await?, group, &partitions).await };
        self.cluster.retry().run_once(tried).await
    }
}

async fn delete_offsets(
    connection: &Connection,
    group: &str,
    partitions: &[(TopicPartition, ())],
) -> Result<Outcomes<TopicPartition, ()>> {
    let topics = by_topic(partitions).into_iter().map(|(name, partitions)| {
        let partitions = partitions.into_iter();
        let partitions = partitions
            .map(|(partition_index, ())| OffsetDeleteRequestPartition { partition_index })
            .collect();
        OffsetDeleteRequestTopic { name, partitions }
    });
    let request = OffsetDeleteRequest { group_id: group, topics: topics.collect() };
    let answer = connection.call(&request).await?;
    let response: OffsetDeleteResponse<'_> = answer.read()?;
    Error::check(response.error_code, || format!("cannot delete offsets of group `{group}`"))?;
    let mut outcomes = Vec::new();
    for topic in &response.topics {
        for result in &topic.partitions {
            let partition = TopicPartition::new(topic.name, result.partition_index);
            let what = || format!("cannot delete the offset of {partition} in group `{group}`");
            let deleted = Error::check(result.error_code, what);
            outcomes.push((partition, deleted));
        }
    }
    Ok(outcomes)
}

/// The error that is the whole commit's, where every partition has the same retriable one: no
/// version has a place for it.
fn whole(outcomes: &Outcomes<TopicPartition, ()>) -> Option<Error> {
    let errors = outcomes.iter().map(|(_, outcome)| outcome.as_ref().err());
    let retriable = errors.map(|error| error.filter(|error| error.is_retriable()));
    let all: Option<Vec<&Error>> = retriable.collect();
    all?.first().map(|error| (*error).clone())
}

fn commit_partition(
    partition_index: i32,
    item: &CommittedOffset,
) -> OffsetCommitRequestPartition<'_> {
    OffsetCommitRequestPartition {
        partition_index,
        committed_offset: item.offset.0,
        committed_leader_epoch: item.leader_epoch.map_or(-1, |epoch| epoch.0),
        committed_metadata: Some(&item.metadata),
    }
}

fn committed(
    partition: TopicPartition,
    offset: i64,
    epoch: i32,
    metadata: Option<&str>,
) -> Option<(TopicPartition, CommittedOffset)> {
    let offset = (offset >= 0).then_some(Offset(offset))?;
    let leader_epoch = (epoch >= 0).then_some(LeaderEpoch(epoch));
    let metadata = metadata.unwrap_or_default().to_owned();
    Some((partition, CommittedOffset { offset, leader_epoch, metadata }))
}

/// Later versions name topics by ids that an administrator would have to look up first.
const NAMED_FETCH_MAX: i16 = 9;
const NAMED_COMMIT_MAX: i16 = 9;
