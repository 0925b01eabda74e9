//! Finding the partition a request names, and the code for one that is not here.

use crate::broker::Broker;
use crate::partitions::{Hosted, HostedTopic, Partition};
use ottla_model::{LeaderEpoch, PartitionId, TopicId};
use ottla_wire::{ErrorCode, Uuid};
use std::collections::BTreeSet;
use std::sync::Arc;

/// A topic as a request names it: by name up to some version, by id from there on (KIP-516).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TopicRef<'a> {
    /// By name.
    Name(&'a str),
    /// By id.
    Id(TopicId),
}

impl<'a> TopicRef<'a> {
    /// By id, if `by_id`, else by name.
    pub(crate) fn new(by_id: bool, name: &'a str, id: Uuid) -> Self {
        if by_id { Self::Id(id.into()) } else { Self::Name(name) }
    }
}

/// Leaves the first of each in a list. A request that repeats a short name must not be worth an
/// answer that repeats a long one: that grows beyond every bound a request has.
pub(super) fn once<T, K: Ord>(list: &mut Vec<T>, key: impl Fn(&T) -> K) {
    let mut seen = BTreeSet::new();
    list.retain(|each| seen.insert(key(each)));
}

/// The topic, of which at least one partition is here.
///
/// # Errors
/// The code for a topic that nobody knows, or that is not here.
pub(crate) fn topic<'h>(
    broker: &Broker,
    hosted: &'h Hosted,
    topic: TopicRef<'_>,
) -> Result<&'h Arc<HostedTopic>, ErrorCode> {
    let (found, unknown) = match topic {
        TopicRef::Name(name) => (hosted.by_name(name), ErrorCode::UnknownTopicOrPartition),
        TopicRef::Id(id) => (hosted.by_id(id), ErrorCode::UnknownTopicId),
    };
    found.ok_or_else(|| {
        let image = broker.cluster.image();
        let known = match topic {
            TopicRef::Name(name) => image.topic(name),
            TopicRef::Id(id) => image.topic_by_id(id),
        };
        // Just created and not open yet, or led by another broker: the client asks again.
        if known.is_some() { ErrorCode::NotLeaderOrFollower } else { unknown }
    })
}

/// One partition of a topic that is here.
///
/// # Errors
/// The code for a partition that does not exist, or is not here.
pub(crate) fn partition(
    broker: &Broker,
    topic: &HostedTopic,
    id: PartitionId,
) -> Result<Arc<Partition>, ErrorCode> {
    topic.partition(id).cloned().ok_or_else(|| {
        let image = broker.cluster.image();
        let known = image.topic_by_id(topic.id);
        let known = known.and_then(|topic| image.partition_of(topic, id));
        match known {
            // It is ours, but its log does not open.
            Some(known) if known.leader == broker.node => ErrorCode::KafkaStorageError,
            Some(_) => ErrorCode::NotLeaderOrFollower,
            None => ErrorCode::UnknownTopicOrPartition,
        }
    })
}

/// Checks the leader epoch a client believes in (KIP-320); negative where it believes in none.
///
/// # Errors
/// The client is behind, or ahead of us.
pub(crate) fn check_epoch(partition: &Partition, believed: i32) -> Result<(), ErrorCode> {
    let (believed, ours) = (LeaderEpoch(believed), partition.leader_epoch());
    if believed.0 < 0 || believed == ours {
        Ok(())
    } else if believed < ours {
        Err(ErrorCode::FencedLeaderEpoch)
    } else {
        Err(ErrorCode::UnknownLeaderEpoch)
    }
}
