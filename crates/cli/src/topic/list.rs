//! `ottla topic list`.

use super::Outcome;
use crate::print::{self, Report, Table};
use crate::progress;
use crate::session::Session;
use clap::Args;
use ottla_client::TopicInfo;
use serde::Serialize;

/// List topics.
///
/// Exit code 0, with an empty list if there are none.
#[derive(Args)]
#[command(after_help = "\
Examples:
  ottla topic list
  ottla topic list --internal --output json | jq -r '.[].topic'")]
pub(super) struct Arguments {
    /// Show Kafka's own topics, too, such as __consumer_offsets
    #[arg(long)]
    internal: bool,
}

pub(super) async fn run(session: &Session, arguments: Arguments) -> Outcome {
    let admin = session.admin()?;
    let asking = session.asking("asking for the topics");
    let topics = progress::during(&asking, admin.list_topics()).await?;
    let shown = topics.iter().filter(|topic| arguments.internal || !topic.is_internal);
    print::report(session.output, &Listing(shown.map(line).collect()))
}

#[derive(Serialize)]
struct Listing(Vec<Line>);

#[derive(Serialize)]
struct Line {
    topic: String,
    partitions: usize,
    replication_factor: usize,
    internal: bool,
}

fn line(topic: &TopicInfo) -> Line {
    Line {
        topic: topic.name.to_string(),
        partitions: topic.partitions.len(),
        replication_factor: topic.partitions.first().map_or(0, |first| first.replicas.len()),
        internal: topic.is_internal,
    }
}

impl Report for Listing {
    fn text(&self) -> String {
        let mut table = Table::new(["TOPIC", "PARTITIONS", "REPLICAS"]);
        for line in &self.0 {
            let Line { topic, partitions, replication_factor, .. } = line;
            table.row([topic.as_str().into(), (*partitions).into(), (*replication_factor).into()]);
        }
        table.text()
    }
}
