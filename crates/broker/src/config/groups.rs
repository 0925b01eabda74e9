//! Settings of single groups: Kafka's GROUP config resource (type 32). One row per setting, in the
//! order of names, and one arm that says where its value goes; the cluster keeps the values, the
//! coordinator reads them.

use ottla_cluster::config::{Check, Kind, Overrides, Scope, Setting};
use ottla_cluster::image::Image;
use ottla_cluster::record::ResourceKind;
use ottla_group::assign::Assignor;
use ottla_group::coordinator::{GroupSettings, SettingsView};
use std::ops::RangeInclusive;
use std::time::Duration;

/// Every setting a group can have. A row's synonym is the broker's setting that is its default.
pub static SETTINGS: &[Setting] = &[
    Setting {
        name: "consumer.assignment.interval.ms",
        kind: Kind::Int,
        default: Some("100"),
        check: Check::Between(0, 15_000),
        scope: Scope::PerBroker,
        doc: "How long after one assignment of a consumer group the next is made at the earliest.",
        synonyms: &[("group.consumer.assignment.interval.ms", 1)],
    },
    Setting {
        name: "consumer.heartbeat.interval.ms",
        kind: Kind::Int,
        default: Some("5000"),
        check: Check::Between(100, 600_000),
        scope: Scope::PerBroker,
        doc: "How often members of a consumer group are asked to come back.",
        synonyms: &[("group.consumer.heartbeat.interval.ms", 1)],
    },
    Setting {
        name: "consumer.session.timeout.ms",
        kind: Kind::Int,
        default: Some("45000"),
        check: Check::Between(100, 3_600_000),
        scope: Scope::PerBroker,
        doc: "How long a member of a consumer group may be silent before it counts as dead.",
        synonyms: &[("group.consumer.session.timeout.ms", 1)],
    },
    Setting {
        name: "register.assignor",
        kind: Kind::String,
        default: Some("range"),
        check: Check::OneOf(&["range", "roundrobin"]),
        scope: Scope::PerBroker,
        doc: "How the partitions of a register group are shared out.",
        synonyms: &[("register.assignor", 1)],
    },
];

/// What groups of this image have set.
pub(crate) fn view(image: &Image) -> SettingsView {
    let groups = image.configured().filter(|resource| resource.kind == ResourceKind::Group);
    let registry = image.registry();
    let bounds = |name: &str| registry.group_bounds(name).cloned();
    let own = |resource| Some(settings(image.overrides(resource)?, bounds));
    groups.filter_map(|at| Some((at.name.as_str().into(), own(at)?))).collect()
}

/// A value that was set under other bounds counts as the nearest that they now allow.
fn settings(
    overrides: &Overrides,
    bounds: impl Fn(&str) -> Option<RangeInclusive<i64>>,
) -> GroupSettings {
    let mut settings = GroupSettings::default();
    for (name, value) in overrides {
        let number = value.trim().parse::<i64>().ok();
        let within = number.zip(bounds(name)).map(|(n, b)| n.max(*b.start()).min(*b.end()));
        let within = within.map(|number| number.to_string());
        set(&mut settings, name, within.as_deref().unwrap_or(value.trim()));
    }
    settings
}

/// Puts one value where the coordinator reads it; false for a setting that is none of ours (any
/// more). Values were checked when they were set.
fn set(settings: &mut GroupSettings, name: &str, value: &str) -> bool {
    match name {
        "consumer.assignment.interval.ms" => settings.consumer_assignment_interval = millis(value),
        "consumer.heartbeat.interval.ms" => settings.consumer_heartbeat_interval = millis(value),
        "consumer.session.timeout.ms" => settings.consumer_session_timeout = millis(value),
        "register.assignor" => settings.register_assignor = Assignor::named(value),
        _ => return false,
    }
    true
}

fn millis(value: &str) -> Option<Duration> {
    value.parse().ok().map(Duration::from_millis)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A setting that is listed takes effect.
    #[test]
    fn every_row_has_its_arm() {
        for setting in SETTINGS {
            let value = setting.default.unwrap_or("1");
            let mut settings = GroupSettings::default();
            assert!(set(&mut settings, setting.name, value), "{}", setting.name);
            assert_ne!(settings, GroupSettings::default(), "{}", setting.name);
        }
        assert!(SETTINGS.is_sorted_by_key(|setting| setting.name));
    }
}
