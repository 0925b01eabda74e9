//! Against what Kafka 4.4 wrote (`fixtures/`): its log of a few groups' lives, and every version
//! of every kind by its own classes.

use std::sync::Arc;
use std::time::Duration;

use ottla_group::coordinator::record::{
    ClassicMember, ConsumerGroupCurrentMemberAssignment, ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadata, ConsumerGroupMemberMetadataValue, ConsumerGroupMetadata,
    ConsumerGroupMetadataValue, ConsumerGroupPartitionMetadata, ConsumerGroupRegularExpression,
    ConsumerGroupRegularExpressionValue, ConsumerGroupTargetAssignmentMember,
    ConsumerGroupTargetAssignmentMetadata, ConsumerGroupTargetAssignmentMetadataValue,
    GroupMetadata, GroupMetadataValue, HeldPartitions, OffsetCommit, OffsetCommitValue, Record,
    StoredMember, StoredState, StoredTopic,
};
use ottla_model::{
    Generation, GroupId, LeaderEpoch, MemberId, Offset, PartitionId, Timestamp, TopicId,
};
use ottla_records::Batches;
use proptest::prelude::*;

use super::*;

const KAFKAS_LOG: &[u8] = include_bytes!("../../../fixtures/consumer-offsets.log");
const EVERY_VERSION: &[u8] = include_bytes!("../../../fixtures/record-versions.batch");

/// Every key and value of a run of batches.
fn records_of(bytes: &[u8]) -> Vec<(Vec<u8>, Option<Vec<u8>>)> {
    let mut all = Vec::new();
    for batch in Batches::new(bytes) {
        let batch = batch.expect("a whole batch");
        batch.verify_crc().expect("Kafka's checksum");
        for record in &batch.records(1 << 20).expect("a readable body") {
            let record = record.expect("a readable record");
            all.push((record.key.expect("a key").to_vec(), record.value.map(<[u8]>::to_vec)));
        }
    }
    all
}

fn decoded(key: &[u8], value: Option<&[u8]>) -> Option<Record> {
    match decode(Some(key), value).expect("a readable record") {
        Decoded::Record(record) => Some(record),
        Decoded::Unknown { .. } => None,
    }
}

/// Decision 3: what Kafka wrote is read, and written again to the byte.
#[test]
fn kafkas_own_records_survive_us_unchanged() {
    let mut kept = 0;
    for (key, value) in records_of(KAFKAS_LOG) {
        let Some(record) = decoded(&key, value.as_deref()) else { continue };
        kept += 1;
        let encoded = encode(&record).expect("short names");
        assert_eq!(encoded, Encoded { key, value }, "{record:?}");
    }
    assert_eq!(kept, 27);
}

#[test]
fn kafkas_log_tells_the_groups_lives() {
    let mut told = Vec::new();
    let mut unknown = Vec::new();
    for (key, value) in records_of(KAFKAS_LOG) {
        match decode(Some(&key), value.as_deref()).expect("a readable record") {
            Decoded::Record(record) => told.push(tell(&record)),
            Decoded::Unknown { kind } => unknown.push(kind),
        }
    }
    let expected = [
        "shop: generation 0 of [] by -",
        "shop: generation 1 of [one] by range",
        "shop: generation 2 of [one, two] by range",
        "shop: orders-0 at 5 \"note\"",
        "shop: orders-2 at 7 \"\"",
        "shop: generation 3 of [one] by range",
        "simple: orders-1 at 1 \"\"",
        "simple: gone-0 at 2 \"ü\"",
        "simple: orders-1 forgotten",
        "shop: generation 4 of [] by -",
        "shop: orders-2 forgotten",
        "shop: orders-0 forgotten",
        "shop: forgotten",
        "modern: m wants [\"orders\"]",
        "modern: epoch 2",
        "modern: target of 3 partitions",
        "modern: target of epoch 2",
        "modern: Stable at epoch 2 with 3 partitions and 0 to revoke",
        "modern: orders-0 at 0 \"\"",
        "modern: orders-1 at 0 \"\"",
        "modern: orders-2 at 0 \"\"",
        "modern: forgotten",
        "modern: forgotten",
        "modern: forgotten",
        "modern: epoch 3",
        "modern: target of epoch 3",
        "simple: gone-0 forgotten",
    ];
    assert_eq!(told, expected);
    assert_eq!(unknown, []);
}

fn tell(record: &Record) -> String {
    match record {
        Record::OffsetCommit(commit) => {
            let of = format!("{}: {}-{}", commit.group, commit.topic, commit.partition);
            match &commit.value {
                Some(value) => format!("{of} at {} {:?}", value.offset, value.metadata),
                None => format!("{of} forgotten"),
            }
        }
        Record::GroupMetadata(group) => match &group.value {
            Some(value) => {
                let mut clients: Vec<_> =
                    value.members.iter().map(|member| &*member.client_id).collect();
                clients.sort_unstable();
                format!(
                    "{}: generation {} of [{}] by {}",
                    group.group,
                    value.generation,
                    clients.join(", "),
                    value.protocol.as_deref().unwrap_or("-"),
                )
            }
            None => format!("{}: forgotten", group.group),
        },
        other => format!("{}: {}", other.group(), tell_modern(other).unwrap_or("forgotten".into())),
    }
}

/// A record of the consumer protocol; none for a tombstone.
fn tell_modern(record: &Record) -> Option<String> {
    let count =
        |topics: &[HeldPartitions]| topics.iter().map(|t| t.partitions.len()).sum::<usize>();
    Some(match record {
        Record::OffsetCommit(_) | Record::GroupMetadata(_) => return None,
        Record::ConsumerGroupMetadata(group) => format!("epoch {}", group.value?.epoch),
        Record::ConsumerGroupPartitionMetadata(group) => {
            format!("{} topics", group.value.as_ref()?.len())
        }
        Record::ConsumerGroupMemberMetadata(member) => {
            let member = member.value.as_ref()?;
            format!("{} wants {:?}", member.client_id, member.topics)
        }
        Record::ConsumerGroupTargetAssignmentMetadata(target) => {
            format!("target of epoch {}", target.value?.epoch)
        }
        Record::ConsumerGroupTargetAssignmentMember(member) => {
            let partitions = member.value.as_ref()?.iter().map(|(_, partitions)| partitions.len());
            format!("target of {} partitions", partitions.sum::<usize>())
        }
        Record::ConsumerGroupCurrentMemberAssignment(member) => {
            let member = member.value.as_ref()?;
            let (assigned, revoking) = (count(&member.assigned), count(&member.revoking));
            let (state, epoch) = (member.state, member.epoch);
            format!(
                "{state:?} at epoch {epoch} with {assigned} partitions and {revoking} to revoke"
            )
        }
        Record::ConsumerGroupRegularExpression(regex) => {
            format!("/{}/ is {:?}", regex.regex, regex.value.as_ref()?.topics)
        }
    })
}

fn commit(value: OffsetCommitValue) -> Record {
    Record::OffsetCommit(OffsetCommit {
        group: "g".into(),
        topic: "t".into(),
        partition: PartitionId(3),
        value: Some(value),
    })
}

fn group(value: GroupMetadataValue) -> Record {
    Record::GroupMetadata(GroupMetadata { group: "g".into(), value: Some(Arc::new(value)) })
}

/// What is missing from an older layout has the value that Kafka gives it.
#[test]
fn every_version_that_kafka_reads_is_read() {
    let plain = OffsetCommitValue {
        offset: Offset(42),
        leader_epoch: None,
        metadata: "note".into(),
        committed_at: Timestamp(1000),
        expires_at: None,
        topic_id: TopicId::ZERO,
    };
    let mut id = TopicId::ZERO;
    (id.0[7], id.0[15]) = (1, 2);
    let leader_epoch = Some(LeaderEpoch(7));
    let mut expected = vec![
        commit(plain.clone()),
        commit(plain.clone()),
        commit(OffsetCommitValue { expires_at: Some(Timestamp(2000)), ..plain.clone() }),
        commit(plain.clone()),
        commit(OffsetCommitValue { leader_epoch, ..plain.clone() }),
        commit(OffsetCommitValue { leader_epoch, topic_id: id, ..plain }),
    ];
    expected.extend(group_metadata_versions());
    let read = records_of(EVERY_VERSION);
    let read = read.iter().map(|(key, value)| decoded(key, value.as_deref()).expect("our kind"));
    assert_eq!(read.collect::<Vec<_>>(), expected);
}

fn group_metadata_versions() -> Vec<Record> {
    let member = StoredMember {
        member: "m".into(),
        instance: Some("i".into()),
        client_id: "c".into(),
        client_host: "/h".into(),
        rebalance_timeout: Duration::from_millis(300),
        session_timeout: Duration::from_millis(100),
        subscription: [1, 2][..].into(),
        assignment: [3][..].into(),
    };
    let value = |state_since: Option<i64>, member: &StoredMember| {
        group(GroupMetadataValue {
            protocol_type: "consumer".into(),
            generation: Generation(5),
            protocol: Some("range".into()),
            leader: Some(MemberId::from("m")),
            state_since: state_since.map(Timestamp),
            members: vec![member.clone()],
        })
    };
    let dynamic = StoredMember { instance: None, ..member.clone() };
    let first = StoredMember { rebalance_timeout: Duration::from_millis(100), ..dynamic.clone() };
    let empty = GroupMetadataValue {
        protocol_type: "".into(),
        generation: Generation(0),
        protocol: None,
        leader: None,
        state_since: None,
        members: Vec::new(),
    };
    vec![
        value(None, &first),
        value(None, &dynamic),
        value(Some(1000), &dynamic),
        value(Some(1000), &member),
        value(Some(1000), &member),
        group(empty),
    ]
}

#[test]
fn other_kinds_are_told_apart_and_broken_ones_refused() {
    let later = decode(Some(&[0, 99, 1, 2, 3]), Some(&[]));
    assert_eq!(later, Ok(Decoded::Unknown { kind: 99 }));
    assert_eq!(decode(None, None), Err(RecordError::NoKind));
    assert_eq!(decode(Some(&[0]), None), Err(RecordError::NoKind));
    let group = [0, 2, 0, 1, b'g'];
    let value = decode(Some(&group), Some(&[0]));
    assert_eq!(value, Err(RecordError::NoVersion { kind: 2 }));
    // A layout that only a later Kafka knows: going on would lose the group.
    let later = decode(Some(&group), Some(&[0, 5, 0, 0]));
    assert!(matches!(later, Err(RecordError::Malformed { kind: 2, .. })), "{later:?}");
    let cut = decode(Some(&group[..4]), None);
    assert!(matches!(cut, Err(RecordError::Malformed { kind: 2, .. })), "{cut:?}");
}

/// A name as long as its field holds is written, a longer one is an error and not cut.
#[test]
fn a_name_too_long_for_its_field_is_an_error() {
    let named = |len: usize| {
        let group = "g".repeat(len).as_str().into();
        encode(&Record::GroupMetadata(GroupMetadata { group, value: None }))
    };
    assert!(named(32_767).is_ok());
    assert!(named(32_768).is_err());
}

fn arbitrary_text() -> impl Strategy<Value = String> {
    "[a-zü-]{0,20}"
}

fn arbitrary_commit() -> impl Strategy<Value = Record> {
    let value = (
        any::<i64>(),
        proptest::option::of(0..i32::MAX),
        arbitrary_text(),
        any::<i64>(),
        any::<[u8; 16]>(),
    );
    let value = value.prop_map(|(offset, epoch, metadata, at, id)| OffsetCommitValue {
        offset: Offset(offset),
        leader_epoch: epoch.map(LeaderEpoch),
        metadata: metadata.as_str().into(),
        committed_at: Timestamp(at),
        expires_at: None,
        topic_id: TopicId(id),
    });
    let key = (arbitrary_text(), arbitrary_text(), any::<i32>());
    (key, proptest::option::of(value)).prop_map(|((group, topic, partition), value)| {
        Record::OffsetCommit(OffsetCommit {
            group: group.into(),
            topic: topic.into(),
            partition: PartitionId(partition),
            value,
        })
    })
}

fn arbitrary_member() -> impl Strategy<Value = StoredMember> {
    let bytes = || proptest::collection::vec(any::<u8>(), 0..30);
    let texts = (arbitrary_text(), proptest::option::of(arbitrary_text()), arbitrary_text());
    let timeout = || (0..i32::MAX).prop_map(|ms| Duration::from_millis(ms as u64));
    (texts, arbitrary_text(), timeout(), timeout(), bytes(), bytes()).prop_map(
        |((member, instance, client_id), host, rebalance_timeout, session_timeout, s, a)| {
            StoredMember {
                member: member.into(),
                instance: instance.map(Into::into),
                client_id: client_id.as_str().into(),
                client_host: host.as_str().into(),
                rebalance_timeout,
                session_timeout,
                subscription: s.into(),
                assignment: a.into(),
            }
        },
    )
}

fn arbitrary_group() -> impl Strategy<Value = Record> {
    let names = (
        arbitrary_text(),
        arbitrary_text(),
        proptest::option::of(arbitrary_text()),
        proptest::option::of(arbitrary_text()),
    );
    let members = proptest::collection::vec(arbitrary_member(), 0..4);
    (names, any::<i32>(), proptest::option::of(0..i64::MAX), members).prop_map(
        |((id, protocol_type, protocol, leader), generation, since, members)| {
            let value = GroupMetadataValue {
                protocol_type: protocol_type.as_str().into(),
                generation: Generation(generation),
                protocol: protocol.as_deref().map(Into::into),
                leader: leader.map(Into::into),
                state_since: since.map(Timestamp),
                members,
            };
            let value = Some(Arc::new(value));
            Record::GroupMetadata(GroupMetadata { group: id.into(), value })
        },
    )
}

proptest! {
    #[test]
    fn records_come_back_as_they_were(
        record in prop_oneof![arbitrary_commit(), arbitrary_group()],
    ) {
        let encoded = encode(&record).expect("short names");
        let decoded = decode(Some(&encoded.key), encoded.value.as_deref());
        prop_assert_eq!(decoded, Ok(Decoded::Record(record.clone())));
        let bytes = encoded.key.len() + encoded.value.map_or(0, |value| value.len());
        prop_assert!(bytes <= record.estimated_bytes(), "estimated too low");
    }

    /// Layout 1, which can say when an offset expires, can say neither epoch nor topic id.
    #[test]
    fn an_expiring_offset_keeps_its_expiry(record in arbitrary_commit(), at in 0..i64::MAX) {
        let Record::OffsetCommit(mut commit) = record else { return Ok(()) };
        let Some(value) = &mut commit.value else { return Ok(()) };
        value.expires_at = Some(Timestamp(at));
        let encoded = encode(&Record::OffsetCommit(commit.clone())).expect("short names");
        if let Some(value) = &mut commit.value {
            (value.leader_epoch, value.topic_id) = (None, TopicId::ZERO);
        }
        let decoded = decode(Some(&encoded.key), encoded.value.as_deref());
        prop_assert_eq!(decoded, Ok(Decoded::Record(Record::OffsetCommit(commit))));
    }

    #[test]
    fn arbitrary_bytes_are_read_or_refused(
        kind in 0i16..4,
        version in 0i16..6,
        key in proptest::collection::vec(any::<u8>(), 0..30),
        value in proptest::collection::vec(any::<u8>(), 0..60),
    ) {
        let key = [&kind.to_be_bytes()[..], &key].concat();
        let value = [&version.to_be_bytes()[..], &value].concat();
        let _ = decode(Some(&key), Some(&value));
        let _ = decode(Some(&key), None);
    }
}

/// One record of each of the consumer protocol's kinds, with every field set to something.
fn modern() -> Vec<Record> {
    let (group, member) = (GroupId::from("g"), MemberId::from("m"));
    let topic = TopicId([7; 16]);
    let partitions = vec![PartitionId(3), PartitionId(1)];
    let stored = StoredTopic {
        id: topic,
        topic: "t".into(),
        partitions: 4,
        racks: vec![(PartitionId(1), vec!["r".into()])],
    };
    vec![
        Record::ConsumerGroupMetadata(ConsumerGroupMetadata {
            group: group.clone(),
            value: Some(ConsumerGroupMetadataValue { epoch: Generation(5), metadata_hash: -9 }),
        }),
        Record::ConsumerGroupPartitionMetadata(ConsumerGroupPartitionMetadata {
            group: group.clone(),
            value: Some(vec![stored]),
        }),
        Record::ConsumerGroupMemberMetadata(ConsumerGroupMemberMetadata {
            group: group.clone(),
            member: member.clone(),
            value: Some(Arc::new(says())),
        }),
        Record::ConsumerGroupTargetAssignmentMetadata(ConsumerGroupTargetAssignmentMetadata {
            group: group.clone(),
            value: Some(ConsumerGroupTargetAssignmentMetadataValue {
                epoch: Generation(5),
                assigned_at: Timestamp(1000),
            }),
        }),
        Record::ConsumerGroupTargetAssignmentMember(ConsumerGroupTargetAssignmentMember {
            group: group.clone(),
            member: member.clone(),
            value: Some(vec![(topic, partitions.clone())]),
        }),
        Record::ConsumerGroupCurrentMemberAssignment(ConsumerGroupCurrentMemberAssignment {
            group: group.clone(),
            member,
            value: Some(Arc::new(holds(&partitions))),
        }),
        Record::ConsumerGroupRegularExpression(ConsumerGroupRegularExpression {
            group,
            regex: "v.*".into(),
            value: Some(ConsumerGroupRegularExpressionValue {
                topics: vec!["v1".into()],
                version: 12,
                resolved_at: Timestamp(1000),
            }),
        }),
    ]
}

fn says() -> ConsumerGroupMemberMetadataValue {
    ConsumerGroupMemberMetadataValue {
        instance: Some("i".into()),
        rack: Some("r".into()),
        client_id: "c".into(),
        client_host: "/h".into(),
        topics: vec!["t".into(), "u".into()],
        regex: Some("v.*".into()),
        rebalance_timeout: Some(Duration::from_millis(300)),
        assignor: Some("uniform".into()),
        classic: Some(ClassicMember {
            session_timeout: Duration::from_millis(100),
            protocols: vec![("range".into(), [1, 2][..].into())],
        }),
    }
}

fn holds(partitions: &[PartitionId]) -> ConsumerGroupCurrentMemberAssignmentValue {
    let (topic, partitions) = (TopicId([7; 16]), partitions.to_vec());
    let held = |epochs| HeldPartitions { topic, partitions: partitions.clone(), epochs };
    ConsumerGroupCurrentMemberAssignmentValue {
        epoch: Generation(5),
        previous_epoch: Generation(4),
        state: StoredState::Unrevoked,
        assigned: vec![held(Some(vec![Generation(5), Generation(2)]))],
        revoking: vec![held(None)],
    }
}

/// KIP-848: each kind comes back as it was, and takes no more room than the core reckons with.
#[test]
fn the_consumer_protocols_records_come_back_as_they_were() {
    for record in modern() {
        let encoded = encode(&record).expect("short names");
        let read = decode(Some(&encoded.key), encoded.value.as_deref());
        assert_eq!(read, Ok(Decoded::Record(record.clone())));
        let bytes = encoded.key.len() + encoded.value.map_or(0, |value| value.len());
        assert!(bytes <= record.estimated_bytes(), "{record:?} takes {bytes}");
        let end = decode(Some(&encoded.key), None).expect("a tombstone");
        let Decoded::Record(end) = end else { panic!("a kind we keep: {end:?}") };
        assert_eq!(tell_modern(&end), None);
        assert_eq!(encode(&end).map(|end| end.key), Ok(encoded.key));
    }
}
