//! Begin new reigns of partition leaders: after a recovery that cut a log, so that clients and
//! followers learn where the old and the new history part (KIP-101, KIP-320).

use super::{Command, Means, Plan, Refusal, RefusalKind};
use crate::image::Image;
use crate::record::{LeaderRecord, leader_key, put, topic_key};
use ottla_model::{LeaderEpoch, NodeId, PartitionId, TopicId};

/// `node` begins a new reign of each of these partitions, all of which it leads.
/// [`crate::Cluster::raise_leader_epochs`] splits what does not fit one transaction.
#[derive(Clone, Debug)]
pub struct RaiseLeaderEpochs {
    /// Who leads.
    pub node: NodeId,
    /// Which, each with the last reign its log shows.
    pub partitions: Vec<(TopicId, PartitionId, LeaderEpoch)>,
}

impl Command for RaiseLeaderEpochs {
    /// The new reigns, in order; refused where the partition is gone or another broker leads.
    type Reply = Vec<Result<LeaderEpoch, Refusal>>;

    fn decide(&mut self, image: &Image, _: &mut Means<'_>) -> Plan<Self::Reply> {
        let mut ops = Vec::new();
        let mut relies_on = Vec::new();
        let mut raise = |(id, partition, seen): &(TopicId, PartitionId, LeaderEpoch)| {
            let topic = image.topic_by_id(*id).ok_or_else(Refusal::unknown_topic)?;
            let now = image.partition_of(topic, *partition).ok_or_else(Refusal::unknown_topic)?;
            if now.leader != self.node {
                let message = format!("{}-{partition} is led by {}", topic.name, now.leader);
                return Err(Refusal::new(RefusalKind::NotInCharge, message));
            }
            let epoch = LeaderEpoch(now.leader_epoch.max(*seen).0.saturating_add(1));
            let record = LeaderRecord { node: self.node.0, epoch: epoch.0 };
            ops.push(put(leader_key(*id, *partition), &record));
            relies_on.push(topic_key(&topic.name));
            Ok(epoch)
        };
        let reply = self.partitions.iter().map(&mut raise).collect();
        relies_on.sort_unstable();
        relies_on.dedup();
        Plan { ops, relies_on, reply }
    }
}

/// Partitions of one transaction: one entry written and one relied on each.
pub(crate) const AT_ONCE: usize = 60;
