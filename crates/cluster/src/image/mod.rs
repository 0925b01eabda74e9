//! The cluster as of one moment: an immutable value that every request reads without a lock.
//!
//! An image is the fold of the store's entries (`fold` is the only thing that makes one) and
//! never knows how it came about; whoever wants a change submits a [`crate::command`] and gets a
//! new image. Holders of an old one keep a consistent, if outdated, picture.

mod fold;

use crate::config::setting::Value;
use crate::config::{Layers, Overrides, Registry, TopicSettings};
use crate::names;
use crate::record::{BrokerRecord, ConfigResource, DeletedRecord, LeaderRecord, TopicRecord};
use crate::store::{Revision, SessionId};
use ottla_model as model;
use ottla_model::{
    LeaderEpoch, NodeId, OwnershipEpoch, PartitionId, TopicId, TopicName, TopicPartition,
    TopicsView,
};
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

/// Topics, brokers, owners and settings as of one revision of the store.
#[derive(Clone, Debug)]
pub struct Image {
    node: NodeId,
    registry: Arc<Registry>,
    revision: Revision,
    cluster_id: Arc<str>,
    topics: Arc<BTreeMap<TopicName, Arc<Topic>>>,
    names: Arc<BTreeMap<TopicId, TopicName>>,
    leaders: Arc<BTreeMap<(TopicId, PartitionId), LeaderRecord>>,
    deleted: Arc<BTreeMap<TopicId, DeletedRecord>>,
    brokers: Arc<BTreeMap<NodeId, Broker>>,
    shards: Arc<BTreeMap<PartitionId, Shard>>,
    configs: Arc<BTreeMap<ConfigResource, Arc<Overrides>>>,
    features: Arc<BTreeMap<String, i16>>,
    layers: Layers,
    view: Arc<TopicsView>,
    partition_count: usize,
    producer_id_next: i64,
}

/// A topic.
#[derive(Clone, Debug)]
pub struct Topic {
    /// Its id.
    pub id: TopicId,
    /// Its name.
    pub name: TopicName,
    /// Its settings as they count on this broker.
    pub settings: Arc<TopicSettings>,
    /// Its settings as they were given.
    pub overrides: Arc<Overrides>,
    record: Arc<TopicRecord>,
    view: Arc<model::Topic>,
}

/// One partition of a topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Partition<'a> {
    /// Its index.
    pub id: PartitionId,
    /// The brokers that keep it, the preferred leader first. Never empty.
    pub replicas: &'a [NodeId],
    /// Who leads; live or not, see [`Image::broker`].
    pub leader: NodeId,
    /// The leader's reign.
    pub leader_epoch: LeaderEpoch,
}

/// A live broker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broker {
    /// Where it is reached and where it stands.
    pub record: BrokerRecord,
    /// Rises each time it registers.
    pub epoch: i64,
}

/// A coordinator shard: one partition of the offsets topic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shard {
    /// The last reign; 0 before the first.
    pub epoch: OwnershipEpoch,
    /// Who reigns, if anyone; live or not, see [`Image::broker`].
    pub owner: Option<NodeId>,
    /// The session that reign ends with.
    pub session: Option<SessionId>,
}

impl Image {
    /// The broker whose image this is.
    pub fn node(&self) -> NodeId {
        self.node
    }

    /// The store's revision it shows.
    pub fn revision(&self) -> Revision {
        self.revision
    }

    /// The cluster's id: 22 characters, chosen once.
    pub fn cluster_id(&self) -> &Arc<str> {
        &self.cluster_id
    }

    /// Every setting there is.
    pub fn registry(&self) -> &Arc<Registry> {
        &self.registry
    }

    /// The topic of this name.
    pub fn topic(&self, name: &str) -> Option<&Arc<Topic>> {
        self.topics.get(name)
    }

    /// The topic of this id.
    pub fn topic_by_id(&self, id: TopicId) -> Option<&Arc<Topic>> {
        self.names.get(&id).and_then(|name| self.topic(name))
    }

    /// Every topic, in the order of their names.
    pub fn topics(&self) -> impl Iterator<Item = &Arc<Topic>> {
        self.topics.values()
    }

    /// The topics from the first whose name is not below `name`, in order.
    pub fn topics_from<'a>(&'a self, name: &str) -> impl Iterator<Item = &'a Arc<Topic>> + use<'a> {
        self.topics
            .range::<str, _>((Bound::Included(name), Bound::Unbounded))
            .map(|(_, topic)| topic)
    }

    /// How many topics there are.
    pub fn topic_count(&self) -> usize {
        self.topics.len()
    }

    /// How many partitions all topics have together.
    pub fn partition_count(&self) -> usize {
        self.partition_count
    }

    /// A partition by name.
    pub fn partition(&self, at: &TopicPartition) -> Option<Partition<'_>> {
        self.topic(&at.topic).and_then(|topic| self.partition_of(topic, at.partition))
    }

    /// A partition of a topic of this image.
    pub fn partition_of<'a>(&self, topic: &'a Topic, id: PartitionId) -> Option<Partition<'a>> {
        let replicas = topic.record.replicas.get(usize::try_from(id.0).ok()?)?;
        let reign = self.leaders.get(&(topic.id, id));
        let leader = reign.map_or_else(|| replicas.first().copied(), |r| Some(NodeId(r.node)))?;
        let leader_epoch = LeaderEpoch(reign.map_or(0, |reign| reign.epoch));
        Some(Partition { id, replicas, leader, leader_epoch })
    }

    /// All partitions of a topic of this image, ascending.
    pub fn partitions_of<'a>(&'a self, topic: &'a Topic) -> impl Iterator<Item = Partition<'a>> {
        (0..topic.partition_count()).filter_map(|id| self.partition_of(topic, PartitionId(id)))
    }

    /// Topics that are gone for clients while something of them may still lie about.
    pub fn deleted(&self) -> impl Iterator<Item = (TopicId, &DeletedRecord)> {
        self.deleted.iter().map(|(id, record)| (*id, record))
    }

    /// A deleted topic that is not yet cleared away.
    pub fn deleted_topic(&self, id: TopicId) -> Option<&DeletedRecord> {
        self.deleted.get(&id)
    }

    /// A live broker.
    pub fn broker(&self, node: NodeId) -> Option<&Broker> {
        self.brokers.get(&node)
    }

    /// Every live broker, by id.
    pub fn brokers(&self) -> impl Iterator<Item = (NodeId, &Broker)> {
        self.brokers.iter().map(|(node, broker)| (*node, broker))
    }

    /// Who answers what only one broker of the cluster answers; the lowest live id.
    pub fn controller(&self) -> Option<NodeId> {
        self.brokers.keys().next().copied()
    }

    /// A coordinator shard; `None` before it was ever owned.
    pub fn shard(&self, partition: PartitionId) -> Option<Shard> {
        self.shards.get(&partition).copied()
    }

    /// The dynamic settings of one resource, as they were given.
    pub fn overrides(&self, resource: &ConfigResource) -> Option<&Arc<Overrides>> {
        self.configs.get(resource)
    }

    /// Every resource that has dynamic settings.
    pub fn configured(&self) -> impl Iterator<Item = &ConfigResource> {
        self.configs.keys()
    }

    /// The broker-wide settings, as they count on this broker.
    pub fn layers(&self) -> &Layers {
        &self.layers
    }

    /// Whether a broker setting that is true or false is true here.
    pub fn broker_flag(&self, name: &str) -> bool {
        self.broker_value(name) == Some(Value::Boolean(true))
    }

    /// Likewise, for a setting that is a number with a default.
    pub(crate) fn broker_number(&self, name: &str) -> i64 {
        if let Some(Value::Number(number)) = self.broker_value(name) { number } else { 0 }
    }

    /// A broker setting's value as it counts here; `None` where it has none or there is none.
    /// Understood, not compared as text: `TRUE` is as true as `true`.
    fn broker_value(&self, name: &str) -> Option<Value> {
        let setting = self.registry.broker(name)?;
        self.layers.broker_value(setting).and_then(|text| setting.parse(&text).ok())
    }

    /// Finalized features and their levels.
    pub fn features(&self) -> impl Iterator<Item = (&str, i16)> {
        self.features.iter().map(|(name, level)| (name.as_str(), *level))
    }

    /// A finalized feature's level.
    pub fn feature(&self, name: &str) -> Option<i16> {
        self.features.get(name).copied()
    }

    /// The partitions of a topic (of this image or deleted) whose leader is not in its first reign.
    pub(crate) fn reigns_of(&self, topic: TopicId) -> impl Iterator<Item = PartitionId> {
        let all = (topic, PartitionId(i32::MIN))..=(topic, PartitionId(i32::MAX));
        self.leaders.range(all).map(|((_, partition), _)| *partition)
    }

    /// The first producer id that no broker has taken.
    pub fn producer_id_next(&self) -> i64 {
        self.producer_id_next
    }

    /// What the group core needs to know of topics.
    pub fn view(&self) -> &Arc<TopicsView> {
        &self.view
    }
}

impl Topic {
    /// How many partitions it has.
    pub fn partition_count(&self) -> i32 {
        // Bounded by the limit on partitions of a topic.
        self.record.replicas.len() as i32
    }

    /// Whether it belongs to the brokers.
    pub fn is_internal(&self) -> bool {
        names::is_internal(&self.name)
    }

    /// What the store holds of it.
    pub fn record(&self) -> &Arc<TopicRecord> {
        &self.record
    }

    /// How many brokers keep each partition.
    pub fn replication_factor(&self) -> usize {
        self.record.replicas.first().map_or(0, Vec::len)
    }
}
