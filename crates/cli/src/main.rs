//! The `ottla` binary. Only this crate prints.
//!
//! One file per command. What is thought (plans, lags, times, selections) is pure and apart from
//! what asks the cluster and from what prints.

mod failure;
mod group;
mod partitions;
mod print;
mod progress;
mod serve;
mod session;
mod topic;
mod when;

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
    /// List, describe, create, alter and delete topics.
    Topic(topic::Arguments),
    /// See what consumer groups do, and move or delete their offsets.
    Group(group::Arguments),
}

fn main() -> ExitCode {
    match Arguments::parse().command {
        Command::Serve(arguments) => serve::run(arguments),
        Command::Topic(arguments) => topic::run(arguments),
        Command::Group(arguments) => group::run(arguments),
    }
}
