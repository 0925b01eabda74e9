//! How the text of a setting becomes its value. The error says what would have been one.

use super::{Acks, GroupProtocol, IsolationLevel, OffsetReset};
use crate::security::SecurityProtocol;
use ottla_group::assign::Assignor;
use ottla_records::Compression;
use std::time::Duration;

pub(super) trait Value: Sized {
    fn parse(text: &str) -> Result<Self, String>;
}

impl Value for String {
    fn parse(text: &str) -> Result<Self, String> {
        Ok(text.to_owned())
    }
}

impl Value for bool {
    fn parse(text: &str) -> Result<Self, String> {
        named(text, &[("true", true), ("false", false)])
    }
}

macro_rules! number {
    ($($type:ty),*) => {$(
        impl Value for $type {
            fn parse(text: &str) -> Result<Self, String> {
                let wanted = |_| format!("a number from {} to {}", Self::MIN, Self::MAX);
                text.parse().map_err(wanted)
            }
        }
    )*};
}

number!(u16, u32, i32, u64, usize);

/// Milliseconds.
impl Value for Duration {
    fn parse(text: &str) -> Result<Self, String> {
        let millis: u64 = text.parse().map_err(|_| "milliseconds, from 0".to_owned())?;
        Ok(Self::from_millis(millis))
    }
}

/// Separated by commas.
impl<T: Value> Value for Vec<T> {
    fn parse(text: &str) -> Result<Self, String> {
        let items = text.split(',').map(str::trim).filter(|item| !item.is_empty());
        items.map(T::parse).collect()
    }
}

impl Value for Compression {
    fn parse(text: &str) -> Result<Self, String> {
        named(text, &Self::ALL.map(|codec| (codec.name(), codec)))
    }
}

impl Value for Acks {
    fn parse(text: &str) -> Result<Self, String> {
        let names = [("all", Self::All), ("-1", Self::All), ("1", Self::Leader), ("0", Self::None)];
        named(text, &names)
    }
}

impl Value for OffsetReset {
    fn parse(text: &str) -> Result<Self, String> {
        let names = [("earliest", Self::Earliest), ("latest", Self::Latest), ("none", Self::None)];
        named(text, &names)
    }
}

impl Value for IsolationLevel {
    fn parse(text: &str) -> Result<Self, String> {
        let names =
            [("read_uncommitted", Self::ReadUncommitted), ("read_committed", Self::ReadCommitted)];
        named(text, &names)
    }
}

impl Value for GroupProtocol {
    fn parse(text: &str) -> Result<Self, String> {
        named(
            &text.to_lowercase(),
            &[
                ("classic", Self::Classic),
                ("consumer", Self::Consumer),
                ("register", Self::Register),
            ],
        )
    }
}

impl Value for SecurityProtocol {
    fn parse(text: &str) -> Result<Self, String> {
        named(text, &[("PLAINTEXT", Self::Plaintext)])
    }
}

/// By the name on the wire, or by the name of Java's class.
impl Value for Assignor {
    fn parse(text: &str) -> Result<Self, String> {
        let class = text.strip_prefix("org.apache.kafka.clients.consumer.").unwrap_or(text);
        let names = [
            ("range", Self::Range),
            ("RangeAssignor", Self::Range),
            ("roundrobin", Self::RoundRobin),
            ("RoundRobinAssignor", Self::RoundRobin),
            ("sticky", Self::Sticky),
            ("StickyAssignor", Self::Sticky),
            ("cooperative-sticky", Self::CooperativeSticky),
            ("CooperativeStickyAssignor", Self::CooperativeSticky),
        ];
        named(class, &names)
    }
}

fn named<T: Copy>(text: &str, names: &[(&str, T)]) -> Result<T, String> {
    let found = names.iter().find(|(name, _)| *name == text);
    found.map(|(_, value)| *value).ok_or_else(|| {
        let names: Vec<&str> = names.iter().map(|(name, _)| *name).collect();
        format!("one of {}", names.join(", "))
    })
}
