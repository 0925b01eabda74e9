//! ConsumerGroupHeartbeat and ConsumerGroupDescribe (KIP-848).

use std::time::Duration;

use ottla_group::message::GroupError;
use ottla_group::message::admin::GroupState;
use ottla_group::message::consumer::{
    Beat, DescribedMember, Description, Heartbeat, NamedPartitions, Standing,
};
use ottla_model::{Generation, PartitionId, TopicId};

use super::{assert_same, through};
use crate::Message;
use crate::convert::{consumer_describe, consumer_heartbeat};
use crate::generated::consumer_group_describe_response::TopicPartitions as Told;
use crate::generated::consumer_group_heartbeat_request::TopicPartitions;
use crate::generated::{
    ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse, ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
};

const ONE: TopicId = TopicId([1; 16]);
const TWO: TopicId = TopicId([2; 16]);

fn partitions(numbers: &[i32]) -> Vec<PartitionId> {
    numbers.iter().copied().map(PartitionId).collect()
}

fn full(version: i16) -> Heartbeat<'static> {
    Heartbeat {
        group: "g",
        member: "m",
        standing: Standing::Member(Generation(7)),
        instance: Some("i"),
        rack: Some("r"),
        rebalance_timeout: Some(Duration::from_millis(300_000)),
        topics: Some(vec!["a", "b"]),
        regex: (version >= 1).then_some("c.*"),
        assignor: Some("uniform"),
        owned: Some(vec![(ONE, partitions(&[0, 4])), (TWO, partitions(&[1]))]),
    }
}

fn partial() -> Heartbeat<'static> {
    Heartbeat {
        group: "g",
        member: "m",
        standing: Standing::Member(Generation(7)),
        instance: None,
        rack: None,
        rebalance_timeout: None,
        topics: None,
        regex: None,
        assignor: None,
        owned: None,
    }
}

#[test]
fn a_heartbeat_full_or_partial_arrives_in_every_version() {
    for version in ConsumerGroupHeartbeatRequest::VERSIONS.iter() {
        for sent in [full(version), partial()] {
            let bytes;
            let request: ConsumerGroupHeartbeatRequest<'_> =
                through!(bytes, consumer_heartbeat::request(&sent), version);
            assert_same(&consumer_heartbeat::ask(&request, version).unwrap(), &sent, version);
        }
    }
}

/// Nothing owned and nothing said are different: the first acknowledges a revocation.
#[test]
fn owning_nothing_is_said() {
    let sent = Heartbeat { owned: Some(vec![]), ..partial() };
    let request = consumer_heartbeat::request(&sent);
    assert_eq!(request.topic_partitions, Some(vec![]));
    assert_same(&consumer_heartbeat::ask(&request, 1).unwrap(), &sent, 1);
}

#[test]
fn every_standing_has_its_epoch() {
    let standings = [
        (Standing::Joining, 0),
        (Standing::Leaving, -1),
        (Standing::LeavingForNow, -2),
        (Standing::Member(Generation(3)), 3),
    ];
    for (standing, epoch) in standings {
        let sent = Heartbeat { standing, ..partial() };
        let request = consumer_heartbeat::request(&sent);
        assert_eq!(request.member_epoch, epoch);
        assert_eq!(consumer_heartbeat::ask(&request, 1).unwrap().standing, standing);
    }
    let request = ConsumerGroupHeartbeatRequest {
        member_id: "m",
        member_epoch: -3,
        ..consumer_heartbeat::request(&partial())
    };
    assert_eq!(consumer_heartbeat::ask(&request, 1).err(), Some(GroupError::InvalidRequest));
}

/// KIP-1082: the coordinator names a member in version 0 only, and only one that joins.
#[test]
fn a_member_names_itself_from_version_1_on() {
    let joining = Heartbeat { member: "", standing: Standing::Joining, ..partial() };
    let request = consumer_heartbeat::request(&joining);
    assert_eq!(consumer_heartbeat::ask(&request, 0).unwrap().member, "");
    assert_eq!(consumer_heartbeat::ask(&request, 1).err(), Some(GroupError::InvalidRequest));
    let staying = Heartbeat { member: "", ..partial() };
    let request = consumer_heartbeat::request(&staying);
    assert_eq!(consumer_heartbeat::ask(&request, 0).err(), Some(GroupError::InvalidRequest));
}

/// Clients must not, but the bytes allow it; the coordinator is promised that it does not happen.
#[test]
fn partitions_named_twice_are_gathered() {
    let topic = |id: TopicId, partitions: &[i32]| TopicPartitions {
        topic_id: id.into(),
        partitions: partitions.to_vec(),
    };
    let request = ConsumerGroupHeartbeatRequest {
        topic_partitions: Some(vec![
            topic(TWO, &[]),
            topic(ONE, &[3, 1]),
            topic(TWO, &[0]),
            topic(ONE, &[1, 2]),
        ]),
        ..consumer_heartbeat::request(&partial())
    };
    let owned = consumer_heartbeat::ask(&request, 1).unwrap().owned;
    assert_eq!(owned, Some(vec![(ONE, partitions(&[1, 2, 3])), (TWO, partitions(&[0]))]));
}

#[test]
fn a_member_hears_its_epoch_interval_and_partitions() {
    let beat = Beat {
        member: "m".into(),
        standing: Standing::Member(Generation(8)),
        interval: Duration::from_secs(5),
        assignment: Some(vec![(ONE, partitions(&[2]))]),
    };
    let unchanged = Beat { assignment: None, ..beat.clone() };
    let nothing = Beat { assignment: Some(vec![]), ..beat.clone() };
    for version in ConsumerGroupHeartbeatResponse::VERSIONS.iter() {
        for beat in [&beat, &unchanged, &nothing] {
            let reply = Ok(beat.clone());
            let bytes;
            let response: ConsumerGroupHeartbeatResponse<'_> =
                through!(bytes, consumer_heartbeat::response(&reply), version);
            assert_eq!(consumer_heartbeat::reply(&response, "?"), Ok(reply.clone()));
        }
    }
}

#[test]
fn a_refusal_that_no_retry_mends_says_what_to_do() {
    let response = |error| {
        let reply = Err(error);
        let response = consumer_heartbeat::response(&reply);
        assert_eq!(consumer_heartbeat::reply(&response, "m"), Ok(Err(error)));
        response.error_message.map(str::to_owned)
    };
    assert!(response(GroupError::UnsupportedAssignor).is_some_and(|said| said.contains("uniform")));
    assert_eq!(response(GroupError::FencedMemberEpoch), None);
}

#[test]
fn a_group_is_described_with_what_members_own_and_should() {
    let named = |numbers: &[i32]| {
        let (id, topic) = (ONE, "a".into());
        vec![NamedPartitions { id, topic, partitions: partitions(numbers) }]
    };
    let member = DescribedMember {
        member: "m".into(),
        instance: None,
        rack: Some("r".into()),
        epoch: Generation(4),
        client_id: "c".into(),
        client_host: "/h".into(),
        topics: vec!["a".into()],
        regex: Some("a.*".into()),
        assignment: named(&[0]),
        target: named(&[0, 1]),
        is_classic: false,
    };
    let classic = DescribedMember { is_classic: true, ..member.clone() };
    let reply = Ok(Description {
        group: "g".into(),
        state: GroupState::Reconciling,
        epoch: Generation(5),
        assignment_epoch: Generation(4),
        assignor: "range".into(),
        members: vec![member, classic],
    });
    for version in ConsumerGroupDescribeResponse::VERSIONS.iter() {
        let groups = vec![consumer_describe::described("g", &reply)];
        let bytes;
        let response: ConsumerGroupDescribeResponse<'_> = through!(
            bytes,
            ConsumerGroupDescribeResponse { groups, ..Default::default() },
            version
        );
        let [group] = &response.groups[..] else { panic!("one group") };
        assert_eq!((group.group_id, group.error_code, group.group_state), ("g", 0, "Reconciling"));
        assert_eq!((group.group_epoch, group.assignment_epoch), (5, 4));
        assert_eq!(group.assignor_name, "range");
        let [member, classic] = &group.members[..] else { panic!("two members") };
        assert_eq!((member.rack_id, member.subscribed_topic_regex), (Some("r"), Some("a.*")));
        let of = |topics: &[Told<'_>]| {
            let each = topics.iter();
            each.map(|t| (t.topic_name.to_owned(), t.partitions.clone())).collect::<Vec<_>>()
        };
        assert_eq!(of(&member.assignment.topic_partitions), [("a".to_owned(), vec![0])]);
        assert_eq!(of(&member.target_assignment.topic_partitions), [("a".to_owned(), vec![0, 1])]);
        let types = if version >= 1 { (1, 0) } else { (-1, -1) };
        assert_eq!((member.member_type, classic.member_type), types);
    }
}

#[test]
fn a_group_of_another_protocol_is_not_found() {
    let reply = Err(GroupError::GroupIdNotFound);
    let group = consumer_describe::described("g", &reply);
    assert_eq!((group.group_id, group.error_code), ("g", 69));
    assert!(group.error_message.is_some());
    let request = ConsumerGroupDescribeRequest { group_ids: vec!["a", "b"], ..Default::default() };
    assert_eq!(
        consumer_describe::asks(&request).map(|ask| ask.group).collect::<Vec<_>>(),
        ["a", "b"]
    );
}
