//! `ottla produce`: lines of files or of standard input become records.

use crate::failure::{Code, Failure};
use crate::print::{self, Format};
use crate::progress;
use crate::session::Session;
use clap::Args;
use ottla_client::{Compression, Delivery, Producer, ProducerRecord};
use std::cell::Cell;
use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tokio::sync::mpsc;

/// Send the lines of files or of standard input as records.
///
/// One record a line. Returns when all of them are stored, each once and in order; exit code 4 if
/// that is not known of one.
#[derive(Args)]
#[command(after_help = "\
Examples:
  echo hello | ottla produce greetings
  ottla produce orders --key-separator : --file orders.txt --header source=import
  ottla produce orders --key-separator : --null-value DELETED < keys.txt")]
pub(crate) struct Arguments {
    /// The topic
    topic: String,
    /// Read this file instead of standard input; may be repeated
    #[arg(long = "file", short, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// What stands between key and value; a line without it has no key
    #[arg(long, short, value_name = "TEXT")]
    key_separator: Option<String>,
    /// The key of every record that has none of its own
    #[arg(long, value_name = "KEY")]
    key: Option<String>,
    /// A header of every record; may be repeated
    #[arg(long = "header", short = 'H', value_name = "NAME=VALUE", value_parser = header)]
    headers: Vec<(String, String)>,
    /// A value that stands for none: a tombstone
    #[arg(long, value_name = "TEXT")]
    null_value: Option<String>,
    /// To this partition, whatever the key
    #[arg(long, short, value_name = "NUMBER", value_parser = clap::value_parser!(i32).range(0..))]
    partition: Option<i32>,
    /// How batches are compressed
    #[arg(long, value_name = "CODEC", default_value = "none", value_parser = compression)]
    compression: Compression,
    // Last: its heading would be that of all behind it.
    #[command(flatten)]
    session: Session,
}

/// Runs it.
pub(crate) fn run(arguments: Arguments) -> ExitCode {
    arguments.session.run(produce(&arguments))
}

async fn produce(arguments: &Arguments) -> Result<(), Failure> {
    let config = arguments.session.producer()?.compression_type(arguments.compression);
    let producer = Producer::new(config)?;
    let stored = Cell::new(0u64);
    let telling = || format!("{} stored ...", print::count(stored.get(), "record"));
    let work = send_all(arguments, &producer, &stored);
    progress::telling(telling, work).await?;
    match arguments.session.output {
        Format::Table => print::note(&format!("{} stored.", print::count(stored.get(), "record"))),
        Format::Json => {
            let summary = serde_json::json!({ "topic": arguments.topic, "stored": stored.get() });
            print::line(&summary.to_string())?;
        }
    }
    Ok(())
}

async fn send_all(
    arguments: &Arguments,
    producer: &Producer,
    stored: &Cell<u64>,
) -> Result<(), Failure> {
    let mut lines = read(arguments.files.clone());
    let mut reports: VecDeque<Delivery> = VecDeque::new();
    let mut unread = None;
    while let Some(line) = lines.recv().await {
        // What came before a file that cannot be read is stored all the same.
        match line {
            Ok(line) => reports.push_back(producer.send(arguments.record(&line)).await?),
            Err(failure) => unread = Some(failure),
        }
        while reports.len() > REPORTS_MAX {
            settle(&mut reports, stored).await?;
        }
    }
    while !reports.is_empty() {
        settle(&mut reports, stored).await?;
    }
    producer.close().await?;
    unread.map_or(Ok(()), Err)
}

async fn settle(reports: &mut VecDeque<Delivery>, stored: &Cell<u64>) -> Result<(), Failure> {
    if let Some(report) = reports.pop_front() {
        report.await?;
        stored.set(stored.get() + 1);
    }
    Ok(())
}

impl Arguments {
    fn record<'a>(&'a self, line: &'a [u8]) -> ProducerRecord<'a> {
        let separator = self.key_separator.as_deref().unwrap_or_default();
        let (key, value) = split(line, separator.as_bytes());
        let mut record = ProducerRecord::to(&self.topic);
        if let Some(key) = key.or(self.key.as_deref().map(str::as_bytes)) {
            record = record.key(key);
        }
        if self.null_value.as_deref().map(str::as_bytes) != Some(value) {
            record = record.value(value);
        }
        if let Some(partition) = self.partition {
            record = record.partition(partition);
        }
        let headers = self.headers.iter();
        headers.fold(record, |record, (name, value)| record.header(name, value))
    }
}

/// Key and value of a line.
fn split<'a>(line: &'a [u8], separator: &[u8]) -> (Option<&'a [u8]>, &'a [u8]) {
    if separator.is_empty() {
        return (None, line);
    }
    let at = line.windows(separator.len()).position(|window| window == separator);
    match at {
        Some(at) => (Some(&line[..at]), &line[at + separator.len()..]),
        None => (None, line),
    }
}

/// Lines as a thread reads them, which may block for as long as it likes.
fn read(files: Vec<PathBuf>) -> mpsc::Receiver<Result<Vec<u8>, Failure>> {
    let (sender, lines) = mpsc::channel(LINES_MAX);
    std::thread::spawn(move || {
        let failed = |path: &Path, error: io::Error| {
            let message = format!("cannot read {}: {error}", path.display());
            let _ = sender.blocking_send(Err(Failure::new(Code::Io, message)));
        };
        if files.is_empty() {
            if let Err(error) = read_one(io::stdin().lock(), &sender) {
                failed(Path::new("standard input"), error);
            }
            return;
        }
        for path in files {
            let file = std::fs::File::open(&path);
            if let Err(error) = file.and_then(|file| read_one(BufReader::new(file), &sender)) {
                return failed(&path, error);
            }
        }
    });
    lines
}

fn read_one(
    mut from: impl BufRead,
    lines: &mpsc::Sender<Result<Vec<u8>, Failure>>,
) -> io::Result<()> {
    loop {
        let mut line = Vec::new();
        if from.read_until(b'\n', &mut line)? == 0 {
            return Ok(());
        }
        if line.last() == Some(&b'\n') {
            line.pop();
        }
        if lines.blocking_send(Ok(line)).is_err() {
            return Ok(());
        }
    }
}

fn header(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("not NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}

fn compression(text: &str) -> Result<Compression, String> {
    Ok(match text {
        "none" => Compression::None,
        "gzip" => Compression::Gzip,
        "snappy" => Compression::Snappy,
        "lz4" => Compression::Lz4,
        "zstd" => Compression::Zstd,
        _ => return Err("one of none, gzip, snappy, lz4, zstd".to_owned()),
    })
}

/// Lines read ahead.
const LINES_MAX: usize = 1000;
/// Records whose fate is not known yet.
const REPORTS_MAX: usize = 100_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_separator_ends_the_key() {
        assert_eq!(split(b"a::b::c", b"::"), (Some(&b"a"[..]), &b"b::c"[..]));
        assert_eq!(split(b"::b", b"::"), (Some(&b""[..]), &b"b"[..]));
        assert_eq!(split(b"ab", b"::"), (None, &b"ab"[..]));
        assert_eq!(split(b"a:b", b""), (None, &b"a:b"[..]));
    }
}
