//! `ottla group offsets show`.

use super::{Outcome, partitions};
use crate::group::lag::{self, Progress};
use crate::partitions::Selection;
use crate::print::{self, Cell, Report, Table};
use crate::progress;
use crate::session::Session;
use clap::Args;
use ottla_client::{Admin, OffsetSpec};
use serde::Serialize;
use std::collections::BTreeMap;

/// Show what a group has committed.
///
/// Exit code 0, with an empty list if the group has committed nothing.
#[derive(Args)]
#[command(after_help = "\
Examples:
  ottla group offsets show billing
  ottla group offsets show billing --topic orders:0-3 --output json")]
pub(super) struct Arguments {
    /// The group
    group: String,
    /// Only this topic, or some partitions of it; may be repeated
    #[arg(long = "topic", value_name = "TOPIC[:0,3-5]")]
    topics: Vec<Selection>,
}

pub(super) async fn run(session: &Session, arguments: Arguments) -> Outcome {
    let admin = session.admin()?;
    let work = offsets(&admin, &arguments);
    let progress = progress::during(&session.asking("asking for offsets"), work).await?;
    print::report(session.output, &Offsets(progress.iter().filter_map(line).collect()))
}

async fn offsets(
    admin: &Admin,
    arguments: &Arguments,
) -> Result<Vec<Progress>, crate::failure::Failure> {
    let mut committed = admin.list_group_offsets(&arguments.group).await?;
    let wanted = partitions(admin, &arguments.topics, &committed).await?;
    committed.retain(|(partition, _)| wanted.binary_search(partition).is_ok());
    let latest = committed.iter().map(|(of, _)| (of.clone(), OffsetSpec::Latest));
    let latest = admin.list_offsets(latest).await?.into_iter();
    let latest: BTreeMap<_, _> = latest.filter_map(|(of, found)| Some((of, found.ok()?))).collect();
    Ok(lag::progress(&committed, &[], &latest))
}

fn line(progress: &Progress) -> Option<Line> {
    let committed = progress.committed.as_ref()?;
    Some(Line {
        topic: progress.partition.topic.to_string(),
        partition: progress.partition.partition.0,
        offset: committed.offset.0,
        leader_epoch: committed.leader_epoch.map(|epoch| epoch.0),
        latest: progress.latest,
        lag: progress.lag(),
        metadata: committed.metadata.clone(),
    })
}

#[derive(Serialize)]
struct Offsets(Vec<Line>);

#[derive(Serialize)]
struct Line {
    topic: String,
    partition: i32,
    offset: i64,
    leader_epoch: Option<i32>,
    latest: Option<i64>,
    lag: Option<i64>,
    metadata: String,
}

impl Report for Offsets {
    fn text(&self) -> String {
        let mut table = Table::new(["TOPIC", "PARTITION", "OFFSET", "LATEST", "LAG", "METADATA"]);
        for line in &self.0 {
            table.row([
                line.topic.as_str().into(),
                line.partition.into(),
                line.offset.into(),
                Cell::number(line.latest),
                Cell::number(line.lag),
                line.metadata.as_str().into(),
            ]);
        }
        table.text()
    }
}
