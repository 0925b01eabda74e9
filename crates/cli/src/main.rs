//! The `ottla` binary. Only this crate prints.
//!
//! One file per command. What is thought (plans, lags, times, selections) is pure and apart from
//! what asks the cluster and from what prints.

mod consume;
mod demo;
mod failure;
mod group;
mod help;
mod partitions;
mod print;
mod produce;
mod progress;
mod serve;
mod session;
mod topic;
mod when;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use std::ffi::OsString;
use std::process::ExitCode;

/// A Kafka-compatible broker whose heart is the coordination of consumer groups.
#[derive(Parser)]
#[command(name = "ottla", version, arg_required_else_help = true)]
#[command(after_help = "\
Begin with:
  ottla demo                          a group at work, with nothing set up
  ottla serve                         a broker on localhost:9092
  ottla group list                    what groups there are
  ottla group offsets reset --help    how to send a group back, to yesterday for example

All but serve and demo work with any Kafka cluster: --brokers HOST:PORT, or OTTLA_BROKERS.")]
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
    let words = command_first(std::env::args_os().collect());
    let matches = help::on_one_screen(Arguments::command()).get_matches_from(words);
    let arguments = Arguments::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    match arguments.command {
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

    /// Whoever knows nothing but `ottla --help` finds how to send a group back to yesterday.
    #[test]
    fn help_leads_from_nothing_to_a_group_at_yesterdays_offsets() {
        let mut command = help::on_one_screen(Arguments::command());
        let mut at = &mut command;
        for next in ["group", "offsets", "reset"] {
            assert!(at.render_help().to_string().contains("offsets"), "{}", at.get_name());
            at = at.find_subcommand_mut(next).expect(next);
        }
        let help = at.render_help().to_string();
        assert!(help.contains("--all-topics --to-datetime yesterday --execute"), "{help}");
        assert!(help.lines().count() <= 55, "{help}");
    }

    #[test]
    fn every_line_of_help_fits() {
        fn check(command: &mut clap::Command) {
            let help = command.render_help().to_string();
            let long = help.lines().find(|line| line.chars().count() > 130);
            assert_eq!(long, None, "{}", command.get_name());
            command.get_subcommands_mut().for_each(check);
        }
        check(&mut help::on_one_screen(Arguments::command()));
    }

    #[test]
    fn every_command_says_in_a_line_and_at_length_what_it_does() {
        Arguments::command().get_subcommands().for_each(assert_explained);
    }
}
