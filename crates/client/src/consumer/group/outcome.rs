//! A member's outcomes in the application's words.

use crate::{Error, ErrorKind, Result};
use ottla_group::assign::Partitions;
use ottla_group::member::CommitFailed;
use ottla_group::message::offsets::{Committed, CommittedOffset, Fetched, PerPartition};
use ottla_model::{TopicName, TopicPartition};

/// Committed offsets by partition, none where there is none.
pub(in crate::consumer) type CommittedOffsets = Vec<(TopicPartition, Option<CommittedOffset>)>;

pub(super) fn list(partitions: &Partitions) -> Vec<TopicPartition> {
    let one =
        |(topic, partition): (&TopicName, _)| TopicPartition { topic: topic.clone(), partition };
    partitions.iter().map(one).collect()
}

pub(super) fn committed(outcome: Result<Committed, CommitFailed>) -> Result<()> {
    let committed = outcome.map_err(|failed| match failed {
        CommitFailed::NotOwned => Error::new(ErrorKind::Rebalanced, failed.to_string()),
        CommitFailed::Refused(error) => error.into(),
    })?;
    let outcomes = by_partition(committed.topics);
    let refused = outcomes.into_iter().filter_map(|(of, outcome)| Some((of, outcome.err()?)));
    let (partitions, errors): (Vec<_>, Vec<_>) = refused.unzip();
    match errors.first() {
        Some(error) => Err(Error::from(*error).about(partitions)),
        None => Ok(()),
    }
}

pub(super) fn fetched(fetched: Fetched) -> CommittedOffsets {
    by_partition(fetched.topics)
}

fn by_partition<T>(topics: PerPartition<T>) -> Vec<(TopicPartition, T)> {
    let flat = topics.into_iter().flat_map(|(topic, partitions)| {
        let of =
            move |(partition, item)| (TopicPartition { topic: topic.clone(), partition }, item);
        partitions.into_iter().map(of)
    });
    flat.collect()
}
