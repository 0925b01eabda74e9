//! Key 35, DescribeLogDirs, versions 1-5: what takes how much room on disk (KIP-113).
//!
//! - v2 is flexible, v3 adds an error of the whole, v4 the disk's size and room (KIP-827), v5 marks
//!   directories that take no new partitions (KIP-1066), of which there are none.
//!
//! There is one data directory. No replica lags behind its leader, and none is on its way to
//! another directory.

use super::{Answer, Context};
use crate::broker::Broker;
use ottla_wire::generated::describe_log_dirs_response::{
    DescribeLogDirsPartition, DescribeLogDirsResult, DescribeLogDirsTopic,
};
use ottla_wire::generated::{DescribeLogDirsRequest, DescribeLogDirsResponse};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Answers for every partition, or for those asked for.
pub(super) fn handle(cx: &mut Context<'_>, request: DescribeLogDirsRequest<'_>) -> Answer {
    let wanted = request.topics.map(|topics| {
        let all =
            topics.iter().flat_map(|topic| topic.partitions.iter().map(|p| (topic.topic, *p)));
        all.collect::<BTreeSet<_>>()
    });
    let sizes = sizes(cx.broker, wanted.as_ref());
    let dir = absolute(&cx.broker.config.log_dirs);
    let topics = sizes
        .iter()
        .map(|(name, partitions)| DescribeLogDirsTopic { name, partitions: partitions.clone() });
    let (total_bytes, usable_bytes) = room(&dir);
    let results = vec![DescribeLogDirsResult {
        log_dir: &dir,
        topics: topics.collect(),
        total_bytes,
        usable_bytes,
        ..Default::default()
    }];
    cx.reply(&DescribeLogDirsResponse { results, ..Default::default() })
}

fn sizes(
    broker: &Broker,
    wanted: Option<&BTreeSet<(&str, i32)>>,
) -> BTreeMap<String, Vec<DescribeLogDirsPartition>> {
    let mut sizes = BTreeMap::<String, Vec<_>>::new();
    for topic in broker.partitions.hosted().topics() {
        for partition in topic.partitions() {
            let index = partition.at.partition.0;
            if wanted.is_none_or(|wanted| wanted.contains(&(&*topic.name, index))) {
                let line = DescribeLogDirsPartition {
                    partition_index: index,
                    partition_size: i64::try_from(partition.size()).unwrap_or(i64::MAX),
                    offset_lag: 0,
                    is_future_key: false,
                };
                sizes.entry(topic.name.to_string()).or_default().push(line);
            }
        }
    }
    sizes
}

fn absolute(dir: &Path) -> String {
    let full = std::path::absolute(dir).unwrap_or_else(|_| dir.to_owned());
    full.to_string_lossy().into_owned()
}

/// The disk's size and what of it is free, in bytes; -1 where the system does not say.
fn room(dir: &str) -> (i64, i64) {
    match rustix::fs::statvfs(Path::new(dir)) {
        Ok(disk) => {
            let bytes = |blocks: u64| {
                i64::try_from(blocks.saturating_mul(disk.f_frsize)).unwrap_or(i64::MAX)
            };
            (bytes(disk.f_blocks), bytes(disk.f_bavail))
        }
        Err(_) => (-1, -1),
    }
}
