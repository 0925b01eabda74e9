//! `ottla group offsets delete`.

use super::{Execution, Outcome, changed, refusal};
use crate::failure::{Code, Failure, Failures};
use crate::partitions::Selection;
use crate::print::{self, Report, Table};
use crate::progress;
use crate::session::Session;
use clap::Args;
use ottla_client::{Admin, TopicPartition};
use serde::Serialize;

/// Delete committed offsets of topics that a group reads no more.
///
/// Shows which committed offsets would be deleted, and deletes them with --execute.
///
/// The group must have no members while it is done: stop its consumers, delete, start them again.
/// Exit code 1 if it has members, 3 if it has committed nothing there.
#[derive(Args)]
#[command(after_help = "\
Examples:
  ottla group offsets delete billing --topic old-orders
  ottla group offsets delete billing --topic old-orders --execute")]
pub(super) struct Arguments {
    /// The group
    group: String,
    /// This topic, or some partitions of it; may be repeated
    #[arg(long = "topic", value_name = "TOPIC[:0,3-5]", required = true)]
    topics: Vec<Selection>,
    #[command(flatten)]
    execution: Execution,
}

pub(super) async fn run(session: &Session, arguments: Arguments) -> Outcome {
    let admin = session.admin()?;
    let group = &arguments.group;
    let execute = arguments.execution.execute;
    let mut failures = Failures::default();
    let work = async {
        let committed = chosen(&admin, &arguments).await?;
        let refusal = refusal(&admin, group).await?;
        if !execute {
            return Ok((committed, refusal));
        }
        if let Some(failure) = refusal {
            return Err(failure);
        }
        let partitions = committed.iter().map(|(partition, _)| partition.clone());
        let mut deleted = Vec::new();
        for (partition, outcome) in admin.delete_group_offsets(group, partitions).await? {
            let line = committed.iter().find(|(of, _)| *of == partition).cloned();
            deleted.extend(failures.keep(changed(outcome)).and(line));
        }
        Ok::<_, Failure>((deleted, None))
    };
    let asking = session.asking("asking the group's coordinator");
    let (lines, refusal) = progress::during(&asking, work).await?;
    let lines = lines.iter().map(line).collect();
    let report = Deleted { group: group.clone(), executed: execute, partitions: lines };
    print::report(session.output, &report)?;
    if !execute {
        print::note("\nThis is the plan; nothing is deleted. With --execute it is done.");
        if let Some(failure) = refusal {
            print::note(&format!("Not yet, though: {}.", failure.message));
        }
    }
    failures.outcome()
}

/// What is committed where it is to be deleted. The topics need not be there any more.
async fn chosen(
    admin: &Admin,
    arguments: &Arguments,
) -> Result<Vec<(TopicPartition, i64)>, Failure> {
    let committed = admin.list_group_offsets(&arguments.group).await?;
    let is_chosen = |partition: &TopicPartition| {
        let of = |selection: &&Selection| *selection.topic == *partition.topic;
        let mut selections = arguments.topics.iter().filter(of);
        selections.any(|selection| selection.has(partition.partition.0))
    };
    let chosen = committed.into_iter().filter(|(partition, _)| is_chosen(partition));
    let chosen: Vec<_> = chosen.map(|(partition, at)| (partition, at.offset.0)).collect();
    if chosen.is_empty() {
        let message = format!("group `{}` has committed nothing there", arguments.group);
        let hint = "`ottla group offsets show` shows what it has committed";
        return Err(Failure::new(Code::NotFound, message).hint(hint));
    }
    Ok(chosen)
}

#[derive(Serialize)]
struct Deleted {
    group: String,
    executed: bool,
    partitions: Vec<Line>,
}

#[derive(Serialize)]
struct Line {
    topic: String,
    partition: i32,
    offset: i64,
}

fn line((partition, offset): &(TopicPartition, i64)) -> Line {
    let TopicPartition { topic, partition } = partition;
    Line { topic: topic.to_string(), partition: partition.0, offset: *offset }
}

impl Report for Deleted {
    fn text(&self) -> String {
        let title = if self.executed { "DELETED" } else { "WOULD BE DELETED" };
        let mut table = Table::new(["TOPIC", "PARTITION", title]);
        for line in &self.partitions {
            table.row([line.topic.as_str().into(), line.partition.into(), line.offset.into()]);
        }
        table.text()
    }
}
