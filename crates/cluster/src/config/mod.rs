//! Settings: what there is, what a value may be, and which of several values counts.
//!
//! [`setting`] says what one setting is; [`topic`] and [`broker`] are the tables of those that
//! take effect here, and a name outside them is refused, never ignored. [`resolve`] answers
//! which value counts and where it came from, as DescribeConfigs tells it. Names, units, defaults
//! and texts of refusals are Kafka's. This module never knows who stores a value.

pub mod broker;
pub mod resolve;
pub mod setting;
pub mod topic;

pub use resolve::{Layers, Resolved, Source, Synonym};
pub use setting::{Check, Kind, Scope, Setting, Value};
pub use topic::{CleanupPolicy, CompressionType, TimestampType, TopicSettings};

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::Arc;

/// Overrides of one resource: names and values as they were given.
pub type Overrides = BTreeMap<String, String>;

/// Every setting this broker knows, with what its configuration file and flags say.
#[derive(Clone, Debug)]
pub struct Registry {
    broker: Vec<&'static Setting>,
    groups: &'static [Setting],
    group_bounds: Arc<BTreeMap<&'static str, RangeInclusive<i64>>>,
    statics: Arc<Overrides>,
}

impl Registry {
    /// The cluster's own broker settings, `more` of the broker's, the settings of GROUP
    /// resources, and the static values.
    ///
    /// # Errors
    /// The first static value that is refused, in words for whoever wrote it.
    pub fn new(
        more: &'static [Setting],
        groups: &'static [Setting],
        statics: Overrides,
    ) -> Result<Self, String> {
        let mut broker: Vec<&'static Setting> = broker::SETTINGS.iter().chain(more).collect();
        broker.sort_by_key(|setting| setting.name);
        let group_bounds = Arc::default();
        let registry = Self { broker, groups, group_bounds, statics: Arc::new(statics) };
        for (name, value) in &*registry.statics {
            let setting = registry.broker(name);
            let setting = setting.ok_or_else(|| format!("Unknown broker config name: {name}"))?;
            setting.parse(value)?;
        }
        Ok(registry)
    }

    /// Numbers that groups may set for themselves within these ranges only, beside what their own
    /// checks say.
    #[must_use]
    pub fn with_group_bounds(
        mut self,
        bounds: impl IntoIterator<Item = (&'static str, RangeInclusive<i64>)>,
    ) -> Self {
        self.group_bounds = Arc::new(bounds.into_iter().collect());
        self
    }

    /// The range of a group's setting of this name, if it has one here.
    pub fn group_bounds(&self, name: &str) -> Option<&RangeInclusive<i64>> {
        self.group_bounds.get(name)
    }

    /// Checks a group's value.
    ///
    /// # Errors
    /// What it may be instead, in Kafka's words where Kafka has such a check.
    pub(crate) fn check_group(&self, setting: &Setting, value: &str) -> Result<(), String> {
        let parsed = setting.parse(value)?;
        let (Some(bounds), Value::Number(number)) = (self.group_bounds(setting.name), parsed)
        else {
            return Ok(());
        };
        let (name, prefix) = (setting.name, "consumer.");
        let own = name.strip_prefix(prefix).unwrap_or(name);
        if number < *bounds.start() {
            return Err(format!(
                "{name} must be greater than or equal to group.consumer.min.{own}"
            ));
        }
        if number > *bounds.end() {
            return Err(format!("{name} must be less than or equal to group.consumer.max.{own}"));
        }
        Ok(())
    }

    /// The topic setting of this name.
    pub fn topic(&self, name: &str) -> Option<&'static Setting> {
        topic::SETTINGS.iter().find(|setting| setting.name == name)
    }

    /// The broker setting of this name.
    pub fn broker(&self, name: &str) -> Option<&'static Setting> {
        let found = self.broker.binary_search_by_key(&name, |setting| setting.name);
        found.ok().map(|index| self.broker[index])
    }

    /// The group setting of this name.
    pub fn group(&self, name: &str) -> Option<&'static Setting> {
        self.groups.iter().find(|setting| setting.name == name)
    }

    /// Every topic setting, by name.
    pub fn topic_settings(&self) -> impl Iterator<Item = &'static Setting> {
        topic::SETTINGS.iter()
    }

    /// Every broker setting, by name.
    pub fn broker_settings(&self) -> impl Iterator<Item = &'static Setting> {
        self.broker.iter().copied()
    }

    /// Every group setting.
    pub fn group_settings(&self) -> impl Iterator<Item = &'static Setting> {
        self.groups.iter()
    }

    /// What the configuration file and flags say.
    pub fn statics(&self) -> &Arc<Overrides> {
        &self.statics
    }
}

#[cfg(test)]
mod tests;
