//! Where things live: a group's offsets partition, a partition's leader, a new topic's replicas.
//! Pure functions over an image; they never ask who is alive beyond what the image says.

use crate::image::Image;
use crate::names::OFFSETS_TOPIC;
use ottla_model::{GroupId, NodeId, PartitionId};

/// The offsets partition of a group, of `partitions`, exactly as Kafka computes it: Java's
/// `String.hashCode` over UTF-16 units, its absolute value (0 for the one number that has none),
/// modulo the count. A count below 1 counts as 1.
pub fn group_partition(group: &str, partitions: i32) -> PartitionId {
    let hash = group
        .encode_utf16()
        .fold(0_i32, |hash, unit| hash.wrapping_mul(31).wrapping_add(i32::from(unit)));
    PartitionId(hash.checked_abs().unwrap_or(0) % partitions.max(1))
}

/// Where a group's coordinator is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Coordinator {
    /// This broker owns the shard.
    At(PartitionId, NodeId),
    /// The shard has no owner now, or its owner is gone: ask again shortly.
    Vacant(PartitionId),
    /// The offsets topic does not exist yet: create it, then ask again.
    NoOffsetsTopic,
}

/// The broker that coordinates `group`: the live owner of its shard.
pub fn coordinator(image: &Image, group: &GroupId) -> Coordinator {
    let Some(topic) = image.topic(OFFSETS_TOPIC) else { return Coordinator::NoOffsetsTopic };
    let partition = group_partition(group, topic.partition_count());
    let owner = image.shard(partition).and_then(|shard| shard.owner);
    match owner.filter(|owner| image.broker(*owner).is_some()) {
        Some(owner) => Coordinator::At(partition, owner),
        None => Coordinator::Vacant(partition),
    }
}

/// A broker replicas can be placed on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Its id.
    pub node: NodeId,
    /// Its rack, if it says.
    pub rack: Option<String>,
}

/// Replicas for `partitions` partitions: leaders go round the brokers from the `start`-th on, and
/// a partition's followers stand in other racks where there are any.
///
/// # Errors
/// Kafka's text for INVALID_REPLICATION_FACTOR where there are too few brokers.
pub fn place(
    candidates: &[Candidate],
    partitions: usize,
    replication: usize,
    start: usize,
) -> Result<Vec<Vec<NodeId>>, String> {
    if candidates.is_empty() {
        return Err("All brokers are currently fenced.".into());
    }
    if replication > candidates.len() {
        return Err(format!(
            "The target replication factor of {replication} cannot be reached because only {} \
             broker(s) are registered.",
            candidates.len()
        ));
    }
    let ring = interleaved(candidates);
    let of = |partition: usize| {
        let leader = (start + partition) % ring.len();
        // Every turn of the ring shifts the followers, or one broker would always follow another.
        let shift = (start + partition) / ring.len();
        replicas(&ring, leader, shift, replication)
    };
    Ok((0..partitions).map(of).collect())
}

/// Brokers in an order in which neighbours stand in different racks.
fn interleaved(candidates: &[Candidate]) -> Vec<&Candidate> {
    let mut racks = std::collections::BTreeMap::<_, Vec<&Candidate>>::new();
    for candidate in candidates {
        racks.entry(&candidate.rack).or_default().push(candidate);
    }
    for brokers in racks.values_mut() {
        brokers.sort_by_key(|broker| broker.node);
    }
    let deepest = racks.values().map(Vec::len).max().unwrap_or(0);
    let row = |depth: usize| racks.values().filter_map(move |brokers| brokers.get(depth).copied());
    (0..deepest).flat_map(row).collect()
}

fn replicas(ring: &[&Candidate], leader: usize, shift: usize, replication: usize) -> Vec<NodeId> {
    let mut chosen = vec![ring[leader]];
    let others = ring.len().saturating_sub(1).max(1);
    let follower = |step: usize| ring[(leader + 1 + (shift + step) % others) % ring.len()];
    // First those in racks the partition is not in yet, then whoever is left.
    for fresh_rack_only in [true, false] {
        for candidate in (0..others).map(follower) {
            if chosen.len() == replication {
                break;
            }
            let rack_taken = chosen.iter().any(|broker| broker.rack == candidate.rack);
            let taken = chosen.iter().any(|broker| broker.node == candidate.node);
            let skipped = taken || fresh_rack_only && rack_taken;
            if !skipped {
                chosen.push(candidate);
            }
        }
    }
    chosen.iter().map(|broker| broker.node).collect()
}

#[cfg(test)]
mod tests;
