//! The settings that every kind of client has.

use crate::{Error, ErrorKind, Result};

/// Hands the list of common settings to the macro `$then`, after the tokens given.
macro_rules! with_common {
    ($then:path, $($tokens:tt)*) => {
        $then! {
            $($tokens)*;
            /// The client's name in the broker's logs and quotas.
            client_id: String = "ottla".to_owned(), "client.id";
            /// Where the client runs, to be sent to a near replica. Empty for nowhere.
            client_rack: String = String::new(), "client.rack";
            /// How long a request may go unanswered before its connection is given up.
            request_timeout: std::time::Duration = std::time::Duration::from_secs(30),
                "request.timeout.ms";
            /// How long a call may take with all its retries, where it has no timeout of its own.
            default_api_timeout: std::time::Duration = std::time::Duration::from_secs(60),
                "default.api.timeout.ms";
            /// After so long what is known of the cluster is asked again.
            metadata_max_age: std::time::Duration = std::time::Duration::from_secs(300),
                "metadata.max.age.ms";
            /// The first pause before a retry; it doubles.
            retry_backoff: std::time::Duration = std::time::Duration::from_millis(100),
                "retry.backoff.ms";
            /// The longest pause before a retry.
            retry_backoff_max: std::time::Duration = std::time::Duration::from_secs(1),
                "retry.backoff.max.ms";
            /// The first pause before connecting again to a broker that could not be reached.
            reconnect_backoff: std::time::Duration = std::time::Duration::from_millis(50),
                "reconnect.backoff.ms";
            /// The longest pause before connecting again.
            reconnect_backoff_max: std::time::Duration = std::time::Duration::from_secs(1),
                "reconnect.backoff.max.ms";
            /// How long a connection may take to be set up.
            socket_connection_setup_timeout: std::time::Duration =
                std::time::Duration::from_secs(10),
                "socket.connection.setup.timeout.ms";
            /// A connection that carried nothing for so long is closed.
            connections_max_idle: std::time::Duration = std::time::Duration::from_secs(540),
                "connections.max.idle.ms";
            /// How brokers are spoken to. TLS and SASL will join.
            security_protocol: $crate::SecurityProtocol = $crate::SecurityProtocol::Plaintext,
                "security.protocol";
        }
    };
}

pub(super) use with_common;

macro_rules! client_config {
    (
        ;
        $($(#[$doc:meta])* $field:ident: $type:ty = $default:expr, $key:literal;)*
    ) => {
        /// The settings of every client, inside those of each kind.
        #[derive(Clone, Debug)]
        pub struct ClientConfig {
            pub(crate) bootstrap_servers: Vec<String>,
            $(pub(crate) $field: $type,)*
        }

        impl ClientConfig {
            /// Kafka's names of these settings.
            pub const KEYS: &'static [&'static str] = &[BOOTSTRAP_SERVERS, $($key),*];

            /// Kafka's defaults for a client of the cluster behind these brokers, each
            /// `host:port`, separated by commas.
            pub fn new(bootstrap_servers: impl AsRef<str>) -> Self {
                let bootstrap_servers = servers(bootstrap_servers.as_ref());
                Self { bootstrap_servers, $($field: $default,)* }
            }

            /// Sets one setting; whether there is one of this name.
            pub(super) fn try_set(&mut self, key: &str, value: &str) -> Result<bool> {
                match key {
                    BOOTSTRAP_SERVERS => self.bootstrap_servers = servers(value),
                    $($key => self.$field = super::read(key, value)?,)*
                    _ => return Ok(false),
                }
                Ok(true)
            }
        }
    };
}

with_common!(client_config,);

impl ClientConfig {
    /// What no client can work with.
    pub(crate) fn check(&self) -> Result<()> {
        if self.bootstrap_servers.is_empty() {
            return Err(Error::new(ErrorKind::Config, "`bootstrap.servers` names no broker"));
        }
        for server in &self.bootstrap_servers {
            let port = server.rsplit_once(':').map(|(_, port)| port.parse::<u16>());
            if !matches!(port, Some(Ok(_))) {
                let message = format!("`bootstrap.servers`: `{server}` is not host:port");
                return Err(Error::new(ErrorKind::Config, message));
            }
        }
        Ok(())
    }
}

const BOOTSTRAP_SERVERS: &str = "bootstrap.servers";

fn servers(list: &str) -> Vec<String> {
    let servers = list.split(',').map(str::trim).filter(|server| !server.is_empty());
    servers.map(str::to_owned).collect()
}
