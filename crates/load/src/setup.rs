//! What a scene needs before it begins: topics that have leaders, groups that have a coordinator,
//! classic and consumer members that are stable.

use crate::Outcome;
use crate::link::{Link, check};
use ottla_wire::generated::create_partitions_request::CreatePartitionsTopic;
use ottla_wire::generated::create_topics_request::CreatableTopic;
use ottla_wire::generated::metadata_request::MetadataRequestTopic;
use ottla_wire::generated::offset_fetch_request::OffsetFetchRequestGroup;
use ottla_wire::generated::{
    CreatePartitionsRequest, CreatePartitionsResponse, CreateTopicsRequest, CreateTopicsResponse,
    FindCoordinatorRequest, FindCoordinatorResponse, MetadataRequest, MetadataResponse,
    OffsetFetchRequest, OffsetFetchResponse,
};
use ottla_wire::{ErrorCode, Uuid};
use std::time::{Duration, Instant};

/// Creates a topic that is not there yet and waits until each partition has a leader.
pub(crate) async fn topic(link: &mut Link, name: &str, partitions: i32) -> Outcome<Uuid> {
    let first = partitions.min(PARTITIONS_AT_ONCE);
    let topic =
        CreatableTopic { name, num_partitions: first, replication_factor: 1, ..Default::default() };
    let request =
        CreateTopicsRequest { topics: vec![topic], timeout_ms: 60_000, ..Default::default() };
    let answer = link.call(7, &request).await?;
    for topic in answer.read::<CreateTopicsResponse<'_>>()?.topics {
        if topic.error_code != ErrorCode::TopicAlreadyExists.number() {
            check(topic.error_code, "CreateTopics")?;
        }
    }
    grow(link, name, first, partitions).await
}

/// Gives a topic of `from` partitions more of them, in steps, and waits for their leaders.
pub(crate) async fn grow(link: &mut Link, name: &str, from: i32, to: i32) -> Outcome<Uuid> {
    let mut count = from;
    while count < to {
        led(link, name, count).await?;
        count = to.min(count + PARTITIONS_AT_ONCE);
        let topic = CreatePartitionsTopic { name, count, assignments: None };
        let request = CreatePartitionsRequest {
            topics: vec![topic],
            timeout_ms: 60_000,
            validate_only: false,
        };
        let answer = link.call(3, &request).await?;
        for result in answer.read::<CreatePartitionsResponse<'_>>()?.results {
            check(result.error_code, "CreatePartitions")?;
        }
    }
    led(link, name, to).await
}

/// Waits until `partitions` of a topic have a leader; the topic's id.
async fn led(link: &mut Link, name: &str, partitions: i32) -> Outcome<Uuid> {
    let wanted = usize::try_from(partitions).unwrap_or(0);
    let begun = Instant::now();
    while begun.elapsed() < PATIENCE {
        let topics = vec![MetadataRequestTopic { name: Some(name), ..Default::default() }];
        let request = MetadataRequest { topics: Some(topics), ..Default::default() };
        let answer = link.call(12, &request).await?;
        let response: MetadataResponse<'_> = answer.read()?;
        let topic = response.topics.first().filter(|topic| topic.error_code == 0);
        if let Some(topic) = topic {
            let led = topic.partitions.iter().filter(|p| p.error_code == 0 && p.leader_id >= 0);
            if led.count() >= wanted {
                return Ok(topic.topic_id);
            }
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Err(format!("{name} has no {partitions} leaders after {PATIENCE:?}"))
}

/// Waits until every group has a coordinator that answers for it.
pub(crate) async fn coordinators(link: &mut Link, groups: &[String]) -> Outcome<()> {
    for groups in groups.chunks(1000) {
        let begun = Instant::now();
        while !coordinated(link, groups).await? {
            if begun.elapsed() > PATIENCE {
                return Err(format!("no coordinator after {PATIENCE:?}"));
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
    Ok(())
}

async fn coordinated(link: &mut Link, groups: &[String]) -> Outcome<bool> {
    let coordinator_keys = groups.iter().map(String::as_str).collect();
    let request = FindCoordinatorRequest { key: "", key_type: 0, coordinator_keys };
    let answer = link.call(4, &request).await?;
    let response: FindCoordinatorResponse<'_> = answer.read()?;
    if response.coordinators.iter().any(|one| one.error_code != 0) {
        return Ok(false);
    }
    // To be found is not yet to be loaded.
    let group = |group_id| OffsetFetchRequestGroup { group_id, ..Default::default() };
    let request = OffsetFetchRequest {
        groups: groups.iter().map(String::as_str).map(group).collect(),
        ..Default::default()
    };
    let answer = link.call(9, &request).await?;
    let response: OffsetFetchResponse<'_> = answer.read()?;
    Ok(response.groups.iter().all(|one| !is_not_ready(one.error_code)))
}

/// Whether an answer only says that the coordinator is not ready yet.
pub(crate) fn is_not_ready(code: i16) -> bool {
    let not_yet = [
        ErrorCode::CoordinatorLoadInProgress,
        ErrorCode::CoordinatorNotAvailable,
        ErrorCode::NotCoordinator,
    ];
    not_yet.iter().any(|not_yet| not_yet.number() == code)
}

/// The names of groups: `prefix-0` and so on.
pub(crate) fn names(prefix: &str, count: usize) -> Vec<String> {
    (0..count).map(|number| format!("{prefix}-{number}")).collect()
}

/// Deals the numbers below `count` out to `hands`, in turn.
pub(crate) fn dealt(count: usize, hands: usize) -> Vec<Vec<usize>> {
    (0..hands).map(|hand| (hand..count).step_by(hands).collect()).collect()
}

/// More in one request are a POLICY_VIOLATION in Kafka.
const PARTITIONS_AT_ONCE: i32 = 1000;
/// How long a broker may take for what is prepared.
const PATIENCE: Duration = Duration::from_secs(120);
