//! `ottla group delete`.

use super::Outcome;
use crate::failure::Failures;
use crate::print::{self, Report};
use crate::progress;
use crate::session::Session;
use clap::Args;
use serde::Serialize;

/// Delete groups with their committed offsets.
///
/// A group must have no members. Exit code 1 if one has, 3 if there is no such group.
#[derive(Args)]
#[command(after_help = "\
Examples:
  ottla group delete billing
  ottla group delete billing shipping")]
pub(super) struct Arguments {
    /// The groups; their committed offsets go, too
    #[arg(required = true, value_name = "GROUP")]
    groups: Vec<String>,
}

pub(super) async fn run(session: &Session, arguments: Arguments) -> Outcome {
    let admin = session.admin()?;
    let deleted = admin.delete_groups(arguments.groups);
    let deleted = progress::during(&session.asking("deleting groups"), deleted).await;
    let mut failures = Failures::default();
    let mut lines = Vec::new();
    for (group, outcome) in deleted {
        let line = Line { group: group.to_string(), deleted: true };
        lines.extend(failures.keep(outcome).map(|()| line));
    }
    print::report(session.output, &Deleted(lines))?;
    failures.outcome()
}

#[derive(Serialize)]
struct Deleted(Vec<Line>);

#[derive(Serialize)]
struct Line {
    group: String,
    deleted: bool,
}

impl Report for Deleted {
    fn text(&self) -> String {
        self.0.iter().map(|line| format!("group {} is deleted\n", line.group)).collect()
    }
}
