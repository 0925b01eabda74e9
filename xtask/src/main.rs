//! `cargo xtask COMMAND`: everything a developer or CI runs, in one place.
//!
//! One module per command. A command is a function from its arguments to a `Result`; this file only
//! picks one.

mod bench;
mod ci;
mod client;
mod codegen;
mod docs;
mod kafka;
mod matrix;
mod shell;
mod test;
mod tidy;

use std::process::ExitCode;

/// What a command comes back with: nothing, or one sentence that says what to do.
type Outcome = Result<(), String>;

const USAGE: &str = "\
usage: cargo xtask COMMAND

  bench         figures beside Apache Kafka 4.4 (all, or one; --quick: minutes)
  ci            format, lints, docs, licences, tidy: what every commit must pass
  client        the Rust client's tests against Apache Kafka 4.4 (FILTER: some of them)
  codegen       the wire codecs from crates/wire/schema (--check: only say if they are stale)
  docs          the pages of docs/ that are made from tables in the code
  test          everything, long parts scaled down and their size printed (about 20 minutes)
  test --full   everything at the sizes the project claims (hours)
  tools         Kafka's own command-line tools against the broker (or --broker kafka)
  matrix        every Kafka client in use against the broker (or --broker kafka)
  soak          our client's groups for minutes, killing members and broker (--minutes 15)
  tidy          the rules of CONTRIBUTING.md that a program can check
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("xtask: {problem}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &[String]) -> Outcome {
    let (command, rest) = arguments.split_first().ok_or(USAGE)?;
    match command.as_str() {
        "matrix" => matrix::run(rest),
        "bench" => bench::run(rest),
        "ci" => ci::run(rest),
        "client" => client::run(rest),
        "codegen" => codegen::run(rest),
        "docs" => docs::run(rest),
        "soak" => matrix::soak::run(rest),
        "test" => test::run(rest),
        "tools" => kafka::tools::run(rest),
        "tidy" => tidy::run(rest),
        _ => Err(format!("no command `{command}`\n\n{USAGE}")),
    }
}
