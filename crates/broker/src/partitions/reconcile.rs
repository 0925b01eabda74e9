//! Making the data directory what the cluster's image says: opening and creating logs, clearing
//! deleted ones away, putting changed settings in force.
//!
//! What to do is [`ottla_cluster::logs::plan`]'s decision; here it is carried out. All of it
//! blocks on the disk and runs on a thread that may.

use super::settings::log_config;
use super::{Hosted, HostedTopic, Partition, Partitions};
use crate::clock;
use crate::config::Durability;
use ottla_cluster::image::{Image, Topic};
use ottla_cluster::logs::{self, Action, Found};
use ottla_model::{LeaderEpoch, PartitionId, TopicId, TopicPartition};
use ottla_storage::fs::{is_disk_full, remove_folder};
use ottla_storage::{Log, OpenError, read_topic_id};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The folders of the data directory, as of the last reconciliation; none before the first.
#[derive(Debug, Default)]
pub(super) struct Folders {
    known: Option<BTreeMap<String, Option<TopicId>>>,
}

/// What the rest of the broker has to do after a reconciliation.
#[derive(Debug, Default)]
pub(crate) struct Aftermath {
    /// Partitions whose log has seen a later reign than the image shows, with that reign: the
    /// cluster must raise it.
    pub(crate) reigns: Vec<(TopicId, PartitionId, LeaderEpoch)>,
    /// Whether a log could not be opened: it is worth another try after a while.
    pub(crate) offline: bool,
    /// Deleted topics of which nothing is left here.
    pub(crate) cleared: Vec<TopicId>,
}

impl Partitions {
    /// Makes the logs what `image` wants. Blocks on the disk; one at a time.
    ///
    /// # Errors
    /// The data directory cannot be read. What concerns one log alone is logged, and the log stays
    /// offline until the next time.
    pub(crate) fn reconcile(&self, image: &Image) -> io::Result<Aftermath> {
        let mut folders = self.folders.lock().unwrap_or_else(PoisonError::into_inner);
        if folders.known.is_none() {
            folders.known = Some(self.scan()?);
        }
        let known = folders.known.get_or_insert_default();
        let found: Vec<Found> = known
            .iter()
            .map(|(folder, id)| Found { folder: folder.clone(), topic_id: *id })
            .collect();
        let mut aftermath = Aftermath::default();
        let (mut to_open, mut to_clear) = (Vec::new(), Vec::new());
        let mut hosted = Hosted::clone(&self.hosted.load());
        self.drop_gone(image, &mut hosted);
        for action in logs::plan(image, self.node, &found) {
            match action {
                Action::Open { at, topic_id } | Action::Create { at, topic_id } => {
                    known.insert(logs::folder_name(&at), Some(topic_id));
                    to_open.push((at, topic_id));
                }
                action => to_clear.push(action),
            }
        }
        let all_cleared = self.clear(to_clear, known);
        aftermath.offline = !self.open_missing(image, &mut hosted, to_open);
        self.refresh(image, &mut hosted, &mut aftermath);
        self.hosted.store(Arc::new(hosted));
        if all_cleared {
            aftermath.cleared = image.deleted().map(|(id, _)| id).collect();
        }
        self.applied.send_replace(image.revision());
        Ok(aftermath)
    }

    fn scan(&self) -> io::Result<BTreeMap<String, Option<TopicId>>> {
        let mut folders = BTreeMap::new();
        for name in self.fs.folders(&self.dir)? {
            if logs::parse(&name) != logs::Name::Foreign {
                let id = read_topic_id(&*self.fs, &self.dir.join(&name)).unwrap_or_else(|error| {
                    tracing::warn!(folder = %name, %error, "cannot tell whose folder this is");
                    None
                });
                folders.insert(name, id);
            }
        }
        Ok(folders)
    }

    fn drop_gone(&self, image: &Image, hosted: &mut Hosted) {
        let gone = |id: &TopicId| image.topic_by_id(*id).is_none();
        let gone: Vec<TopicId> = hosted.by_id.keys().copied().filter(gone).collect();
        for topic in gone.into_iter().filter_map(|id| hosted.remove(id)) {
            topic.partitions().for_each(|partition| partition.give_up());
        }
        // Whoever asks from now on must not be given what is about to be removed.
        self.hosted.store(Arc::new(hosted.clone()));
    }

    /// Takes folders out of the way, durably. False if one of them is still where it was.
    fn clear(&self, actions: Vec<Action>, known: &mut BTreeMap<String, Option<TopicId>>) -> bool {
        let mut renamed = 0;
        let mut outcome = Ok(());
        for action in actions {
            let cleared = match &action {
                Action::Delete { folder } => self.rename(folder, logs::deletion_name, known),
                Action::SetAside { folder, why } => {
                    tracing::warn!(%folder, %why, "a folder is not part of the cluster: set aside");
                    self.rename(folder, logs::stray_name, known)
                }
                Action::Remove { folder } => {
                    known.remove(folder);
                    self.doom(self.dir.join(folder));
                    continue;
                }
                Action::Open { .. } | Action::Create { .. } => continue,
            };
            match cleared {
                Ok(()) => renamed += 1,
                Err(error) => {
                    tracing::error!(?action, %error, "cannot clear a folder away");
                    outcome = Err(error);
                }
            }
        }
        if renamed > 0 {
            tracing::info!(folders = renamed, "took folders out of the way");
            outcome = outcome.and(self.fs.sync_dir(&self.dir));
        }
        outcome.is_ok()
    }

    fn rename(
        &self,
        folder: &str,
        name: fn(&TopicPartition, [u8; 16]) -> String,
        known: &mut BTreeMap<String, Option<TopicId>>,
    ) -> io::Result<()> {
        let logs::Name::Partition(at) = logs::parse(folder) else { return Ok(()) };
        let to = name(&at, crate::entropy::bits());
        let path = self.dir.join(&to);
        self.fs.rename(&self.dir.join(folder), &path)?;
        known.remove(folder);
        if logs::parse(&to) == logs::Name::Deletion {
            self.doom(path);
        }
        Ok(())
    }

    /// Has a folder removed in a while. If the broker stops before, its next start does it.
    fn doom(&self, path: PathBuf) {
        self.doomed.lock().unwrap_or_else(PoisonError::into_inner).push(path);
    }

    /// Removes the folders of deleted logs. Blocks on the disk.
    pub(super) fn remove_doomed(&self) {
        let doomed =
            std::mem::take(&mut *self.doomed.lock().unwrap_or_else(PoisonError::into_inner));
        for path in doomed {
            if let Err(error) = remove_folder(&*self.fs, &path) {
                tracing::warn!(path = %path.display(), %error, "cannot remove a deleted log");
            }
        }
    }

    /// Opens, several at a time, the logs that are not open. False if one could not be.
    fn open_missing(
        &self,
        image: &Image,
        hosted: &mut Hosted,
        wanted: Vec<(TopicPartition, TopicId)>,
    ) -> bool {
        let here = |id: TopicId, at: &TopicPartition| {
            hosted.by_id(id).is_some_and(|topic| topic.partition(at.partition).is_some())
        };
        let missing: Vec<_> = wanted.into_iter().filter(|(at, id)| !here(*id, at)).collect();
        let next = AtomicUsize::new(0);
        let opened = Mutex::new(Vec::with_capacity(missing.len()));
        let work = || {
            while let Some((at, id)) = missing.get(next.fetch_add(1, Ordering::Relaxed)) {
                match self.open(image, at, *id) {
                    Ok(partition) => {
                        opened.lock().unwrap_or_else(PoisonError::into_inner).push(partition);
                    }
                    Err(error) => tracing::error!(partition = %at, %error, "a log stays offline"),
                }
            }
        };
        std::thread::scope(|scope| {
            for _ in 1..OPENERS.min(missing.len()) {
                scope.spawn(work);
            }
            work();
        });
        let opened = opened.into_inner().unwrap_or_else(PoisonError::into_inner);
        let all = opened.len() == missing.len();
        let mut by_topic = BTreeMap::<TopicId, Vec<Arc<Partition>>>::new();
        for partition in opened {
            by_topic.entry(partition.topic_id).or_default().push(Arc::new(partition));
        }
        for (id, partitions) in by_topic {
            if let Some(topic) = image.topic_by_id(id) {
                hosted.insert(with_partitions(hosted.by_id(id), topic, partitions));
            }
        }
        all
    }

    fn open(
        &self,
        image: &Image,
        at: &TopicPartition,
        id: TopicId,
    ) -> Result<Partition, OpenError> {
        let topic = image.topic_by_id(id);
        let config = match topic {
            Some(topic) => log_config(&topic.settings, &self.config),
            None => Default::default(),
        };
        let dir = self.dir.join(logs::folder_name(at));
        let fs = Arc::clone(&self.fs);
        let (mut log, recovery) = Log::open(fs, &dir, id, config, clock::now())?;
        let unsynced = self.config.durability == Durability::PageCache;
        if !recovery.cuts.is_empty() || (recovery.epoch_raised.is_some() && !unsynced) {
            tracing::warn!(partition = %at, %recovery, "recovered a log");
        } else if recovery.epoch_raised.is_some() {
            // Whoever runs so lets a crash take what it takes; there is no sign that it did.
            tracing::info!(partition = %at, %recovery, "opened a log that was not closed");
        }
        for note in &recovery.notes {
            tracing::warn!(partition = %at, %note, "while opening a log");
        }
        let image_epoch = image.partition(at).map(|partition| partition.leader_epoch);
        let epoch = image_epoch.max(log.leader_epoch()).unwrap_or_default();
        begin_epoch(&mut log, &dir, epoch)?;
        Ok(Partition::new(at.clone(), id, log, epoch, self.syncs.clone()))
    }

    /// Puts changed settings and reigns in force.
    fn refresh(&self, image: &Image, hosted: &mut Hosted, aftermath: &mut Aftermath) {
        let topics: Vec<_> = hosted.topics().cloned().collect();
        for topic in topics {
            let Some(now) = image.topic_by_id(topic.id) else { continue };
            if now.settings != topic.settings {
                let config = log_config(&now.settings, &self.config);
                topic.partitions().for_each(|partition| partition.set_config(config.clone()));
                let settings = Arc::clone(&now.settings);
                hosted.insert(HostedTopic { settings, ..HostedTopic::clone(&topic) });
            }
            for partition in topic.partitions() {
                let shown = image.partition(&partition.at).map(|partition| partition.leader_epoch);
                let shown = shown.unwrap_or_default();
                if partition.leader_epoch() > shown {
                    let at = partition.at.partition;
                    aftermath.reigns.push((topic.id, at, partition.leader_epoch()));
                } else {
                    partition.begin_reign(shown);
                }
            }
        }
    }
}

/// On a full disk the log is opened all the same, to be read: the first append begins the epoch, or
/// is refused for want of room.
fn begin_epoch(log: &mut Log, dir: &Path, epoch: LeaderEpoch) -> Result<(), OpenError> {
    match log.begin_epoch(epoch) {
        Err(error) if is_disk_full(&error) => {
            tracing::warn!(
                log = %dir.display(), %epoch, %error,
                "opened to be read: its leader epoch begins once there is room"
            );
            Ok(())
        }
        Err(error) => {
            Err(OpenError::Io { what: "write the leader epoch", dir: dir.to_owned(), error })
        }
        Ok(()) => Ok(()),
    }
}

fn with_partitions(
    before: Option<&Arc<HostedTopic>>,
    topic: &Topic,
    more: Vec<Arc<Partition>>,
) -> HostedTopic {
    let mut partitions = before.map_or_else(Vec::new, |before| before.partitions.clone());
    // Bounded by the limit on a topic's partitions.
    partitions.resize(topic.partition_count().max(0) as usize, None);
    for partition in more {
        let index = usize::try_from(partition.at.partition.0).unwrap_or(usize::MAX);
        if let Some(slot) = partitions.get_mut(index) {
            *slot = Some(partition);
        }
    }
    let settings = Arc::clone(&topic.settings);
    HostedTopic { id: topic.id, name: topic.name.clone(), settings, partitions }
}

/// Logs opened at once: they mostly wait for the disk.
const OPENERS: usize = 8;
