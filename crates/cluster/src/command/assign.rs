//! Replica assignments given by hand, or chosen.

use super::{Refusal, RefusalKind};
use crate::image::Image;
use crate::placement::{self, Candidate};
use ottla_model::NodeId;

/// Replicas of one partition, given by hand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assignment {
    /// The partition's index.
    pub partition: i32,
    /// The brokers, the preferred leader first.
    pub replicas: Vec<NodeId>,
}

/// Replicas for `partitions` more partitions; the first leader is the `start`-th broker, round.
pub(super) fn choose(
    image: &Image,
    partitions: usize,
    replication: usize,
    start: usize,
) -> Result<Vec<Vec<NodeId>>, Refusal> {
    let candidates: Vec<_> = image
        .brokers()
        .map(|(node, broker)| Candidate { node, rack: broker.record.rack.clone() })
        .collect();
    placement::place(&candidates, partitions, replication, start).map_err(|why| {
        let message = format!("Unable to replicate the partition {replication} time(s): {why}");
        Refusal::new(RefusalKind::InvalidReplicationFactor, message)
    })
}

/// Checks one partition's replicas; `replication` is what the partitions before it have.
pub(super) fn check(
    image: &Image,
    replicas: &[NodeId],
    replication: Option<usize>,
) -> Result<(), Refusal> {
    let refuse = |why: String| Err(Refusal::new(RefusalKind::InvalidReplicaAssignment, why));
    if replicas.is_empty() {
        return refuse("The manual partition assignment includes an empty replica list.".into());
    }
    let mut sorted = replicas.to_vec();
    sorted.sort_unstable();
    if let Some(twice) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        let node = twice[0];
        return refuse(format!(
            "The manual partition assignment includes the broker {node} more than once."
        ));
    }
    if let Some(unknown) = sorted.iter().find(|node| image.broker(**node).is_none()) {
        return refuse(format!(
            "The manual partition assignment includes broker {unknown}, but no such broker is \
             registered."
        ));
    }
    match replication {
        Some(expected) if expected != replicas.len() => refuse(format!(
            "The manual partition assignment includes a partition with {} replica(s), but this is \
             not consistent with previous partitions, which have {expected} replica(s).",
            replicas.len()
        )),
        _ => Ok(()),
    }
}
