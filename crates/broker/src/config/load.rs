//! Reading settings from a file's text, the environment and flags, and taking addresses apart.
//!
//! Opens no file and reads no environment itself: the caller hands both in.

use super::{Config, Kind, SETTINGS, Setting, groups};
use ottla_cluster::config::{self as cluster, Overrides, Registry};
use std::fmt;
use std::net::IpAddr;
use std::sync::LazyLock;
use std::time::Duration;
use thiserror::Error;

/// Where a setting's value came from; later ones win.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    /// Nobody set it.
    Default,
    /// The configuration file.
    File,
    /// An `OTTLA_*` environment variable.
    Environment,
    /// The command line.
    Flag,
}

/// A configuration that cannot be used; the operator must change it.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ConfigError {
    /// The file is not TOML.
    #[error("the configuration file is not valid TOML: {0}")]
    NotToml(String),
    /// There is no such setting.
    #[error("there is no setting '{name}' ({source_}){}", suggestion(*.nearest))]
    UnknownName {
        /// What was given.
        name: String,
        /// Where.
        source_: Source,
        /// The known setting most like it, if one is much like it.
        nearest: Option<&'static str>,
    },
    /// The setting exists and its value does not fit.
    #[error("{name} = {value:?} ({source_}): {problem}")]
    BadValue {
        /// The setting.
        name: &'static str,
        /// What was given.
        value: String,
        /// Where.
        source_: Source,
        /// What would have been right.
        problem: String,
    },
    /// Settings contradict each other.
    #[error("{0}")]
    Conflict(String),
    /// An address to listen on, or one to advertise, makes no sense.
    #[error("{setting}: {problem}")]
    BadListener {
        /// The setting it stands in.
        setting: &'static str,
        /// What is wrong with it and what would be right.
        problem: String,
    },
}

/// A host and a port, the host without brackets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostPort {
    /// A name or an address.
    pub host: String,
    /// The port.
    pub port: u16,
}

/// One listener as configured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenerSpec {
    /// Its name.
    pub name: String,
    /// Where to bind.
    pub bind: HostPort,
    /// What to advertise; `None` for the bound address.
    pub advertise: Option<HostPort>,
}

impl Config {
    /// Takes over a file's settings. Names may be written quoted (`"num.partitions" = 3`) or
    /// dotted (`num.partitions = 3`).
    ///
    /// # Errors
    /// The text is not TOML, a name is unknown or a value does not fit.
    pub fn apply_toml(&mut self, text: &str) -> Result<(), ConfigError> {
        let table: toml::Table = text
            .parse()
            .map_err(|error: toml::de::Error| ConfigError::NotToml(error.to_string()))?;
        let mut flat = Vec::new();
        flatten("", &table, &mut flat);
        for (name, value) in flat {
            self.set(&name, &value, Source::File)?;
        }
        Ok(())
    }

    /// Takes over the `OTTLA_*` variables among `variables`: `OTTLA_NUM_PARTITIONS` is
    /// `num.partitions`. Those the command line reads itself are left alone.
    ///
    /// # Errors
    /// A name is unknown or a value does not fit.
    pub fn apply_environment(
        &mut self,
        variables: impl IntoIterator<Item = (String, String)>,
    ) -> Result<(), ConfigError> {
        for (name, value) in variables {
            let Some(rest) = name.strip_prefix(ENV_PREFIX) else { continue };
            if !ENV_OF_THE_COMMAND_LINE.contains(&rest) {
                let name = rest.to_ascii_lowercase().replace('_', ".");
                self.set(&name, &value, Source::Environment)?;
            }
        }
        Ok(())
    }

    /// Sets one value.
    ///
    /// # Errors
    /// The name is unknown or the value does not fit.
    pub fn set(&mut self, name: &str, value: &str, source: Source) -> Result<(), ConfigError> {
        let value = value.trim();
        let bad = |name: &'static str| {
            let value = value.to_owned();
            move |problem| ConfigError::BadValue { name, value, source_: source, problem }
        };
        let name = if let Some(setting) = setting(name) {
            (setting.set)(self, value).map_err(bad(setting.name))?;
            setting.name
        } else if let Some(setting) = of_topics().broker(name) {
            setting.parse(value).map_err(bad(setting.name))?;
            self.of_topics.insert(setting.name, value.to_owned());
            setting.name
        } else {
            let (name, nearest) = (name.into(), nearest(name));
            return Err(ConfigError::UnknownName { name, source_: source, nearest });
        };
        self.sources.insert(name, source);
        Ok(())
    }

    /// Every setting for the cluster's registry, with the values that were set.
    ///
    /// # Errors
    /// Values that do not go together, in words.
    pub(crate) fn registry(&self) -> Result<Registry, ConfigError> {
        let own = SETTINGS.iter().filter(|setting| self.sources.contains_key(setting.name));
        let mut statics: Overrides =
            own.map(|setting| (setting.name.to_owned(), setting.value(self))).collect();
        let of_topics = self.of_topics.iter();
        statics.extend(of_topics.map(|(name, value)| ((*name).to_owned(), value.clone())));
        let millis = |time: Duration| i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
        let bounds = self.consumer_bounds();
        let bounds = bounds.iter().map(|it| (it.setting, millis(it.min)..=millis(it.max)));
        let registry = Registry::new(for_registry(), groups::SETTINGS, statics);
        Ok(registry.map_err(ConfigError::Conflict)?.with_group_bounds(bounds))
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Default => "default",
            Self::File => "from the configuration file",
            Self::Environment => "from the environment",
            Self::Flag => "from the command line",
        })
    }
}

impl std::str::FromStr for HostPort {
    type Err = String;

    /// Reads `host:port`; an IPv6 address stands in brackets.
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("'{text}' is not HOST:PORT");
        let (host, port) = text.rsplit_once(':').ok_or_else(wrong)?;
        let bare = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
        if bare.is_none() && host.contains(':') {
            return Err(format!("'{text}': an IPv6 address stands in brackets"));
        }
        let host = bare.unwrap_or(host);
        let port = port.parse().map_err(|_| wrong())?;
        // As Kafka has it, an empty host means every address there is.
        let host = if host.is_empty() { "0.0.0.0" } else { host };
        Ok(Self { host: host.into(), port })
    }
}

pub(super) fn listener_specs(
    listeners: &str,
    advertised: &str,
) -> Result<Vec<ListenerSpec>, ConfigError> {
    let mut specs: Vec<ListenerSpec> = Vec::new();
    for (name, bind) in named_addresses(LISTENERS, listeners)? {
        if specs.iter().any(|spec| spec.name == name) {
            return Err(bad_listener(LISTENERS)(format!("two listeners are named {name}")));
        }
        specs.push(ListenerSpec { name, bind, advertise: None });
    }
    if specs.is_empty() {
        return Err(bad_listener(LISTENERS)("empty: nobody could connect".into()));
    }
    for (name, address) in named_addresses(ADVERTISED, advertised)? {
        let spec = specs.iter_mut().find(|spec| spec.name == name).ok_or_else(|| {
            bad_listener(ADVERTISED)(format!("{name} is no listener; it must be one of listeners"))
        })?;
        if spec.advertise.replace(address).is_some() {
            return Err(bad_listener(ADVERTISED)(format!("two addresses for {name}")));
        }
    }
    specs.iter().try_for_each(check_reachable)?;
    Ok(specs)
}

/// Nobody can connect to "every address". Kafka refuses it as well.
fn check_reachable(spec: &ListenerSpec) -> Result<(), ConfigError> {
    let every = |host: &str| host.parse::<IpAddr>().is_ok_and(|host| host.is_unspecified());
    match &spec.advertise {
        Some(told) if every(&told.host) => Err(bad_listener(ADVERTISED)(format!(
            "{} is no address that a client could connect to",
            told.host
        ))),
        None if every(&spec.bind.host) => Err(bad_listener(LISTENERS)(format!(
            "{name} listens on every address, and clients must be told one of them: add \
             --advertise {name}://HOST:{port} (advertised.listeners), with localhost as HOST if \
             they are all on this machine",
            name = spec.name,
            port = spec.bind.port,
        ))),
        _ => Ok(()),
    }
}

fn named_addresses(
    setting: &'static str,
    list: &str,
) -> Result<Vec<(String, HostPort)>, ConfigError> {
    let entries = list.split(',').map(str::trim).filter(|entry| !entry.is_empty());
    entries
        .map(|entry| {
            let (name, address) = entry.split_once("://").unwrap_or((DEFAULT_LISTENER, entry));
            let name = name.to_ascii_uppercase();
            if SECURED.contains(&&*name) {
                return Err(bad_listener(setting)(format!(
                    "{name} promises encryption or authentication, and there is none yet: name \
                     the listener PLAINTEXT, or otherwise, and guard it with the network"
                )));
            }
            Ok((name, address.parse().map_err(bad_listener(setting))?))
        })
        .collect()
}

pub(crate) fn bad_listener(setting: &'static str) -> impl FnOnce(String) -> ConfigError {
    move |problem| ConfigError::BadListener { setting, problem }
}

/// The setting of this name.
pub(super) fn setting(name: &str) -> Option<&'static Setting> {
    SETTINGS.iter().find(|setting| setting.name == name)
}

/// The setting that somebody who wrote this may have meant: a third of it may be wrong.
fn nearest(name: &str) -> Option<&'static str> {
    let own = SETTINGS.iter().map(|setting| setting.name);
    let names = own.chain(of_topics().broker_settings().map(|setting| setting.name));
    let (far, known) = names.map(|known| (distance(name, known), known)).min()?;
    (far <= name.len() / 3).then_some(known)
}

fn suggestion(nearest: Option<&str>) -> String {
    nearest.map_or_else(String::new, |nearest| format!("; did you mean '{nearest}'?"))
}

/// The settings that topics and their creation depend on; the cluster knows them.
pub(super) fn of_topics() -> &'static Registry {
    static REGISTRY: LazyLock<Registry> = LazyLock::new(|| {
        Registry::new(&[], &[], Overrides::new())
            .expect("no value can be refused where there is none")
    });
    &REGISTRY
}

/// Our table in the cluster's words, for DescribeConfigs. The values were checked here.
fn for_registry() -> &'static [cluster::Setting] {
    static SETTINGS_OF_OURS: LazyLock<Vec<cluster::Setting>> = LazyLock::new(|| {
        let defaults = Config::default();
        // Once per process, and the table is small.
        let leak = |setting: &Setting| &*setting.value(&defaults).leak();
        let ours = SETTINGS.iter().map(|setting| cluster::Setting {
            name: setting.name,
            kind: kind(setting.kind),
            default: Some(leak(setting)),
            check: cluster::Check::Any,
            scope: cluster::Scope::ReadOnly,
            doc: setting.doc,
            synonyms: &[],
        });
        ours.collect()
    });
    &SETTINGS_OF_OURS
}

fn kind(kind: Kind) -> cluster::Kind {
    match kind {
        Kind::Boolean => cluster::Kind::Boolean,
        Kind::String => cluster::Kind::String,
        Kind::Int => cluster::Kind::Int,
        Kind::Long => cluster::Kind::Long,
        Kind::Double => cluster::Kind::Double,
        Kind::List => cluster::Kind::List,
    }
}

/// Levenshtein's edit distance, one row at a time.
fn distance(from: &str, to: &str) -> usize {
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (index, byte) in from.bytes().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], index + 1);
        for (column, other) in to.bytes().enumerate() {
            let swap = diagonal + usize::from(byte != other);
            diagonal = row[column + 1];
            row[column + 1] = swap.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[to.len()]
}

fn flatten(prefix: &str, table: &toml::Table, into: &mut Vec<(String, String)>) {
    for (key, value) in table {
        let name = if prefix.is_empty() { key.clone() } else { format!("{prefix}.{key}") };
        match value {
            toml::Value::Table(inner) => flatten(&name, inner, into),
            toml::Value::Array(items) => {
                let items: Vec<String> = items.iter().map(plain).collect();
                into.push((name, items.join(",")));
            }
            other => into.push((name, plain(other))),
        }
    }
}

fn plain(value: &toml::Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), Into::into)
}

const LISTENERS: &str = "listeners";
const ADVERTISED: &str = "advertised.listeners";
/// Names that are protocols to Kafka, where no `listener.security.protocol.map` says otherwise.
/// To take one for a mere name would open in plain text what the operator meant to be secured.
const SECURED: [&str; 3] = ["SSL", "SASL_PLAINTEXT", "SASL_SSL"];
/// What a listener without a name is called, as in Kafka.
const DEFAULT_LISTENER: &str = "PLAINTEXT";
const ENV_PREFIX: &str = "OTTLA_";
/// Variables that say something to the command line, not to the broker.
const ENV_OF_THE_COMMAND_LINE: [&str; 3] = ["BROKERS", "CONFIG", "TRACE"];
