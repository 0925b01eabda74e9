//! `ottla consume`: reads a topic to its end, or on and on, alone or in a group.

mod format;
mod span;

use crate::failure::Failure;
use crate::partitions::Selection;
use crate::print::{self, Format};
use crate::progress;
use crate::session::Session;
use clap::Args;
use format::RecordFormat;
use ottla_client::{Consumer, OffsetReset, Records};
use span::{Left, Span};
use std::process::ExitCode;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};

/// Print the records of a topic.
///
/// Without --group it reads what is there and ends; with --follow it waits for more. With --group
/// it shares the topic with the group's other members, goes on from its committed offsets, and
/// ends by ctrl-c, SIGTERM, --count or --idle.
#[derive(Args)]
#[command(after_help = "\
Examples:
  ottla consume orders
  ottla consume orders:0,3 --from yesterday --until today
  ottla consume orders --from latest --follow
  ottla consume orders --from -10 --format '%p/%o %k: %v'
  ottla consume orders --group billing --output json | jq .value

--output json prints one JSON object per record and line. Bytes that are not UTF-8 are replaced.")]
pub(crate) struct Arguments {
    /// The topic, or some partitions of it
    #[arg(value_name = "TOPIC[:0,3-5]")]
    topic: Selection,
    /// earliest, latest, an offset, -10 (the last ten), `yesterday`, 2026-11-30T09:15
    #[arg(long, value_name = "WHERE", default_value = "earliest", allow_hyphen_values = true)]
    from: String,
    /// Where to end, written as for --from; the records there are by default
    #[arg(long, value_name = "WHERE", conflicts_with_all = ["follow", "group"])]
    until: Option<String>,
    /// Wait for more records at the end
    #[arg(long, short = 'F')]
    follow: bool,
    /// Read as a member of this group; --from tells where it begins without committed offsets
    #[arg(long, short, value_name = "GROUP")]
    group: Option<String>,
    /// End after so many records
    #[arg(long, short = 'n', value_name = "COUNT")]
    count: Option<u64>,
    /// End when no record came for so long
    #[arg(long, value_name = "TIME", value_parser = crate::session::span)]
    idle: Option<Duration>,
    /// %t topic, %p partition, %o offset, %T time, %k key, %v value, %h headers, \n and \t
    #[arg(long, value_name = "TEXT", default_value = "%v")]
    format: RecordFormat,
    /// Any setting of the consumer, by Kafka's name; may be repeated
    #[arg(long = "property", value_name = "NAME=VALUE")]
    properties: Vec<String>,
    // Last: its heading would be that of all behind it.
    #[command(flatten)]
    session: Session,
}

/// Runs it.
pub(crate) fn run(arguments: Arguments) -> ExitCode {
    arguments.session.run(consume(&arguments))
}

async fn consume(arguments: &Arguments) -> Result<(), Failure> {
    let mut consumer = arguments.consumer()?;
    let mut left = match &arguments.group {
        Some(_) => {
            consumer.subscribe([arguments.topic.topic.as_str()])?;
            None
        }
        None => {
            let asking = arguments.session.asking("asking for offsets");
            let span = progress::during(&asking, Span::look_up(arguments)).await?;
            consumer.assign(span.begin.keys().cloned())?;
            for (partition, offset) in &span.begin {
                consumer.seek(partition, ottla_client::Offset(*offset))?;
            }
            (!arguments.follow).then(|| span.left())
        }
    };
    let ended = read(arguments, &mut consumer, &mut left).await;
    let closed = consumer.close().await.map_err(Failure::from);
    ended.and(closed)
}

/// Hands out records until there is a reason to end.
async fn read(
    arguments: &Arguments,
    consumer: &mut Consumer,
    left: &mut Option<Left>,
) -> Result<(), Failure> {
    let signals = signal(SignalKind::terminate())
        .and_then(|terminate| Ok((terminate, signal(SignalKind::interrupt())?)));
    let (mut terminate, mut interrupt) = signals.map_err(print::unwritten)?;
    let mut budget = arguments.count.unwrap_or(u64::MAX);
    let idle = arguments.idle.unwrap_or(IDLE_MAX);
    let mut since = tokio::time::Instant::now();
    while budget > 0 && left.as_ref().is_none_or(|left| !left.is_over()) {
        let records = tokio::select! {
            records = consumer.poll(POLL) => records?,
            _ = terminate.recv() => break,
            _ = interrupt.recv() => break,
        };
        hand_out(arguments, &records, left, &mut budget)?;
        if !records.is_empty() {
            since = tokio::time::Instant::now();
        } else if since.elapsed() >= idle {
            break;
        }
    }
    Ok(())
}

fn hand_out(
    arguments: &Arguments,
    records: &Records,
    left: &mut Option<Left>,
    budget: &mut u64,
) -> Result<(), Failure> {
    let mut text = Vec::new();
    for (partition, next, run) in records.runs() {
        for record in run.filter(|record| arguments.topic.has(record.partition().partition.0)) {
            let is_wanted = left.as_ref().is_none_or(|left| left.has(partition, record.offset().0));
            if is_wanted && *budget > 0 {
                *budget -= 1;
                match arguments.session.output {
                    Format::Table => arguments.format.write(&mut text, &record),
                    Format::Json => format::write_json(&mut text, &record),
                }
            }
        }
        if let Some(left) = left {
            left.came_to(partition, next.0);
        }
    }
    print::bytes(&text)
}

impl Arguments {
    fn consumer(&self) -> Result<Consumer, Failure> {
        let mut config = self.session.consumer()?;
        for property in &self.properties {
            let (name, value) = property
                .split_once('=')
                .ok_or_else(|| Failure::usage(format!("--property {property}: not NAME=VALUE")))?;
            config = config.set(name.trim(), value)?;
        }
        if let Some(group) = &self.group {
            let reset = match self.from.as_str() {
                "earliest" => OffsetReset::Earliest,
                "latest" => OffsetReset::Latest,
                _ => {
                    let message = "with --group, --from can be earliest or latest";
                    let hint = "`ottla group offsets reset` moves a group to a time or an offset";
                    return Err(Failure::usage(message).hint(hint));
                }
            };
            config = config.group_id(group.as_str()).auto_offset_reset(reset);
        }
        Ok(Consumer::new(config)?)
    }
}

const POLL: Duration = Duration::from_millis(200);
/// Longer than anybody waits.
const IDLE_MAX: Duration = Duration::from_secs(u32::MAX as u64);
