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
    Serve(serve::Arguments),
    Topic(topic::Arguments),
    Group(group::Arguments),
    Produce(produce::Arguments),
    Consume(consume::Arguments),
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

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    /// A doc comment in the wrong place (on the variant, or on what is flattened) hides another.
    fn assert_explained(command: &clap::Command) {
        let name = command.get_name();
        let about = command.get_about().map(ToString::to_string).unwrap_or_default();
        let long = command.get_long_about().map(ToString::to_string).unwrap_or_default();
        let begins = long.starts_with(&*about) && long.len() > about.len() + 20;
        assert!(!about.is_empty() && begins, "{name}: {about:?}, {long:?}");
        assert!(!about.contains("Which cluster"), "{name}: {about:?}");
        command.get_subcommands().for_each(assert_explained);
    }

    #[test]
    fn every_command_says_in_a_line_and_at_length_what_it_does() {
        Arguments::command().get_subcommands().for_each(assert_explained);
    }
}
