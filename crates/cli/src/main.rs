//! The `ottla` binary. Only this crate prints.
//!
//! One file per command. What is thought (plans, lags, times, selections) is pure and apart from
//! what asks the cluster and from what prints.

mod consume;
mod demo;
mod failure;
mod group;
mod partitions;
mod print;
mod produce;
mod progress;
mod serve;
mod session;
mod topic;
mod when;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// A Kafka-compatible broker whose heart is the coordination of consumer groups.
#[derive(Parser)]
#[command(name = "ottla", version, propagate_version = true, arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run a broker until SIGTERM or ctrl-c
    ///
    /// A setting comes from a flag, else from its OTTLA_* variable, else from the file, else it is
    /// the default; docs/configuration.md has them all. What the broker logs goes to standard
    /// error; OTTLA_TRACE=debug says more.
    ///
    /// Exit codes: 0 stopped on request, 1 stopped with requests unanswered, 2 unusable settings, 3
    /// cannot start (address or data directory in use).
    Serve(serve::Arguments),
    /// List, describe, create, alter and delete topics.
    Topic(topic::Arguments),
    /// See what consumer groups do, and move or delete their offsets.
    Group(group::Arguments),
    /// Send the lines of files or of standard input as records.
    Produce(produce::Arguments),
    /// Print the records of a topic.
    Consume(consume::Arguments),
    /// Watch a broker and a group at work for a few seconds, with nothing set up.
    Demo(demo::Arguments),
}

fn main() -> ExitCode {
    match Arguments::parse().command {
        Command::Serve(arguments) => serve::run(arguments),
        Command::Topic(arguments) => topic::run(arguments),
        Command::Group(arguments) => group::run(arguments),
        Command::Produce(arguments) => produce::run(arguments),
        Command::Consume(arguments) => consume::run(arguments),
        Command::Demo(arguments) => demo::run(arguments),
    }
}
