//! How long a record takes from whoever writes it to whoever reads it. One record of 100 B in each
//! request, acks=all, one partition per writing connection, one connection that reads them all.
//! With `--rate` the records are due at fixed times and timed from these (open loop); without it
//! writers keep so many in flight, which says what the broker can do at most.

use super::echo::EchoServer;
use crate::figures::{Figures, count, latencies};
use crate::link::{Asked, Link, Software, check, encoded};
use crate::setup::topic;
use crate::ticker::Ticker;
use crate::{Outcome, Target};
use clap::Args;
use hdrhistogram::Histogram;
use ottla_model::{Offset, Timestamp};
use ottla_records::{Batches, Builder, Compression, NewRecord};
use ottla_wire::generated::fetch_request::{FetchPartition, FetchTopic};
use ottla_wire::generated::produce_request::{PartitionProduceData, TopicProduceData};
use ottla_wire::generated::{FetchRequest, FetchResponse, ProduceRequest, ProduceResponse};
use ottla_wire::{ApiKey, ErrorCode, Message, Records};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::{Duration, Instant};
use tokio::io::AsyncWriteExt;
use tokio::task::JoinSet;

/// Its arguments.
#[derive(Args, Clone, Debug)]
pub(crate) struct Latency {
    #[command(flatten)]
    target: Target,
    /// Connections that write, and partitions
    #[arg(long, default_value_t = 16)]
    partitions: i32,
    /// Records a second, all of them together; closed loops if there is none
    #[arg(long)]
    rate: Option<f64>,
    /// Records in flight on each connection without a rate
    #[arg(long, default_value_t = 4)]
    depth: usize,
    /// Seconds that are counted
    #[arg(long, default_value_t = 5)]
    seconds: u64,
    /// Seconds before them
    #[arg(long, default_value_t = 1)]
    warm: u64,
}

/// What writers, the reader and the clock share; all of it on one thread.
struct Shared {
    /// When each record of a partition that nobody has read yet was due.
    due: Vec<RefCell<VecDeque<Instant>>>,
    latencies: RefCell<Histogram<u64>>,
    is_counting: Cell<bool>,
    is_over: Cell<bool>,
}

impl Latency {
    /// One load, from nothing to nothing in flight.
    pub(crate) async fn run(self) -> Outcome<Figures> {
        let name = format!("latency-{}", self.partitions);
        let mut link = Link::open(&self.target.bootstrap, Software::Unknown).await?;
        topic(&mut link, &name, self.partitions).await?;
        let starts = ends(&mut link, &name, self.partitions).await?;
        let shared = Rc::new(Shared {
            due: (0..self.partitions).map(|_| RefCell::default()).collect(),
            latencies: RefCell::new(latencies()),
            is_counting: Cell::new(false),
            is_over: Cell::new(false),
        });
        let mut tasks = JoinSet::new();
        tasks.spawn_local(read(link, name.clone(), starts, Rc::clone(&shared)));
        for partition in 0..self.partitions {
            let link = Link::open(&self.target.bootstrap, Software::Unknown).await?;
            let writer = Writer { link, topic: name.clone(), partition, sent: 0, answered: 0 };
            match self.rate {
                Some(rate) => {
                    let rate = rate / f64::from(self.partitions);
                    tasks.spawn_local(writer.by_the_clock(rate, Rc::clone(&shared)))
                }
                None => tasks.spawn_local(writer.in_flight(self.depth, Rc::clone(&shared))),
            };
        }
        let mut figures = tokio::select! {
            figures = self.count(&shared) => figures?,
            // A connection ends before its time only by failing.
            ended = tasks.join_next() => return Err(format!("a connection ended: {ended:?}")),
        };
        while let Some(ended) = tasks.join_next().await {
            ended.map_err(|error| error.to_string())??;
        }
        if self.rate.is_none() && self.partitions == 1 {
            figures.add_latencies("echo of 64 B, one in flight", &echo().await?);
        }
        Ok(figures)
    }

    async fn count(&self, shared: &Shared) -> Outcome<Figures> {
        tokio::time::sleep(Duration::from_secs(self.warm)).await;
        shared.is_counting.set(true);
        let (cpu, begun) = (self.target.process().cpu_seconds()?, Instant::now());
        tokio::time::sleep(Duration::from_secs(self.seconds)).await;
        let seconds = begun.elapsed().as_secs_f64();
        let cpu = self.target.process().cpu_seconds()? - cpu;
        let latencies = shared.latencies.replace(latencies());
        shared.is_over.set(true);
        let name = match (self.rate, self.partitions, self.depth) {
            (Some(_), ..) => "write to read at a fixed rate".to_owned(),
            (None, 1, 1) => "write to read, one in flight".to_owned(),
            (None, writers, depth) => format!("write to read, {writers} times {depth} in flight"),
        };
        let mut figures = Figures::default();
        figures.add(format!("{name}: records/s"), latencies.len() as f64 / seconds);
        figures
            .add(format!("{name}: records/broker CPU-s"), latencies.len() as f64 / cpu.max(0.01));
        figures.add_latencies(&name, &latencies);
        Ok(figures)
    }
}

/// One connection that writes to one partition.
struct Writer {
    link: Link,
    topic: String,
    partition: i32,
    sent: i32,
    answered: i32,
}

impl Writer {
    async fn by_the_clock(mut self, per_second: f64, shared: Rc<Shared>) -> Outcome<()> {
        let mut ticker = Ticker::new(per_second)?;
        while !shared.is_over.get() {
            tokio::select! {
                due = ticker.due() => self.send(due?, &shared).await?,
                more = self.link.read_more() => {
                    more?;
                    self.answers()?;
                }
            }
        }
        self.finish().await
    }

    async fn in_flight(mut self, depth: usize, shared: Rc<Shared>) -> Outcome<()> {
        let unread = Rc::clone(&shared);
        let unread = &unread.due[usize::try_from(self.partition).unwrap_or(0)];
        while !shared.is_over.get() {
            // One is in flight until it was acknowledged and read.
            let acked = usize::try_from(self.sent - self.answered).unwrap_or(depth);
            let room = depth.saturating_sub(acked.max(unread.borrow().len()));
            let now = Instant::now();
            self.send(std::iter::repeat_n(now, room), &shared).await?;
            if self.answered < self.sent {
                self.link.read_more().await?;
                self.answers()?;
            } else {
                // The reader has the word.
                tokio::task::yield_now().await;
            }
        }
        self.finish().await
    }

    async fn send(&mut self, due: impl Iterator<Item = Instant>, shared: &Shared) -> Outcome<()> {
        let mut out = Vec::new();
        for due in due {
            out.extend(request(&self.topic, self.partition, self.sent)?);
            shared.due[usize::try_from(self.partition).unwrap_or(0)].borrow_mut().push_back(due);
            self.sent += 1;
        }
        self.link.stream.write_all(&out).await.map_err(|error| format!("cannot send: {error}"))
    }

    fn answers(&mut self) -> Outcome<()> {
        while let Some(frame) = self.link.arrived_frame()? {
            let asked = Asked::new(self.answered, ApiKey::Produce, PRODUCE_VERSION);
            let response = ProduceResponse::decode_all(asked.body_of(&frame)?, PRODUCE_VERSION);
            let response = response.map_err(|error| error.to_string())?;
            for partition in response.responses.iter().flat_map(|one| &one.partition_responses) {
                check(partition.error_code, "Produce")?;
            }
            self.answered += 1;
        }
        Ok(())
    }

    async fn finish(mut self) -> Outcome<()> {
        while self.answered < self.sent {
            self.link.read_more().await?;
            self.answers()?;
        }
        Ok(())
    }
}

/// One record whose value begins with its number.
fn request(topic: &str, partition: i32, number: i32) -> Outcome<Vec<u8>> {
    let mut value = [b'v'; 100];
    value[..4].copy_from_slice(&number.to_be_bytes());
    let mut builder = Builder::new(Compression::None);
    // Retention must not take it.
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let now = now.map_or(0, |since| i64::try_from(since.as_millis()).unwrap_or(0));
    let record = NewRecord::new(Timestamp(now), None, Some(&value));
    builder.append(&record).map_err(|error| error.to_string())?;
    let batch = builder.build().map_err(|error| error.to_string())?;
    let data = PartitionProduceData { index: partition, records: Some(Records::Borrowed(&batch)) };
    let topic = TopicProduceData { name: topic, partition_data: vec![data], ..Default::default() };
    let request = ProduceRequest {
        acks: -1,
        timeout_ms: 30_000,
        topic_data: vec![topic],
        ..Default::default()
    };
    encoded(PRODUCE_VERSION, number, &request)
}

/// Reads every partition on until all is over; each record must be the next of its partition.
async fn read(
    mut link: Link,
    topic: String,
    mut next: Vec<i64>,
    shared: Rc<Shared>,
) -> Outcome<()> {
    let mut numbers = vec![0; next.len()];
    while !shared.is_over.get() {
        let answer = link.call(FETCH_VERSION, &fetch(&topic, &next)).await?;
        let now = Instant::now();
        let response: FetchResponse<'_> = answer.read()?;
        check(response.error_code, "Fetch")?;
        for partition in response.responses.iter().flat_map(|topic| &topic.partitions) {
            check(partition.error_code, "Fetch")?;
            let at = usize::try_from(partition.partition_index).unwrap_or(usize::MAX);
            if let Some(Records::Borrowed(bytes)) = &partition.records {
                for _ in 0..records(bytes, &mut next[at], &mut numbers[at])? {
                    shared.arrived(at, now)?;
                }
            }
        }
    }
    Ok(())
}

/// How many records there are, each with the next offset and the next number.
fn records(bytes: &[u8], next: &mut i64, number: &mut i32) -> Outcome<usize> {
    let mut count = 0;
    for batch in Batches::new(bytes) {
        let batch = batch.map_err(|error| error.to_string())?;
        batch.verify_crc().map_err(|error| error.to_string())?;
        let Offset(offset) = batch.header().base_offset();
        if offset != *next {
            return Err(format!("offset {offset} came where {next} was due"));
        }
        let records = batch.records(BATCH_BYTES_MAX).map_err(|error| error.to_string())?;
        for record in &records {
            let record = record.map_err(|error| error.to_string())?;
            if !record.value.is_some_and(|value| value.starts_with(&number.to_be_bytes())) {
                return Err(format!("the record at {next} is not number {number}"));
            }
            (*number, *next, count) = (*number + 1, *next + 1, count + 1);
        }
    }
    Ok(count)
}

impl Shared {
    fn arrived(&self, partition: usize, now: Instant) -> Outcome<()> {
        let due = self.due[partition].borrow_mut().pop_front().ok_or("a record nobody wrote")?;
        if self.is_counting.get() {
            count(&mut self.latencies.borrow_mut(), now.saturating_duration_since(due));
        }
        Ok(())
    }
}

fn fetch<'a>(topic: &'a str, next: &[i64]) -> FetchRequest<'a> {
    let partitions = (0..).zip(next).map(|(partition, offset)| FetchPartition {
        partition,
        fetch_offset: *offset,
        partition_max_bytes: 1 << 20,
        current_leader_epoch: -1,
        ..Default::default()
    });
    let topic = FetchTopic { topic, partitions: partitions.collect(), ..Default::default() };
    FetchRequest {
        max_wait_ms: 500,
        min_bytes: 1,
        max_bytes: 50 << 20,
        session_epoch: -1,
        topics: vec![topic],
        ..Default::default()
    }
}

/// Where each partition ends now. A new leader may need a moment to know that it is one.
async fn ends(link: &mut Link, topic: &str, partitions: i32) -> Outcome<Vec<i64>> {
    let mut ends = vec![0; usize::try_from(partitions).unwrap_or(0)];
    let begun = Instant::now();
    loop {
        let nowhere = vec![0; ends.len()];
        let request = FetchRequest { max_wait_ms: 0, max_bytes: 1, ..fetch(topic, &nowhere) };
        let answer = link.call(FETCH_VERSION, &request).await?;
        let response: FetchResponse<'_> = answer.read()?;
        let mut not_yet = false;
        for partition in response.responses.iter().flat_map(|topic| &topic.partitions) {
            not_yet |= partition.error_code == ErrorCode::NotLeaderOrFollower.number();
            let at = usize::try_from(partition.partition_index).unwrap_or(usize::MAX);
            *ends.get_mut(at).ok_or("an unknown partition")? = partition.high_watermark;
            if !not_yet || begun.elapsed() > PATIENCE {
                check(partition.error_code, "Fetch")?;
            }
        }
        if !not_yet {
            return Ok(ends);
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Round trips of a connection to a server that does nothing.
async fn echo() -> Outcome<Histogram<u64>> {
    let server = EchoServer::start()?;
    let mut link = Link::silent(&server.address).await?;
    let mut latencies = latencies();
    let mut frame = vec![0; 64];
    frame[3] = 60;
    for _ in 0..20_000 {
        let sent = Instant::now();
        link.stream.write_all(&frame).await.map_err(|error| format!("cannot send: {error}"))?;
        while link.arrived_frame()?.is_none() {
            link.read_more().await?;
        }
        count(&mut latencies, sent.elapsed());
    }
    Ok(latencies)
}

/// The newest that names topics instead of giving their ids.
const PRODUCE_VERSION: i16 = 12;
const FETCH_VERSION: i16 = 12;
const BATCH_BYTES_MAX: usize = 1 << 20;
/// How long a broker may take to lead what it said it leads.
const PATIENCE: Duration = Duration::from_secs(30);
