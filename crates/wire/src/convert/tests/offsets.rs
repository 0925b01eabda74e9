//! OffsetCommit, OffsetFetch, OffsetDelete.

use std::time::Duration;

use ottla_group::message::GroupError;
use ottla_group::message::offsets::{
    Commit, CommitPartition, CommitTopic, Committed, CommittedOffset, Deleted, Fetch, Fetched,
};
use ottla_model::{
    Generation, LeaderEpoch, Offset, PartitionId, Timestamp, Topic, TopicId, TopicName, TopicsView,
};

use super::{assert_same, through};
use crate::convert::{commit, delete_offsets, fetch_offsets, known_topics};
use crate::generated::offset_delete_request::{
    OffsetDeleteRequestPartition, OffsetDeleteRequestTopic,
};
use crate::generated::{
    OffsetCommitRequest, OffsetCommitResponse, OffsetDeleteRequest, OffsetDeleteResponse,
    OffsetFetchRequest, OffsetFetchResponse,
};
use crate::{ErrorCode, Message};

const ORDERS: TopicId = TopicId([1; 16]);
const GONE: TopicId = TopicId([9; 16]);

/// A cluster of one topic, `orders`, of two partitions.
fn view() -> TopicsView {
    let partitions = vec![Default::default(); 2];
    TopicsView::new([Topic { id: ORDERS, name: "orders".into(), partitions }])
}

fn name_of(id: TopicId) -> Option<TopicName> {
    view().topic_by_id(id).map(|topic| topic.name.clone())
}

fn id_of(name: &str) -> Option<TopicId> {
    view().topic(name).map(|topic| topic.id)
}

fn commit_partition(partition: i32) -> CommitPartition<'static> {
    CommitPartition {
        partition: PartitionId(partition),
        offset: Offset(40 + i64::from(partition)),
        leader_epoch: Some(LeaderEpoch(7)),
        metadata: "note",
    }
}

fn commit_of(version: i16, topics: Vec<CommitTopic<'static>>) -> Commit<'static> {
    Commit {
        group: "g",
        generation: Generation(4),
        member: "m",
        instance: (version >= 7).then_some("i"),
        retention: Some(Duration::from_secs(60)),
        knows_epochs: version >= 9,
        topics,
    }
}

/// `orders` with partitions 1, 5 and 0, of which there is no 5; and a topic that is not there.
fn mixed_commit(version: i16) -> Commit<'static> {
    let partitions = vec![commit_partition(1), commit_partition(5), commit_partition(0)];
    let orders = CommitTopic { topic: "orders", id: ORDERS, partitions };
    let gone = CommitTopic { topic: "gone", id: GONE, partitions: vec![commit_partition(0)] };
    commit_of(version, vec![gone, orders])
}

#[test]
fn a_commit_arrives_in_every_version_without_what_is_not_there() {
    let view = view();
    for version in OffsetCommitRequest::VERSIONS.iter() {
        let sent = mixed_commit(version);
        let bytes;
        let request: OffsetCommitRequest<'_> = through!(bytes, commit::request(&sent), version);
        let (ask, _) = commit::ask(&request, version, known_topics(&view));
        let mut partitions = vec![commit_partition(1), commit_partition(0)];
        if version < 6 {
            partitions.iter_mut().for_each(|partition| partition.leader_epoch = None);
        }
        let orders = CommitTopic { topic: "orders", id: ORDERS, partitions };
        let mut expected = commit_of(version, vec![orders]);
        expected.retention = sent.retention.filter(|_| version <= 4);
        assert_same(&ask.expect("two partitions are there"), &expected, version);
    }
}

/// The response has every partition in the request's order: those the edge refused and those the
/// coordinator answered.
#[test]
fn a_commit_is_answered_in_every_version() {
    let view = view();
    for version in OffsetCommitRequest::VERSIONS.iter() {
        let request = commit::request(&mixed_commit(version));
        let (_, plan) = commit::ask(&request, version, known_topics(&view));
        let too_large = Err(GroupError::OffsetMetadataTooLarge);
        let answers = vec![(PartitionId(1), too_large), (PartitionId(0), Ok(()))];
        let reply = Ok(Committed { topics: vec![("orders".into(), answers)] });
        let bytes;
        let response: OffsetCommitResponse<'_> =
            through!(bytes, commit::response(&plan, Some(&reply), version), version);
        let codes = response.topics.iter().flat_map(|topic| {
            topic.partitions.iter().map(move |p| (topic, p.partition_index, p.error_code))
        });
        let codes: Vec<_> = codes
            .map(|(topic, index, code)| (topic.name, TopicId::from(topic.topic_id), index, code))
            .collect();
        let (gone, orders) = match version {
            10 => (("", GONE), ("", ORDERS)),
            _ => (("gone", TopicId::ZERO), ("orders", TopicId::ZERO)),
        };
        let absent = match version {
            10 => ErrorCode::UnknownTopicId.number(),
            _ => ErrorCode::UnknownTopicOrPartition.number(),
        };
        let expected = [
            (gone.0, gone.1, 0, absent),
            (orders.0, orders.1, 1, ErrorCode::OffsetMetadataTooLarge.number()),
            (orders.0, orders.1, 5, ErrorCode::UnknownTopicOrPartition.number()),
            (orders.0, orders.1, 0, 0),
        ];
        assert_eq!(codes, expected, "version {version}");
    }
}

/// No version has an error for the whole commit.
#[test]
fn a_refused_commit_is_refused_for_every_partition() {
    let view = view();
    let refusals = [
        (GroupError::IllegalGeneration, ErrorCode::IllegalGeneration),
        (GroupError::RecordTooLarge, ErrorCode::InvalidCommitOffsetSize),
    ];
    for (error, told) in refusals {
        let request = commit::request(&mixed_commit(8));
        let (_, plan) = commit::ask(&request, 8, known_topics(&view));
        let response = commit::response(&plan, Some(&Err(error)), 8);
        let unknown = ErrorCode::UnknownTopicOrPartition;
        let codes = response.topics.iter().flat_map(|topic| &topic.partitions);
        let codes: Vec<_> = codes.map(|p| p.error_code).collect();
        let expected = [unknown, told, unknown, told].map(ErrorCode::number);
        assert_eq!(codes, expected);
    }
}

#[test]
fn a_commit_of_nothing_that_is_there_asks_nothing() {
    let view = view();
    let gone = CommitTopic { topic: "gone", id: GONE, partitions: vec![commit_partition(0)] };
    let request = commit::request(&commit_of(8, vec![gone]));
    let (ask, plan) = commit::ask(&request, 8, known_topics(&view));
    assert!(ask.is_none());
    let response = commit::response(&plan, None, 8);
    let unknown = ErrorCode::UnknownTopicOrPartition.number();
    assert_eq!(response.topics[0].partitions[0].error_code, unknown);
    let (ask, _) = commit::ask(&OffsetCommitRequest::default(), 8, known_topics(&view));
    assert!(ask.is_none(), "nothing at all is nothing to ask");
}

#[test]
fn a_committer_is_told_in_every_version() {
    let view = view();
    for version in OffsetCommitRequest::VERSIONS.iter() {
        let partitions = vec![commit_partition(1), commit_partition(0)];
        let orders = CommitTopic { topic: "orders", id: ORDERS, partitions };
        let request = commit::request(&commit_of(version, vec![orders]));
        let (_, plan) = commit::ask(&request, version, known_topics(&view));
        let refused = Err(GroupError::RecordTooLarge);
        let answers = vec![(PartitionId(1), refused), (PartitionId(0), Ok(()))];
        let committed = Committed { topics: vec![("orders".into(), answers)] };
        let reply = Ok(committed.clone());
        let bytes;
        let response: OffsetCommitResponse<'_> =
            through!(bytes, commit::response(&plan, Some(&reply), version), version);
        assert_eq!(commit::reply(&response, version, name_of), Ok(committed));
    }
}

/// What a client of an old version leaves unsaid.
#[test]
fn a_commit_without_epoch_retention_or_note_says_so() {
    let view = view();
    let mut request = commit::request(&mixed_commit(2));
    request.retention_time_ms = -1;
    for partition in request.topics.iter_mut().flat_map(|topic| &mut topic.partitions) {
        (partition.committed_leader_epoch, partition.committed_metadata) = (-1, None);
    }
    let (ask, _) = commit::ask(&request, 2, known_topics(&view));
    let ask = ask.expect("two partitions are there");
    assert_eq!(ask.retention, None);
    assert_eq!(ask.topics[0].partitions[0].leader_epoch, None);
    assert_eq!(ask.topics[0].partitions[0].metadata, "");
}

fn fetch(topics: Option<Vec<(&'static str, Vec<i32>)>>, version: i16) -> Fetch<'static> {
    let ids = |partitions: Vec<i32>| partitions.into_iter().map(PartitionId).collect();
    Fetch {
        group: "g",
        member: (version >= 9).then_some(("m", Generation(4))),
        topics: topics.map(|topics| topics.into_iter().map(|(name, p)| (name, ids(p))).collect()),
    }
}

/// `orders` 0 and 1, of which only 1 has an offset.
fn fetched(topic_id: TopicId) -> Fetched {
    let offset = CommittedOffset {
        offset: Offset(41),
        leader_epoch: Some(LeaderEpoch(7)),
        metadata: "note".into(),
        committed_at: Timestamp::NONE,
        expires_at: None,
        topic_id,
    };
    let partitions = vec![(PartitionId(0), None), (PartitionId(1), Some(offset))];
    Fetched { topics: vec![("orders".into(), partitions)] }
}

#[test]
fn a_fetch_goes_there_and_back_in_every_version() {
    let view = view();
    for version in OffsetFetchRequest::VERSIONS.iter() {
        for topics in [Some(vec![("orders", vec![0, 1])]), None] {
            if version == 1 && topics.is_none() {
                continue;
            }
            let sent = [fetch(topics, version)];
            let request = fetch_offsets::request(&sent, version, id_of).expect("one group");
            let bytes;
            let request: OffsetFetchRequest<'_> = through!(bytes, request, version);
            let mut asks = fetch_offsets::asks(&request, version, known_topics(&view));
            let (ask, plan) = asks.pop().expect("one group");
            assert_same(&ask, &sent[0], version);

            let id = if version >= 10 { ORDERS } else { TopicId::ZERO };
            let groups = [(plan, Ok(fetched(id)))];
            let bytes;
            let response: OffsetFetchResponse<'_> =
                through!(bytes, fetch_offsets::response(&groups, version, id_of), version);
            let mut told = fetch_offsets::reply(&response, version, name_of).expect("no error");
            let (group, reply) = told.pop().expect("one group");
            assert_eq!(group, (version >= 8).then_some("g".into()));
            let mut expected = fetched(id);
            if version < 5 {
                let offset = expected.topics[0].1[1].1.as_mut().expect("an offset");
                offset.leader_epoch = None;
            }
            assert_eq!(reply, Ok(expected), "version {version}");
        }
    }
}

/// Version 1 has nowhere else to put it; 2-7 have one place, later ones one for each group.
#[test]
fn a_refused_fetch_says_so_where_its_version_can() {
    let view = view();
    for version in OffsetFetchResponse::VERSIONS.iter() {
        let sent = [fetch(Some(vec![("orders", vec![0, 1])]), version)];
        let request = fetch_offsets::request(&sent, version, id_of).expect("one group");
        let asks = fetch_offsets::asks(&request, version, known_topics(&view));
        let refused = |(_, plan)| (plan, Err(GroupError::LoadInProgress));
        let groups: Vec<_> = asks.into_iter().map(refused).collect();
        let bytes;
        let response: OffsetFetchResponse<'_> =
            through!(bytes, fetch_offsets::response(&groups, version, id_of), version);
        let loading = ErrorCode::CoordinatorLoadInProgress.number();
        match version {
            1 => {
                let partitions = &response.topics[0].partitions;
                let told: Vec<_> =
                    partitions.iter().map(|p| (p.error_code, p.committed_offset)).collect();
                assert_eq!(told, [(loading, -1), (loading, -1)]);
            }
            2..=7 => assert_eq!((response.error_code, response.topics.len()), (loading, 0)),
            _ => {
                let group = &response.groups[0];
                assert_eq!((group.error_code, group.topics.len()), (loading, 0));
            }
        }
        let told = fetch_offsets::reply(&response, version, name_of).expect("a refusal");
        assert_eq!(told[0].1, Err(GroupError::LoadInProgress));
    }
}

/// KIP-709: several groups in one request, each refused or answered by itself.
#[test]
fn groups_are_answered_one_by_one() {
    let view = view();
    let mut sent = [fetch(Some(vec![("orders", vec![1])]), 8), fetch(None, 8)];
    sent[1].group = "h";
    assert!(fetch_offsets::request(&sent, 7, id_of).is_err());
    let request = fetch_offsets::request(&sent, 8, id_of).expect("a batch");
    let asks = fetch_offsets::asks(&request, 8, known_topics(&view));
    let replies = [Err(GroupError::NotCoordinator), Ok(fetched(TopicId::ZERO))];
    let groups: Vec<_> = asks.into_iter().zip(replies).map(|((_, p), r)| (p, r)).collect();
    let response = fetch_offsets::response(&groups, 8, id_of);
    let told: Vec<_> = response
        .groups
        .iter()
        .map(|group| (group.group_id, group.error_code, group.topics.len()))
        .collect();
    assert_eq!(told, [("g", ErrorCode::NotCoordinator.number(), 0), ("h", 0, 1)]);
}

/// A topic that is not there has no offsets. Named, that is no error (a deleted topic's consumer
/// starts anew); by an id that nothing has, it is one.
#[test]
fn offsets_of_an_unknown_topic_are_absent_or_refused() {
    let view = view();
    for version in [1, 7, 9, 10] {
        let sent = [fetch(Some(vec![("gone", vec![0])]), version)];
        let id = |_: &str| Some(GONE);
        let request = fetch_offsets::request(&sent, version, id).expect("one group");
        let mut asks = fetch_offsets::asks(&request, version, known_topics(&view));
        let (ask, plan) = asks.pop().expect("one group");
        let asked = ask.topics.expect("topics");
        assert_eq!(asked.len(), usize::from(version < 10), "the coordinator knows no ids");
        let absent =
            asked.iter().map(|(name, _)| (TopicName::from(*name), vec![(PartitionId(0), None)]));
        let groups = [(plan, Ok(Fetched { topics: absent.collect() }))];
        let response = fetch_offsets::response(&groups, version, id_of);
        let (offset, code) = match version {
            ..=7 => {
                let partition = response.topics[0].partitions[0];
                (partition.committed_offset, partition.error_code)
            }
            _ => {
                let partition = response.groups[0].topics[0].partitions[0];
                (partition.committed_offset, partition.error_code)
            }
        };
        let expected = if version < 10 { 0 } else { ErrorCode::UnknownTopicId.number() };
        assert_eq!((offset, code), (-1, expected), "version {version}");
    }
}

/// A recreated topic inherits nothing, whatever is still committed under its name.
#[test]
fn an_offset_of_an_earlier_topic_of_that_name_is_absent() {
    let view = view();
    for topics in [Some(vec![("orders", vec![0, 1])]), None] {
        let sent = [fetch(topics, 10)];
        let request = fetch_offsets::request(&sent, 10, id_of).expect("one group");
        let mut asks = fetch_offsets::asks(&request, 10, known_topics(&view));
        let (_, plan) = asks.pop().expect("one group");
        let groups = [(plan, Ok(fetched(GONE)))];
        let response = fetch_offsets::response(&groups, 10, id_of);
        let partitions = &response.groups[0].topics[0].partitions;
        assert!(partitions.iter().all(|p| p.committed_offset == -1 && p.error_code == 0));
    }
}

fn deletion() -> OffsetDeleteRequest<'static> {
    let partition = |partition_index| OffsetDeleteRequestPartition { partition_index };
    let topics = vec![
        OffsetDeleteRequestTopic { name: "gone", partitions: vec![partition(0)] },
        OffsetDeleteRequestTopic { name: "orders", partitions: vec![partition(7), partition(1)] },
    ];
    OffsetDeleteRequest { group_id: "g", topics }
}

#[test]
fn deleted_offsets_are_answered_in_the_requests_order() {
    let view = view();
    let request = deletion();
    let (ask, plan) = delete_offsets::ask(&request, known_topics(&view));
    let ask = ask.expect("one partition is there");
    assert_eq!(ask.topics, [("orders", vec![PartitionId(1)])]);
    let subscribed = Err(GroupError::GroupSubscribedToTopic);
    let answers = vec![("orders".into(), vec![(PartitionId(1), subscribed)])];
    let reply = Ok(Deleted { topics: answers });
    let bytes;
    let response: OffsetDeleteResponse<'_> =
        through!(bytes, delete_offsets::response(&plan, Some(&reply)), 0);
    let codes = response.topics.iter().flat_map(|topic| {
        topic.partitions.iter().map(move |p| (topic.name, p.partition_index, p.error_code))
    });
    let unknown = ErrorCode::UnknownTopicOrPartition.number();
    let subscribed = ErrorCode::GroupSubscribedToTopic.number();
    let expected = [("gone", 0, unknown), ("orders", 7, unknown), ("orders", 1, subscribed)];
    assert_eq!(codes.collect::<Vec<_>>(), expected);
}

#[test]
fn a_refused_deletion_names_no_partition() {
    let view = view();
    let request = deletion();
    let (_, plan) = delete_offsets::ask(&request, known_topics(&view));
    let response = delete_offsets::response(&plan, Some(&Err(GroupError::NonEmptyGroup)));
    assert_eq!(response.error_code, ErrorCode::NonEmptyGroup.number());
    assert!(response.topics.is_empty());
}

/// A reply that is not this plan's is our own mistake: it must neither panic nor pass for another
/// partition's outcome.
#[test]
fn a_reply_of_another_shape_is_a_server_error() {
    let view = view();
    let request = commit::request(&mixed_commit(8));
    let (_, plan) = commit::ask(&request, 8, known_topics(&view));
    let reply = Ok(Committed { topics: vec![("orders".into(), vec![(PartitionId(0), Ok(()))])] });
    let response = commit::response(&plan, Some(&reply), 8);
    let codes: Vec<_> = response.topics[1].partitions.iter().map(|p| p.error_code).collect();
    assert_eq!(codes, [-1, ErrorCode::UnknownTopicOrPartition.number(), -1]);
}
