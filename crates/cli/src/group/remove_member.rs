//! `ottla group remove-member`.

use super::Outcome;
use crate::failure::{Code, Failure, Failures};
use crate::print::{self, Report};
use crate::progress;
use crate::session::Session;
use clap::Args;
use ottla_client::Admin;
use ottla_client::admin::{GroupMember, MemberToRemove};
use serde::Serialize;

/// Remove members from a group.
///
/// A removed member's partitions go to the others. If it lives it finds out and joins again, so
/// this is for members that are gone for good: static ones above all, which the group otherwise
/// waits for. Exit code 3 if there is no such member.
#[derive(Args)]
#[command(group = clap::ArgGroup::new("who").required(true).multiple(true))]
#[command(after_help = "\
Examples:
  ottla group remove-member billing --instance billing-7
  ottla group remove-member billing --member consumer-1-2f60 --reason 'host is gone'
  ottla group remove-member billing --all")]
pub(super) struct Arguments {
    /// The group
    group: String,
    /// A member by its id, as `ottla group describe` shows it; may be repeated
    #[arg(long = "member", value_name = "ID", group = "who")]
    members: Vec<String>,
    /// A static member by its group.instance.id; may be repeated
    #[arg(long = "instance", value_name = "ID", group = "who")]
    instances: Vec<String>,
    /// Every member
    #[arg(long, group = "who", conflicts_with_all = ["members", "instances"])]
    all: bool,
    /// What the broker's log and journal shall say of why
    #[arg(long, value_name = "TEXT", default_value = "removed with ottla group remove-member")]
    reason: String,
}

pub(super) async fn run(session: &Session, arguments: Arguments) -> Outcome {
    let admin = session.admin()?;
    let work = remove(&admin, &arguments);
    let asking = session.asking("asking the group's coordinator");
    let (members, outcomes) = progress::during(&asking, work).await?;
    let mut failures = Failures::default();
    let mut lines = Vec::new();
    for (member, outcome) in members.iter().zip(outcomes) {
        let named = outcome.map_err(|error| about(member, error));
        lines.extend(failures.keep(named).map(|()| line(member)));
    }
    print::report(session.output, &Removed(lines))?;
    failures.outcome()
}

type Outcomes = Vec<Result<(), ottla_client::Error>>;

async fn remove(
    admin: &Admin,
    arguments: &Arguments,
) -> Result<(Vec<MemberToRemove>, Outcomes), Failure> {
    let members = if arguments.all {
        let described = admin.describe_group(&arguments.group).await?;
        described.members.iter().map(to_remove).collect()
    } else {
        arguments.named()
    };
    let outcomes = match &*members {
        [] => Vec::new(),
        members => admin.remove_members(&arguments.group, members, &arguments.reason).await?,
    };
    Ok((members, outcomes))
}

impl Arguments {
    fn named(&self) -> Vec<MemberToRemove> {
        let members = self.members.iter().map(|id| MemberToRemove::Member(id.as_str().into()));
        let instances = self.instances.iter();
        let instances = instances.map(|id| MemberToRemove::Instance(id.as_str().into()));
        members.chain(instances).collect()
    }
}

/// A static member is removed by its instance: its id alone may be another's by now.
fn to_remove(member: &GroupMember) -> MemberToRemove {
    match &member.instance {
        Some(instance) => MemberToRemove::Instance(instance.clone()),
        None => MemberToRemove::Member(member.member.clone()),
    }
}

fn about(member: &MemberToRemove, error: ottla_client::Error) -> Failure {
    use ottla_client::ErrorCode;
    let Line { member, instance, .. } = line(member);
    let name = member.or(instance).unwrap_or_default();
    let failure = Failure::from(error.clone());
    let failure = Failure { message: format!("member `{name}`: {}", failure.message), ..failure };
    match error.code() {
        Some(ErrorCode::UnknownMemberId) => Failure { code: Code::NotFound, ..failure }
            .hint("`ottla group describe` shows the group's members"),
        _ => failure,
    }
}

fn line(member: &MemberToRemove) -> Line {
    let (member, instance) = match member {
        MemberToRemove::Member(id) => (Some(id.to_string()), None),
        MemberToRemove::Instance(id) => (None, Some(id.to_string())),
    };
    Line { member, instance, removed: true }
}

#[derive(Serialize)]
struct Removed(Vec<Line>);

#[derive(Serialize)]
struct Line {
    member: Option<String>,
    instance: Option<String>,
    removed: bool,
}

impl Report for Removed {
    fn text(&self) -> String {
        let name = |line: &Line| match (&line.member, &line.instance) {
            (Some(member), _) => format!("member {member} is removed\n"),
            (_, instance) => {
                format!("static member {} is removed\n", instance.as_deref().unwrap_or_default())
            }
        };
        self.0.iter().map(name).collect()
    }
}
