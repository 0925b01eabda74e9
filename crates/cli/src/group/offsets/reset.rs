//! `ottla group offsets reset`: looks up what there is, plans, shows, and does it if told to.

use super::plan::{self, Facts, Goal, Step};
use super::{Committed, Execution, Outcome, changed, partitions, refusal};
use crate::failure::{Code, Failure, Failures};
use crate::partitions::Selection;
use crate::print::{self, Cell, Report, Table};
use crate::session::Session;
use crate::{progress, when};
use clap::Args;
use jiff::ZonedDateTime;
use ottla_client::{Admin, CommittedOffset, Offset, OffsetSpec, Timestamp, TopicPartition};
use serde::Serialize;
use std::collections::BTreeMap;

/// Let a group go on from other offsets: a time, the first or last record, a number.
///
/// Shows which offsets a group would go on from, and sets them with --execute.
///
/// The group must have no members while it is done: stop its consumers, reset, start them again.
/// Times without a zone are local.
/// Offsets outside the records there are become the first or the last one there is. Exit code 1
/// if the group has members, 3 if there is no such topic or nothing to reset.
#[derive(Args)]
#[command(group = clap::ArgGroup::new("goal").required(true))]
#[command(group = clap::ArgGroup::new("scope").required(true).multiple(true))]
#[command(override_usage = "\
ottla group offsets reset <GROUP> <--topic ...|--all-topics> <WHERE TO> [--execute]")]
#[command(after_help = "\
Examples:
  See what going back to the start of yesterday would do, in every topic of the group; then do it:
    ottla group offsets reset billing --all-topics --to-datetime yesterday
    ottla group offsets reset billing --all-topics --to-datetime yesterday --execute
  Read one topic again from its first record:
    ottla group offsets reset billing --topic orders --to-earliest --execute
  Skip one bad record of partition 3:
    ottla group offsets reset billing --topic orders:3 --shift-by 1 --execute
  Go back six hours:
    ottla group offsets reset billing --all-topics --by-duration 6h --execute")]
pub(super) struct Arguments {
    /// The group
    group: String,
    /// This topic, or some partitions of it; may be repeated
    #[arg(long = "topic", value_name = "TOPIC[:0,3-5]", group = "scope", help_heading = SCOPE)]
    topics: Vec<Selection>,
    /// Every topic that the group has committed offsets of
    #[arg(long, group = "scope", conflicts_with = "topics", help_heading = SCOPE)]
    all_topics: bool,
    /// To the first record since `yesterday`, `today`, 2026-11-30, 2026-11-30T09:15 or ...:00Z
    #[arg(long, value_name = "WHEN", group = "goal", help_heading = GOAL)]
    to_datetime: Option<String>,
    /// To the first record since so long ago: 30m, 12h, `1d 6h` or P1D
    #[arg(long, value_name = "TIME", group = "goal", help_heading = GOAL)]
    by_duration: Option<String>,
    /// To the first record there is
    #[arg(long, group = "goal", help_heading = GOAL)]
    to_earliest: bool,
    /// To the end: only records still to come are read
    #[arg(long, group = "goal", help_heading = GOAL)]
    to_latest: bool,
    /// To this offset, in every partition chosen
    #[arg(long, value_name = "OFFSET", group = "goal", help_heading = GOAL)]
    #[arg(value_parser = clap::value_parser!(i64).range(0..))]
    to_offset: Option<i64>,
    /// So many records on, or back if negative
    #[arg(long, value_name = "COUNT", group = "goal", help_heading = GOAL)]
    #[arg(allow_negative_numbers = true)]
    shift_by: Option<i64>,
    /// To where it is, moved into the records there are
    #[arg(long, group = "goal", help_heading = GOAL)]
    to_current: bool,
    #[command(flatten)]
    execution: Execution,
}

const SCOPE: &str = "What to reset (one of these)";
const GOAL: &str = "Where to (one of these)";

pub(super) async fn run(session: &Session, arguments: Arguments) -> Outcome {
    let (goal, time) = arguments.goal()?;
    let admin = session.admin()?;
    let execute = arguments.execution.execute;
    let work = planned(&admin, &arguments, goal, time);
    let (steps, refusal) = progress::during(&session.asking("asking for offsets"), work).await?;
    let mut failures = Failures::default();
    if execute {
        if let Some(failure) = refusal {
            return Err(failure);
        }
        let work = set(&admin, &arguments.group, &steps, &mut failures);
        let done = progress::during(&session.asking("setting offsets"), work).await?;
        print::report(session.output, &done)?;
    } else {
        print::report(session.output, &Reset::new(&arguments.group, false, &steps))?;
        if let Some(time) = time {
            print::note(&format!("\nTo records from {} on.", when::show(time)));
        }
        print::note("\nThis is the plan; nothing is changed. With --execute it is done.");
        if let Some(failure) = refusal {
            print::note(&format!("Not yet, though: {}.", failure.message));
        }
    }
    failures.outcome()
}

impl Arguments {
    fn goal(&self) -> Result<(Goal, Option<Timestamp>), Failure> {
        let now = ZonedDateTime::now();
        let time = match (&self.to_datetime, &self.by_duration) {
            (Some(text), _) => Some(when::parse(text, &now)),
            (_, Some(text)) => Some(when::ago(text, &now)),
            _ => None,
        };
        if let Some(time) = time {
            let time = time.map_err(Failure::usage)?;
            return Ok((Goal::Time, Some(Timestamp(time.as_millisecond()))));
        }
        let goal = match self {
            Self { to_earliest: true, .. } => Goal::Earliest,
            Self { to_latest: true, .. } => Goal::Latest,
            Self { to_offset: Some(offset), .. } => Goal::Offset(*offset),
            Self { shift_by: Some(by), .. } => Goal::Shift(*by),
            _ => Goal::Current,
        };
        Ok((goal, None))
    }
}

/// The plan, and why it could not be carried out now, if so.
async fn planned(
    admin: &Admin,
    arguments: &Arguments,
    goal: Goal,
    time: Option<Timestamp>,
) -> Result<(Vec<Step>, Option<Failure>), Failure> {
    let group = &arguments.group;
    let committed = admin.list_group_offsets(group).await?;
    let partitions = partitions(admin, &arguments.topics, &committed).await?;
    let facts = facts(admin, &partitions, &committed, time).await?;
    let (steps, without) = plan::plan(goal, &facts);
    if let [first, rest @ ..] = &*without {
        let more =
            if rest.is_empty() { String::new() } else { format!(" and {} more", rest.len()) };
        print::note(&format!("Left out: {first}{more}, where the group has committed nothing."));
    }
    if steps.is_empty() {
        let message = format!("group `{group}` has no offsets to reset");
        let hint = "name topics with --topic, and where to with --to-earliest or such";
        return Err(Failure::new(Code::NotFound, message).hint(hint));
    }
    Ok((steps, refusal(admin, group).await?))
}

/// What is known of each partition.
async fn facts(
    admin: &Admin,
    partitions: &[TopicPartition],
    committed: &Committed,
    time: Option<Timestamp>,
) -> Result<Vec<Facts>, Failure> {
    let committed: BTreeMap<_, _> = committed.iter().map(|(of, at)| (of, at.offset.0)).collect();
    let earliest = look_up(admin, partitions, OffsetSpec::Earliest).await?;
    let latest = look_up(admin, partitions, OffsetSpec::Latest).await?;
    let at_time = match time {
        Some(time) => look_up(admin, partitions, OffsetSpec::At(time)).await?,
        None => vec![None; partitions.len()],
    };
    let found = partitions.iter().zip(earliest.into_iter().zip(latest)).zip(at_time);
    let facts = found.map(|((partition, (earliest, latest)), at_time)| Facts {
        partition: partition.clone(),
        committed: committed.get(partition).copied(),
        earliest: earliest.unwrap_or(0),
        latest: latest.unwrap_or(0),
        at_time,
    });
    Ok(facts.collect())
}

/// An offset of each partition, in their order. A partition that cannot tell spoils the plan: to
/// guess would lose records or repeat them.
async fn look_up(
    admin: &Admin,
    partitions: &[TopicPartition],
    spec: OffsetSpec,
) -> Result<Vec<Option<i64>>, Failure> {
    let found = admin.list_offsets(partitions.iter().map(|of| (of.clone(), spec))).await?;
    let offset = |(_, found): (_, Result<ottla_client::FoundOffset, _>)| {
        Ok(found?.offset.map(|offset| offset.0))
    };
    found.into_iter().map(offset).collect()
}

/// Carries the plan out; answers what of it was done.
async fn set(
    admin: &Admin,
    group: &str,
    steps: &[Step],
    failures: &mut Failures,
) -> Result<Reset, Failure> {
    let offsets =
        steps.iter().map(|step| (step.partition.clone(), CommittedOffset::new(Offset(step.new))));
    let outcomes = admin.alter_group_offsets(group, offsets).await?;
    let mut done = Vec::new();
    for (partition, outcome) in outcomes {
        let step = steps.iter().find(|step| step.partition == partition).cloned();
        done.extend(failures.keep(changed(outcome)).and(step));
    }
    Ok(Reset::new(group, true, &done))
}

#[derive(Serialize)]
struct Reset {
    group: String,
    executed: bool,
    partitions: Vec<Line>,
}

#[derive(Serialize)]
struct Line {
    topic: String,
    partition: i32,
    current: Option<i64>,
    new: i64,
    note: Option<&'static str>,
}

impl Reset {
    fn new(group: &str, executed: bool, steps: &[Step]) -> Self {
        Self { group: group.to_owned(), executed, partitions: steps.iter().map(line).collect() }
    }
}

fn line(step: &Step) -> Line {
    Line {
        topic: step.partition.topic.to_string(),
        partition: step.partition.partition.0,
        current: step.current,
        new: step.new,
        note: step.note.map(plan::Note::text),
    }
}

impl Report for Reset {
    fn text(&self) -> String {
        let new = if self.executed { "IS NOW" } else { "WOULD BE" };
        let mut table = Table::new(["TOPIC", "PARTITION", "WAS", new, "CHANGE", "NOTE"]);
        for line in &self.partitions {
            let change = line.current.map(|current| format!("{:+}", line.new - current));
            table.row([
                line.topic.as_str().into(),
                line.partition.into(),
                Cell::number(line.current),
                line.new.into(),
                Cell::number(change),
                line.note.unwrap_or_default().into(),
            ]);
        }
        table.text()
    }
}
