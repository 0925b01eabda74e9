//! Change dynamic settings: of a topic, of a broker or all of them, of a group.

use super::{Command, Limits, Means, Plan, Refusal, RefusalKind};
use crate::config::{Kind, Overrides, Scope, Setting, resolve, setting};
use crate::image::Image;
use crate::names;
use crate::record::{ConfigResource, ResourceKind, configs_key, put, topic_key};
use crate::store::Op;
use std::collections::BTreeSet;

/// Change the settings of some resources, each as a whole or not at all.
/// [`crate::Cluster::alter_configs`] splits what does not fit one transaction.
#[derive(Clone, Debug)]
pub struct AlterConfigs {
    /// What to change; a resource named twice is refused the second time.
    pub changes: Vec<ConfigChange>,
    /// Check only.
    pub validate_only: bool,
}

/// What to change of one resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigChange {
    /// The resource.
    pub resource: ConfigResource,
    /// How.
    pub edit: ConfigEdit,
}

/// How settings change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConfigEdit {
    /// These replace all that were set (AlterConfigs). A value of `None` is refused.
    Replace(Vec<(String, Option<String>)>),
    /// One after the other (IncrementalAlterConfigs).
    Edit(Vec<(String, ConfigOp)>),
}

/// One step of an incremental change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConfigOp {
    /// Set it.
    Set(String),
    /// Unset it: the default counts.
    Delete,
    /// Add these items, separated by commas, to a list; those it has stay once.
    Append(String),
    /// Take these items out of a list.
    Subtract(String),
}

impl Command for AlterConfigs {
    /// Per resource, in the request's order.
    type Reply = Vec<Result<(), Refusal>>;

    fn decide(&mut self, image: &Image, means: &mut Means<'_>) -> Plan<Self::Reply> {
        let mut ops = Vec::new();
        let mut relies_on = Vec::new();
        let mut seen = BTreeSet::new();
        let mut alter = |change: &ConfigChange| {
            let resource = &change.resource;
            if !seen.insert(resource.clone()) {
                let message = "Each resource must appear at most once.";
                return Err(Refusal::new(RefusalKind::InvalidRequest, message));
            }
            let next = decide_one(image, means.limits, change)?;
            let now = image.overrides(resource).map(|now| &**now);
            if now.unwrap_or(&Overrides::new()) != &next {
                ops.push(write(resource, &next));
                if resource.kind == ResourceKind::Topic {
                    relies_on.push(topic_key(&resource.name));
                }
            }
            Ok(())
        };
        let reply = self.changes.iter().map(&mut alter).collect();
        if self.validate_only {
            return Plan::answer(reply);
        }
        Plan { ops, relies_on, reply }
    }
}

fn decide_one(image: &Image, limits: &Limits, change: &ConfigChange) -> Result<Overrides, Refusal> {
    let resource = &change.resource;
    check_name(resource)?;
    let now = image.overrides(resource).map(|now| (**now).clone()).unwrap_or_default();
    let next = match &change.edit {
        ConfigEdit::Replace(values) => replaced(resource, values)?,
        ConfigEdit::Edit(steps) => {
            steps.iter().try_fold(now, |next, step| edited(image, resource, next, step))?
        }
    };
    check_values(image, resource, &next)?;
    check_size(&next, limits)?;
    if resource.kind == ResourceKind::Topic && image.topic(&resource.name).is_none() {
        let message = format!("The topic '{}' does not exist.", resource.name);
        return Err(Refusal::new(RefusalKind::UnknownTopicOrPartition, message));
    }
    Ok(next)
}

fn check_name(resource: &ConfigResource) -> Result<(), Refusal> {
    let refuse = |why: &str| Err(Refusal::new(RefusalKind::InvalidRequest, why));
    let name = &resource.name;
    match resource.kind {
        ResourceKind::Topic if name.is_empty() => {
            refuse("Default topic resources are not allowed.")
        }
        ResourceKind::Topic => names::check(name).map_err(|why| {
            Refusal::new(RefusalKind::InvalidTopic, format!("Topic name is invalid: {why}"))
        }),
        ResourceKind::Group if name.is_empty() => {
            refuse("Default group resources are not allowed.")
        }
        ResourceKind::Group if name.len() > GROUP_BYTES_MAX => {
            refuse("The group's name is too long to carry settings.")
        }
        ResourceKind::Group => Ok(()),
        ResourceKind::Broker if name.is_empty() => Ok(()),
        ResourceKind::Broker => match name.parse::<i32>() {
            Ok(node) if node < 0 => refuse("Invalid negative broker ID."),
            Ok(_) => Ok(()),
            Err(_) => refuse("Unable to parse broker name as a base 10 number."),
        },
    }
}

fn replaced(
    resource: &ConfigResource,
    values: &[(String, Option<String>)],
) -> Result<Overrides, Refusal> {
    let without = values.iter().filter(|(_, value)| value.is_none());
    let nulls: Vec<_> = without.map(|(name, _)| name.as_str()).collect();
    if !nulls.is_empty() {
        let (kind, nulls) = (resource.kind, nulls.join(","));
        let message = format!("Null value not supported for {kind} configs: {nulls}");
        return Err(Refusal::new(RefusalKind::InvalidConfig, message));
    }
    Ok(values.iter().cloned().filter_map(|(name, value)| Some((name, value?))).collect())
}

fn edited(
    image: &Image,
    resource: &ConfigResource,
    mut next: Overrides,
    (name, op): &(String, ConfigOp),
) -> Result<Overrides, Refusal> {
    let (verb, given) = match op {
        ConfigOp::Set(value) => {
            next.insert(name.clone(), value.clone());
            return Ok(next);
        }
        ConfigOp::Delete => {
            next.remove(name);
            return Ok(next);
        }
        ConfigOp::Append(items) => ("APPEND", items),
        ConfigOp::Subtract(items) => ("SUBTRACT", items),
    };
    let known = find(image, resource.kind, name).filter(|known| known.kind == Kind::List);
    let Some(list) = known else {
        let message = format!("Can't {verb} to key {name} because its type is not LIST.");
        return Err(Refusal::new(RefusalKind::InvalidConfig, message));
    };
    // Without a value of its own the list starts from its default.
    let current = next.get(name).map(String::as_str).or(list.default).unwrap_or_default();
    let given: Vec<_> = setting::split(given).collect();
    let mut items: Vec<_> = setting::split(current).collect();
    if verb == "APPEND" {
        for item in given {
            if !items.contains(&item) {
                items.push(item);
            }
        }
    } else {
        items.retain(|item| !given.contains(item));
    }
    let items = items.join(",");
    next.insert(name.clone(), items);
    Ok(next)
}

fn find(image: &Image, kind: ResourceKind, name: &str) -> Option<&'static Setting> {
    match kind {
        ResourceKind::Topic => image.registry().topic(name),
        ResourceKind::Broker => image.registry().broker(name),
        ResourceKind::Group => image.registry().group(name),
    }
}

fn check_values(image: &Image, resource: &ConfigResource, next: &Overrides) -> Result<(), Refusal> {
    let invalid = |why: String| Refusal::new(RefusalKind::InvalidConfig, why);
    let request = |why: String| Refusal::new(RefusalKind::InvalidRequest, why);
    let kind = resource.kind;
    if kind == ResourceKind::Topic {
        return resolve::check_topic(next, image.layers()).map(drop).map_err(invalid);
    }
    for (name, value) in next {
        let known = find(image, kind, name);
        let known = known.ok_or_else(|| invalid(format!("Unknown {kind} config name: {name}")))?;
        if kind == ResourceKind::Broker {
            check_scope(known, resource)?;
        }
        // Kafka calls a bad value of a broker's setting a bad request (KAFKA-13609).
        let why = if kind == ResourceKind::Broker { request } else { invalid };
        match kind {
            ResourceKind::Group => image.registry().check_group(known, value).map_err(why)?,
            ResourceKind::Broker | ResourceKind::Topic => drop(known.parse(value).map_err(why)?),
        }
    }
    Ok(())
}

fn check_scope(known: &Setting, resource: &ConfigResource) -> Result<(), Refusal> {
    let name = known.name;
    let message = match known.scope {
        Scope::ReadOnly => format!("Cannot update these configs dynamically: [{name}]"),
        Scope::ClusterWide if !resource.name.is_empty() => {
            format!("Cannot update these configs at per-broker level: [{name}]")
        }
        Scope::ClusterWide | Scope::PerBroker => return Ok(()),
    };
    Err(Refusal::new(RefusalKind::InvalidRequest, message))
}

/// One value of the store holds them all.
pub(super) fn check_size(next: &Overrides, limits: &Limits) -> Result<(), Refusal> {
    let bytes: usize = next.iter().map(|(name, value)| name.len() + value.len()).sum();
    let limit = limits.config_bytes;
    if bytes > limit {
        let message = format!("The settings of one resource may take {limit} bytes.");
        return Err(Refusal::new(RefusalKind::PolicyViolation, message));
    }
    Ok(())
}

fn write(resource: &ConfigResource, next: &Overrides) -> Op {
    let key = configs_key(resource);
    if next.is_empty() { Op::Delete { key } } else { put(key, next) }
}

/// Resources of one transaction, whose bytes have a bound.
pub(crate) const AT_ONCE: usize = 8;

/// A group's name becomes part of a key.
const GROUP_BYTES_MAX: usize = crate::store::KEY_BYTES_MAX - 16;
