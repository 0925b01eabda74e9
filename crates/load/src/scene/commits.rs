//! Offset commits in a closed loop: 64 connections, groups without members. Each connection commits
//! rising offsets; at the end every group must hold the last that was acknowledged.

use crate::figures::Figures;
use crate::link::{Link, Software, check, encoded};
use crate::setup::{coordinators, dealt, names, topic};
use crate::storm::{Pace, Source, Storm};
use crate::{Outcome, Span, Target};
use clap::Args;
use ottla_wire::generated::offset_commit_request::{
    OffsetCommitRequestPartition, OffsetCommitRequestTopic,
};
use ottla_wire::generated::offset_fetch_request::{
    OffsetFetchRequestGroup, OffsetFetchRequestTopics,
};
use ottla_wire::generated::{
    OffsetCommitRequest, OffsetCommitResponse, OffsetFetchRequest, OffsetFetchResponse,
};
use ottla_wire::{ApiKey, Message};
use std::collections::HashMap;

/// Its arguments.
#[derive(Args, Clone, Debug)]
pub(crate) struct Commits {
    #[command(flatten)]
    target: Target,
    #[command(flatten)]
    span: Span,
    /// Connections
    #[arg(long, default_value_t = 64)]
    connections: usize,
    /// Requests in flight on each connection
    #[arg(long, default_values_t = [1, 5, 16])]
    depth: Vec<usize>,
    /// Groups, dealt out to the connections; with fewer groups than connections they share
    #[arg(long, default_value_t = 1000)]
    groups: usize,
    /// Partitions in each request
    #[arg(long, default_value_t = 1)]
    partitions: i32,
    /// Requests a second that are due by the clock, after the depths
    #[arg(long)]
    rate: Vec<f64>,
}

impl Commits {
    /// A storm per depth, each checked.
    pub(crate) async fn run(self) -> Outcome<Figures> {
        let mut link = Link::open(&self.target.bootstrap, Software::Unknown).await?;
        topic(&mut link, &topic_of(self.partitions), self.partitions).await?;
        let groups = names("commits", self.groups);
        coordinators(&mut link, &groups).await?;
        let mut connections = Vec::new();
        for mut hand in dealt(self.groups, self.connections) {
            if hand.is_empty() {
                hand.push(connections.len() % self.groups);
            }
            let link = Link::open(&self.target.bootstrap, Software::Unknown).await?;
            connections.push((link, Committer::new(&groups, hand, self.partitions)?));
        }
        let mut figures = Figures::default();
        if let Some(storm) = self.span.warming(&self.depth) {
            connections = storm.run(connections, self.target.process()).await?.1;
        }
        let depths = self.depth.iter().map(|depth| (Pace::InFlight(*depth), *depth as f64));
        let rates = self.rate.iter().map(|rate| (Pace::PerSecond(*rate), *rate));
        for (pace, size) in depths.chain(rates) {
            let storm = Storm { pace, ..self.span.storm(1) };
            let (tally, back) = storm.run(connections, self.target.process()).await?;
            connections = back;
            verify(&mut link, &groups, self.partitions, &connections).await?;
            let name = match pace {
                Pace::InFlight(_) => format!("depth {size}"),
                Pace::PerSecond(_) => format!("{size} due a second"),
            };
            let (groups, partitions) = (self.groups, self.partitions);
            let name =
                format!("commits, {groups} groups, {partitions} partitions a request, {name}");
            figures.add(format!("{name}: requests/s"), tally.answers / tally.seconds);
            figures.add(format!("{name}: requests/broker CPU-s"), tally.per_cpu_second());
            figures.add_latencies(&name, &tally.latencies);
        }
        Ok(figures)
    }
}

/// One connection's groups in turn.
struct Committer {
    /// A request per group.
    requests: Vec<Stamped>,
    /// The group of each request, by its number.
    groups: Vec<usize>,
    next: usize,
    offset: i64,
    /// Acknowledged last, per request.
    acked: Vec<i64>,
    /// What is in flight: which request with which offset.
    open: std::collections::VecDeque<(usize, i64)>,
}

impl Committer {
    fn new(names: &[String], groups: Vec<usize>, partitions: i32) -> Outcome<Self> {
        let named = groups.iter().filter_map(|group| names.get(*group));
        let requests: Outcome<Vec<_>> = named.map(|name| Stamped::new(name, partitions)).collect();
        let acked = vec![-1; groups.len()];
        let open = std::collections::VecDeque::new();
        Ok(Self { requests: requests?, groups, next: 0, offset: 0, acked, open })
    }
}

impl Source for Committer {
    fn write(&mut self, id: i32, out: &mut Vec<u8>) {
        self.offset += 1;
        self.requests[self.next].write(id, self.offset, out);
        self.open.push_back((self.next, self.offset));
        self.next = (self.next + 1) % self.requests.len();
    }

    fn check(&mut self, _id: i32, body: &[u8]) -> Outcome<()> {
        let response = OffsetCommitResponse::decode_all(body, Stamped::VERSION);
        let response = response.map_err(|error| error.to_string())?;
        for partition in response.topics.iter().flat_map(|topic| &topic.partitions) {
            check(partition.error_code, "OffsetCommit")?;
        }
        let (request, offset) = self.open.pop_front().ok_or("an answer to nothing")?;
        self.acked[request] = offset;
        Ok(())
    }

    fn answers(&self) -> (ApiKey, i16) {
        (ApiKey::OffsetCommit, Stamped::VERSION)
    }
}

/// A commit of one group as a whole frame, and where in it the offsets stand.
pub(super) struct Stamped {
    frame: Vec<u8>,
    places: Vec<usize>,
}

impl Stamped {
    /// The newest that names topics instead of giving their ids.
    pub(super) const VERSION: i16 = 9;

    pub(super) fn new(group: &str, partitions: i32) -> Outcome<Self> {
        let partition = |partition_index| OffsetCommitRequestPartition {
            partition_index,
            committed_offset: PLACEHOLDER,
            ..Default::default()
        };
        let name = topic_of(partitions);
        let topic = OffsetCommitRequestTopic {
            name: &name,
            partitions: (0..partitions).map(partition).collect(),
            ..Default::default()
        };
        let request =
            OffsetCommitRequest { group_id: group, topics: vec![topic], ..Default::default() };
        let frame = encoded(Self::VERSION, 0, &request)?;
        let windows = frame.windows(8).enumerate();
        let places = windows.filter(|(_, window)| *window == PLACEHOLDER.to_be_bytes());
        let places: Vec<usize> = places.map(|(place, _)| place).collect();
        if i32::try_from(places.len()) != Ok(partitions) {
            return Err("offsets cannot be told apart in a request".into());
        }
        Ok(Self { frame, places })
    }

    /// Appends it with this offset for every partition.
    pub(super) fn write(&self, id: i32, offset: i64, out: &mut Vec<u8>) {
        let begin = out.len();
        out.extend_from_slice(&self.frame);
        let frame = &mut out[begin..];
        frame[ID_AT..ID_AT + 4].copy_from_slice(&id.to_be_bytes());
        for place in &self.places {
            frame[*place..place + 8].copy_from_slice(&offset.to_be_bytes());
        }
    }
}

/// Each offset must be the last that some connection had acknowledged.
async fn verify(
    link: &mut Link,
    names: &[String],
    partitions: i32,
    connections: &[(Link, Committer)],
) -> Outcome<()> {
    let mut last: HashMap<usize, Vec<i64>> = HashMap::new();
    for (_, committer) in connections {
        for (group, acked) in committer.groups.iter().zip(&committer.acked) {
            last.entry(*group).or_default().push(*acked);
        }
    }
    for (group, acked) in last {
        let name = names.get(group).map_or("", String::as_str);
        let Ok(offsets) = committed(link, name, partitions).await? else {
            return Err(format!("{name} has no coordinator"));
        };
        if offsets.iter().any(|offset| !acked.contains(offset)) {
            return Err(format!("{name} holds {offsets:?}, acknowledged last were {acked:?}"));
        }
    }
    Ok(())
}

/// The offsets a group holds of the topic's partitions, -1 where there is none; or the error code.
pub(super) async fn committed(
    link: &mut Link,
    group: &str,
    partitions: i32,
) -> Outcome<Result<Vec<i64>, i16>> {
    let name = topic_of(partitions);
    let topic = OffsetFetchRequestTopics {
        name: &name,
        partition_indexes: (0..partitions).collect(),
        ..Default::default()
    };
    let group = OffsetFetchRequestGroup {
        group_id: group,
        topics: Some(vec![topic]),
        ..Default::default()
    };
    let request = OffsetFetchRequest { groups: vec![group], ..Default::default() };
    let answer = link.call(9, &request).await?;
    let response: OffsetFetchResponse<'_> = answer.read()?;
    let mut offsets = Vec::new();
    for group in &response.groups {
        if group.error_code != 0 {
            return Ok(Err(group.error_code));
        }
        let partitions = group.topics.iter().flat_map(|topic| &topic.partitions);
        offsets.extend(partitions.map(|partition| partition.committed_offset));
    }
    Ok(Ok(offsets))
}

/// A topic for each number of partitions.
pub(super) fn topic_of(partitions: i32) -> String {
    format!("commits-{partitions}")
}

/// Where a frame has its correlation id: behind its length, key and version.
const ID_AT: usize = 8;
/// Bytes that occur nowhere else in a request.
const PLACEHOLDER: i64 = 0x0bad_cafe_f00d_beef;
