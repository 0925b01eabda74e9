//! What changes around a group: topics come, go and grow (S6), administrators choose assignors.

use super::rebalance::partitions_of;
use crate::assign::Assignor;
use crate::coordinator::settings::GroupSettings;
use crate::coordinator::turn::Turn;
use crate::coordinator::view::{Cause, Trigger};
use crate::coordinator::watch::Changed;
use crate::message::admin::GroupKind;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use ottla_model::{PartitionId, TopicName};

impl Turn<'_> {
    /// Topics that this group subscribes to are others now.
    pub(in super::super::super) fn topics_changed(&mut self, topics: Vec<Changed>) {
        if self.group.kind != GroupKind::Register {
            return self.check_for_leader();
        }
        let triggers = topics.into_iter().map(|(topic, cause)| Trigger::about(cause, topic));
        self.rebalance(triggers);
    }

    /// What the coordinator before assigned may not be what there is: topics may have changed
    /// while nobody watched.
    pub(in super::super::super) fn check_topics(&mut self) {
        if self.group.kind != GroupKind::Register {
            return self.check_for_leader();
        }
        if !self.group.phase.is_stable() {
            return;
        }
        if let Some(topic) = self.first_misassigned() {
            self.rebalance(Some(Trigger::about(Cause::TopicChanged, topic)));
        }
    }

    /// Restores what only register groups have, once the roster is restored.
    pub(in super::super) fn restore_register(&mut self) {
        if self.group.kind != GroupKind::Register {
            return;
        }
        if let Some(topics) = self.group.subscribed.take() {
            self.subscribe(topics);
        }
        self.check_topics();
    }

    /// The group's settings changed; they were `was`.
    pub(in super::super::super) fn settings_changed(&mut self, was: GroupSettings) {
        let default = self.services.config.register_assignor;
        let before = was.register_assignor.unwrap_or(default);
        let is_live = self.group.kind == GroupKind::Register && !self.group.phase.is_empty();
        if is_live && before != self.assignor() {
            let setting = Some(ASSIGNOR_SETTING.into());
            self.rebalance(Some(Trigger { setting, ..Trigger::new(Cause::AssignorChanged) }));
        }
    }

    /// The assignor this group uses: its own setting, else the broker's (decision 22).
    pub(super) fn assignor(&self) -> Assignor {
        let own = self.services.settings.of(&self.group.id).register_assignor;
        own.unwrap_or(self.services.config.register_assignor)
    }

    /// A topic of which not exactly the existing partitions are assigned.
    fn first_misassigned(&self) -> Option<TopicName> {
        let view = self.services.topics.as_deref()?;
        let members = self.group.roster.in_order().into_iter();
        let parts = members.map(|(_, member)| partitions_of(&self.group.assignment_of(member)));
        let parts: Vec<_> = parts.collect();
        let assigned: BTreeSet<(&TopicName, PartitionId)> =
            parts.iter().flat_map(|part| part.iter()).collect();
        let topics = self.group.subscribed.iter().flatten();
        let existing: BTreeSet<(&TopicName, PartitionId)> = topics
            .filter_map(|name| view.topic(name))
            .flat_map(|topic| topic.partition_ids().map(move |id| (&topic.name, id)))
            .collect();
        assigned.symmetric_difference(&existing).next().map(|(topic, _)| (*topic).clone())
    }
}

/// What operators know the assignor of a register group by.
const ASSIGNOR_SETTING: &str = "register.assignor";
