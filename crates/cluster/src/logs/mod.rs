//! Which log folders should exist: a plan from the image and the folders found, and the names of
//! folders. Pure; the broker carries the plan out.
//!
//! A topic is deleted in two phases. First the cluster forgets it and remembers, by id, that
//! something may still lie about ([`crate::record::DeletedRecord`]); then each broker renames its
//! folders so that no name is taken ([`deletion_name`]), removes them, and says so. A crash
//! between any two of these steps is mended by the next plan. A folder is never removed unless the
//! cluster knows its topic was deleted: data nobody can explain is set aside as *stray*, under a
//! name Kafka uses for the same purpose, for a human to look at.

use crate::image::Image;
use ottla_model::{NodeId, PartitionId, TopicId, TopicName, TopicPartition};
use std::collections::BTreeSet;

/// A folder found in the data directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Its name.
    pub folder: String,
    /// The topic id its `partition.metadata` carries, where it has one.
    pub topic_id: Option<TopicId>,
}

/// What to do, in this order: renames and removals free the names that creations need.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// The topic was deleted: rename the folder by [`deletion_name`], then remove it.
    Delete {
        /// The folder.
        folder: String,
    },
    /// An earlier run had renamed it for deletion: remove it.
    Remove {
        /// The folder.
        folder: String,
    },
    /// Nobody knows what it is: rename it by [`stray_name`] and tell the operator.
    SetAside {
        /// The folder.
        folder: String,
        /// Why it is not opened, for the log.
        why: String,
    },
    /// Open the log in this folder.
    Open {
        /// The partition.
        at: TopicPartition,
        /// Its topic.
        topic_id: TopicId,
    },
    /// Make a log of this partition; there is none yet.
    Create {
        /// The partition.
        at: TopicPartition,
        /// Its topic.
        topic_id: TopicId,
    },
}

/// What `node` has to do so that its folders match the image.
pub fn plan(image: &Image, node: NodeId, found: &[Found]) -> Vec<Action> {
    let mut first = Vec::new();
    let mut opened = Vec::new();
    let mut present = BTreeSet::new();
    for found in found {
        match judge(image, node, found) {
            Verdict::Ignore => {}
            Verdict::Clear(action) => first.push(action),
            Verdict::Open(at, topic_id) => {
                present.insert(at.clone());
                opened.push(Action::Open { at, topic_id });
            }
        }
    }
    first.extend(opened);
    let wanted = image.topics().flat_map(|topic| {
        let kept =
            move |partition: &crate::image::Partition<'_>| partition.replicas.contains(&node);
        image.partitions_of(topic).filter(kept).map(|partition| {
            let at = TopicPartition { topic: topic.name.clone(), partition: partition.id };
            (at, topic.id)
        })
    });
    let missing = wanted.filter(|(at, _)| !present.contains(at));
    first.extend(missing.map(|(at, topic_id)| Action::Create { at, topic_id }));
    first
}

enum Verdict {
    Ignore,
    Clear(Action),
    Open(TopicPartition, TopicId),
}

fn judge(image: &Image, node: NodeId, found: &Found) -> Verdict {
    let folder = found.folder.clone();
    let at = match parse(&folder) {
        Name::Foreign | Name::Stray => return Verdict::Ignore,
        Name::Deletion => return Verdict::Clear(Action::Remove { folder }),
        Name::Partition(at) => at,
    };
    let named = image.topic(&at.topic);
    let doomed = match found.topic_id {
        Some(id) => image.deleted_topic(id).is_some(),
        // The id is written before the first record, so a folder without one holds none.
        None => named.is_none() && image.deleted().any(|(_, topic)| *topic.name == *at.topic),
    };
    if doomed {
        return Verdict::Clear(Action::Delete { folder });
    }
    let aside = |why: String| Verdict::Clear(Action::SetAside { folder: folder.clone(), why });
    let Some(topic) = named else {
        return aside(format!("there is no topic {}", at.topic));
    };
    if let Some(id) = found.topic_id.filter(|id| *id != topic.id) {
        return aside(format!("it belongs to id {id}, but topic {} is {}", at.topic, topic.id));
    }
    match image.partition_of(topic, at.partition) {
        Some(partition) if partition.replicas.contains(&node) => Verdict::Open(at, topic.id),
        Some(_) => aside(format!("broker {node} keeps no replica of {at}")),
        None => aside(format!("topic {} has {} partition(s)", at.topic, topic.partition_count())),
    }
}

/// What a folder's name says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Name {
    /// `topic-partition`: a log.
    Partition(TopicPartition),
    /// `topic-partition.<32 hex digits>-delete`: a log on its way out.
    Deletion,
    /// `topic-partition.<32 hex digits>-stray`: set aside.
    Stray,
    /// None of ours.
    Foreign,
}

/// Understands a folder's name.
pub fn parse(folder: &str) -> Name {
    if folder.ends_with(DELETION) && marked(folder, DELETION) {
        return Name::Deletion;
    }
    if folder.ends_with(STRAY) && marked(folder, STRAY) {
        return Name::Stray;
    }
    let Some((topic, digits)) = folder.rsplit_once('-') else { return Name::Foreign };
    let plain = digits == "0" || !digits.starts_with('0');
    let partition = digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse());
    match partition {
        Some(Ok(partition)) if plain && crate::names::check(topic).is_ok() => {
            let (topic, partition) = (TopicName::from(topic), PartitionId(partition));
            Name::Partition(TopicPartition { topic, partition })
        }
        _ => Name::Foreign,
    }
}

/// The folder of a partition's log.
pub fn folder_name(at: &TopicPartition) -> String {
    at.to_string()
}

/// What a folder is renamed to before it is removed; `unique` is fresh each time, because the
/// topic may be created and deleted again before the first removal is done.
pub fn deletion_name(at: &TopicPartition, unique: [u8; 16]) -> String {
    marked_name(at, unique, DELETION)
}

/// What a folder is renamed to that nobody can explain.
pub fn stray_name(at: &TopicPartition, unique: [u8; 16]) -> String {
    marked_name(at, unique, STRAY)
}

fn marked_name(at: &TopicPartition, unique: [u8; 16], mark: &str) -> String {
    let unique = u128::from_be_bytes(unique);
    let suffix = format!("-{}.{unique:032x}{mark}", at.partition);
    // A folder's name holds 255 bytes; like Kafka, the topic's name gives way.
    let kept = at.topic.len().min(FOLDER_BYTES_MAX - suffix.len());
    format!("{}{suffix}", &at.topic[..kept])
}

fn marked(folder: &str, mark: &str) -> bool {
    let unique = folder.strip_suffix(mark).and_then(|rest| rest.rsplit_once('.'));
    unique.is_some_and(|(_, unique)| {
        unique.len() == 32 && unique.bytes().all(|byte| byte.is_ascii_hexdigit())
    })
}

const DELETION: &str = "-delete";
const STRAY: &str = "-stray";
const FOLDER_BYTES_MAX: usize = 255;

#[cfg(test)]
mod tests;
