//! What commands print: tables for people, JSON for programs, from the same values.
//!
//! Results go to standard output, everything else (notes, progress, failures) to standard error,
//! so that a pipe carries results alone.

use crate::failure::{Code, Failure};
use clap::ValueEnum;
use serde::Serialize;
use std::io::{self, Write};

/// How results are printed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, ValueEnum)]
pub(crate) enum Format {
    /// Tables, for people.
    #[default]
    Table,
    /// One JSON document, for programs.
    Json,
}

/// A result that can be printed. As JSON it is what `Serialize` makes of it.
pub(crate) trait Report: Serialize {
    /// For people: whole lines.
    fn text(&self) -> String;
}

/// Prints a result.
pub(crate) fn report(format: Format, report: &impl Report) -> Result<(), Failure> {
    let text = match format {
        Format::Table => report.text(),
        Format::Json => {
            let json = serde_json::to_string_pretty(report);
            json.map_err(|error| Failure::new(Code::Io, error.to_string()))? + "\n"
        }
    };
    bytes(text.as_bytes())
}

/// Prints one line of a result.
pub(crate) fn line(text: &str) -> Result<(), Failure> {
    bytes(format!("{text}\n").as_bytes())
}

/// Prints part of a result as it is.
pub(crate) fn bytes(bytes: &[u8]) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    out.write_all(bytes).and_then(|()| out.flush()).map_err(unwritten)
}

/// Says something beside the results.
pub(crate) fn note(text: &str) {
    // Without standard error there is nobody to tell.
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// So many of something: `1 record`, `2 records`.
pub(crate) fn count(number: u64, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

/// The failure of a write to standard output.
pub(crate) fn unwritten(error: io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::BrokenPipe => Failure::new(Code::Unread, "nobody reads the output"),
        _ => Failure::new(Code::Io, format!("cannot write the output: {error}")),
    }
}

/// Columns that line up. Numbers are flush right, the rest flush left.
#[derive(Debug)]
pub(crate) struct Table {
    rows: Vec<Vec<Cell>>,
}

/// One entry of a table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Cell {
    /// Flush left.
    Text(String),
    /// Flush right.
    Number(String),
}

impl Table {
    /// A table with these headings.
    pub(crate) fn new<const N: usize>(headings: [&str; N]) -> Self {
        Self { rows: vec![headings.map(Cell::from).into()] }
    }

    /// One more row.
    pub(crate) fn row<const N: usize>(&mut self, cells: [Cell; N]) {
        self.rows.push(cells.into());
    }

    /// Lines, each with its end.
    pub(crate) fn text(&self) -> String {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(Cell::width).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        // A heading stands as what it is above does.
        let is_number = |column| self.rows.iter().skip(1).any(|row| is_number(row.get(column)));
        let numeric: Vec<bool> = (0..columns).map(is_number).collect();
        let mut text = String::new();
        for row in &self.rows {
            let cells = row.iter().zip(widths.iter().zip(&numeric));
            let cells: Vec<String> =
                cells.map(|(cell, (width, is_number))| cell.padded(*width, *is_number)).collect();
            text += cells.join("  ").trim_end();
            text += "\n";
        }
        text
    }
}

fn is_number(cell: Option<&Cell>) -> bool {
    matches!(cell, Some(Cell::Number(_)))
}

impl Cell {
    /// A number, or a dash where there is none.
    pub(crate) fn number(value: Option<impl ToString>) -> Self {
        Self::Number(value.map_or_else(|| NONE.to_owned(), |value| value.to_string()))
    }

    fn str(&self) -> &str {
        match self {
            Self::Text(text) | Self::Number(text) => text,
        }
    }

    fn width(&self) -> usize {
        self.str().chars().count()
    }

    fn padded(&self, width: usize, is_number: bool) -> String {
        let text = self.str();
        if is_number { format!("{text:>width$}") } else { format!("{text:<width$}") }
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self::Text(if text.is_empty() { NONE.to_owned() } else { text.to_owned() })
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self::from(&*text)
    }
}

macro_rules! numbers {
    ($($number:ty),*) => {
        $(impl From<$number> for Cell {
            fn from(number: $number) -> Self {
                Self::Number(number.to_string())
            }
        })*
    };
}

numbers!(i16, i32, i64, u64, usize);

/// What stands where nothing is.
pub(crate) const NONE: &str = "-";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_and_no_line_ends_in_spaces() {
        let mut table = Table::new(["TOPIC", "LAG", "NOTE"]);
        table.row(["a-long-name".into(), 7i64.into(), "".into()]);
        table.row(["b".into(), Cell::number(None::<i64>), "é".into()]);
        let text = "TOPIC        LAG  NOTE\na-long-name    7  -\nb              -  é\n";
        assert_eq!(table.text(), text);
    }
}
