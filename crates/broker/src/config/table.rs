//! The machinery of the settings table: one declaration makes the typed field, its default, its
//! parser, its documentation and its line in DescribeConfigs.

use super::Config;
use super::value::{Kind, Value};

/// One setting, as documentation and DescribeConfigs see it.
#[derive(Debug)]
pub struct Setting {
    /// Its name: Kafka's, where Kafka has it.
    pub name: &'static str,
    /// Its type.
    pub kind: Kind,
    /// Whether Kafka has no such setting.
    pub ours: bool,
    /// What it does, one or more sentences.
    pub doc: &'static str,
    pub(super) bounds: fn() -> String,
    pub(super) show: fn(&Config) -> String,
    pub(super) set: fn(&mut Config, &str) -> Result<(), String>,
}

impl Setting {
    /// What it may be, in a reader's words; empty where its type says it all.
    pub fn bounds(&self) -> String {
        (self.bounds)()
    }

    /// Its value in `config`, as text.
    pub fn value(&self, config: &Config) -> String {
        (self.show)(config)
    }
}

pub(super) fn explain<T: Value>(bounds: &T::Bounds) -> String {
    T::explain(bounds)
}

/// Declares [`Config`] and [`SETTINGS`](super::SETTINGS). Each line reads: doc, whose name
/// it is (`kafka` or `ours`), field, name, type, default, bounds.
macro_rules! settings {
    ($(
        $(#[doc = $doc:literal])+
        $origin:ident $field:ident $name:literal: $type:ty = $default:expr, $bounds:expr;
    )+) => {
        /// Every setting with its value, and where the value came from.
        #[derive(Clone, Debug)]
        pub struct Config {
            $( $(#[doc = $doc])+ pub $field: $type, )+
            /// Where values came from that are not defaults, by setting name.
            pub(super) sources: std::collections::BTreeMap<&'static str, Source>,
            /// Settings of the cluster's table that were set.
            pub(super) of_topics: std::collections::BTreeMap<&'static str, String>,
        }

        impl Default for Config {
            fn default() -> Self {
                let (sources, of_topics) = Default::default();
                Self { $( $field: $default, )+ sources, of_topics }
            }
        }

        /// Every setting there is, in the order of the documentation.
        pub static SETTINGS: &[Setting] = &[$(
            Setting {
                name: $name,
                kind: <$type as Value>::KIND,
                ours: settings!(@is_ours $origin),
                doc: concat!($($doc, "\n"),+),
                bounds: || table::explain::<$type>(&$bounds),
                show: |config| Value::show(&config.$field),
                set: |config, text| {
                    config.$field = Value::parse(text, &$bounds)?;
                    Ok(())
                },
            },
        )+];
    };
    (@is_ours ours) => {
        true
    };
    (@is_ours kafka) => {
        false
    };
}

pub(super) use settings;
