//! `ottla group`: what consumer groups do, and their offsets.

mod delete;
mod describe;
pub(crate) mod journal;
mod lag;
mod list;
mod offsets;
mod remove_member;

use crate::failure::Failure;
use crate::session::Session;
use clap::{Args, Subcommand};
use std::process::ExitCode;

/// See what consumer groups do, and move or delete their offsets.
///
/// Works with Ottla and Apache Kafka alike. `ottla group COMMAND --help` has examples.
#[derive(Args)]
#[command(arg_required_else_help = true)]
#[command(after_help = "\
Examples:
  ottla group list
  ottla group describe billing
  ottla group offsets show billing
  ottla group offsets reset billing --all-topics --to-datetime yesterday")]
pub(crate) struct Arguments {
    #[command(flatten)]
    session: Session,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    List(list::Arguments),
    Describe(describe::Arguments),
    Journal(journal::Arguments),
    Offsets(offsets::Arguments),
    RemoveMember(remove_member::Arguments),
    Delete(delete::Arguments),
}

/// Runs one of them.
pub(crate) fn run(Arguments { session, command }: Arguments) -> ExitCode {
    session.run(async {
        match command {
            Command::List(arguments) => list::run(&session, arguments).await,
            Command::Describe(arguments) => describe::run(&session, arguments).await,
            Command::Journal(arguments) => journal::run(&session, arguments).await,
            Command::Offsets(arguments) => offsets::run(&session, arguments).await,
            Command::RemoveMember(arguments) => remove_member::run(&session, arguments).await,
            Command::Delete(arguments) => delete::run(&session, arguments).await,
        }
    })
}

/// What `ottla group` commands answer.
type Outcome = Result<(), Failure>;
