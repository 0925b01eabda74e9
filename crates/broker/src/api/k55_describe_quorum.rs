//! Key 55, DescribeQuorum, versions 0-2: who keeps the metadata (KIP-595).
//!
//! - v1 tells when each replica last fetched, v2 directories, nodes and texts (KIP-853).
//!
//! There is no quorum and no metadata log: a single broker keeps the metadata in its own store. It
//! is told as a quorum of one whose log is the store: the revision stands for offsets. Any other
//! partition than `__cluster_metadata-0` is unknown.

use super::outcome::count;
use super::{Answer, Context};
use ottla_cluster::image::Image;
use ottla_cluster::names::METADATA_TOPIC;
use ottla_model::Timestamp;
use ottla_wire::ErrorCode;
use ottla_wire::generated::describe_quorum_response::{
    Listener, Node, PartitionData, ReplicaState, TopicData,
};
use ottla_wire::generated::{DescribeQuorumRequest, DescribeQuorumResponse};

/// Answers from the image.
pub(super) fn handle(cx: &mut Context<'_>, request: DescribeQuorumRequest<'_>) -> Answer {
    let image = cx.broker.cluster.image();
    let now = cx.now.wall;
    let topics = request.topics.iter().map(|topic| {
        let is_known = |index: i32| topic.topic_name == METADATA_TOPIC && index == 0;
        let partition = |index: i32| match is_known(index) {
            true => quorum(&image, now),
            false => unknown(index),
        };
        let partitions = topic.partitions.iter().map(|asked| partition(asked.partition_index));
        TopicData { topic_name: topic.topic_name, partitions: partitions.collect() }
    });
    let topics: Vec<_> = topics.collect();
    let lines = topics.iter().flat_map(|topic| &topic.partitions);
    count(cx.broker, cx.to.key, lines.map(|line| line.error_code));
    // Versions that have no field for them cannot carry them.
    let nodes = if cx.version() >= FIRST_WITH_NODES { nodes(&image) } else { Vec::new() };
    cx.reply(&DescribeQuorumResponse { topics, nodes, ..Default::default() })
}

fn quorum(image: &Image, now: Timestamp) -> PartitionData<'static> {
    let end = image.revision().0.cast_signed();
    let voter = ReplicaState {
        replica_id: image.node().0,
        log_end_offset: end,
        last_fetch_timestamp: now.0,
        last_caught_up_timestamp: now.0,
        ..Default::default()
    };
    PartitionData {
        leader_id: image.node().0,
        leader_epoch: 1,
        high_watermark: end,
        current_voters: vec![voter],
        ..Default::default()
    }
}

fn unknown(partition_index: i32) -> PartitionData<'static> {
    PartitionData {
        partition_index,
        error_code: ErrorCode::UnknownTopicOrPartition.number(),
        error_message: Some("This server does not host this topic-partition."),
        ..Default::default()
    }
}

fn nodes(image: &Image) -> Vec<Node<'_>> {
    image
        .brokers()
        .map(|(node, broker)| Node {
            node_id: node.0,
            listeners: broker
                .record
                .listeners
                .iter()
                .map(|at| Listener { name: &at.name, host: &at.host, port: at.port })
                .collect(),
        })
        .collect()
}

const FIRST_WITH_NODES: i16 = 2;
