//! `ottla group journal`: why a group rebalanced, what moved and how long that took.

pub(super) mod view;
pub(crate) mod words;

use super::Outcome;
use crate::failure::{Code, Failure};
use crate::print::{self, Cell, Report, Table};
use crate::progress;
use crate::session::Session;
use clap::Args;
use ottla_client::ErrorKind;
use ottla_client::admin::{GroupJournal, JournalEntry};
use serde::Serialize;
use std::fmt::Write;
use view::{BlockingView, EntryView};

/// Show why a group rebalanced, what moved and how long that took.
///
/// One line for each of the last rebalances, newest first: what caused it, in the coordinator's own
/// words (docs/operations.md explains them), and how many partitions changed hands. With --details
/// or --generation also which ones moved from whom to whom, and the slowest members. If the group
/// waits for a member now, it is named. Only Ottla keeps a journal: exit code 6 with Apache Kafka,
/// 3 if there is no such group or generation.
#[derive(Args)]
#[command(after_help = "\
Examples:
  ottla group journal billing
  ottla group journal billing --generation 12
  ottla group journal billing --output json | jq -r '.journal[0].causes[].cause'")]
pub(super) struct Arguments {
    /// The group
    group: String,
    /// So many of the last rebalances; all that are kept if left out
    #[arg(long, short = 'n', value_name = "COUNT", conflicts_with = "generation")]
    #[arg(value_parser = clap::value_parser!(u16).range(1..))]
    last: Option<u16>,
    /// Only the rebalance that led to this generation, with its details
    #[arg(long, value_name = "NUMBER")]
    generation: Option<i32>,
    /// What moved from whom to whom, and the slowest members
    #[arg(long)]
    details: bool,
}

pub(super) async fn run(session: &Session, arguments: Arguments) -> Outcome {
    let admin = session.admin()?;
    let asked = admin.group_journal(&arguments.group);
    let asked = progress::during(&session.asking("asking for the journal"), asked).await;
    let journal = asked.map_err(explained)?;
    let entries: Vec<_> = journal.entries.iter().rev().filter(|it| arguments.wants(it)).collect();
    if let (Some(generation), []) = (arguments.generation, &*entries) {
        let message = format!("group `{}` has no generation {generation} kept", journal.group);
        let hint = "`ottla group journal` without --generation shows which ones are kept";
        return Err(Failure::new(Code::NotFound, message).hint(hint));
    }
    let last = arguments.last.map_or(usize::MAX, usize::from);
    let entries: Vec<_> = entries.into_iter().take(last).collect();
    let is_detailed = arguments.details || arguments.generation.is_some();
    print::report(session.output, &Journal::new(&journal, &entries, is_detailed))
}

impl Arguments {
    fn wants(&self, entry: &JournalEntry) -> bool {
        self.generation.is_none_or(|generation| entry.generation.0 == generation)
    }
}

fn explained(error: ottla_client::Error) -> Failure {
    let failure = Failure::from(error.clone());
    match error.kind() {
        ErrorKind::Unsupported => {
            failure.hint("`ottla group describe` shows what every Kafka tells: state, members, lag")
        }
        _ => failure,
    }
}

/// What programs read: the fields of the broker's own `/groups/ID/journal`.
#[derive(Serialize)]
struct Journal {
    group: String,
    r#type: String,
    state: String,
    generation: i32,
    members: usize,
    blocking: Vec<BlockingView>,
    journal: Vec<EntryView>,
    #[serde(skip)]
    texts: Texts,
}

/// The same for people.
struct Texts {
    table: Table,
    details: Vec<String>,
}

impl Journal {
    fn new(journal: &GroupJournal, entries: &[&JournalEntry], is_detailed: bool) -> Self {
        let mut table = Table::new(HEADINGS);
        entries.iter().for_each(|entry| table.row(row(entry)));
        let details = if is_detailed { entries } else { &[] };
        Self {
            group: journal.group.to_string(),
            r#type: journal.kind.clone(),
            state: journal.state.clone(),
            generation: journal.generation.0,
            members: journal.members,
            blocking: journal.blocking.iter().map(BlockingView::from).collect(),
            journal: entries.iter().map(|entry| EntryView::from(*entry)).collect(),
            texts: Texts {
                table,
                details: details.iter().map(|entry| details_of(entry)).collect(),
            },
        }
    }
}

const HEADINGS: [&str; 7] =
    ["BEGAN", "GENERATION", "TOOK", "MEMBERS", "MOVED", "OUTCOME", "CAUSES"];

fn row(entry: &JournalEntry) -> [Cell; 7] {
    [
        crate::when::show(entry.began_at).into(),
        entry.generation.0.into(),
        Cell::number(Some(words::span(entry.took()))),
        entry.members.into(),
        Cell::number(entry.moved),
        format!("{:?}", entry.outcome).into(),
        words::causes(entry, words::client).into(),
    ]
}

/// What moved, and who was slow.
fn details_of(entry: &JournalEntry) -> String {
    let mut text = format!("generation {}\n", entry.generation.0);
    for trigger in &entry.triggers {
        let _ = writeln!(text, "  {}", words::cause(trigger));
    }
    let _ = writeln!(text, "  all had joined after {}", words::span(entry.join_took));
    if let Some(took) = entry.sync_took {
        let _ = writeln!(text, "  all was assigned {} later", words::span(took));
    }
    for table in [slowest_table(entry), moves_table(entry)].into_iter().flatten() {
        text += &format!("\n{}", table.text());
    }
    let untold = words::untold(entry);
    if untold > 0 {
        let _ = writeln!(text, "and {untold} more");
    }
    text
}

fn slowest_table(entry: &JournalEntry) -> Option<Table> {
    let mut table = Table::new(["SLOWEST", "CLIENT", "HOST", "JOINED AFTER", "SYNCED AFTER"]);
    for slow in &entry.slowest {
        table.row([
            slow.who.member.as_str().into(),
            (*slow.who.client_id).into(),
            view::host(&slow.who.client_host).into(),
            Cell::number(Some(words::span(slow.join_took))),
            Cell::number(slow.sync_took.map(words::span)),
        ]);
    }
    (!entry.slowest.is_empty()).then_some(table)
}

fn moves_table(entry: &JournalEntry) -> Option<Table> {
    let mut table = Table::new(["MOVED", "PARTITION", "FROM", "TO"]);
    for moved in &entry.moves {
        table.row([
            moved.topic.as_str().into(),
            moved.partition.0.into(),
            moved.from.as_deref().unwrap_or_default().into(),
            moved.to.as_deref().unwrap_or_default().into(),
        ]);
    }
    (!entry.moves.is_empty()).then_some(table)
}

impl Report for Journal {
    fn text(&self) -> String {
        let mut text = format!(
            "group       {}\nstate       {}\ngeneration  {}\nmembers     {}\n",
            self.group, self.state, self.generation, self.members
        );
        if !self.blocking.is_empty() {
            text += &format!("\n{}", view::blocking_table(&self.blocking).text());
        }
        if !self.journal.is_empty() {
            text += &format!("\n{}", self.texts.table.text());
        }
        for details in &self.texts.details {
            text += &format!("\n{details}");
        }
        text
    }
}
