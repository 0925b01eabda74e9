//! Entries of the store in, an image out. A change touches what it names and what is derived from
//! that; everything else is shared with the image before.

use super::{Broker, Image, Shard, Topic};
use crate::config::{Layers, Overrides, Registry};
use crate::record::{ConfigResource, ResourceKind};
use crate::record::{Corrupt, Row, TopicRecord};
use crate::store::{Change, Entry, Revision, Snapshot};
use ottla_model as model;
use ottla_model::{NodeId, OwnershipEpoch, PartitionId, TopicId, TopicName};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

impl Image {
    /// The image of an empty store.
    pub fn empty(node: NodeId, registry: Arc<Registry>) -> Self {
        let statics = registry.statics().clone();
        Self {
            node,
            registry,
            revision: Revision::NONE,
            cluster_id: Arc::from(""),
            topics: Arc::default(),
            names: Arc::default(),
            leaders: Arc::default(),
            deleted: Arc::default(),
            brokers: Arc::default(),
            shards: Arc::default(),
            configs: Arc::default(),
            features: Arc::default(),
            layers: Layers { statics, ..Layers::default() },
            view: Arc::default(),
            partition_count: 0,
            producer_id_next: 0,
        }
    }

    /// The image of a whole store.
    ///
    /// # Errors
    /// [`Corrupt`] for the first entry that cannot be understood.
    pub fn load(
        node: NodeId,
        registry: Arc<Registry>,
        snapshot: Snapshot,
    ) -> Result<Self, Corrupt> {
        let changes: Vec<_> = snapshot.entries.into_iter().map(Change::Put).collect();
        Self::empty(node, registry).after(snapshot.revision, &changes)
    }

    /// The image after one transaction.
    ///
    /// # Errors
    /// [`Corrupt`] for the first entry that cannot be understood.
    pub fn after(&self, revision: Revision, changes: &[Change]) -> Result<Self, Corrupt> {
        let mut next = self.clone();
        let mut touched = Touched::default();
        next.revision = revision;
        for change in changes {
            match change {
                Change::Put(entry) => next.put(entry, &mut touched)?,
                Change::Deleted(key) => next.remove(key, &mut touched),
            }
        }
        next.derive(touched);
        Ok(next)
    }

    fn put(&mut self, entry: &Entry, touched: &mut Touched) -> Result<(), Corrupt> {
        match Row::parse(&entry.key, &entry.value)? {
            None | Some(Row::Writer(..)) => {}
            Some(Row::Cluster(record)) => self.cluster_id = record.id.into(),
            Some(Row::Topic(name, record)) => {
                touched.records.insert(name, Some(Arc::new(record)));
            }
            Some(Row::Leader(topic, partition, record)) => {
                Arc::make_mut(&mut self.leaders).insert((topic, partition), record);
            }
            Some(Row::Deleted(id, record)) => {
                Arc::make_mut(&mut self.deleted).insert(id, record);
            }
            Some(Row::Configs(resource, overrides)) => {
                touched.configs(&resource);
                Arc::make_mut(&mut self.configs).insert(resource, Arc::new(overrides));
            }
            Some(Row::Broker(node, record)) => {
                let epoch = entry.revision.0.cast_signed();
                let broker = Broker { record, epoch };
                let rack = broker.record.rack.clone();
                let before = Arc::make_mut(&mut self.brokers).insert(node, broker);
                touched.racks |= before.and_then(|before| before.record.rack) != rack;
            }
            Some(Row::Feature(name, level)) => {
                Arc::make_mut(&mut self.features).insert(name, level);
            }
            Some(Row::ProducerIds(record)) => self.producer_id_next = record.next,
            Some(Row::Shard(partition, record)) => {
                self.shard_mut(partition).epoch = OwnershipEpoch(record.epoch);
            }
            Some(Row::ShardLock(partition, record)) => {
                let shard = self.shard_mut(partition);
                shard.owner = Some(NodeId(record.node));
                shard.session = entry.session;
            }
        }
        Ok(())
    }

    /// A key says by itself what it was; its value does not matter any more.
    fn remove(&mut self, key: &str, touched: &mut Touched) {
        let Some((kind, name)) = key.split_once('/') else { return };
        let number = name.parse().ok();
        match kind {
            "topics" => {
                touched.records.insert(name.into(), None);
            }
            "leaders" => {
                if let Some(at) = crate::record::parse_leader(name) {
                    Arc::make_mut(&mut self.leaders).remove(&at);
                }
            }
            "deleted" => {
                if let Some(id) = crate::record::parse_uuid(name) {
                    Arc::make_mut(&mut self.deleted).remove(&TopicId(id));
                }
            }
            "configs" => {
                if let Some(resource) = crate::record::parse_resource(name) {
                    touched.configs(&resource);
                    Arc::make_mut(&mut self.configs).remove(&resource);
                }
            }
            "brokers" => {
                let brokers = Arc::make_mut(&mut self.brokers);
                let before = number.and_then(|node| brokers.remove(&NodeId(node)));
                touched.racks |= before.is_some_and(|before| before.record.rack.is_some());
            }
            "features" => {
                Arc::make_mut(&mut self.features).remove(name);
            }
            "shard-locks" => {
                if let Some(partition) = number {
                    let shard = self.shard_mut(PartitionId(partition));
                    (shard.owner, shard.session) = (None, None);
                }
            }
            _ => {}
        }
    }

    fn shard_mut(&mut self, partition: PartitionId) -> &mut Shard {
        Arc::make_mut(&mut self.shards).entry(partition).or_default()
    }

    /// Makes anew what is derived from what was touched.
    fn derive(&mut self, mut touched: Touched) {
        if touched.layers {
            self.layers = Layers {
                broker: self.configs_of(&ConfigResource::broker(self.node)),
                every_broker: self.configs_of(&ConfigResource::every_broker()),
                statics: self.registry.statics().clone(),
            };
        }
        if touched.layers || touched.racks {
            touched.settings.extend(self.topics.keys().cloned());
        }
        for name in std::mem::take(&mut touched.settings) {
            let known = self.topics.get(&name).map(|topic| topic.record.clone());
            touched.records.entry(name).or_insert(known);
        }
        for (name, record) in touched.records {
            self.set_topic(name, record);
        }
    }

    fn set_topic(&mut self, name: TopicName, record: Option<Arc<TopicRecord>>) {
        let topic = record.map(|record| Arc::new(self.topic_of(&name, record)));
        let before = self.topics.get(&name).cloned();
        self.set_view(before.as_deref(), topic.as_deref());
        let names = Arc::make_mut(&mut self.names);
        let topics = Arc::make_mut(&mut self.topics);
        if let Some(before) = before {
            self.partition_count -= before.record.replicas.len();
            names.remove(&before.id);
            topics.remove(&name);
        }
        if let Some(topic) = topic {
            self.partition_count += topic.record.replicas.len();
            names.insert(topic.id, name.clone());
            topics.insert(name, topic);
        }
    }

    /// The group core is not disturbed by what it does not see, such as settings.
    fn set_view(&mut self, before: Option<&Topic>, after: Option<&Topic>) {
        match (before, after) {
            (Some(before), Some(after)) if before.view == after.view => {}
            (_, Some(after)) => Arc::make_mut(&mut self.view).insert(after.view.clone()),
            (Some(before), None) => Arc::make_mut(&mut self.view).remove(&before.name),
            (None, None) => {}
        }
    }

    fn topic_of(&self, name: &TopicName, record: Arc<TopicRecord>) -> Topic {
        let overrides = self.configs_of(&ConfigResource::topic(&**name));
        let settings = Arc::new(self.layers.topic_settings(&overrides));
        let rack = |node: &NodeId| self.brokers.get(node)?.record.rack.as_deref().map(Arc::from);
        let partition = |replicas: &Vec<NodeId>| model::Partition {
            racks: replicas.iter().filter_map(rack).collect(),
        };
        let partitions = record.replicas.iter().map(partition).collect();
        let view = model::Topic { id: record.id, name: name.clone(), partitions };
        let id = record.id;
        Topic { id, name: name.clone(), settings, overrides, record, view: Arc::new(view) }
    }

    fn configs_of(&self, resource: &ConfigResource) -> Arc<Overrides> {
        self.configs.get(resource).cloned().unwrap_or_default()
    }
}

/// What a transaction touched that other things are derived from.
#[derive(Default)]
struct Touched {
    records: BTreeMap<TopicName, Option<Arc<TopicRecord>>>,
    settings: BTreeSet<TopicName>,
    layers: bool,
    racks: bool,
}

impl Touched {
    fn configs(&mut self, resource: &ConfigResource) {
        match resource.kind {
            ResourceKind::Topic => {
                self.settings.insert(resource.name.as_str().into());
            }
            ResourceKind::Broker => self.layers = true,
            ResourceKind::Group => {}
        }
    }
}
