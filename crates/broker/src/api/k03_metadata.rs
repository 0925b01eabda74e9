//! Key 3, Metadata, versions 0-13: which brokers there are, which topics, and who leads what.
//!
//! - v0 asks for all topics by an empty list; from v1 on by none, and an empty list means none.
//! - v1 adds racks, the controller and the internal mark, v2 the cluster's id, v3 the throttle
//!   time.
//! - v4 lets the client forbid that a topic is created because it was asked for (KIP-204).
//! - v5 adds offline replicas, v7 leader epochs, v8 authorized operations (the cluster's gone again
//!   in v11), v9 is flexible.
//! - v10 adds topic ids to the reply, v12 to the request (KIP-516); v13 adds an error of the whole.
//!
//! A topic that is missing and may be created is created before the answer, which then shows it;
//! Kafka answers UNKNOWN_TOPIC_OR_PARTITION and creates meanwhile. Each entry is looked up by
//! itself, by id where it has one; a topic asked for twice is answered once.
//!
//! Left out: v0's REPLICA_NOT_AVAILABLE. Clients that old take a partition's leader all the same.

use super::outcome::{NO_LIMIT, settled};
use super::topology::{CLUSTER_OPERATIONS, TOPIC_OPERATIONS, Topology};
use super::{Answer, Context};
use crate::broker::Broker;
use ottla_cluster::command::{NewTopic, RefusalKind};
use ottla_cluster::image::Topic;
use ottla_cluster::names;
use ottla_model::TopicId;
use ottla_wire::generated::metadata_request::MetadataRequestTopic;
use ottla_wire::generated::metadata_response::{
    MetadataResponseBroker, MetadataResponsePartition, MetadataResponseTopic,
};
use ottla_wire::generated::{MetadataRequest, MetadataResponse};
use ottla_wire::{ErrorCode, Uuid};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Answers from the image, after creating what is missing and may be created.
pub(super) fn handle(cx: &mut Context<'_>, request: MetadataRequest<'_>) -> Answer {
    let wanted = Wanted::of(&request, cx.version());
    let told = Told {
        version: cx.version(),
        cluster_operations: request.include_cluster_authorized_operations,
        topic_operations: request.include_topic_authorized_operations,
    };
    let missing = missing(cx.broker, &wanted, request.allow_auto_topic_creation);
    if missing.is_empty() {
        let image = cx.broker.cluster.image();
        let hosted = cx.broker.partitions.hosted();
        let listener = Arc::clone(&cx.session.listener);
        let topology = Topology::new(cx.broker, &image, &hosted, &listener);
        let response = response(topology, &wanted, &told, &BTreeMap::new());
        for topic in &response.topics {
            cx.broker.metrics.errors.count_number(cx.to.key, topic.error_code);
        }
        return cx.reply(&response);
    }
    let wanted = wanted.into_owned();
    let (broker, to) = (Arc::clone(cx.broker), cx.to);
    let listener = Arc::clone(&cx.session.listener);
    Answer::Later(Box::pin(async move {
        let refused = create(&broker, missing).await;
        settled(&broker, NO_LIMIT).await;
        let (image, hosted) = (broker.cluster.image(), broker.partitions.hosted());
        let topology = Topology::new(&broker, &image, &hosted, &listener);
        let response = response(topology, &wanted, &told, &refused);
        for topic in &response.topics {
            broker.metrics.errors.count_number(to.key, topic.error_code);
        }
        to.encode(&response)
    }))
}

/// Which topics are asked for.
enum Wanted<'a> {
    All,
    These(Vec<Asked<'a>>),
}

/// One of them.
enum Asked<'a> {
    Name(Cow<'a, str>),
    Id(TopicId),
    /// Neither, or by an id in a version that has none to ask by.
    Nonsense,
}

/// What the answer carries beyond topics.
struct Told {
    version: i16,
    cluster_operations: bool,
    topic_operations: bool,
}

impl<'a> Wanted<'a> {
    fn of(request: &MetadataRequest<'a>, version: i16) -> Self {
        match &request.topics {
            None => Self::All,
            Some(topics) if topics.is_empty() && version == 0 => Self::All,
            Some(topics) => {
                let mut seen = BTreeSet::new();
                let first = |topic: &&MetadataRequestTopic<'a>| {
                    seen.insert((topic.topic_id, if names_it(topic) { topic.name } else { None }))
                };
                Self::These(topics.iter().filter(first).map(|t| Asked::of(t, version)).collect())
            }
        }
    }

    fn into_owned(self) -> Wanted<'static> {
        let owned = |asked| match asked {
            Asked::Name(name) => Asked::Name(Cow::Owned(name.into_owned())),
            Asked::Id(id) => Asked::Id(id),
            Asked::Nonsense => Asked::Nonsense,
        };
        match self {
            Self::All => Wanted::All,
            Self::These(asked) => Wanted::These(asked.into_iter().map(owned).collect()),
        }
    }
}

/// An entry with an id is looked up by that, whatever name stands beside it.
fn names_it(topic: &MetadataRequestTopic<'_>) -> bool {
    topic.topic_id.is_zero()
}

impl<'a> Asked<'a> {
    fn of(topic: &MetadataRequestTopic<'a>, version: i16) -> Self {
        match topic.name {
            _ if !topic.topic_id.is_zero() && version >= FIRST_BY_ID => {
                Self::Id(topic.topic_id.into())
            }
            Some(name) if topic.topic_id.is_zero() => Self::Name(name.into()),
            _ => Self::Nonsense,
        }
    }
}

/// What is asked for by name, does not exist and may be created now.
fn missing(broker: &Broker, wanted: &Wanted<'_>, allowed: bool) -> Vec<String> {
    let Wanted::These(asked) = wanted else { return Vec::new() };
    let image = broker.cluster.image();
    let creatable = |asked: &Asked<'_>| match asked {
        Asked::Name(name) if image.topic(name).is_none() && is_creatable(name) => {
            Some(name.to_string())
        }
        _ => None,
    };
    let missing: Vec<_> = asked.iter().filter_map(creatable).take(CREATED_MAX).collect();
    let enabled = || image.broker_flag("auto.create.topics.enable");
    if missing.is_empty() || !allowed || !enabled() { Vec::new() } else { missing }
}

/// The brokers' own topics are not anybody's to make by asking, except the one that groups need.
fn is_creatable(name: &str) -> bool {
    names::check(name).is_ok() && (!names::is_internal(name) || name == names::OFFSETS_TOPIC)
}

/// Creates topics; the code for each that is not there afterwards.
async fn create(broker: &Broker, missing: Vec<String>) -> BTreeMap<String, ErrorCode> {
    let (own, others): (Vec<_>, Vec<_>) =
        missing.into_iter().partition(|name| name == names::OFFSETS_TOPIC);
    if !own.is_empty() {
        // Its absence is told like that of any other topic.
        let _ = broker.cluster.ensure_offsets_topic().await;
    }
    let topics = others.iter().map(NewTopic::named).collect();
    match broker.cluster.create_topics(topics, false).await {
        Ok(outcomes) => others
            .into_iter()
            .zip(outcomes)
            .filter_map(|(name, outcome)| match outcome.err()?.kind {
                RefusalKind::InvalidTopic => Some((name, ErrorCode::InvalidTopicException)),
                RefusalKind::InvalidReplicationFactor => {
                    Some((name, ErrorCode::InvalidReplicationFactor))
                }
                _ => None,
            })
            .collect(),
        Err(error) => {
            broker.complain(|lines_left_out| {
                tracing::warn!(%error, lines_left_out, "topics could not be created for a client");
            });
            others.into_iter().map(|name| (name, ErrorCode::LeaderNotAvailable)).collect()
        }
    }
}

fn response<'a>(
    topology: Topology<'a>,
    wanted: &'a Wanted<'a>,
    told: &Told,
    refused: &BTreeMap<String, ErrorCode>,
) -> MetadataResponse<'a> {
    let image = topology.image;
    let topics = match wanted {
        Wanted::All => image.topics().map(|topic| found(topology, topic, told)).collect(),
        Wanted::These(asked) => {
            asked.iter().map(|asked| one(topology, asked, told, refused)).collect()
        }
    };
    let brokers = topology.brokers().map(|broker| MetadataResponseBroker {
        node_id: broker.node,
        host: &broker.at.host,
        port: broker.at.port.into(),
        rack: broker.rack,
    });
    let cluster_operations = told.cluster_operations && (8..=10).contains(&told.version);
    MetadataResponse {
        brokers: brokers.collect(),
        cluster_id: Some(image.cluster_id()),
        controller_id: topology.controller(),
        topics,
        cluster_authorized_operations: if cluster_operations {
            CLUSTER_OPERATIONS
        } else {
            i32::MIN
        },
        ..Default::default()
    }
}

fn one<'a>(
    topology: Topology<'a>,
    asked: &'a Asked<'a>,
    told: &Told,
    refused: &BTreeMap<String, ErrorCode>,
) -> MetadataResponseTopic<'a> {
    match asked {
        Asked::Id(id) => match topology.image.topic_by_id(*id) {
            Some(topic) => found(topology, topic, told),
            None => absent(None, (*id).into(), ErrorCode::UnknownTopicId),
        },
        Asked::Name(name) => match topology.image.topic(name) {
            Some(topic) => found(topology, topic, told),
            None => {
                let code = refused.get(&**name).copied().unwrap_or_else(|| absence(name));
                absent(Some(name), Uuid::ZERO, code)
            }
        },
        // Versions below 12 cannot carry the null that was sent.
        Asked::Nonsense => absent(Some(""), Uuid::ZERO, ErrorCode::InvalidRequest),
    }
}

/// The code for a name there is no topic of.
pub(super) fn absence(name: &str) -> ErrorCode {
    match names::check(name) {
        Ok(()) => ErrorCode::UnknownTopicOrPartition,
        Err(_) => ErrorCode::InvalidTopicException,
    }
}

fn absent(name: Option<&str>, topic_id: Uuid, code: ErrorCode) -> MetadataResponseTopic<'_> {
    MetadataResponseTopic {
        error_code: code.number(),
        name,
        topic_id,
        is_internal: name.is_some_and(names::is_internal),
        ..Default::default()
    }
}

fn found<'a>(topology: Topology<'a>, topic: &'a Topic, told: &Told) -> MetadataResponseTopic<'a> {
    let partitions = topology.partitions(topic).map(|(index, seen)| MetadataResponsePartition {
        error_code: match seen.error {
            // KIP-226's code for a leader without this listener is newer than these versions.
            ErrorCode::ListenerNotFound if told.version < 6 => ErrorCode::LeaderNotAvailable,
            error => error,
        }
        .number(),
        partition_index: index,
        leader_id: seen.leader,
        leader_epoch: seen.leader_epoch,
        replica_nodes: seen.replicas,
        isr_nodes: seen.in_sync,
        offline_replicas: seen.offline,
    });
    MetadataResponseTopic {
        name: Some(&topic.name),
        topic_id: topic.id.into(),
        is_internal: topic.is_internal(),
        partitions: partitions.collect(),
        topic_authorized_operations: if told.topic_operations && told.version >= 8 {
            TOPIC_OPERATIONS
        } else {
            i32::MIN
        },
        ..Default::default()
    }
}

/// The first version whose request may name topics by id.
const FIRST_BY_ID: i16 = 12;

/// Topics created for one request; a client that wants more asks again.
const CREATED_MAX: usize = 100;
