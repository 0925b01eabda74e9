//! The `ottla` binary. Only this crate prints.

mod serve;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// A Kafka-compatible broker whose heart is the coordination of consumer groups.
#[derive(Parser)]
#[command(version, propagate_version = true, arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run a broker.
    Serve(serve::Arguments),
}

fn main() -> ExitCode {
    match Arguments::parse().command {
        Command::Serve(arguments) => serve::run(arguments),
    }
}
