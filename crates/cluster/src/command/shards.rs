//! Take and give back coordinator shards. A reign's epoch is durable before anyone acts in it.

use super::{Command, Means, Plan, Refusal, RefusalKind};
use crate::image::Image;
use crate::record::{ShardLockRecord, ShardRecord, put, put_for, shard_key, shard_lock_key};
use crate::store::SessionId;
use ottla_model::{NodeId, OwnershipEpoch, PartitionId};

/// `node` takes these shards for as long as `session` lives; each gets a new reign, also one this
/// session holds already. [`crate::Cluster::claim_shards`] splits what does not fit one
/// transaction.
#[derive(Clone, Debug)]
pub struct ClaimShards {
    /// Who.
    pub node: NodeId,
    /// Its session.
    pub session: SessionId,
    /// Which partitions of the offsets topic.
    pub partitions: Vec<PartitionId>,
}

impl Command for ClaimShards {
    /// The reign of each, in order; refused while another session holds it.
    type Reply = Vec<Result<OwnershipEpoch, Refusal>>;

    fn decide(&mut self, image: &Image, _: &mut Means<'_>) -> Plan<Self::Reply> {
        let mut ops = Vec::new();
        let mut claim = |partition: &PartitionId| {
            let shard = image.shard(*partition).unwrap_or_default();
            if let Some(owner) = shard.owner.filter(|_| shard.session != Some(self.session)) {
                let message = format!("shard {partition} is held by broker {owner}");
                return Err(Refusal::new(RefusalKind::NotInCharge, message));
            }
            let epoch = OwnershipEpoch(shard.epoch.0.saturating_add(1));
            ops.push(put(shard_key(*partition), &ShardRecord { epoch: epoch.0 }));
            let lock = ShardLockRecord { node: self.node.0 };
            ops.push(put_for(shard_lock_key(*partition), &lock, Some(self.session)));
            Ok(epoch)
        };
        let reply = self.partitions.iter().map(&mut claim).collect();
        Plan::write(ops, reply)
    }
}

/// Shards of one transaction: two entries each, and the bound on a transaction's operations.
pub(crate) const AT_ONCE: usize = 60;
