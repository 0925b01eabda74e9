//! `ottla topic create`.

use super::{Outcome, is, setting};
use crate::failure::Failures;
use crate::print::{self, Report, Table};
use crate::session::Session;
use crate::{print::Cell, progress};
use clap::Args;
use ottla_client::{ErrorCode, NewTopic};
use serde::Serialize;

/// Create topics.
///
/// Exit code 1 if the broker refuses, such as a name that is taken.
#[derive(Args)]
#[command(after_help = "\
Examples:
  ottla topic create orders
  ottla topic create orders --partitions 12 --config cleanup.policy=compact
  ottla topic create orders payments --partitions 6 --if-not-exists")]
pub(super) struct Arguments {
    /// The topics' names
    #[arg(required = true, value_name = "TOPIC")]
    topics: Vec<String>,
    /// How many partitions; the broker's num.partitions if left out
    #[arg(long, short, value_name = "COUNT", value_parser = clap::value_parser!(i32).range(1..))]
    partitions: Option<i32>,
    /// How many copies of each; the broker's default.replication.factor if left out
    #[arg(long, short, value_name = "COUNT", value_parser = clap::value_parser!(i16).range(1..))]
    replication_factor: Option<i16>,
    /// A setting; may be repeated
    #[arg(long = "config", short, value_name = "NAME=VALUE", value_parser = setting)]
    configs: Vec<(String, String)>,
    /// Take a topic that is there already for success
    #[arg(long)]
    if_not_exists: bool,
}

pub(super) async fn run(session: &Session, arguments: Arguments) -> Outcome {
    let admin = session.admin()?;
    let topics: Vec<NewTopic> = arguments.topics.iter().map(|name| arguments.topic(name)).collect();
    let created = admin.create_topics(topics);
    let created = progress::during(&session.asking("creating topics"), created).await?;
    let mut failures = Failures::default();
    let mut lines = Vec::new();
    for (topic, outcome) in created {
        let unit = outcome.as_ref().map(|_| ()).map_err(Clone::clone);
        let existed = arguments.if_not_exists && is(&unit, ErrorCode::TopicAlreadyExists);
        if existed {
            lines.push(Line { topic: topic.to_string(), created: false, partitions: None });
        } else if let Some(topic_made) = failures.keep(outcome) {
            let partitions = topic_made.partitions.or(arguments.partitions);
            lines.push(Line { topic: topic.to_string(), created: true, partitions });
        }
    }
    print::report(session.output, &Created(lines))?;
    failures.outcome()
}

impl Arguments {
    fn topic(&self, name: &str) -> NewTopic {
        let mut topic = match self.partitions {
            Some(count) => NewTopic::new(name, count),
            None => NewTopic::with_default_partitions(name),
        };
        if let Some(copies) = self.replication_factor {
            topic = topic.replication_factor(copies);
        }
        let configs = self.configs.iter();
        configs.fold(topic, |topic, (name, value)| topic.config(name, value))
    }
}

#[derive(Serialize)]
struct Created(Vec<Line>);

#[derive(Serialize)]
struct Line {
    topic: String,
    created: bool,
    partitions: Option<i32>,
}

impl Report for Created {
    fn text(&self) -> String {
        if self.0.is_empty() {
            return String::new();
        }
        let mut table = Table::new(["TOPIC", "PARTITIONS", "RESULT"]);
        for line in &self.0 {
            let result = if line.created { "created" } else { "was there" };
            table.row([line.topic.as_str().into(), Cell::number(line.partitions), result.into()]);
        }
        table.text()
    }
}
