//! Every kind goes there and back, and its bytes stay what they once were.

use super::*;
use proptest::prelude::*;

/// One fixture per kind: a store written by any released version must stay readable.
#[test]
fn stored_bytes_stay_as_they_are() {
    let id = TopicId(core::array::from_fn(|byte| byte as u8));
    let pinned = [
        (
            put(cluster_key(), &ClusterRecord { format: 1, id: "AAECAwQFBgcICQoLDA0ODw".into() }),
            "cluster",
            r#"{"format":1,"id":"AAECAwQFBgcICQoLDA0ODw"}"#,
        ),
        (
            put(
                topic_key("t"),
                &TopicRecord { id, replicas: vec![vec![NodeId(1)], vec![NodeId(2)]] },
            ),
            "topics/t",
            r#"{"id":"AAECAwQFBgcICQoLDA0ODw","replicas":[[1],[2]]}"#,
        ),
        (
            put(leader_key(id, PartitionId(3)), &LeaderRecord { node: 1, epoch: 7 }),
            "leaders/AAECAwQFBgcICQoLDA0ODw/3",
            r#"{"node":1,"epoch":7}"#,
        ),
        (
            put(
                deleted_key(id),
                &DeletedRecord { name: "t".into(), partitions: 2, pending: vec![1] },
            ),
            "deleted/AAECAwQFBgcICQoLDA0ODw",
            r#"{"name":"t","partitions":2,"pending":[1]}"#,
        ),
        (
            put(configs_key(&ConfigResource::topic("t")), &BTreeMap::from([("a", "b")])),
            "configs/topic/t",
            r#"{"a":"b"}"#,
        ),
        (
            put(broker_key(NodeId(1)), &broker()),
            "brokers/1",
            r#"{"listeners":[{"name":"X","host":"h","port":9092}],"rack":"r"}"#,
        ),
        (put(feature_key("group.version"), &1), "features/group.version", "1"),
        (
            put(producer_ids_key(), &ProducerIdsRecord { next: 1000 }),
            "producer-ids",
            r#"{"next":1000}"#,
        ),
        (put(shard_key(PartitionId(9)), &ShardRecord { epoch: 2 }), "shards/9", r#"{"epoch":2}"#),
        (
            put(shard_lock_key(PartitionId(9)), &ShardLockRecord { node: 1 }),
            "shard-locks/9",
            r#"{"node":1}"#,
        ),
        (
            put(writer_key(NodeId(1)), &WriterRecord { token: "x".into() }),
            "writers/1",
            r#"{"token":"x"}"#,
        ),
    ];
    for (op, key, value) in pinned {
        let Op::Put { key: written_key, value: written, .. } = op else { unreachable!() };
        assert_eq!(&*written_key, key);
        assert_eq!(std::str::from_utf8(&written).unwrap(), value, "{key}");
        let row = Row::parse(key, &written).unwrap().expect("a known kind");
        // A later version's extra field is skipped.
        let extended = value.replacen('{', r#"{"later":[1,{"x":null}],"#, 1);
        if value.starts_with('{') && !key.starts_with("configs") {
            assert_eq!(Row::parse(key, extended.as_bytes()), Ok(Some(row)), "{key}");
        }
    }
}

#[test]
fn unknown_kinds_are_skipped_and_damaged_ones_named() {
    assert_eq!(Row::parse("later/x", b"\xff"), Ok(None));
    for key in ["topics/t", "leaders/x/1", "deleted/x", "configs/what/x", "brokers/x", "cluster"] {
        let error = Row::parse(key, b"{}").unwrap_err().to_string();
        assert!(error.contains(key), "{error}");
    }
}

fn broker() -> BrokerRecord {
    let listeners = vec![ListenerRecord { name: "X".into(), host: "h".into(), port: 9092 }];
    BrokerRecord { listeners, rack: Some("r".into()) }
}

proptest! {
    /// KIP-516: text and bytes of an id are one to one.
    #[test]
    fn ids_go_there_and_back(bytes: [u8; 16]) {
        prop_assert_eq!(parse_uuid(&TopicId(bytes).to_string()), Some(bytes));
    }

    #[test]
    fn only_an_ids_own_text_is_parsed(text in "[A-Za-z0-9_-]{20,24}|.{0,24}") {
        if let Some(bytes) = parse_uuid(&text) {
            prop_assert_eq!(TopicId(bytes).to_string(), text);
        }
    }

    #[test]
    fn any_entry_is_read_without_panic(key in ".{0,40}", value: Vec<u8>) {
        let _ = Row::parse(&key, &value);
    }

    /// KAFKA-10734: a tool takes an argument that starts with a dash for an option.
    #[test]
    fn fresh_ids_never_start_with_a_dash(mut seeds in prop::collection::vec(any::<[u8; 16]>(), 8)) {
        seeds.push([0; 16]);
        seeds.insert(0, [0xfb; 16]);
        let mut seeds = seeds.into_iter();
        let id = random_uuid(&mut || seeds.next().expect("one of them will do"));
        prop_assert!(!TopicId(id).to_string().starts_with('-'));
    }
}
