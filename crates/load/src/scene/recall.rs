//! What a coordinator still knows after it died. `Fill` commits rising offsets, a known number of
//! rounds; after the broker was killed and started again, `Recall` asks until it is told the last
//! of them, and then checks every one. Turns and kills are the business of whoever starts brokers.

use super::commits::{Stamped, committed, topic_of};
use crate::figures::Figures;
use crate::link::{Asked, Link, Software, check};
use crate::setup::{coordinators, dealt, is_not_ready, names, topic};
use crate::{Outcome, Target};
use clap::Args;
use ottla_wire::generated::OffsetCommitResponse;
use ottla_wire::{ApiKey, Message};
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tokio::io::AsyncWriteExt;

/// What was, or is to be, committed.
#[derive(Args, Clone, Copy, Debug)]
struct Size {
    /// Groups
    #[arg(long, default_value_t = 1000)]
    groups: usize,
    /// Partitions in each request
    #[arg(long, default_value_t = 100)]
    partitions: i32,
    /// Commits of each group
    #[arg(long, default_value_t = 168)]
    rounds: i64,
}

/// Commits so often and no oftener.
#[derive(Args, Clone, Debug)]
pub(crate) struct Fill {
    #[command(flatten)]
    target: Target,
    #[command(flatten)]
    size: Size,
    /// Connections, each with groups of its own
    #[arg(long, default_value_t = 16)]
    connections: usize,
}

impl Fill {
    /// Every acknowledgement is waited for.
    pub(crate) async fn run(self) -> Outcome<Figures> {
        let Size { groups, partitions, rounds } = self.size;
        let mut link = Link::open(&self.target.bootstrap, Software::Unknown).await?;
        topic(&mut link, &topic_of(partitions), partitions).await?;
        let names = names("recall", groups);
        coordinators(&mut link, &names).await?;
        let (cpu, begun) = (self.target.process().cpu_seconds()?, Instant::now());
        let mut tasks = tokio::task::JoinSet::new();
        for hand in dealt(groups, self.connections.min(groups)) {
            let requests = hand.iter().map(|group| Stamped::new(&names[*group], partitions));
            let requests: Vec<Stamped> = requests.collect::<Outcome<_>>()?;
            let link = Link::open(&self.target.bootstrap, Software::Unknown).await?;
            tasks.spawn_local(commit_all(link, requests, rounds));
        }
        while let Some(ended) = tasks.join_next().await {
            ended.map_err(|error| error.to_string())??;
        }
        let commits = groups as f64 * f64::from(partitions) * rounds as f64;
        let cpu = self.target.process().cpu_seconds()? - cpu;
        let mut figures = Figures::default();
        let of = self.size.name();
        figures.add(format!("{of}: commits/s"), commits / begun.elapsed().as_secs_f64());
        figures.add(format!("{of}: commits/broker CPU-s"), commits / cpu.max(0.01));
        Ok(figures)
    }
}

/// Each round commits every group once; a connection's requests are decided in order, so the last
/// round's offsets are the ones that stay.
async fn commit_all(mut link: Link, requests: Vec<Stamped>, rounds: i64) -> Outcome<()> {
    let (mut sent, mut answered) = (0_i32, 0_i32);
    let mut out = Vec::new();
    for round in 0..rounds {
        for request in &requests {
            request.write(sent, round, &mut out);
            sent += 1;
            link.stream.write_all(&out).await.map_err(|error| format!("cannot send: {error}"))?;
            out.clear();
            while sent - answered >= DEPTH {
                answered += answers(&mut link, answered).await?;
            }
        }
    }
    while answered < sent {
        answered += answers(&mut link, answered).await?;
    }
    Ok(())
}

/// Waits for answers and checks all that have come.
async fn answers(link: &mut Link, from: i32) -> Outcome<i32> {
    link.read_more().await?;
    let mut count = 0;
    while let Some(frame) = link.arrived_frame()? {
        let asked = Asked::new(from + count, ApiKey::OffsetCommit, Stamped::VERSION);
        let response = OffsetCommitResponse::decode_all(asked.body_of(&frame)?, Stamped::VERSION);
        let response = response.map_err(|error| error.to_string())?;
        for partition in response.topics.iter().flat_map(|topic| &topic.partitions) {
            check(partition.error_code, "OffsetCommit")?;
        }
        count += 1;
    }
    Ok(count)
}

/// Asks until every offset is the last one committed.
#[derive(Args, Clone, Debug)]
pub(crate) struct Recall {
    #[command(flatten)]
    target: Target,
    #[command(flatten)]
    size: Size,
    /// When the broker's process was started, milliseconds since 1970
    #[arg(long)]
    started_ms: f64,
    /// Where it keeps partitions: the logs of offsets are read, and summed, for comparison
    #[arg(long)]
    data: PathBuf,
}

impl Recall {
    /// Polls every millisecond; a group that was once right must stay right.
    pub(crate) async fn run(self) -> Outcome<Figures> {
        let Size { groups, partitions, rounds } = self.size;
        let begun = Instant::now();
        let late = wall_ms()? - self.started_ms;
        let mut link = Link::open(&self.target.bootstrap, Software::Unknown).await?;
        let mut first = None;
        for name in names("recall", groups) {
            until_right(&mut link, &name, partitions, rounds - 1).await?;
            first.get_or_insert_with(|| begun.elapsed());
        }
        let all = begun.elapsed().as_secs_f64() * 1e3 + late;
        let first = first.unwrap_or_default().as_secs_f64() * 1e3 + late;
        let commits = groups as f64 * f64::from(partitions) * rounds as f64;
        let (bytes, per_second) = read_and_sum(&self.data)?;
        let of = self.size.name();
        let mut figures = Figures::default();
        figures.add(format!("{of}: process start to the first correct OffsetFetch, ms"), first);
        figures.add(format!("{of}: process start to all correct, ms"), all);
        figures.add(format!("{of}: commits recalled per second of it"), commits / (all / 1e3));
        figures.add(format!("{of}: log kept, MB"), bytes / 1e6);
        figures.add(format!("{of}: log recalled, MB/s"), bytes / 1e3 / all);
        figures
            .add(format!("{of}: the same read and summed by one thread, MB/s"), per_second / 1e6);
        Ok(figures)
    }
}

impl Size {
    fn name(self) -> String {
        format!("{} groups, {} partitions, {} rounds", self.groups, self.partitions, self.rounds)
    }
}

/// Whoever answers with other offsets than the last has lost what it acknowledged.
async fn until_right(link: &mut Link, group: &str, partitions: i32, last: i64) -> Outcome<()> {
    let begun = Instant::now();
    loop {
        match committed(link, group, partitions).await? {
            Ok(offsets) if offsets.iter().all(|offset| *offset == last) => return Ok(()),
            Ok(offsets) => return Err(format!("{group} holds {offsets:?}, not {last}")),
            Err(code) if !is_not_ready(code) => check(code, "OffsetFetch")?,
            Err(_) if begun.elapsed() > PATIENCE => {
                return Err(format!("{group} not there after {PATIENCE:?}"));
            }
            Err(_) => tokio::time::sleep(Duration::from_millis(1)).await,
        }
    }
}

/// Bytes of the logs of `__consumer_offsets`, and how many a second one thread reads and sums.
fn read_and_sum(data: &Path) -> Outcome<(f64, f64)> {
    let mut buffer = vec![0; 1 << 20];
    let (mut bytes, mut sum, begun) = (0, 0, Instant::now());
    for path in offset_logs(data)? {
        let mut file = File::open(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        loop {
            let count = file.read(&mut buffer).map_err(|e| format!("{}: {e}", path.display()))?;
            if count == 0 {
                break;
            }
            bytes += count;
            sum = crc32c::crc32c_append(sum, &buffer[..count]);
        }
    }
    std::hint::black_box(sum);
    Ok((bytes as f64, bytes as f64 / begun.elapsed().as_secs_f64()))
}

fn offset_logs(data: &Path) -> Outcome<Vec<PathBuf>> {
    let list = |folder: &Path| -> Outcome<Vec<PathBuf>> {
        let entries =
            std::fs::read_dir(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        Ok(entries.filter_map(|entry| Some(entry.ok()?.path())).collect())
    };
    let is_offsets = |path: &PathBuf| {
        path.file_name()
            .is_some_and(|name| name.to_string_lossy().starts_with("__consumer_offsets"))
    };
    let mut logs = Vec::new();
    for folder in list(data)?.into_iter().filter(is_offsets) {
        logs.extend(
            list(&folder)?.into_iter().filter(|p| p.extension().is_some_and(|e| e == "log")),
        );
    }
    Ok(logs)
}

fn wall_ms() -> Outcome<f64> {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).map_err(|error| error.to_string())?;
    Ok(since.as_secs_f64() * 1e3)
}

/// Requests in flight on each connection.
const DEPTH: i32 = 16;
/// How long a restarted broker may take.
const PATIENCE: Duration = Duration::from_secs(300);
