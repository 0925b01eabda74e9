//! Which cluster a command works with and how: the flags that all such commands share.

use crate::failure::{Code, Failure};
use crate::print::Format;
use clap::Args;
use jiff::SignedDuration;
use ottla_client::{Admin, AdminConfig, ConsumerConfig, ProducerConfig};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

// Not a doc comment: whatever command this is part of would have it for its own help.
// Which cluster, and what is printed.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Connection and output")]
pub(crate) struct Session {
    /// Brokers to begin with, separated by commas
    #[arg(long, short = 'b', global = true, value_name = "HOST:PORT", env = "OTTLA_BROKERS")]
    #[arg(default_value = "localhost:9092")]
    brokers: String,
    /// How results are printed
    #[arg(long, short = 'o', global = true, value_enum, default_value_t)]
    pub(crate) output: Format,
    /// How long the cluster may take to answer, such as 500ms, 30s or 2m
    #[arg(long, global = true, value_name = "TIME", default_value = "10s", value_parser = span)]
    timeout: Duration,
    /// A Java properties file of client settings
    #[arg(long, global = true, value_name = "FILE")]
    command_config: Option<PathBuf>,
}

/// The flags of [`Session`].
pub(crate) const FLAGS: [&str; 6] =
    ["--brokers", "-b", "--output", "-o", "--timeout", "--command-config"];

impl Session {
    /// An administrator of the cluster. Within a runtime only.
    pub(crate) fn admin(&self) -> Result<Admin, Failure> {
        let config = self.config(AdminConfig::from_properties, AdminConfig::set)?;
        // One request may take all the time there is, and no more.
        let config = config.default_api_timeout(self.timeout).request_timeout(self.timeout);
        Ok(Admin::new(config)?)
    }

    /// The settings of a producer of the cluster.
    pub(crate) fn producer(&self) -> Result<ProducerConfig, Failure> {
        let config = self.config(ProducerConfig::from_properties, ProducerConfig::set)?;
        Ok(config.max_block(self.timeout))
    }

    /// The settings of a consumer of the cluster, without a group.
    pub(crate) fn consumer(&self) -> Result<ConsumerConfig, Failure> {
        let config = self.config(ConsumerConfig::from_properties, ConsumerConfig::set)?;
        // Who reads a topic that is not there made a mistake.
        Ok(config.default_api_timeout(self.timeout).allow_auto_create_topics(false))
    }

    fn config<T>(
        &self,
        from_properties: impl Fn(&str) -> ottla_client::Result<T>,
        set: impl Fn(T, &str, &str) -> ottla_client::Result<T>,
    ) -> Result<T, Failure> {
        let config = match &self.command_config {
            Some(path) => from_properties(&read(path)?)?,
            None => set(from_properties("")?, "client.id", "ottla-cli")?,
        };
        Ok(set(config, "bootstrap.servers", &self.brokers)?)
    }

    /// What is waited for, in words that name whom.
    pub(crate) fn asking(&self, what: &str) -> String {
        format!("{what} of {}", self.brokers)
    }

    /// Runs a command to its end, and tells what went wrong if something did.
    pub(crate) fn run(&self, command: impl Future<Output = Result<(), Failure>>) -> ExitCode {
        let outcome = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
            Ok(runtime) => runtime.block_on(command),
            Err(error) => Err(Failure::new(Code::Io, format!("cannot start: {error}"))),
        };
        match outcome {
            Ok(()) => ExitCode::SUCCESS,
            Err(failure) => failure.report(self.output == Format::Json),
        }
    }
}

fn read(path: &Path) -> Result<String, Failure> {
    let failed = |error| Failure::new(Code::Io, format!("{}: {error}", path.display()));
    std::fs::read_to_string(path).map_err(failed)
}

/// A length of time as people write it.
pub(crate) fn span(text: &str) -> Result<Duration, String> {
    let span: SignedDuration = text.parse().map_err(|error: jiff::Error| error.to_string())?;
    Duration::try_from(span).map_err(|_| "must not be negative".to_owned())
}
