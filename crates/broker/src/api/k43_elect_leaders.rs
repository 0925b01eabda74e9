//! Key 43, ElectLeaders, versions 0-2: make preferred replicas lead (KIP-183).
//!
//! - v1 adds unclean elections (KIP-460), v2 is flexible.
//!
//! With one replica per partition its keeper always leads, so there is never anything to elect:
//! every partition that exists answers ELECTION_NOT_NEEDED, and asking for all of them answers
//! none, as Kafka leaves those out then.

use super::outcome::{Outcome, count};
use super::{Answer, Context};
use ottla_cluster::image::Image;
use ottla_model::PartitionId;
use ottla_wire::ErrorCode;
use ottla_wire::generated::elect_leaders_response::{PartitionResult, ReplicaElectionResult};
use ottla_wire::generated::{ElectLeadersRequest, ElectLeadersResponse};

/// Answers from the image.
pub(super) fn handle(cx: &mut Context<'_>, request: ElectLeadersRequest<'_>) -> Answer {
    if !matches!(request.election_type, PREFERRED | UNCLEAN) {
        let error_code = cx.count(ErrorCode::InvalidRequest).number();
        return cx.reply(&ElectLeadersResponse { error_code, ..Default::default() });
    }
    let image = cx.broker.cluster.image();
    let asked = request.topic_partitions.unwrap_or_default();
    let judged: Vec<(&str, Vec<(i32, Outcome)>)> = asked
        .iter()
        .map(|topic| {
            let judge = |index: &i32| (*index, judge(&image, topic.topic, *index));
            (topic.topic, topic.partitions.iter().map(judge).collect())
        })
        .collect();
    let codes = judged.iter().flat_map(|(_, partitions)| partitions);
    count(cx.broker, cx.to.key, codes.map(|(_, outcome)| outcome.number()));
    let results = judged.iter().map(|(topic, partitions)| ReplicaElectionResult {
        topic,
        partition_result: partitions
            .iter()
            .map(|(partition_id, outcome)| PartitionResult {
                partition_id: *partition_id,
                error_code: outcome.number(),
                error_message: outcome.text(),
            })
            .collect(),
    });
    let replica_election_results = results.collect();
    cx.reply(&ElectLeadersResponse { replica_election_results, ..Default::default() })
}

fn judge(image: &Image, topic: &str, index: i32) -> Outcome {
    let unknown = |what: String| Outcome::failed(ErrorCode::UnknownTopicOrPartition, what);
    let Some(found) = image.topic(topic) else {
        return unknown(format!("No such topic as {topic}"));
    };
    match image.partition_of(found, PartitionId(index)) {
        Some(_) => Outcome::failed(
            ErrorCode::ElectionNotNeeded,
            "Leader election not needed for topic partition.",
        ),
        None => unknown(format!("No such partition as {topic}-{index}")),
    }
}

const PREFERRED: i8 = 0;
const UNCLEAN: i8 = 1;
