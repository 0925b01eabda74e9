//! `ottla group describe`: state, members, whom it waits for, and how far it is.

use super::Outcome;
use super::journal::view::{BlockingView, blocking_table};
use super::lag::{self, Progress};
use crate::failure::{Failure, Failures};
use crate::partitions;
use crate::print::{self, Cell, Report, Table};
use crate::progress;
use crate::session::Session;
use clap::Args;
use ottla_client::admin::{GroupDescription, GroupMember, Migration};
use ottla_client::{Admin, ErrorCode, ErrorKind, OffsetSpec, TopicPartition};
use serde::Serialize;
use std::fmt::Write;

/// Show a group's state, members, lag and whom it waits for.
///
/// Lag is how many records lie between what the group committed and the end of a partition.
/// Whom the group waits for now, and for how long, and whether it could go to the other of the
/// classic and the consumer protocol, only Ottla tells (`blocking` and `migration` are null in the
/// JSON of other brokers). Exit code 3 if there is no such group.
#[derive(Args)]
#[command(after_help = "\
Examples:
  ottla group describe billing
  ottla group describe billing --output json | jq '.[0].lag'")]
pub(super) struct Arguments {
    /// The groups
    #[arg(required = true, value_name = "GROUP")]
    groups: Vec<String>,
}

pub(super) async fn run(session: &Session, arguments: Arguments) -> Outcome {
    let admin = session.admin()?;
    let mut failures = Failures::default();
    let work = async {
        let mut described = Vec::new();
        for group in &arguments.groups {
            described.extend(failures.keep(describe(&admin, group).await));
        }
        described
    };
    let described = progress::during(&session.asking("asking for the groups"), work).await;
    print::report(session.output, &Descriptions(described))?;
    failures.outcome()
}

async fn describe(admin: &Admin, group: &str) -> Result<Description, Failure> {
    let described = admin.describe_group(group).await?;
    let committed = admin.list_group_offsets(group).await?;
    let wanted = lag::partitions(&committed, &described.members).into_iter();
    let latest = admin.list_offsets(wanted.map(|of| (of, OffsetSpec::Latest))).await?;
    // A partition that is gone, or whose leader is, has no end to measure from.
    let latest = latest.into_iter().filter_map(|(of, found)| Some((of, found.ok()?))).collect();
    let progress = lag::progress(&committed, &described.members, &latest);
    let (blocking, migration) = prospects(admin, group).await?;
    Ok(Description { blocking, migration, ..description(&described, &progress) })
}

/// Whom the group waits for, and where it could go; None where the broker does not tell.
async fn prospects(admin: &Admin, group: &str) -> Result<Prospects, Failure> {
    match admin.group_journal(group).await {
        Ok(journal) => {
            let blocking = journal.blocking.iter().map(BlockingView::from).collect();
            let migration = journal.migration.map(|it| MigrationView::from(&it));
            Ok((Some(blocking), migration))
        }
        Err(error) if error.kind() == ErrorKind::Unsupported => Ok((None, None)),
        // It was there a moment ago, so it is nobody's any more.
        Err(error) if error.code() == Some(ErrorCode::GroupIdNotFound) => {
            Ok((Some(Vec::new()), None))
        }
        Err(error) => Err(error.into()),
    }
}

type Prospects = (Option<Vec<BlockingView>>, Option<MigrationView>);

fn description(group: &GroupDescription, progress: &[Progress]) -> Description {
    Description {
        group: group.group.to_string(),
        state: group.state.clone(),
        protocol_type: group.protocol_type.clone(),
        assignor: group.assignor.clone(),
        epoch: group.epoch,
        lag: lag::total(progress),
        blocking: None,
        migration: None,
        members: group.members.iter().map(member).collect(),
        partitions: progress.iter().map(|one| partition(one, &group.members)).collect(),
    }
}

fn member(member: &GroupMember) -> MemberView {
    MemberView {
        member: member.member.to_string(),
        instance: member.instance.as_ref().map(ToString::to_string),
        client_id: member.client_id.clone(),
        // Java writes addresses so, and so do coordinators.
        host: member.host.trim_start_matches('/').to_owned(),
        subscription: member.topics.iter().map(ToString::to_string).collect(),
        partitions: member.assignment.iter().map(ToString::to_string).collect(),
        owns: partitions::list(&member.assignment),
    }
}

fn partition(progress: &Progress, members: &[GroupMember]) -> PartitionView {
    let TopicPartition { topic, partition } = &progress.partition;
    let owner = progress.owner.and_then(|owner| members.get(owner));
    PartitionView {
        topic: topic.to_string(),
        partition: partition.0,
        offset: progress.committed.as_ref().map(|committed| committed.offset.0),
        latest: progress.latest,
        lag: progress.lag(),
        member: owner.map(|owner| owner.member.to_string()),
        client_id: owner.map(|owner| owner.client_id.clone()),
    }
}

#[derive(Serialize)]
struct Descriptions(Vec<Description>);

#[derive(Serialize)]
struct Description {
    group: String,
    state: String,
    protocol_type: String,
    assignor: String,
    epoch: Option<i32>,
    lag: Option<i64>,
    blocking: Option<Vec<BlockingView>>,
    migration: Option<MigrationView>,
    members: Vec<MemberView>,
    partitions: Vec<PartitionView>,
}

/// Where the group would go between the classic and the consumer protocol, and what is in the way.
#[derive(Serialize)]
struct MigrationView {
    to: String,
    obstacles: Vec<String>,
}

impl From<&Migration> for MigrationView {
    fn from(from: &Migration) -> Self {
        Self { to: from.to.clone(), obstacles: from.obstacles.clone() }
    }
}

impl MigrationView {
    fn words(&self) -> String {
        match &*self.obstacles {
            [] => format!("to {}: nothing in the way", self.to),
            obstacles => format!("to {}: no, {}", self.to, obstacles.join("; ")),
        }
    }
}

#[derive(Serialize)]
struct MemberView {
    member: String,
    instance: Option<String>,
    client_id: String,
    host: String,
    subscription: Vec<String>,
    partitions: Vec<String>,
    /// The same in few words, for people.
    #[serde(skip)]
    owns: String,
}

#[derive(Serialize)]
struct PartitionView {
    topic: String,
    partition: i32,
    offset: Option<i64>,
    latest: Option<i64>,
    lag: Option<i64>,
    member: Option<String>,
    client_id: Option<String>,
}

impl Report for Descriptions {
    fn text(&self) -> String {
        let texts: Vec<String> = self.0.iter().map(Description::text).collect();
        texts.join("\n")
    }
}

impl Description {
    fn text(&self) -> String {
        let mut text = format!("group     {}\nstate     {}\n", self.group, self.state);
        let mut line = |title: &str, value: &str| {
            if !value.is_empty() {
                let _ = writeln!(text, "{title:<10}{value}");
            }
        };
        line("protocol", &self.protocol_type);
        line("assignor", &self.assignor);
        line("epoch", &self.epoch.map(|epoch| epoch.to_string()).unwrap_or_default());
        line("members", &self.members.len().to_string());
        line("migration", &self.migration.as_ref().map(MigrationView::words).unwrap_or_default());
        line("lag", &self.lag.map_or_else(|| print::NONE.to_owned(), |lag| lag.to_string()));
        if let Some(blocking @ [_, ..]) = self.blocking.as_deref() {
            text += &format!("\n{}", blocking_table(blocking).text());
        }
        if !self.members.is_empty() {
            text += &format!("\n{}", self.members_table().text());
        }
        if !self.partitions.is_empty() {
            text += &format!("\n{}", self.partitions_table().text());
        }
        text
    }

    fn members_table(&self) -> Table {
        let mut table = Table::new(["MEMBER", "INSTANCE", "CLIENT", "HOST", "OWNS"]);
        for member in &self.members {
            table.row([
                member.member.as_str().into(),
                member.instance.as_deref().unwrap_or_default().into(),
                member.client_id.as_str().into(),
                member.host.as_str().into(),
                member.owns.as_str().into(),
            ]);
        }
        table
    }

    fn partitions_table(&self) -> Table {
        let mut table = Table::new(["TOPIC", "PARTITION", "OFFSET", "LATEST", "LAG", "MEMBER"]);
        for partition in &self.partitions {
            table.row([
                partition.topic.as_str().into(),
                partition.partition.into(),
                Cell::number(partition.offset),
                Cell::number(partition.latest),
                Cell::number(partition.lag),
                partition.member.as_deref().unwrap_or_default().into(),
            ]);
        }
        table
    }
}
