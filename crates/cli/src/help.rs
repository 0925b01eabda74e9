//! Help that fits a screen: all of it, a line for each flag, whether `-h` or `--help` asks.

use clap::{Arg, ArgAction, Command};

/// The command and those below it, with such help.
pub(crate) fn on_one_screen(command: Command) -> Command {
    let about = command.get_long_about().or(command.get_about());
    let about = about.map(|about| wrapped(&about.to_string())).unwrap_or_default();
    let template = format!("{about}\n\n{{usage-heading}} {{usage}}\n\n{{all-args}}{{after-help}}");
    let help = Arg::new("help").short('h').long("help").action(ArgAction::HelpShort);
    command
        .disable_help_flag(true)
        .arg(help.help("Print help").help_heading(None))
        .help_template(template)
        .mut_subcommands(on_one_screen)
}

/// The text in lines that are not wider than [`WIDTH`].
fn wrapped(text: &str) -> String {
    let mut lines = Vec::new();
    for paragraph in text.lines() {
        let mut line = String::new();
        for word in paragraph.split(' ') {
            if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > WIDTH {
                lines.push(std::mem::take(&mut line));
            }
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
        lines.push(line);
    }
    lines.join("\n")
}

/// The columns of a line of prose.
const WIDTH: usize = 96;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prose_is_wrapped_at_words() {
        let word = "abcdefg";
        let text = format!("{}\n\nand more", [word; 20].join(" "));
        let wrapped = wrapped(&text);
        let lines: Vec<&str> = wrapped.lines().collect();
        assert_eq!(
            lines,
            [[word; 12].join(" "), [word; 8].join(" "), "".into(), "and more".into()]
        );
    }
}
