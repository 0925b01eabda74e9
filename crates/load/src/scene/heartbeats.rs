//! Heartbeats of stable members in a closed loop: 64 connections, each with its share of the
//! members in turn. An answer that is an error (a member expired or fenced, say) fails the scene.

use crate::figures::Figures;
use crate::link::{Link, Software, check, encoded};
use crate::member::{HEARTBEAT_VERSION, Member, settle};
use crate::setup::{coordinators, dealt, names, topic};
use crate::storm::{Source, Storm};
use crate::{Outcome, Span, Target, classic};
use clap::{Args, ValueEnum};
use ottla_wire::generated::{ConsumerGroupHeartbeatResponse, HeartbeatRequest, HeartbeatResponse};
use ottla_wire::{ApiKey, Message};
use std::rc::Rc;

/// Its arguments.
#[derive(Args, Clone, Debug)]
pub(crate) struct Heartbeats {
    #[command(flatten)]
    target: Target,
    #[command(flatten)]
    span: Span,
    /// Of which protocol
    #[arg(long, value_enum, default_value_t = Protocol::Consumer)]
    protocol: Protocol,
    /// Connections
    #[arg(long, default_value_t = 64)]
    connections: usize,
    /// Requests in flight on each connection
    #[arg(long, default_values_t = [1, 5, 16])]
    depth: Vec<usize>,
    /// Groups
    #[arg(long, default_value_t = 100)]
    groups: usize,
    /// Members of each group; a classic group has one
    #[arg(long, default_value_t = 100)]
    members: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Protocol {
    Consumer,
    Classic,
}

impl Heartbeats {
    /// A storm per depth.
    pub(crate) async fn run(self) -> Outcome<Figures> {
        let mut connections = match self.protocol {
            Protocol::Consumer => {
                consumers(&self.target, self.groups, self.members, self.connections).await?
            }
            Protocol::Classic => self.classics().await?,
        };
        let mut figures = Figures::default();
        if let Some(storm) = self.span.warming(&self.depth) {
            connections = storm.run(connections, self.target.process()).await?.1;
        }
        for depth in &self.depth {
            let storm: Storm = self.span.storm(*depth);
            let (tally, back) = storm.run(connections, self.target.process()).await?;
            connections = back;
            let protocol = format!("{:?}", self.protocol).to_lowercase();
            let name = format!("{protocol} heartbeats, depth {depth}");
            figures.add(format!("{name}: requests/s"), tally.answers / tally.seconds);
            figures.add(format!("{name}: requests/broker CPU-s"), tally.per_cpu_second());
            figures.add_latencies(&name, &tally.latencies);
        }
        Ok(figures)
    }

    /// Groups of one member.
    async fn classics(&self) -> Outcome<Vec<(Link, Beats)>> {
        let groups = names("classic-beats", self.groups);
        let mut link = Link::open(&self.target.bootstrap, Software::Unknown).await?;
        topic(&mut link, TOPIC, 1).await?;
        coordinators(&mut link, &groups).await?;
        let mut tasks = tokio::task::JoinSet::new();
        for hand in dealt(self.groups, self.connections) {
            let hand: Vec<String> = hand.iter().map(|group| groups[*group].clone()).collect();
            let address = self.target.bootstrap.clone();
            tasks.spawn_local(async move {
                let mut link = Link::open(&address, Software::Unknown).await?;
                let mut beats = Vec::new();
                for group in &hand {
                    let alone = classic::alone(&mut link, group, TOPIC).await?;
                    let beat = HeartbeatRequest {
                        group_id: group,
                        generation_id: alone.generation,
                        member_id: &alone.member,
                        ..Default::default()
                    };
                    beats.push(encoded(classic::HEARTBEAT_VERSION, 0, &beat)?);
                }
                Ok((link, Beats { beats, next: 0, protocol: Protocol::Classic }))
            });
        }
        joined(tasks).await
    }
}

/// Groups of the consumer protocol whose members own one partition each, dealt out to connections.
pub(crate) async fn consumers(
    target: &Target,
    groups: usize,
    members: usize,
    connections: usize,
) -> Outcome<Vec<(Link, Beats)>> {
    let names = names("beats", groups);
    let topics: Rc<[String]> = Rc::from([TOPIC.to_owned()]);
    let share = i32::try_from(members).map_err(|error| error.to_string())?;
    let mut link = Link::open(&target.bootstrap, Software::Unknown).await?;
    topic(&mut link, TOPIC, share).await?;
    coordinators(&mut link, &names).await?;
    let mut tasks = tokio::task::JoinSet::new();
    for hand in dealt(groups * members, connections) {
        let member = |number: &usize| {
            let group: Rc<str> = Rc::from(&*names[number / members]);
            Member::new(&group, format!("member-{number}"), &topics)
        };
        let mut members: Vec<Member> = hand.iter().map(member).collect();
        let address = target.bootstrap.clone();
        tasks.spawn_local(async move {
            let mut link = Link::open(&address, Software::Unknown).await?;
            settle(&mut link, &mut members, 1).await?;
            Ok((link, members))
        });
    }
    let mut connections = Vec::new();
    // Now that all own what they should, each hears of the last epoch.
    for (mut link, mut members) in joined(tasks).await? {
        settle(&mut link, &mut members, 1).await?;
        let beats = members.iter().map(|one| encoded(HEARTBEAT_VERSION, 0, &one.request()));
        let beats = beats.collect::<Outcome<Vec<_>>>()?;
        connections.push((link, Beats { beats, next: 0, protocol: Protocol::Consumer }));
    }
    Ok(connections)
}

async fn joined<T: 'static>(mut tasks: tokio::task::JoinSet<Outcome<T>>) -> Outcome<Vec<T>> {
    let mut all = Vec::new();
    while let Some(one) = tasks.join_next().await {
        all.push(one.map_err(|error| error.to_string())??);
    }
    Ok(all)
}

/// One connection's members in turn.
pub(crate) struct Beats {
    beats: Vec<Vec<u8>>,
    next: usize,
    protocol: Protocol,
}

impl Source for Beats {
    fn write(&mut self, id: i32, out: &mut Vec<u8>) {
        let begin = out.len();
        out.extend_from_slice(&self.beats[self.next]);
        out[begin + ID_AT..begin + ID_AT + 4].copy_from_slice(&id.to_be_bytes());
        self.next = (self.next + 1) % self.beats.len();
    }

    fn check(&mut self, _id: i32, body: &[u8]) -> Outcome<()> {
        let code = match self.protocol {
            Protocol::Consumer => {
                ConsumerGroupHeartbeatResponse::decode_all(body, HEARTBEAT_VERSION)
                    .map(|response| response.error_code)
            }
            Protocol::Classic => HeartbeatResponse::decode_all(body, classic::HEARTBEAT_VERSION)
                .map(|response| response.error_code),
        };
        check(code.map_err(|error| error.to_string())?, "a stable member's heartbeat")
    }

    fn answers(&self) -> (ApiKey, i16) {
        match self.protocol {
            Protocol::Consumer => (ApiKey::ConsumerGroupHeartbeat, HEARTBEAT_VERSION),
            Protocol::Classic => (ApiKey::Heartbeat, classic::HEARTBEAT_VERSION),
        }
    }
}

const TOPIC: &str = "beats";
/// Where a frame has its correlation id: behind its length, key and version.
const ID_AT: usize = 8;
