//! Committing, reading and deleting offsets, for members of a group and for nobody in particular.

use super::super::barrier::Phase;
use super::super::record::{OffsetCommit, OffsetCommitValue, Record};
use super::super::turn::{Call, Services, Turn};
use crate::message::admin::GroupKind;
use crate::message::offsets::{
    Commit, CommitPartition, CommitTopic, Committed, CommittedOffset, Delete, Deleted, Fetch,
    Fetched, PerPartition,
};
use crate::message::{GroupError, Reply};
use crate::probe::{self, Fault, Mark};
use alloc::sync::Arc;
use alloc::vec::Vec;
use ottla_model::{PartitionId, TopicId, TopicName};

impl Turn<'_> {
    /// A commit into a group that exists, or that this commit brings into being.
    pub(in super::super) fn commit_offsets(&mut self, call: &Call<'_>, ask: &Commit<'_>) {
        if let Err(error) = self.validate_commit(ask) {
            self.reply(call.token, Reply::Commit(Err(error)));
            return;
        }
        self.note_committer(call, ask.member);
        let mut records = Vec::with_capacity(ask.topics.iter().map(|t| t.partitions.len()).sum());
        // `Arc::default()` is one count for all shards, and their cores would pass it to and fro.
        let no_note = Arc::from("");
        let topics = ask.topics.iter().map(|topic| {
            let known = self.group.hard.offsets().name(topic.topic);
            let name = known.cloned().unwrap_or_else(|| TopicName::from(topic.topic));
            let outcomes = self.commit_topic(ask, topic, (&name, &no_note), &mut records);
            (name, outcomes)
        });
        let committed = Committed { topics: topics.collect() };
        let outcome = if records.is_empty() { Ok(()) } else { self.decide(records).map(|_| ()) };
        self.reply_offsets(call.token, Reply::Commit(outcome.map(|()| committed)));
    }

    /// A commit is a sign of life, and in a long rebalance perhaps the only one. A register member
    /// that should register again instead is not kept alive by it (S17).
    fn note_committer(&mut self, call: &Call<'_>, member: &str) {
        match (&self.group.phase, self.group.kind) {
            (Phase::Preparing(_), GroupKind::Register) => self.follow(member, call),
            (Phase::Preparing(_) | Phase::Stable, _) => self.hear(member, call),
            (Phase::Empty | Phase::Completing { .. }, _) => {}
        }
    }

    /// Who may commit: a member of the current generation while it is in force; anyone into a
    /// group without members, if no generation is claimed.
    fn validate_commit(&self, ask: &Commit<'_>) -> Result<(), GroupError> {
        if self.group.kind == GroupKind::Consumer {
            return self.validate_consumer_commit(ask);
        }
        let claims_generation = ask.generation.0 >= 0;
        if !claims_generation && self.group.phase.is_empty() {
            return Ok(());
        }
        let claims_nothing = ask.member.is_empty() && ask.instance.is_none();
        // In a register group whoever claims no generation is nobody (decision 15).
        let is_nobody = claims_nothing || self.group.kind == GroupKind::Register;
        if !claims_generation && is_nobody {
            return Err(GroupError::UnknownMemberId);
        }
        self.validate_member(ask.member, ask.instance)?;
        let takes_any = probe::has(Fault::CoordinatorTakesStaleCommits);
        if ask.generation != self.group.generation_of(ask.member) && !takes_any {
            probe::hit(Mark::CoordinatorFencedCommit);
            return Err(GroupError::IllegalGeneration);
        }
        match self.group.phase {
            Phase::Completing { .. } => Err(GroupError::RebalanceInProgress),
            Phase::Empty | Phase::Preparing(_) | Phase::Stable => Ok(()),
        }
    }

    fn commit_topic(
        &self,
        ask: &Commit<'_>,
        topic: &CommitTopic<'_>,
        shared: (&TopicName, &Arc<str>),
        records: &mut Vec<Record>,
    ) -> Vec<(PartitionId, Result<(), GroupError>)> {
        let is_stale = self.services.is_other_topic(topic.topic, topic.id);
        let note_bytes_max = self.services.config.offset_metadata_bytes_max;
        let outcomes = topic.partitions.iter().map(|partition| {
            let outcome = if is_stale {
                probe::hit(Mark::CoordinatorRefusedStaleTopic);
                Err(GroupError::UnknownTopicOrPartition)
            } else if partition.metadata.len() > note_bytes_max {
                Err(GroupError::OffsetMetadataTooLarge)
            } else {
                records.push(self.commit_record(ask, shared, topic.id, partition));
                Ok(())
            };
            (partition.partition, outcome)
        });
        outcomes.collect()
    }

    fn commit_record(
        &self,
        ask: &Commit<'_>,
        (topic, no_note): (&TopicName, &Arc<str>),
        topic_id: TopicId,
        partition: &CommitPartition<'_>,
    ) -> Record {
        let value = OffsetCommitValue {
            offset: partition.offset,
            leader_epoch: partition.leader_epoch,
            metadata: if partition.metadata.is_empty() {
                Arc::clone(no_note)
            } else {
                Arc::from(partition.metadata)
            },
            committed_at: self.now.wall,
            expires_at: ask.retention.map(|retention| self.now.wall.plus(retention)),
            topic_id,
        };
        let group = self.group.id.clone();
        let partition = partition.partition;
        Record::OffsetCommit(OffsetCommit {
            group,
            topic: topic.clone(),
            partition,
            value: Some(value),
        })
    }

    /// Reads offsets of a group that exists.
    pub(in super::super) fn fetch_offsets(&mut self, call: &Call<'_>, ask: &Fetch<'_>) {
        if let Err(error) = self.validate_consumer_fetch(ask) {
            self.reply(call.token, Reply::FetchOffsets(Err(error)));
            return;
        }
        let topics = match &ask.topics {
            Some(topics) => topics
                .iter()
                .map(|(topic, partitions)| {
                    let found = partitions.iter().map(|p| (*p, self.committed(topic, *p)));
                    (TopicName::from(*topic), found.collect())
                })
                .collect(),
            None => self.all_committed(),
        };
        self.reply_offsets(call.token, Reply::FetchOffsets(Ok(Fetched { topics })));
    }

    fn committed(&self, topic: &str, partition: PartitionId) -> Option<CommittedOffset> {
        let value = self.group.hard.offsets().value(topic, partition)?;
        self.current(topic, value)
    }

    fn all_committed(&self) -> PerPartition<Option<CommittedOffset>> {
        let mut topics = Vec::new();
        for (topic, committed) in self.group.hard.offsets().topics() {
            let mut found = Vec::with_capacity(committed.len());
            for (partition, value) in committed.values() {
                if let Some(offset) = self.current(topic, value) {
                    found.push((partition, Some(offset)));
                }
            }
            if !found.is_empty() {
                topics.push((topic.clone(), found));
            }
        }
        topics
    }

    /// What was committed, unless it was for an earlier topic of the same name.
    fn current(&self, topic: &str, value: OffsetCommitValue) -> Option<CommittedOffset> {
        let is_stale = self.services.is_other_topic(topic, value.topic_id);
        (!is_stale).then_some(CommittedOffset {
            offset: value.offset,
            leader_epoch: value.leader_epoch,
            metadata: value.metadata,
            committed_at: value.committed_at,
            expires_at: value.expires_at,
            topic_id: value.topic_id,
        })
    }

    /// Deletes offsets of a group that exists (KIP-496): of one without members all, of one of
    /// consumers those of topics nobody subscribes to.
    pub(in super::super) fn delete_offsets(&mut self, call: &Call<'_>, ask: &Delete<'_>) {
        if !self.group.is_empty() && !self.group.is_consumer() {
            self.reply(call.token, Reply::DeleteOffsets(Err(GroupError::NonEmptyGroup)));
            return;
        }
        let mut records = Vec::new();
        let topics = ask.topics.iter().map(|(topic, partitions)| {
            let outcome = match self.group.is_subscribed(topic) {
                true => Err(GroupError::GroupSubscribedToTopic),
                false => Ok(()),
            };
            if outcome.is_ok() {
                let present =
                    partitions.iter().filter(|p| self.group.hard.offsets().contains(topic, **p));
                records.extend(present.map(|p| self.tombstone(&TopicName::from(*topic), *p)));
            }
            (TopicName::from(*topic), partitions.iter().map(|p| (*p, outcome)).collect())
        });
        let deleted = Deleted { topics: topics.collect() };
        let outcome = if records.is_empty() { Ok(()) } else { self.decide(records).map(|_| ()) };
        self.reply_offsets(call.token, Reply::DeleteOffsets(outcome.map(|()| deleted)));
    }

    /// The record that ends one offset.
    pub(in super::super) fn tombstone(&self, topic: &TopicName, partition: PartitionId) -> Record {
        let group = self.group.id.clone();
        Record::OffsetCommit(OffsetCommit { group, topic: topic.clone(), partition, value: None })
    }
}

/// The answer of a group that does not exist: nothing is committed.
pub(in super::super) fn nothing_committed(ask: &Fetch<'_>) -> Fetched {
    let topics = ask.topics.iter().flatten().map(|(topic, partitions)| {
        (TopicName::from(*topic), partitions.iter().map(|p| (*p, None)).collect())
    });
    Fetched { topics: topics.collect() }
}

impl Services {
    /// Whether `id` is surely not the id of the topic that has this name now: both are known and
    /// differ.
    pub(in super::super) fn is_other_topic(&self, name: &str, id: TopicId) -> bool {
        if probe::has(Fault::CoordinatorInheritsOffsets) {
            return false;
        }
        let current = self.topics.as_ref().and_then(|topics| topics.topic(name));
        current.is_some_and(|topic| !id.is_zero() && !topic.id.is_zero() && topic.id != id)
    }
}
