//! What is known of the cluster: an immutable snapshot, and how an answer makes the next one.
//!
//! Pure: no connection, no clock. Leader epochs do not go back while a topic stays the same one,
//! whichever broker an old answer comes from (KIP-320), unless nothing newer is heard any more: a
//! single damaged answer must not keep a partition from being read for ever.

use crate::Error;
use ottla_model::{LeaderEpoch, NodeId, Partition, PartitionId, Topic, TopicId, TopicName};
use ottla_wire::ErrorCode;
use ottla_wire::generated::metadata_response::{MetadataResponsePartition, MetadataResponseTopic};
use ottla_wire::generated::{MetadataRequest, MetadataResponse, metadata_request};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What is known at one time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Snapshot {
    /// Every question up to this one is answered by it.
    pub(crate) answered: u64,
    /// Why the last try to learn more failed, if it did.
    pub(crate) error: Option<Error>,
    pub(crate) cluster_id: Option<String>,
    pub(crate) controller: Option<NodeId>,
    pub(crate) brokers: BTreeMap<NodeId, Broker>,
    pub(crate) topics: BTreeMap<TopicName, Arc<TopicInfo>>,
    names: BTreeMap<TopicId, TopicName>,
}

/// A broker and where it listens.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Broker {
    /// Its id.
    pub id: NodeId,
    /// Its host name or address.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// Its rack, if it names one.
    pub rack: Option<String>,
}

/// A topic as a client sees it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TopicInfo {
    /// Its name.
    pub name: TopicName,
    /// Its id; zero where the broker is too old to tell.
    pub id: TopicId,
    /// Whether it is one of Kafka's own.
    pub is_internal: bool,
    /// Its partitions; the index is the partition's id.
    pub partitions: Vec<PartitionInfo>,
    /// Why nothing more is known of it, if so.
    pub error: Option<ErrorCode>,
}

/// A partition as a client sees it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PartitionInfo {
    /// Who leads it, if anybody does.
    pub leader: Option<NodeId>,
    /// Which reign that is, if the broker tells.
    pub leader_epoch: Option<LeaderEpoch>,
    /// Who holds a copy.
    pub replicas: Vec<NodeId>,
    /// Whose copies are complete.
    pub in_sync: Vec<NodeId>,
    /// Whose copies are not reachable.
    pub offline: Vec<NodeId>,
    /// Answers in a row that knew an older epoch only.
    pub(crate) doubts: u32,
}

/// Which topics are asked for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Interest {
    /// Every one there is.
    All,
    /// These.
    Topics(BTreeSet<TopicName>),
}

impl Interest {
    /// The request that asks for them. With version 0 an empty list would mean all (S36), which no
    /// broker of today speaks at best.
    pub(crate) fn request(&self, may_create: bool) -> MetadataRequest<'_> {
        let topic = |name| metadata_request::MetadataRequestTopic {
            name: Some(name),
            ..Default::default()
        };
        MetadataRequest {
            topics: match self {
                Self::All => None,
                Self::Topics(names) => Some(names.iter().map(|name| topic(name)).collect()),
            },
            allow_auto_topic_creation: may_create,
            ..Default::default()
        }
    }
}

impl Snapshot {
    /// The snapshot after `response` came to a question for `interest`, up to question `answered`.
    pub(crate) fn after(
        &self,
        response: &MetadataResponse<'_>,
        interest: &Interest,
        answered: u64,
    ) -> Self {
        let mut next = Self { answered, error: None, ..self.clone() };
        next.cluster_id = response.cluster_id.map(str::to_owned).or(next.cluster_id);
        next.controller = (response.controller_id >= 0).then_some(NodeId(response.controller_id));
        next.brokers = response.brokers.iter().filter_map(broker).collect();
        match interest {
            Interest::All => next.topics.clear(),
            Interest::Topics(names) => next.topics.retain(|name, _| names.contains(name)),
        }
        for topic in &response.topics {
            let Some(name) = topic.name else { continue };
            let known = self.topics.get(name);
            let topic = topic_info(name, topic, known.map(|known| &**known));
            next.topics.insert(topic.name.clone(), Arc::new(topic));
        }
        let named = next.topics.values().filter(|topic| !topic.id.is_zero());
        next.names = named.map(|topic| (topic.id, topic.name.clone())).collect();
        next
    }

    /// The snapshot after nothing more could be learnt.
    pub(crate) fn with_error(&self, error: Error) -> Self {
        Self { error: Some(error), ..self.clone() }
    }

    /// The snapshot after somebody named a broker.
    pub(crate) fn with_broker(&self, broker: Broker) -> Self {
        let mut next = self.clone();
        next.brokers.insert(broker.id, broker);
        next
    }

    /// The topic of this name, if it is there and nothing is wrong with it.
    pub(crate) fn topic(&self, name: &str) -> Option<&Arc<TopicInfo>> {
        self.topics.get(name).filter(|topic| topic.error.is_none())
    }

    /// The name of the topic of this id.
    pub(crate) fn name(&self, id: TopicId) -> Option<&TopicName> {
        self.names.get(&id)
    }

    /// What is known of a partition.
    pub(crate) fn partition(&self, topic: &str, partition: PartitionId) -> Option<&PartitionInfo> {
        let index = usize::try_from(partition.0).ok()?;
        self.topic(topic)?.partitions.get(index)
    }

    /// The topics in the words of the pure crates.
    pub(crate) fn view(&self, names: &[TopicName]) -> ottla_model::TopicsView {
        let topics = names.iter().filter_map(|name| self.topic(name));
        ottla_model::TopicsView::new(topics.map(|topic| self.topic_view(topic)))
    }

    fn topic_view(&self, topic: &TopicInfo) -> Topic {
        let rack = |node: &NodeId| self.brokers.get(node)?.rack.as_deref().map(Arc::from);
        let partition = |info: &PartitionInfo| Partition {
            racks: info.replicas.iter().filter_map(rack).collect(),
        };
        Topic {
            id: topic.id,
            name: topic.name.clone(),
            partitions: topic.partitions.iter().map(partition).collect(),
        }
    }
}

impl Broker {
    /// `host:port`, an IPv6 address in brackets.
    pub(crate) fn address(&self) -> String {
        if self.host.contains(':') {
            format!("[{}]:{}", self.host, self.port)
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }
}

fn broker(
    from: &ottla_wire::generated::metadata_response::MetadataResponseBroker<'_>,
) -> Option<(NodeId, Broker)> {
    let id = NodeId(from.node_id);
    // A port that none is cannot be reached; the broker may as well not be there.
    let port = u16::try_from(from.port).ok()?;
    let rack = from.rack.map(str::to_owned);
    Some((id, Broker { id, host: from.host.to_owned(), port, rack }))
}

fn topic_info(
    name: &str,
    from: &MetadataResponseTopic<'_>,
    known: Option<&TopicInfo>,
) -> TopicInfo {
    let id = TopicId::from(from.topic_id);
    let error = ErrorCode::from_number(from.error_code).unwrap_or(ErrorCode::UnknownServerError);
    // The same topic only: a new one under its name starts its epochs afresh.
    let known = known.filter(|known| known.id == id);
    let mut partitions = Vec::new();
    for partition in &from.partitions {
        let Ok(index) = usize::try_from(partition.partition_index) else { continue };
        // Partitions are numbered without gaps, so an index beyond their count is nonsense.
        if index >= from.partitions.len() {
            continue;
        }
        if partitions.len() <= index {
            partitions.resize(index + 1, PartitionInfo::default());
        }
        let known = known.and_then(|known| known.partitions.get(index));
        partitions[index] = newest(partition_info(partition), known);
    }
    let error = error.is_error().then_some(error);
    TopicInfo { name: name.into(), id, is_internal: from.is_internal, partitions, error }
}

fn partition_info(from: &MetadataResponsePartition) -> PartitionInfo {
    let nodes = |ids: &[i32]| ids.iter().map(|id| NodeId(*id)).collect();
    PartitionInfo {
        leader: (from.leader_id >= 0).then_some(NodeId(from.leader_id)),
        leader_epoch: (from.leader_epoch >= 0).then_some(LeaderEpoch(from.leader_epoch)),
        replicas: nodes(&from.replica_nodes),
        in_sync: nodes(&from.isr_nodes),
        offline: nodes(&from.offline_replicas),
        doubts: 0,
    }
}

fn newest(heard: PartitionInfo, known: Option<&PartitionInfo>) -> PartitionInfo {
    match known {
        Some(known) if heard.leader_epoch < known.leader_epoch && known.doubts < DOUBTS_MAX => {
            PartitionInfo { doubts: known.doubts + 1, ..known.clone() }
        }
        _ => heard,
    }
}

/// Answers in a row that a lagging broker may be behind; whoever waits for a newer one asks every
/// `retry.backoff.ms` or more.
const DOUBTS_MAX: u32 = 20;

#[cfg(test)]
mod tests;
