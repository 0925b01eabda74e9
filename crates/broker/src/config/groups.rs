//! Settings of single groups: Kafka's GROUP config resource (type 32). One row per setting, in the
//! order of names, and one arm that says where its value goes; the cluster keeps the values, the
//! coordinator reads them.

use ottla_cluster::config::{Check, Kind, Overrides, Scope, Setting};
use ottla_cluster::image::Image;
use ottla_cluster::record::ResourceKind;
use ottla_group::assign::Assignor;
use ottla_group::coordinator::{GroupSettings, SettingsView};

/// Every setting a group can have. A row's synonym is the broker's setting that is its default.
pub static SETTINGS: &[Setting] = &[Setting {
    name: "register.assignor",
    kind: Kind::String,
    default: Some("range"),
    check: Check::OneOf(&["range", "roundrobin"]),
    scope: Scope::PerBroker,
    doc: "How the partitions of a register group are shared out.",
    synonyms: &[("register.assignor", 1)],
}];

/// What groups of this image have set.
pub(crate) fn view(image: &Image) -> SettingsView {
    let groups = image.configured().filter(|resource| resource.kind == ResourceKind::Group);
    let own = |resource| Some(settings(image.overrides(resource)?));
    groups.filter_map(|at| Some((at.name.as_str().into(), own(at)?))).collect()
}

fn settings(overrides: &Overrides) -> GroupSettings {
    let mut settings = GroupSettings::default();
    for (name, value) in overrides {
        set(&mut settings, name, value.trim());
    }
    settings
}

/// Puts one value where the coordinator reads it; false for a setting that is none of ours (any
/// more). Values were checked when they were set.
fn set(settings: &mut GroupSettings, name: &str, value: &str) -> bool {
    match name {
        "register.assignor" => settings.register_assignor = Assignor::named(value),
        _ => return false,
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A setting that is listed takes effect.
    #[test]
    fn every_row_has_its_arm() {
        for setting in SETTINGS {
            let value = setting.default.unwrap_or("1");
            assert!(set(&mut GroupSettings::default(), setting.name, value), "{}", setting.name);
        }
        assert!(SETTINGS.is_sorted_by_key(|setting| setting.name));
    }
}
