//! Committers that only move forward, and readers that ask without end what is committed.

use crate::link::Link;
use crate::world::{Ledger, Progress, Random, TOPIC, World};
use ottla_wire::generated::offset_commit_request::{
    OffsetCommitRequestPartition, OffsetCommitRequestTopic,
};
use ottla_wire::generated::offset_fetch_request::OffsetFetchRequestTopic;
use ottla_wire::generated::{
    OffsetCommitRequest, OffsetCommitResponse, OffsetFetchRequest, OffsetFetchResponse,
};
use std::io;
use std::sync::atomic::Ordering;
use std::time::Duration;

const COMMIT_VERSION: i16 = 8;
const FETCH_VERSION: i16 = 7;
/// The partitions each commit names, all with the same offset: a commit is all or nothing.
const PARTITIONS: [i32; 3] = [0, 1, 2];

/// Commits rising offsets without a membership until the world stops.
pub(crate) fn commit(world: &World, ledger: &Ledger, group: usize, seed: u64) {
    let mut random = Random::new(seed.wrapping_add(100 + group as u64));
    while let Some(mut link) = world.connect() {
        while !world.is_stopping() {
            let offset = ledger.sent[group].load(Ordering::SeqCst) + random.within(1..5) as i64;
            ledger.sent[group].store(offset, Ordering::SeqCst);
            match commit_once(&mut link, group, offset) {
                Ok(()) => {
                    ledger.acked[group].store(offset, Ordering::SeqCst);
                    world.count(Progress::Commit);
                }
                Err(error) => {
                    refused(world, group, &error);
                    break;
                }
            }
        }
    }
}

/// Asks for the group's offsets until the world stops: never absent, never older than acked.
pub(crate) fn read(world: &World, ledger: &Ledger, group: usize) {
    while let Some(mut link) = world.connect() {
        while !world.is_stopping() {
            let acked = ledger.acked[group].load(Ordering::SeqCst);
            match read_once(&mut link, group) {
                Ok(offsets) => {
                    let sent = ledger.sent[group].load(Ordering::SeqCst);
                    check(world, group, &offsets, acked, sent);
                    world.count(Progress::Read);
                }
                Err(error) => {
                    refused(world, group, &error);
                    break;
                }
            }
        }
    }
}

fn check(world: &World, group: usize, offsets: &[i64], acked: i64, sent: i64) {
    let torn = offsets.windows(2).any(|pair| pair[0] != pair[1]);
    let older = offsets.iter().any(|offset| *offset < acked && acked > 0);
    let invented = offsets.iter().any(|offset| *offset > sent);
    if torn || older || invented {
        let found = format!("{offsets:?} committed, {acked} acked before, {sent} sent");
        world.violation(format!("group {group}: {found}"));
    }
}

/// Only what a restarting broker may say is no violation.
fn refused(world: &World, group: usize, error: &io::Error) {
    match error.get_ref().and_then(|inner| inner.downcast_ref::<Code>()) {
        Some(Code(14..=16 | 3)) => std::thread::sleep(Duration::from_millis(1)),
        Some(Code(code)) => world.violation(format!("group {group}: error {code}")),
        None => {}
    }
}

fn commit_once(link: &mut Link, group: usize, offset: i64) -> io::Result<()> {
    let id = format!("group-{group}");
    let partitions = PARTITIONS.map(|partition_index| OffsetCommitRequestPartition {
        partition_index,
        committed_offset: offset,
        ..Default::default()
    });
    let request = OffsetCommitRequest {
        group_id: &id,
        topics: vec![OffsetCommitRequestTopic {
            name: TOPIC,
            partitions: partitions.to_vec(),
            ..Default::default()
        }],
        ..Default::default()
    };
    let answer = link.ask(COMMIT_VERSION, &request)?;
    let response: OffsetCommitResponse<'_> = answer.read();
    let outcomes = response.topics.iter().flat_map(|topic| &topic.partitions);
    outcomes.map(|outcome| outcome.error_code).try_for_each(code)
}

fn read_once(link: &mut Link, group: usize) -> io::Result<Vec<i64>> {
    let id = format!("group-{group}");
    let topics =
        vec![OffsetFetchRequestTopic { name: TOPIC, partition_indexes: PARTITIONS.into() }];
    let request = OffsetFetchRequest { group_id: &id, topics: Some(topics), ..Default::default() };
    let answer = link.ask(FETCH_VERSION, &request)?;
    let response: OffsetFetchResponse<'_> = answer.read();
    code(response.error_code)?;
    let outcomes: Vec<_> = response.topics.iter().flat_map(|topic| &topic.partitions).collect();
    outcomes.iter().map(|outcome| outcome.error_code).try_for_each(code)?;
    Ok(outcomes.iter().map(|outcome| outcome.committed_offset).collect())
}

/// A Kafka error code as an error.
#[derive(Debug)]
struct Code(i16);

impl std::fmt::Display for Code {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "error code {}", self.0)
    }
}

impl std::error::Error for Code {}

fn code(code: i16) -> io::Result<()> {
    if code == 0 { Ok(()) } else { Err(io::Error::other(Code(code))) }
}
