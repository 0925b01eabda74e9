//! Delete topics, in two phases: see [`crate::logs`].

use super::{Command, Means, Plan, Refusal, RefusalKind};
use crate::image::{Image, Topic};
use crate::names;
use crate::record::{
    ConfigResource, DeletedRecord, configs_key, deleted_key, leader_key, put, topic_key,
};
use crate::store::Op;
use ottla_model::{NodeId, PartitionId, TopicId, TopicName};
use std::collections::BTreeSet;

/// Delete some topics. [`crate::Cluster::delete_topics`] splits what does not fit one transaction.
#[derive(Clone, Debug)]
pub struct DeleteTopics {
    /// Which; a topic named twice is refused the second time.
    pub topics: Vec<TopicRef>,
}

/// A topic, by either of its names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TopicRef {
    /// By name.
    Name(String),
    /// By id.
    Id(TopicId),
}

/// A topic that is gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeletedTopic {
    /// The name it had.
    pub name: TopicName,
    /// Its id.
    pub id: TopicId,
}

impl Command for DeleteTopics {
    /// Per topic, in the request's order.
    type Reply = Vec<Result<DeletedTopic, Refusal>>;

    fn decide(&mut self, image: &Image, _: &mut Means<'_>) -> Plan<Self::Reply> {
        let mut ops = Vec::new();
        let mut seen = BTreeSet::new();
        let mut delete = |wanted: &TopicRef| {
            let topic = find(image, wanted)?;
            if !seen.insert(topic.id) {
                return Err(Refusal::new(RefusalKind::InvalidRequest, "Duplicate topic name."));
            }
            ops.extend(write(image, topic));
            Ok(DeletedTopic { name: topic.name.clone(), id: topic.id })
        };
        let reply = self.topics.iter().map(&mut delete).collect();
        Plan::write(ops, reply)
    }
}

fn find<'a>(image: &'a Image, wanted: &TopicRef) -> Result<&'a Topic, Refusal> {
    let topic = match wanted {
        TopicRef::Name(name) => image.topic(name).ok_or_else(Refusal::unknown_topic)?,
        TopicRef::Id(id) => image.topic_by_id(*id).ok_or_else(|| {
            let message = "This server does not host this topic ID.";
            Refusal::new(RefusalKind::UnknownTopicId, message)
        })?,
    };
    // Kafka lets it go, and every group's offsets with it.
    if &*topic.name == names::OFFSETS_TOPIC {
        let message = format!("Topic {} holds the offsets of all groups.", topic.name);
        return Err(Refusal::new(RefusalKind::InvalidRequest, message));
    }
    Ok(topic)
}

fn write(image: &Image, topic: &Topic) -> Vec<Op> {
    let nodes: BTreeSet<_> = topic.record().replicas.iter().flatten().map(|node| node.0).collect();
    let record = DeletedRecord {
        name: topic.name.to_string(),
        partitions: topic.partition_count(),
        pending: nodes.into_iter().collect(),
    };
    let resource = ConfigResource::topic(&*topic.name);
    let mut ops =
        vec![Op::Delete { key: topic_key(&topic.name) }, put(deleted_key(topic.id), &record)];
    if image.overrides(&resource).is_some() {
        ops.push(Op::Delete { key: configs_key(&resource) });
    }
    ops
}

/// `node` has cleared away what it kept of a deleted topic. The last one's word ends it: then the
/// cluster forgets the topic.
#[derive(Clone, Copy, Debug)]
pub struct FinishDeletion {
    /// The topic.
    pub topic: TopicId,
    /// Who is done.
    pub node: NodeId,
}

impl Command for FinishDeletion {
    /// Whether there is more to forget: ask again until there is not.
    type Reply = bool;

    fn decide(&mut self, image: &Image, _: &mut Means<'_>) -> Plan<bool> {
        let Some(record) = image.deleted_topic(self.topic) else { return Plan::answer(false) };
        let mut record = record.clone();
        record.pending.retain(|node| *node != self.node.0);
        let key = deleted_key(self.topic);
        if !record.pending.is_empty() {
            return Plan::write(vec![put(key, &record)], false);
        }
        let mut reigns = image.reigns_of(self.topic).peekable();
        let some: Vec<PartitionId> = reigns.by_ref().take(REIGNS_AT_ONCE).collect();
        let more = reigns.peek().is_some();
        let forget = |partition| Op::Delete { key: leader_key(self.topic, partition) };
        let mut ops: Vec<_> = some.into_iter().map(forget).collect();
        ops.push(if more { put(key, &record) } else { Op::Delete { key } });
        Plan::write(ops, more)
    }
}

/// Topics of one transaction: three entries each, and the bound on a transaction's operations.
pub(crate) const AT_ONCE: usize = 40;

/// Leader entries forgotten in one transaction, likewise.
const REIGNS_AT_ONCE: usize = 100;
