//! How a record is printed: a line from a pattern, or a JSON object.

use crate::when;
use ottla_client::Record;
use serde_json::{Value, json};
use std::str::FromStr;

/// A line with places for parts of a record.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct RecordFormat(Vec<Part>);

#[derive(Clone, PartialEq, Eq, Debug)]
enum Part {
    Text(String),
    Topic,
    Partition,
    Offset,
    Time,
    Key,
    Value,
    Headers,
}

impl FromStr for RecordFormat {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut parts = Vec::new();
        let mut chars = text.chars();
        while let Some(char) = chars.next() {
            parts.push(match (char, if "%\\".contains(char) { chars.next() } else { None }) {
                ('%', Some('t')) => Part::Topic,
                ('%', Some('p')) => Part::Partition,
                ('%', Some('o')) => Part::Offset,
                ('%', Some('T')) => Part::Time,
                ('%', Some('k')) => Part::Key,
                ('%', Some('v')) => Part::Value,
                ('%', Some('h')) => Part::Headers,
                ('%', Some('%')) => Part::Text("%".into()),
                ('\\', Some('n')) => Part::Text("\n".into()),
                ('\\', Some('t')) => Part::Text("\t".into()),
                ('\\', Some('\\')) => Part::Text("\\".into()),
                ('%' | '\\', other) => {
                    let other = other.map(String::from).unwrap_or_default();
                    return Err(format!("{char}{other} stands for nothing; %{char} may be meant"));
                }
                (char, _) => Part::Text(char.into()),
            });
        }
        Ok(Self(parts))
    }
}

impl RecordFormat {
    /// The record's line, with its end.
    pub(super) fn write(&self, out: &mut Vec<u8>, record: &Record<'_>) {
        for part in &self.0 {
            match part {
                Part::Text(text) => out.extend(text.as_bytes()),
                Part::Topic => out.extend(record.topic().as_bytes()),
                Part::Partition => out.extend(record.partition().partition.to_string().bytes()),
                Part::Offset => out.extend(record.offset().to_string().bytes()),
                Part::Time => out.extend(when::show(record.timestamp()).bytes()),
                Part::Key => out.extend(record.key().unwrap_or_default()),
                Part::Value => out.extend(record.value().unwrap_or_default()),
                Part::Headers => write_headers(out, record),
            }
        }
        out.push(b'\n');
    }
}

fn write_headers(out: &mut Vec<u8>, record: &Record<'_>) {
    for (index, (key, value)) in record.headers().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        out.extend(key);
        out.push(b'=');
        out.extend(value.unwrap_or_default());
    }
}

/// The record as a JSON object on a line.
pub(super) fn write_json(out: &mut Vec<u8>, record: &Record<'_>) {
    let header = |(key, value): (&[u8], Option<&[u8]>)| json!([text(Some(key)), text(value)]);
    let object = json!({
        "topic": record.topic(),
        "partition": record.partition().partition.0,
        "offset": record.offset().0,
        "timestamp_ms": record.timestamp().0,
        "key": text(record.key()),
        "value": text(record.value()),
        "headers": record.headers().map(header).collect::<Vec<_>>(),
    });
    out.extend(object.to_string().bytes());
    out.push(b'\n');
}

fn text(bytes: Option<&[u8]>) -> Value {
    bytes.map_or(Value::Null, |bytes| String::from_utf8_lossy(bytes).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_that_stands_for_nothing_is_refused() {
        assert!("%p/%o\\t%k: %v %%".parse::<RecordFormat>().is_ok());
        for text in ["%x", "%", "\\"] {
            assert!(text.parse::<RecordFormat>().is_err(), "{text}");
        }
    }
}
