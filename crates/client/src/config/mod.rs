//! Settings: Kafka's names, defaults and units, as typed builders and as strings.
//!
//! A builder's method is the setting's name with underscores and without its unit (`linger.ms` is
//! [`ProducerConfig::linger`]). Strings, as a properties file has them, go through `set` and
//! `from_properties`; a name that is no setting is an error that says which one was perhaps meant.
//! What a setting does is not decided here.

mod admin;
mod client;
mod consumer;
mod producer;
mod properties;
mod value;

pub use admin::AdminConfig;
pub use client::ClientConfig;
pub use consumer::{ConsumerConfig, GroupProtocol, IsolationLevel, OffsetReset};
pub use producer::{Acks, ProducerConfig};

use properties::{entries, unknown};
use value::Value;

/// The settings of one kind of client: its own, listed here, and those of every client.
macro_rules! settings {
    (
        $(#[$doc:meta])* $name:ident;
        $($(#[$field_doc:meta])* $field:ident: $type:ty = $default:expr, $key:literal;)*
    ) => {
        $(#[$doc])*
        #[derive(Clone, Debug)]
        pub struct $name {
            pub(crate) client: $crate::config::ClientConfig,
            $(pub(crate) $field: $type,)*
        }

        impl $name {
            /// Kafka's defaults for a client of the cluster behind these brokers, each
            /// `host:port`, separated by commas.
            pub fn new(bootstrap_servers: impl AsRef<str>) -> Self {
                let client = $crate::config::ClientConfig::new(bootstrap_servers);
                Self { client, $($field: $default,)* }
            }

            /// The settings of a Java properties file.
            ///
            /// # Errors
            /// `Config`, naming the first setting that is unknown or has no such value.
            pub fn from_properties(text: &str) -> $crate::Result<Self> {
                let mut config = Self::new("");
                for (key, value) in $crate::config::entries(text) {
                    config = config.set(&key, &value)?;
                }
                Ok(config)
            }

            /// Sets one setting by Kafka's name, in Kafka's unit.
            ///
            /// # Errors
            /// `Config`, if there is no such setting or it cannot have this value.
            pub fn set(mut self, key: &str, value: &str) -> $crate::Result<Self> {
                if self.client.try_set(key, value)? {
                    return Ok(self);
                }
                $(if key == $key {
                    self.$field = $crate::config::read(key, value)?;
                    return Ok(self);
                })*
                let own: &[&str] = &[$($key),*];
                let known = own.iter().chain($crate::config::ClientConfig::KEYS).copied();
                Err($crate::config::unknown(key, known))
            }

            $(
                #[doc = concat!("`", $key, "`.")]
                $(#[$field_doc])*
                #[must_use]
                pub fn $field(mut self, value: impl Into<$type>) -> Self {
                    self.$field = value.into();
                    self
                }
            )*
        }

        $crate::config::client::with_common!($crate::config::delegate, $name);
    };
}

/// Methods of a client's own settings that set those of every client.
macro_rules! delegate {
    (
        $name:ident;
        $($(#[$doc:meta])* $field:ident: $type:ty = $default:expr, $key:literal;)*
    ) => {
        impl $name {
            $(
                #[doc = concat!("`", $key, "`.")]
                $(#[$doc])*
                #[must_use]
                pub fn $field(mut self, value: impl Into<$type>) -> Self {
                    self.client.$field = value.into();
                    self
                }
            )*
        }
    };
}

use {delegate, settings};

fn read<T: Value>(key: &str, text: &str) -> crate::Result<T> {
    T::parse(text.trim()).map_err(|wanted| {
        let message = format!("`{key}` cannot be `{text}`: {wanted}");
        crate::Error::new(crate::ErrorKind::Config, message)
    })
}

#[cfg(test)]
mod tests;
