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
use std::ffi::OsString;
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
    match Arguments::parse_from(command_first(std::env::args_os().collect())).command {
        Command::Serve(arguments) => serve::run(arguments),
        Command::Topic(arguments) => topic::run(arguments),
        Command::Group(arguments) => group::run(arguments),
        Command::Produce(arguments) => produce::run(arguments),
        Command::Consume(arguments) => consume::run(arguments),
        Command::Demo(arguments) => demo::run(arguments),
    }
}

/// Flags of [`session::FLAGS`] may stand in front of the command; clap knows them behind it.
fn command_first(mut words: Vec<OsString>) -> Vec<OsString> {
    let mut at = 1;
    while let Some(word) = words.get(at).and_then(|word| word.to_str()) {
        let names = |flag: &&str| word.strip_prefix(*flag);
        match session::FLAGS.iter().find_map(names) {
            Some("") => at += 2,
            Some(value) if value.starts_with('=') || !word.starts_with("--") => at += 1,
            _ => break,
        }
    }
    if at < words.len() {
        words[1..=at].rotate_right(1);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn flags_of_the_connection_may_come_first() {
        let reordered = |line: &str| {
            let words = line.split(' ').map(OsString::from).collect();
            command_first(words).join(std::ffi::OsStr::new(" ")).into_string().unwrap()
        };
        for (given, read) in [
            ("ottla --brokers b:1 topic list", "ottla topic --brokers b:1 list"),
            ("ottla -bb:1 --output=json group list", "ottla group -bb:1 --output=json list"),
            ("ottla topic list --brokers b:1", "ottla topic list --brokers b:1"),
            ("ottla --brokers b:1", "ottla --brokers b:1"),
            ("ottla --brokersx topic", "ottla --brokersx topic"),
            ("ottla --help", "ottla --help"),
        ] {
            assert_eq!(reordered(given), read);
        }
        let line = ["ottla", "--brokers", "b:1", "-o", "json", "group", "offsets", "show", "g"];
        let words = command_first(line.map(OsString::from).into());
        assert!(Arguments::try_parse_from(words).is_ok());
    }

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
