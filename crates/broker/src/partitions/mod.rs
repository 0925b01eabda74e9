//! The partitions this broker leads: which there are, their logs, their watermarks.
//!
//! Readers find a partition without a lock in an immutable map that is replaced when topics come
//! and go ([`reconcile`]). Nothing here knows a request or a group.

mod partition;
mod reconcile;
mod settings;
mod syncer;
#[cfg(test)]
pub(crate) mod tests;
mod upkeep;
mod watermark;

pub(crate) use partition::Partition;
pub(crate) use settings::{UNPACKED_BYTES_MAX, codec, produce_rules};
pub(crate) use syncer::{SyncQueue, Syncer};
pub(crate) use upkeep::Upkeep;
#[cfg(test)]
pub(crate) use upkeep::upkeep_round;
pub(crate) use watermark::Passes;

use crate::config::Config;
use arc_swap::ArcSwap;
use ottla_cluster::config::TopicSettings;
use ottla_cluster::store::Revision;
use ottla_model::{NodeId, PartitionId, TopicId, TopicName};
use ottla_storage::fs::Fs;
use reconcile::Folders;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use tokio::sync::watch;

/// All partitions of this broker.
#[derive(Debug)]
pub(crate) struct Partitions {
    node: NodeId,
    dir: PathBuf,
    fs: Arc<dyn Fs>,
    config: Config,
    syncs: SyncQueue,
    hosted: ArcSwap<Hosted>,
    folders: Mutex<Folders>,
    /// Folders of deleted logs, renamed, to be removed.
    doomed: Mutex<Vec<PathBuf>>,
    applied: watch::Sender<Revision>,
}

/// The topics this broker has partitions of, as of one moment.
#[derive(Clone, Debug, Default)]
pub(crate) struct Hosted {
    by_name: HashMap<TopicName, Arc<HostedTopic>>,
    by_id: HashMap<TopicId, Arc<HostedTopic>>,
}

/// One topic's partitions on this broker.
#[derive(Clone, Debug)]
pub(crate) struct HostedTopic {
    /// Its id.
    pub(crate) id: TopicId,
    /// Its name.
    pub(crate) name: TopicName,
    /// Its settings.
    pub(crate) settings: Arc<TopicSettings>,
    /// Its partitions by index; `None` for one that is not here or whose log does not open.
    partitions: Vec<Option<Arc<Partition>>>,
}

impl Partitions {
    /// No partitions yet; [`Partitions::reconcile`] opens them.
    pub(crate) fn new(config: Config, fs: Arc<dyn Fs>, syncs: SyncQueue) -> Self {
        Self {
            node: NodeId(config.node_id),
            dir: PathBuf::from(&config.log_dirs),
            fs,
            syncs,
            hosted: ArcSwap::default(),
            folders: Mutex::default(),
            doomed: Mutex::default(),
            applied: watch::Sender::new(Revision::NONE),
            config,
        }
    }

    /// What there is now.
    pub(crate) fn hosted(&self) -> arc_swap::Guard<Arc<Hosted>> {
        self.hosted.load()
    }

    /// One partition by topic name.
    pub(crate) fn by_name(&self, topic: &str, partition: PartitionId) -> Option<Arc<Partition>> {
        self.hosted.load().by_name(topic)?.partition(partition).cloned()
    }

    /// Every partition.
    pub(crate) fn all(&self) -> Vec<Arc<Partition>> {
        let hosted = self.hosted.load();
        hosted.topics().flat_map(|topic| topic.partitions()).cloned().collect()
    }

    /// Waits until the logs are as an image of this revision wants them.
    pub(crate) async fn applied(&self, revision: Revision) {
        // The sender lives as long as this does.
        let _ = self.applied.subscribe().wait_for(|applied| *applied >= revision).await;
    }
}

impl Hosted {
    /// A topic by name.
    pub(crate) fn by_name(&self, name: &str) -> Option<&Arc<HostedTopic>> {
        self.by_name.get(name)
    }

    /// A topic by id.
    pub(crate) fn by_id(&self, id: TopicId) -> Option<&Arc<HostedTopic>> {
        self.by_id.get(&id)
    }

    /// Every topic, in no order.
    pub(crate) fn topics(&self) -> impl Iterator<Item = &Arc<HostedTopic>> {
        self.by_name.values()
    }

    fn insert(&mut self, topic: HostedTopic) {
        let topic = Arc::new(topic);
        self.by_name.insert(topic.name.clone(), Arc::clone(&topic));
        self.by_id.insert(topic.id, topic);
    }

    fn remove(&mut self, id: TopicId) -> Option<Arc<HostedTopic>> {
        let topic = self.by_id.remove(&id)?;
        // The name may belong to a successor already.
        if self.by_name.get(&topic.name).is_some_and(|named| named.id == id) {
            self.by_name.remove(&topic.name);
        }
        Some(topic)
    }
}

impl HostedTopic {
    /// One of its partitions.
    pub(crate) fn partition(&self, id: PartitionId) -> Option<&Arc<Partition>> {
        self.partitions.get(usize::try_from(id.0).ok()?)?.as_ref()
    }

    /// Its partitions that are here.
    pub(crate) fn partitions(&self) -> impl Iterator<Item = &Arc<Partition>> {
        self.partitions.iter().flatten()
    }
}
