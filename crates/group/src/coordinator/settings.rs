//! What an administrator set for single groups: Kafka's GROUP config resource, as the core reads
//! it. Where it is stored and how it is written, nothing here knows.

use crate::assign::Assignor;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::time::Duration;
use ottla_model::GroupId;

/// The settings of all groups that have any of their own, as of one moment. A change makes a new
/// value, handed to [`Shard::handle_settings`](super::Shard::handle_settings).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SettingsView {
    groups: BTreeMap<GroupId, GroupSettings>,
}

/// One group's own settings; what it does not set is the shard's [`Config`](super::Config).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GroupSettings {
    /// `register.assignor`: how a register group's partitions are shared out (decision 22);
    /// `range` or `roundrobin`.
    pub register_assignor: Option<Assignor>,
    /// `consumer.session.timeout.ms`.
    pub consumer_session_timeout: Option<Duration>,
    /// `consumer.heartbeat.interval.ms`.
    pub consumer_heartbeat_interval: Option<Duration>,
    /// `consumer.assignment.interval.ms`.
    pub consumer_assignment_interval: Option<Duration>,
}

impl SettingsView {
    /// The settings of one group.
    pub fn of(&self, group: &str) -> GroupSettings {
        self.groups.get(group).copied().unwrap_or_default()
    }

    /// Groups whose settings differ in `other`, in the order of their ids.
    pub(super) fn differing(&self, other: &Self) -> Vec<GroupId> {
        let ids: BTreeSet<_> = self.groups.keys().chain(other.groups.keys()).collect();
        ids.into_iter().filter(|id| self.of(id) != other.of(id)).cloned().collect()
    }
}

impl FromIterator<(GroupId, GroupSettings)> for SettingsView {
    fn from_iter<I: IntoIterator<Item = (GroupId, GroupSettings)>>(groups: I) -> Self {
        Self { groups: groups.into_iter().collect() }
    }
}
