//! Requests on many connections, as fast as the broker answers them, each connection with the same
//! number in flight (closed loop), or at a fixed rate whatever it answers (open loop). Every answer
//! is checked. The counts of warming up are left out.

use crate::Outcome;
use crate::figures::{count, latencies};
use crate::link::{Asked, Link};
use crate::process::Process;
use crate::ticker::Ticker;
use hdrhistogram::Histogram;
use ottla_wire::ApiKey;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::{Duration, Instant};
use tokio::io::AsyncWriteExt;
use tokio::task::JoinSet;

/// What one connection asks, again and again.
pub(crate) trait Source {
    /// Appends the next request as a whole frame with this correlation id.
    fn write(&mut self, id: i32, out: &mut Vec<u8>);

    /// Looks at the body of the answer to the oldest request that is open.
    fn check(&mut self, id: i32, body: &[u8]) -> Outcome<()>;

    /// Which header the answers have.
    fn answers(&self) -> (ApiKey, i16);
}

/// How long and how hard.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Storm {
    /// What makes the next request due.
    pub(crate) pace: Pace,
    /// Left out of the counts.
    pub(crate) warmup: Duration,
    /// Counted.
    pub(crate) measured: Duration,
}

/// What makes the next request due.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Pace {
    /// So many are in flight on each connection.
    InFlight(usize),
    /// The clock, so many times a second, of all connections together; a request is timed from
    /// when it was due.
    PerSecond(f64),
}

/// What was counted.
pub(crate) struct Tally {
    /// Answers.
    pub(crate) answers: f64,
    /// Seconds in which they came.
    pub(crate) seconds: f64,
    /// CPU seconds the broker spent in these.
    pub(crate) cpu: f64,
    /// From each request's sending to its answer, in microseconds.
    pub(crate) latencies: Histogram<u64>,
}

impl Tally {
    /// Answers per CPU second of the broker.
    pub(crate) fn per_cpu_second(&self) -> f64 {
        self.answers / self.cpu.max(0.01)
    }
}

/// What the connections and the clock share; all of it on one thread.
struct Shared {
    answers: Cell<u64>,
    is_counting: Cell<bool>,
    is_over: Cell<bool>,
    latencies: RefCell<Histogram<u64>>,
}

impl Storm {
    /// Runs one connection per source, and hands the connections and sources back.
    pub(crate) async fn run<S: Source + 'static>(
        self,
        connections: Vec<(Link, S)>,
        broker: Process,
    ) -> Outcome<(Tally, Vec<(Link, S)>)> {
        let shared = Rc::new(Shared {
            answers: Cell::new(0),
            is_counting: Cell::new(false),
            is_over: Cell::new(false),
            latencies: RefCell::new(latencies()),
        });
        let mut tasks = JoinSet::new();
        let share = connections.len() as f64;
        for (link, source) in connections {
            let shared = Rc::clone(&shared);
            match self.pace {
                Pace::InFlight(depth) => tasks.spawn_local(drive(link, source, depth, shared)),
                Pace::PerSecond(rate) => {
                    tasks.spawn_local(by_the_clock(link, source, rate / share, shared))
                }
            };
        }
        let tally = tokio::select! {
            tally = self.count(&shared, broker) => tally?,
            // A connection ends before its time only by failing.
            ended = tasks.join_next() => return Err(failure(ended)),
        };
        let mut back = Vec::new();
        while let Some(ended) = tasks.join_next().await {
            back.push(ended.map_err(|error| error.to_string())??);
        }
        Ok((tally, back))
    }

    async fn count(self, shared: &Shared, broker: Process) -> Outcome<Tally> {
        tokio::time::sleep(self.warmup).await;
        shared.is_counting.set(true);
        let (answers, cpu, begun) = (shared.answers.get(), broker.cpu_seconds()?, Instant::now());
        tokio::time::sleep(self.measured).await;
        let tally = Tally {
            answers: (shared.answers.get() - answers) as f64,
            seconds: begun.elapsed().as_secs_f64(),
            cpu: broker.cpu_seconds()? - cpu,
            latencies: shared.latencies.replace(latencies()),
        };
        shared.is_over.set(true);
        Ok(tally)
    }
}

async fn drive<S: Source>(
    mut link: Link,
    mut source: S,
    depth: usize,
    shared: Rc<Shared>,
) -> Outcome<(Link, S)> {
    let mut open: VecDeque<(i32, Instant)> = VecDeque::with_capacity(depth);
    let mut out = Vec::with_capacity(1 << 14);
    let mut id = 0_i32;
    loop {
        let now = Instant::now();
        while open.len() < depth && !shared.is_over.get() {
            id = id.wrapping_add(1);
            source.write(id, &mut out);
            open.push_back((id, now));
        }
        if open.is_empty() {
            return Ok((link, source));
        }
        if !out.is_empty() {
            link.stream.write_all(&out).await.map_err(|error| format!("cannot send: {error}"))?;
            out.clear();
        }
        link.read_more().await?;
        take(&mut link, &mut source, &mut open, &shared)?;
    }
}

async fn by_the_clock<S: Source>(
    mut link: Link,
    mut source: S,
    per_second: f64,
    shared: Rc<Shared>,
) -> Outcome<(Link, S)> {
    let mut open = VecDeque::new();
    let mut out = Vec::with_capacity(1 << 14);
    let mut id = 0_i32;
    let mut ticker = Ticker::new(per_second)?;
    loop {
        if shared.is_over.get() && open.is_empty() {
            return Ok((link, source));
        }
        tokio::select! {
            due = ticker.due(), if !shared.is_over.get() => for due in due? {
                id = id.wrapping_add(1);
                source.write(id, &mut out);
                open.push_back((id, due));
            },
            more = link.read_more() => {
                more?;
                take(&mut link, &mut source, &mut open, &shared)?;
            }
        }
        if !out.is_empty() {
            link.stream.write_all(&out).await.map_err(|error| format!("cannot send: {error}"))?;
            out.clear();
        }
    }
}

/// Checks and counts the answers that have arrived.
fn take<S: Source>(
    link: &mut Link,
    source: &mut S,
    open: &mut VecDeque<(i32, Instant)>,
    shared: &Shared,
) -> Outcome<()> {
    let (now, (key, version)) = (Instant::now(), source.answers());
    while let Some(frame) = link.arrived_frame()? {
        let (id, sent) = open.pop_front().ok_or("an answer to nothing")?;
        source.check(id, Asked::new(id, key, version).body_of(&frame)?)?;
        shared.answers.set(shared.answers.get() + 1);
        if shared.is_counting.get() {
            count(&mut shared.latencies.borrow_mut(), now.saturating_duration_since(sent));
        }
    }
    Ok(())
}

fn failure<T>(ended: Option<Result<Outcome<T>, tokio::task::JoinError>>) -> String {
    match ended {
        Some(Ok(Err(problem))) => problem,
        Some(Err(error)) => error.to_string(),
        _ => "no connection is left".into(),
    }
}
