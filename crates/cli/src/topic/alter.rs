//! `ottla topic alter`.

use super::{Outcome, setting};
use crate::failure::Failure;
use crate::print::{self, Report};
use crate::progress;
use crate::session::Session;
use clap::Args;
use ottla_client::Admin;
use ottla_client::admin::{ConfigOp, ConfigResource};
use serde::Serialize;

/// Add partitions to a topic, or change its settings.
///
/// Settings are altered first: if the broker refuses one, nothing is changed.
#[derive(Args)]
#[command(group = clap::ArgGroup::new("change").required(true).multiple(true))]
#[command(after_help = "\
Examples:
  ottla topic alter orders --partitions 24
  ottla topic alter orders --config retention.ms=86400000 --unset cleanup.policy")]
pub(super) struct Arguments {
    /// The topic
    topic: String,
    /// How many partitions there shall be in all; keys may move to other partitions
    #[arg(long, short, value_name = "COUNT", group = "change")]
    #[arg(value_parser = clap::value_parser!(i32).range(1..))]
    partitions: Option<i32>,
    /// Give a setting this value; may be repeated
    #[arg(long = "config", short, value_name = "NAME=VALUE", group = "change")]
    #[arg(value_parser = setting)]
    configs: Vec<(String, String)>,
    /// Let a setting be the broker's again; may be repeated
    #[arg(long, value_name = "NAME", group = "change")]
    unset: Vec<String>,
}

pub(super) async fn run(session: &Session, arguments: Arguments) -> Outcome {
    let admin = session.admin()?;
    let work = alter(&admin, &arguments);
    progress::during(&session.asking("altering the topic"), work).await?;
    print::report(session.output, &Altered { topic: arguments.topic, altered: true })
}

async fn alter(admin: &Admin, arguments: &Arguments) -> Outcome {
    let ops = arguments.operations();
    if !ops.is_empty() {
        let change = (ConfigResource::topic(&arguments.topic), ops);
        for (_, outcome) in admin.alter_configs([change]).await? {
            outcome.map_err(Failure::from)?;
        }
    }
    if let Some(total) = arguments.partitions {
        admin.create_partitions(&arguments.topic, total).await?;
    }
    Ok(())
}

impl Arguments {
    fn operations(&self) -> Vec<ConfigOp> {
        let set = self.configs.iter().cloned().map(|(name, value)| ConfigOp::Set(name, value));
        set.chain(self.unset.iter().cloned().map(ConfigOp::Unset)).collect()
    }
}

#[derive(Serialize)]
struct Altered {
    topic: String,
    altered: bool,
}

impl Report for Altered {
    fn text(&self) -> String {
        format!("topic {} is altered\n", self.topic)
    }
}
