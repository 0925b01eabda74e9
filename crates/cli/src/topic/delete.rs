//! `ottla topic delete`.

use super::{Outcome, is};
use crate::failure::Failures;
use crate::print::{self, Report};
use crate::progress;
use crate::session::Session;
use clap::Args;
use ottla_client::ErrorCode;
use serde::Serialize;

/// Delete topics with their records and committed offsets.
///
/// Topics are named one by one, so there is no question back. Exit code 3 if one is not there.
#[derive(Args)]
#[command(after_help = "\
Examples:
  ottla topic delete orders
  ottla topic delete orders payments --if-exists")]
pub(super) struct Arguments {
    /// The topics; their records and their committed offsets go, too
    #[arg(required = true, value_name = "TOPIC")]
    topics: Vec<String>,
    /// Take a topic that is not there for success
    #[arg(long)]
    if_exists: bool,
}

pub(super) async fn run(session: &Session, arguments: Arguments) -> Outcome {
    let admin = session.admin()?;
    let deleted = admin.delete_topics(arguments.topics);
    let deleted = progress::during(&session.asking("deleting topics"), deleted).await?;
    let mut failures = Failures::default();
    let mut lines = Vec::new();
    for (topic, outcome) in deleted {
        let topic = topic.to_string();
        if arguments.if_exists && is(&outcome, ErrorCode::UnknownTopicOrPartition) {
            lines.push(Line { topic, deleted: false });
        } else if failures.keep(outcome).is_some() {
            lines.push(Line { topic, deleted: true });
        }
    }
    print::report(session.output, &Deleted(lines))?;
    failures.outcome()
}

#[derive(Serialize)]
struct Deleted(Vec<Line>);

#[derive(Serialize)]
struct Line {
    topic: String,
    deleted: bool,
}

impl Report for Deleted {
    fn text(&self) -> String {
        let line = |line: &Line| match line.deleted {
            true => format!("topic {} is deleted\n", line.topic),
            false => format!("topic {} was not there\n", line.topic),
        };
        self.0.iter().map(line).collect()
    }
}
