//! The types a setting can have: how each is read from text, shown, bounded and documented.

use ottla_group::assign::Assignor;
use ottla_group::assign::server::ServerAssignor;
use ottla_group::coordinator::MigrationPolicy;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

/// A type of setting.
pub(super) trait Value: Sized {
    /// What the setting may be, beyond its type; for numbers a range.
    type Bounds;
    /// The type in the words of Kafka's documentation and of DescribeConfigs.
    const KIND: Kind;
    /// Reads it, or says what would have been right.
    fn parse(text: &str, bounds: &Self::Bounds) -> Result<Self, String>;
    /// The text that [`Value::parse`] turns into this value.
    fn show(&self) -> String;
    /// The bounds in a reader's words; empty where there are none.
    fn explain(bounds: &Self::Bounds) -> String;
}

/// A setting's type as DescribeConfigs names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `true` or `false`.
    Boolean,
    /// Text.
    String,
    /// A 32-bit number.
    Int,
    /// A 64-bit number; times are of this kind, in the unit their name ends with.
    Long,
    /// A number with a fraction.
    Double,
    /// Several texts, separated by commas.
    List,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Boolean => "boolean",
            Self::String => "string",
            Self::Int => "int",
            Self::Long => "long",
            Self::Double => "double",
            Self::List => "list",
        })
    }
}

impl Value for bool {
    type Bounds = ();
    const KIND: Kind = Kind::Boolean;

    fn parse(text: &str, (): &()) -> Result<Self, String> {
        text.parse().map_err(|_| "must be true or false".into())
    }

    fn show(&self) -> String {
        self.to_string()
    }

    fn explain((): &()) -> String {
        String::new()
    }
}

impl Value for String {
    type Bounds = ();
    const KIND: Kind = Kind::String;

    fn parse(text: &str, (): &()) -> Result<Self, String> {
        Ok(text.into())
    }

    fn show(&self) -> String {
        self.clone()
    }

    fn explain((): &()) -> String {
        String::new()
    }
}

/// One directory. To Kafka's operators a comma separates several, and a directory that has one in
/// its name is nothing they can have meant.
impl Value for PathBuf {
    type Bounds = ();
    const KIND: Kind = Kind::String;

    fn parse(text: &str, (): &()) -> Result<Self, String> {
        match text {
            "" => Err("must name a directory".into()),
            text if text.contains(',') => Err("must be one directory; more are not used".into()),
            text => Ok(text.into()),
        }
    }

    fn show(&self) -> String {
        self.display().to_string()
    }

    fn explain((): &()) -> String {
        "one directory".into()
    }
}

macro_rules! number {
    ($type:ty, $kind:expr) => {
        impl Value for $type {
            type Bounds = RangeInclusive<$type>;
            const KIND: Kind = $kind;

            fn parse(text: &str, bounds: &Self::Bounds) -> Result<Self, String> {
                match text.parse() {
                    Ok(number) if bounds.contains(&number) => Ok(number),
                    _ => Err(format!("must be a number, {}", Self::explain(bounds))),
                }
            }

            fn show(&self) -> String {
                self.to_string()
            }

            fn explain(bounds: &Self::Bounds) -> String {
                match (bounds.start(), bounds.end()) {
                    (min, max) if *max == <$type>::MAX => format!("at least {min}"),
                    (min, max) => format!("{min} to {max}"),
                }
            }
        }
    };
}

number!(i32, Kind::Int);
number!(i64, Kind::Long);
number!(usize, Kind::Long);
number!(f64, Kind::Double);

/// Times are whole milliseconds in text.
impl Value for Duration {
    type Bounds = RangeInclusive<u64>;
    const KIND: Kind = Kind::Long;

    fn parse(text: &str, bounds: &Self::Bounds) -> Result<Self, String> {
        match text.parse() {
            Ok(millis) if bounds.contains(&millis) => Ok(Self::from_millis(millis)),
            _ => Err(format!("must be a time in milliseconds, {}", Self::explain(bounds))),
        }
    }

    fn show(&self) -> String {
        self.as_millis().to_string()
    }

    fn explain(bounds: &Self::Bounds) -> String {
        format!("{} to {}", bounds.start(), bounds.end())
    }
}

/// What an acknowledged write has survived.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Durability {
    /// It is on stable storage: it survives power loss.
    #[default]
    Fsync,
    /// It is in the operating system's memory, as in Kafka: it survives the process only.
    PageCache,
}

impl Value for Durability {
    type Bounds = ();
    const KIND: Kind = Kind::String;

    fn parse(text: &str, (): &()) -> Result<Self, String> {
        match text {
            "fsync" => Ok(Self::Fsync),
            "page-cache" => Ok(Self::PageCache),
            _ => Err("must be fsync or page-cache".into()),
        }
    }

    fn show(&self) -> String {
        match self {
            Self::Fsync => "fsync",
            Self::PageCache => "page-cache",
        }
        .into()
    }

    fn explain((): &()) -> String {
        "fsync or page-cache".into()
    }
}

/// A time for each client software that is named.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct PerClient(BTreeMap<String, Duration>);

impl PerClient {
    /// The time of the software of this name, or of all others.
    pub fn of(&self, software: &str) -> Option<Duration> {
        self.0.get(software).or_else(|| self.0.get("*")).copied()
    }
}

impl Value for PerClient {
    type Bounds = ();
    const KIND: Kind = Kind::List;

    fn parse(text: &str, (): &()) -> Result<Self, String> {
        let pair = |pair: &str| {
            let (name, millis) = pair.trim().split_once('=')?;
            let millis =
                millis.trim().parse().ok().filter(|millis| *millis <= PER_CLIENT_MS_MAX)?;
            let name = name.trim();
            (!name.is_empty()).then(|| (name.to_owned(), Duration::from_millis(millis)))
        };
        let pairs = text.split(',').filter(|part| !part.trim().is_empty());
        let all: Option<_> = pairs.map(pair).collect();
        all.map(Self).ok_or_else(|| format!("must be {}", Self::explain(&())))
    }

    fn show(&self) -> String {
        let pairs = self.0.iter().map(|(name, time)| format!("{name}={}", time.as_millis()));
        pairs.collect::<Vec<_>>().join(",")
    }

    fn explain((): &()) -> String {
        format!("CLIENT=MILLISECONDS, each at most {PER_CLIENT_MS_MAX}")
    }
}

/// Nobody is kept waiting longer than a minute.
const PER_CLIENT_MS_MAX: u64 = 60_000;

/// How the partitions of a register group are shared out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum RegisterAssignor {
    /// Contiguous ranges of each topic.
    #[default]
    Range,
    /// All partitions of all topics in turn.
    RoundRobin,
}

impl From<RegisterAssignor> for Assignor {
    fn from(setting: RegisterAssignor) -> Self {
        match setting {
            RegisterAssignor::Range => Self::Range,
            RegisterAssignor::RoundRobin => Self::RoundRobin,
        }
    }
}

impl Value for RegisterAssignor {
    type Bounds = ();
    const KIND: Kind = Kind::String;

    fn parse(text: &str, (): &()) -> Result<Self, String> {
        match text {
            "range" => Ok(Self::Range),
            "roundrobin" => Ok(Self::RoundRobin),
            _ => Err("must be range or roundrobin".into()),
        }
    }

    fn show(&self) -> String {
        Assignor::from(*self).name().into()
    }

    fn explain((): &()) -> String {
        "range or roundrobin".into()
    }
}

/// Assignors of the consumer protocol, the first one the default.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerAssignors(Vec<ServerAssignor>);

impl ServerAssignors {
    /// All of them; never none.
    pub fn all(&self) -> &[ServerAssignor] {
        &self.0
    }
}

impl Default for ServerAssignors {
    fn default() -> Self {
        Self(ServerAssignor::ALL.into())
    }
}

impl Value for ServerAssignors {
    type Bounds = ();
    const KIND: Kind = Kind::List;

    fn parse(text: &str, (): &()) -> Result<Self, String> {
        let mut all = Vec::new();
        for name in text.split(',').map(str::trim) {
            match ServerAssignor::named(name) {
                Some(assignor) if !all.contains(&assignor) => all.push(assignor),
                _ => return Err(format!("must be {}", Self::explain(&()))),
            }
        }
        Ok(Self(all))
    }

    fn show(&self) -> String {
        self.0.iter().map(|assignor| assignor.name()).collect::<Vec<_>>().join(",")
    }

    fn explain((): &()) -> String {
        "one or more of uniform and range, each once".into()
    }
}

impl Value for MigrationPolicy {
    type Bounds = ();
    const KIND: Kind = Kind::String;

    fn parse(text: &str, (): &()) -> Result<Self, String> {
        Self::named(text).ok_or_else(|| format!("must be {}", Self::explain(&())))
    }

    fn show(&self) -> String {
        self.name().into()
    }

    fn explain((): &()) -> String {
        "disabled, upgrade, downgrade or bidirectional".into()
    }
}
