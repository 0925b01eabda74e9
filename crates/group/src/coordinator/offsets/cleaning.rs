//! Offsets that go by themselves: expired ones, and those of topics that are gone. Both write
//! tombstones and may be split into several batches.

use super::super::barrier::Phase;
use super::super::record::{GroupMetadata, Record};
use super::super::turn::Turn;
use crate::message::admin::GroupKind;
use crate::probe::{self, Fault, Mark};
use alloc::vec::Vec;
use ottla_model::{Timestamp, TopicId, TopicsView};

impl Turn<'_> {
    /// Ends what has expired: offsets by Kafka's rules (KIP-186, KIP-211), then the group itself
    /// if it has neither offsets nor members left.
    pub(in super::super) fn expire_offsets(&mut self) {
        if let Some(since) = self.expiry_base() {
            let records = self.expired(since);
            self.decide_split(records);
        }
        let has_promises = self.group.roster.pending_len() > 0;
        if self.group.is_empty() && self.group.hard.offsets().is_empty() && !has_promises {
            self.end_group();
        }
    }

    /// From when offsets age: `Some(Some(t))` all from `t`, `Some(None)` each from its commit,
    /// `None` not at all.
    fn expiry_base(&self) -> Option<Option<Timestamp>> {
        let has_had_members = self.group.protocol_type.is_some();
        if self.group.kind == GroupKind::Consumer {
            // As Kafka has it: each offset from its commit, where nobody reads the topic.
            return Some(None);
        }
        match self.group.phase {
            // A group that is empty ages as a whole, from when its last member went.
            Phase::Empty if has_had_members => {
                Some(self.group.hard.metadata().and_then(|metadata| metadata.state_since))
            }
            // Offsets of groups that never had members age each by itself; so do those of topics
            // nobody in a stable group reads any more.
            Phase::Empty => Some(None),
            Phase::Stable if self.group.is_consumer() && self.group.subscribed.is_some() => {
                Some(None)
            }
            Phase::Stable | Phase::Preparing(_) | Phase::Completing { .. } => None,
        }
    }

    fn expired(&self, since: Option<Timestamp>) -> Vec<Record> {
        let retention = self.services.config.offsets_retention;
        let retention_ms = i64::try_from(retention.as_millis()).unwrap_or(i64::MAX);
        let mut records = Vec::new();
        for (topic, committed) in self.group.hard.offsets().topics() {
            if !self.group.is_subscribed(topic) {
                let expired = committed.expired(self.now.wall, since, retention_ms);
                records.extend(expired.map(|partition| self.tombstone(topic, partition)));
            }
        }
        records
    }

    /// Ends the offsets of topics that are gone, or that are others than when they were committed.
    ///
    /// A topic is gone that was in the view `before`. One that never was may be so new that the
    /// view does not have it yet: its offsets go only when they are older than that can be.
    pub(in super::super) fn forget_lost_topics(
        &mut self,
        before: Option<&TopicsView>,
        topics: &TopicsView,
    ) {
        if probe::has(Fault::CoordinatorInheritsOffsets) {
            return;
        }
        let mut records = Vec::new();
        for (name, committed) in self.group.hard.offsets().topics() {
            let current = topics.topic(name).map(|topic| topic.id);
            let went = before.is_some_and(|before| before.topic(name).is_some());
            let settled = self.now.wall.0.saturating_sub(VIEW_LAG_MS_MAX);
            let is_lost = move |id: TopicId, committed_at: Timestamp| match current {
                None => went || committed_at.0 <= settled,
                Some(current) => !id.is_zero() && !current.is_zero() && id != current,
            };
            let lost = committed.of_topic(is_lost);
            records.extend(lost.map(|partition| self.tombstone(name, partition)));
        }
        if !records.is_empty() {
            probe::hit(Mark::CoordinatorForgotTopic);
        }
        self.decide_split(records);
    }

    /// Ends a group without members: its offsets, then itself.
    pub(in super::super) fn end_group(&mut self) {
        self.group.roster.break_promises();
        let mut records = Vec::new();
        for (topic, committed) in self.group.hard.offsets().topics() {
            let partitions = committed.offsets().map(|(partition, _)| partition);
            records.extend(partitions.map(|partition| self.tombstone(topic, partition)));
        }
        records.extend(self.end_of_consumers());
        if self.group.hard.metadata().is_some() {
            let group = self.group.id.clone();
            records.push(Record::GroupMetadata(GroupMetadata { group, value: None }));
        }
        self.decide_split(records);
    }
}

/// How long after a commit a view may come that does not know the commit's topic yet.
const VIEW_LAG_MS_MAX: i64 = 60_000;
