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
use ottla_client::admin::GroupDescription;
use ottla_client::{Admin, CommittedOffset, Error, ErrorCode, TopicPartition};

/// Show, reset or delete a group's committed offsets.
///
/// Resetting and deleting show a plan and change nothing until --execute is given.
#[derive(Args)]
#[command(arg_required_else_help = true)]
#[command(after_help = "\
Examples:
  ottla group offsets show billing
  ottla group offsets reset billing --all-topics --to-datetime yesterday
  ottla group offsets delete billing --topic payments")]
pub(super) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Show(show::Arguments),
    Reset(reset::Arguments),
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

/// Why the group's offsets cannot be changed now, if so. A group that is not there has no members.
async fn refusal(admin: &Admin, group: &str) -> Result<Option<Failure>, Failure> {
    match admin.describe_group(group).await {
        Ok(described) => Ok(refused(&described)),
        Err(error) if error.code() == Some(ErrorCode::GroupIdNotFound) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// The same of what the coordinator says. A group without members may still wait for some.
fn refused(described: &GroupDescription) -> Option<Failure> {
    let GroupDescription { group, state, members, .. } = described;
    let only = "only the offsets of a group without members can be changed";
    let message = match &**members {
        [] if matches!(&**state, "Empty" | "Dead") => return None,
        [] => format!("group `{group}` is in the state {state}, and {only}"),
        [first, rest @ ..] => format!(
            "group `{group}` has {} member{} ({} at {}{}), and {only}",
            members.len(),
            if rest.is_empty() { "" } else { "s" },
            first.client_id,
            first.host.trim_start_matches('/'),
            if rest.is_empty() { "" } else { " is one" },
        ),
    };
    Some(Failure::new(Code::Refused, message).hint(match &**members {
        [] => "members are on their way or just gone: stop its consumers, try again in a moment",
        _ => STOP_HINT,
    }))
}

/// What became of one offset that was to be changed.
fn changed(outcome: Result<(), Error>) -> Result<(), Failure> {
    outcome.map_err(|error| match error.code() {
        // To change offsets without being a member is for groups that have none.
        Some(ErrorCode::UnknownMemberId) => {
            Failure::from(error).hint(format!("the group has members again: {STOP_HINT}"))
        }
        _ => error.into(),
    })
}

const STOP_HINT: &str =
    "stop its consumers, change its offsets, start them again; `ottla group describe` shows them";

// Not a doc comment: the commands this is part of would have it for their own help.
// How a plan is confirmed.
#[derive(Args)]
struct Execution {
    /// Do it; without this the plan is shown and nothing is changed
    #[arg(long)]
    execute: bool,
    /// Show the plan and change nothing, which is the default
    #[arg(long, conflicts_with = "execute")]
    dry_run: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use ottla_client::admin::GroupMember;

    fn described(state: &str, members: usize) -> GroupDescription {
        let member = GroupMember {
            member: "m".into(),
            instance: None,
            client_id: "c".into(),
            host: "/10.0.0.1".into(),
            topics: Vec::new(),
            assignment: Vec::new(),
        };
        GroupDescription {
            group: "g".into(),
            state: state.into(),
            protocol_type: "consumer".into(),
            assignor: String::new(),
            epoch: None,
            members: vec![member; members],
        }
    }

    #[test]
    fn only_a_group_that_is_at_rest_without_members_is_changed() {
        assert_eq!(refused(&described("Empty", 0)), None);
        assert_eq!(refused(&described("Dead", 0)), None);
        let waiting = refused(&described("PreparingRebalance", 0)).expect("not yet");
        assert!(waiting.message.contains("PreparingRebalance"), "{waiting:?}");
        assert!(waiting.hint.is_some_and(|hint| hint.contains("try again")));
    }

    #[test]
    fn members_are_counted_and_one_is_named() {
        let message = |members| refused(&described("Stable", members)).expect("members").message;
        assert!(message(1).contains("has 1 member (c at 10.0.0.1), and"), "{}", message(1));
        assert!(message(2).contains("has 2 members (c at 10.0.0.1 is one), and"), "{}", message(2));
    }
}
