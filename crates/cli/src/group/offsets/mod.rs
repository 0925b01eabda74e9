//! `ottla group offsets`: a group's committed offsets, seen and changed from outside.

mod delete;
mod plan;
mod reset;
mod show;

use super::Outcome;
use crate::failure::{Code, Failure};
use crate::partitions::Selection;
use crate::session::Session;
use clap::{Args, Subcommand};
use ottla_client::{Admin, CommittedOffset, TopicPartition};

/// Resetting and deleting show a plan and change nothing until --execute is given.
#[derive(Args)]
#[command(arg_required_else_help = true)]
pub(super) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Show what a group has committed.
    Show(show::Arguments),
    /// Let a group go on from other offsets: a time, the first or last record, a number.
    Reset(reset::Arguments),
    /// Delete committed offsets of topics that a group reads no more.
    Delete(delete::Arguments),
}

/// Runs one of them.
pub(super) async fn run(session: &Session, arguments: Arguments) -> Outcome {
    match arguments.command {
        Command::Show(arguments) => show::run(session, arguments).await,
        Command::Reset(arguments) => reset::run(session, arguments).await,
        Command::Delete(arguments) => delete::run(session, arguments).await,
    }
}

type Committed = Vec<(TopicPartition, CommittedOffset)>;

/// The partitions that are meant, or all those committed if none is named.
async fn partitions(
    admin: &Admin,
    selections: &[Selection],
    committed: &Committed,
) -> Result<Vec<TopicPartition>, Failure> {
    if selections.is_empty() {
        return Ok(committed.iter().map(|(partition, _)| partition.clone()).collect());
    }
    let names = selections.iter().map(|selection| selection.topic.clone());
    let topics = admin.describe_topics(names).await?;
    let mut partitions = Vec::new();
    for (selection, (_, topic)) in selections.iter().zip(topics) {
        let of = selection.of(&topic?);
        partitions.extend(of.map_err(|message| Failure::new(Code::NotFound, message))?);
    }
    partitions.sort();
    partitions.dedup();
    Ok(partitions)
}

/// How a plan is confirmed.
#[derive(Args)]
struct Execution {
    /// Do it; without this the plan is shown and nothing is changed
    #[arg(long)]
    execute: bool,
    /// Show the plan and change nothing, which is the default
    #[arg(long, conflicts_with = "execute")]
    dry_run: bool,
}
