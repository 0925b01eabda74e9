//! `ottla topic`: topics and their settings.

mod alter;
mod create;
mod delete;
mod describe;
mod list;

use crate::failure::Failure;
use crate::session::Session;
use clap::{Args, Subcommand};
use std::process::ExitCode;

/// List, describe, create, alter and delete topics.
///
/// Works with Ottla and Apache Kafka alike. `ottla topic COMMAND --help` has examples.
#[derive(Args)]
#[command(arg_required_else_help = true)]
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
    Create(create::Arguments),
    Alter(alter::Arguments),
    Delete(delete::Arguments),
}

/// Runs one of them.
pub(crate) fn run(Arguments { session, command }: Arguments) -> ExitCode {
    session.run(async {
        match command {
            Command::List(arguments) => list::run(&session, arguments).await,
            Command::Describe(arguments) => describe::run(&session, arguments).await,
            Command::Create(arguments) => create::run(&session, arguments).await,
            Command::Alter(arguments) => alter::run(&session, arguments).await,
            Command::Delete(arguments) => delete::run(&session, arguments).await,
        }
    })
}

/// `NAME=VALUE`, a setting of a topic.
fn setting(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.trim().is_empty() => {
            Ok((name.trim().to_owned(), value.trim().to_owned()))
        }
        _ => Err("not NAME=VALUE".to_owned()),
    }
}

/// The failure of a thing whose like there may be many.
fn is(failure: &Result<(), ottla_client::Error>, code: ottla_client::ErrorCode) -> bool {
    failure.as_ref().err().and_then(ottla_client::Error::code) == Some(code)
}

/// What `ottla topic` commands answer.
type Outcome = Result<(), Failure>;
