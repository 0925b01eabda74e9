//! Which value counts: a topic's own, then this broker's, then every broker's, then the
//! configuration file's, then the default. DescribeConfigs tells them all, as synonyms.

use super::setting::Setting;
use super::topic::check_together;
use super::{Overrides, Registry, TopicSettings, topic};
use std::sync::Arc;

/// Where a value came from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Source {
    /// Set on the topic.
    Topic,
    /// Set on this broker while it ran.
    Broker,
    /// Set on every broker while they ran.
    EveryBroker,
    /// The configuration file, the environment or a flag.
    Static,
    /// Set on the group.
    Group,
    /// Nobody said.
    Default,
}

/// The values that broker-wide settings have, the strongest first.
#[derive(Clone, Debug, Default)]
pub struct Layers {
    /// Of this broker.
    pub broker: Arc<Overrides>,
    /// Of every broker.
    pub every_broker: Arc<Overrides>,
    /// Of the configuration file.
    pub statics: Arc<Overrides>,
}

/// What counts for one setting of one resource.
#[derive(Clone, Debug)]
pub struct Resolved {
    /// The setting.
    pub setting: &'static Setting,
    /// Its value, in its own unit; `None` where it has none.
    pub value: Option<String>,
    /// Where that came from.
    pub source: Source,
    /// Every value there is, the one that counts first, each under the name it was given.
    pub synonyms: Vec<Synonym>,
}

/// One value that is set, or would count if the stronger ones were not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Synonym {
    /// The name it was given under.
    pub name: &'static str,
    /// The value, in that name's unit.
    pub value: String,
    /// Where it came from.
    pub source: Source,
}

impl Layers {
    /// A topic setting, given the topic's own settings.
    pub fn topic(&self, setting: &'static Setting, own: &Overrides, all: &Registry) -> Resolved {
        let mut synonyms = Vec::new();
        if let Some(value) = own.get(setting.name) {
            let (name, value) = (setting.name, value.clone());
            synonyms.push(Synonym { name, value, source: Source::Topic });
        }
        self.broker_values(setting.synonyms.iter().map(|(name, _)| *name), &mut synonyms);
        let (value, source) = match synonyms.first() {
            Some(first) => (scaled(setting, first), first.source),
            None => (setting.default.unwrap_or_default().to_owned(), Source::Default),
        };
        let mut broker_settings = setting.synonyms.iter().filter_map(|(name, _)| all.broker(name));
        synonyms.extend(broker_settings.find_map(default_of));
        Resolved { setting, value: Some(value), source, synonyms }
    }

    /// A broker setting.
    pub fn broker(&self, setting: &'static Setting) -> Resolved {
        let mut synonyms = Vec::new();
        self.broker_values([setting.name].into_iter(), &mut synonyms);
        synonyms.extend(default_of(setting));
        let first = synonyms.first();
        let value = first.map(|synonym| synonym.value.clone());
        let source = first.map_or(Source::Default, |synonym| synonym.source);
        Resolved { setting, value, source, synonyms }
    }

    /// A broker setting as it was set on every broker; told for "all brokers" as a resource.
    pub fn every_broker(&self, setting: &'static Setting) -> Resolved {
        let mut resolved = self.broker(setting);
        resolved.synonyms.retain(|synonym| synonym.source == Source::EveryBroker);
        resolved.value = resolved.synonyms.first().map(|synonym| synonym.value.clone());
        resolved.source = Source::EveryBroker;
        resolved
    }

    /// A setting of a group, given its own; the broker's setting `group.NAME` is its default.
    pub fn group(&self, setting: &'static Setting, own: &Overrides) -> Resolved {
        let mut synonyms = Vec::new();
        if let Some(value) = own.get(setting.name) {
            let (name, value) = (setting.name, value.clone());
            synonyms.push(Synonym { name, value, source: Source::Group });
        }
        self.broker_values(setting.synonyms.iter().map(|(name, _)| *name), &mut synonyms);
        synonyms.extend(default_of(setting));
        let first = synonyms.first();
        let value = first.map(|synonym| synonym.value.clone());
        let source = first.map_or(Source::Default, |synonym| synonym.source);
        Resolved { setting, value, source, synonyms }
    }

    /// A topic's settings as they count.
    pub fn topic_settings(&self, own: &Overrides) -> TopicSettings {
        TopicSettings::from_values(|setting| {
            if let Some(value) = own.get(setting.name) {
                return value.clone();
            }
            let mut values = Vec::new();
            self.broker_values(setting.synonyms.iter().map(|(name, _)| *name), &mut values);
            match values.first() {
                Some(first) => scaled(setting, first),
                None => setting.default.unwrap_or_default().to_owned(),
            }
        })
    }

    /// The value of a broker setting of this crate or the broker's; `None` where it has none.
    pub fn broker_value(&self, setting: &'static Setting) -> Option<String> {
        self.broker(setting).value
    }

    fn broker_values(
        &self,
        names: impl Iterator<Item = &'static str> + Clone,
        found: &mut Vec<Synonym>,
    ) {
        let layers = [
            (&self.broker, Source::Broker),
            (&self.every_broker, Source::EveryBroker),
            (&self.statics, Source::Static),
        ];
        // The layer counts before the name: a dynamic log.retention.hours beats a static
        // log.retention.ms.
        for (layer, source) in layers {
            for name in names.clone() {
                if let Some(value) = layer.get(name) {
                    found.push(Synonym { name, value: value.clone(), source });
                }
            }
        }
    }
}

/// Checks a topic's own settings, each and together.
///
/// # Errors
/// Kafka's text of the first refusal, for INVALID_CONFIG.
pub fn check_topic(own: &Overrides, layers: &Layers) -> Result<TopicSettings, String> {
    for (name, value) in own {
        let setting = topic::SETTINGS.iter().find(|setting| setting.name == name);
        let setting = setting.ok_or_else(|| format!("Unknown topic config name: {name}"))?;
        setting.parse(value)?;
    }
    let settings = layers.topic_settings(own);
    check_together(&settings)?;
    Ok(settings)
}

fn default_of(setting: &'static Setting) -> Option<Synonym> {
    let value = setting.default?.to_owned();
    Some(Synonym { name: setting.name, value, source: Source::Default })
}

/// The value of a synonym in the setting's own unit.
fn scaled(setting: &Setting, synonym: &Synonym) -> String {
    let factor = setting.synonyms.iter().find(|(name, _)| *name == synonym.name);
    match (factor, synonym.value.trim().parse::<i64>()) {
        // -1 means "no bound" in every unit.
        (Some((_, factor)), Ok(number)) if *factor != 1 && number >= 0 => {
            number.saturating_mul(*factor).to_string()
        }
        _ => synonym.value.clone(),
    }
}
