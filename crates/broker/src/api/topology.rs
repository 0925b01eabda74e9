//! What one client may know of brokers and leaders: the cluster's image seen through the listener
//! the client came by. Metadata and its kin are written in these words.

use crate::broker::Broker;
use crate::net::Listener;
use crate::partitions::Hosted;
use ottla_cluster::image::{Image, Partition, Topic};
use ottla_cluster::record::ListenerRecord;
use ottla_model::NodeId;
use ottla_wire::ErrorCode;

/// An image through a listener.
#[derive(Clone, Copy)]
pub(super) struct Topology<'a> {
    /// The image.
    pub(super) image: &'a Image,
    /// The listener's name.
    listener: &'a str,
    /// This broker,
    node: NodeId,
    /// and what it can serve of what it leads.
    hosted: &'a Hosted,
}

/// A broker the client can reach.
pub(super) struct Reachable<'a> {
    /// Its id.
    pub(super) node: i32,
    /// Where.
    pub(super) at: &'a ListenerRecord,
    /// Its rack, if it says.
    pub(super) rack: Option<&'a str>,
}

/// A partition as clients are told of it.
pub(super) struct Seen {
    /// Why it cannot be used now, if so.
    pub(super) error: ErrorCode,
    /// Who leads; -1 if nobody the client can reach.
    pub(super) leader: i32,
    /// The leader's reign.
    pub(super) leader_epoch: i32,
    /// Who keeps it.
    pub(super) replicas: Vec<i32>,
    /// Those of them that are in sync: with one replica, the live one.
    pub(super) in_sync: Vec<i32>,
    /// Those of them that are not there.
    pub(super) offline: Vec<i32>,
}

impl<'a> Topology<'a> {
    /// What `broker` tells whoever comes by `listener`.
    pub(super) fn new(
        broker: &Broker,
        image: &'a Image,
        hosted: &'a Hosted,
        listener: &'a Listener,
    ) -> Self {
        Self { image, listener: &listener.name, node: broker.node, hosted }
    }

    /// Every broker this listener leads to.
    pub(super) fn brokers(self) -> impl Iterator<Item = Reachable<'a>> {
        let reachable = move |(node, broker): (NodeId, &'a ottla_cluster::image::Broker)| {
            let at = broker.record.listeners.iter().find(|at| at.name == self.listener)?;
            Some(Reachable { node: node.0, at, rack: broker.record.rack.as_deref() })
        };
        self.image.brokers().filter_map(reachable)
    }

    /// Whom clients send changes of the cluster to; -1 for nobody.
    pub(super) fn controller(self) -> i32 {
        self.image.controller().filter(|node| self.reaches(*node)).map_or(-1, |node| node.0)
    }

    /// All partitions of a topic of the image, ascending.
    pub(super) fn partitions(self, topic: &'a Topic) -> impl Iterator<Item = (i32, Seen)> {
        let partitions = self.image.partitions_of(topic);
        partitions.map(move |partition| (partition.id.0, self.see(topic, &partition)))
    }

    /// One partition as the client sees it. Where its log does not open (yet), nobody leads it, as
    /// with a broken disk of Kafka's.
    pub(super) fn see(self, topic: &Topic, partition: &Partition<'_>) -> Seen {
        let topic = self.hosted.by_id(topic.id);
        let here = || topic.is_some_and(|topic| topic.partition(partition.id).is_some());
        let serves = |node: NodeId| match node == self.node {
            true => here(),
            false => self.image.broker(node).is_some(),
        };
        let ids = |alive: bool| {
            let wanted = move |node: &&NodeId| serves(**node) == alive;
            partition.replicas.iter().filter(wanted).map(|node| node.0).collect()
        };
        let leader = partition.leader;
        let error = if !serves(leader) {
            ErrorCode::LeaderNotAvailable
        } else if self.reaches(leader) {
            ErrorCode::None
        } else {
            ErrorCode::ListenerNotFound
        };
        Seen {
            error,
            leader: if error == ErrorCode::None { leader.0 } else { -1 },
            leader_epoch: partition.leader_epoch.0,
            replicas: partition.replicas.iter().map(|node| node.0).collect(),
            in_sync: ids(true),
            offline: ids(false),
        }
    }

    fn reaches(self, node: NodeId) -> bool {
        let broker = self.image.broker(node);
        broker.is_some_and(|b| b.record.listeners.iter().any(|at| at.name == self.listener))
    }
}

/// What anyone may do with a topic where nobody is denied anything: a bit per operation, numbered
/// as in Kafka's ACLs (READ 3, WRITE 4, CREATE 5, DELETE 6, ALTER 7, DESCRIBE 8,
/// DESCRIBE_CONFIGS 10, ALTER_CONFIGS 11).
pub(super) const TOPIC_OPERATIONS: i32 = bits(&[3, 4, 5, 6, 7, 8, 10, 11]);

/// Likewise with the cluster (CLUSTER_ACTION 9, IDEMPOTENT_WRITE 12).
pub(super) const CLUSTER_OPERATIONS: i32 = bits(&[5, 7, 8, 9, 10, 11, 12]);

const fn bits(operations: &[i32]) -> i32 {
    let (mut mask, mut index) = (0, 0);
    while index < operations.len() {
        mask |= 1 << operations[index];
        index += 1;
    }
    mask
}
