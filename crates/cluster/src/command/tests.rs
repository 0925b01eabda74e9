//! Decisions, one at a time and at random. The texts are what a Kafka 4.4 broker answers.

use super::*;
use crate::config::Registry;
use crate::record::{BrokerRecord, ConfigResource, ListenerRecord, broker_key, put};
use crate::store::{Change, Entry, Revision, SessionId, Snapshot, Txn};
use ottla_model::{NodeId, TopicId};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;

/// An image with brokers 1 and 2, that commands are applied to without a store.
struct Bench {
    image: Image,
    entries: BTreeMap<Key, Entry>,
    limits: Limits,
    drawn: u128,
}

impl Bench {
    fn new() -> Self {
        let registry = Arc::new(Registry::new(&[], &[], Default::default()).unwrap());
        let image = Image::empty(NodeId(1), registry);
        let (limits, entries) = (Limits::default(), BTreeMap::new());
        let mut bench = Self { image, entries, limits, drawn: 0 };
        let listener = ListenerRecord { name: "X".into(), host: "h".into(), port: 1 };
        let record = BrokerRecord { listeners: vec![listener], rack: None };
        bench.fold([1, 2].map(|node| put(broker_key(NodeId(node)), &record)).to_vec());
        bench
    }

    fn submit<C: Command>(&mut self, mut command: C) -> C::Reply {
        let mut fresh = || {
            self.drawn += 1;
            self.drawn.to_be_bytes()
        };
        let mut means = Means { limits: &self.limits, fresh: &mut fresh };
        let plan = command.decide(&self.image, &mut means);
        let txn = Txn { expects: Vec::new(), ops: plan.ops.clone() };
        crate::store::check(&txn).expect("a plan fits into a transaction");
        self.fold(plan.ops);
        plan.reply
    }

    fn fold(&mut self, ops: Vec<Op>) {
        let revision = Revision(self.image.revision().0 + 1);
        let mut change = |op| match op {
            Op::Put { key, value, session } => {
                let entry = Entry { key: key.clone(), value, revision, session };
                self.entries.insert(key, entry.clone());
                Change::Put(entry)
            }
            Op::Delete { key } => {
                self.entries.remove(&key);
                Change::Deleted(key)
            }
        };
        let changes: Vec<_> = ops.into_iter().map(&mut change).collect();
        self.image = self.image.after(revision, &changes).unwrap();
    }

    fn create(&mut self, topic: NewTopic) -> Result<CreatedTopic, Refusal> {
        let topics = vec![topic];
        self.submit(CreateTopics { topics, validate_only: false }).remove(0)
    }
}

fn refused<T: std::fmt::Debug>(outcome: Result<T, Refusal>, kind: RefusalKind, message: &str) {
    let refusal = outcome.unwrap_err();
    assert_eq!((refusal.kind, &*refusal.message), (kind, message));
}

#[test]
fn names_are_refused_in_kafkas_words() {
    let mut bench = Bench::new();
    bench.create(NewTopic::named("a.b")).unwrap();
    let long = "x".repeat(250);
    for (name, why) in [
        ("", "Topic name is invalid: the empty string is not allowed".to_owned()),
        (".", "Topic name is invalid: '.' is not allowed".to_owned()),
        ("..", "Topic name is invalid: '..' is not allowed".to_owned()),
        (
            &*long,
            format!(
                "Topic name is invalid: the length of '{long}' is longer than the max allowed \
                 length 249"
            ),
        ),
        (
            "a b",
            "Topic name is invalid: 'a b' contains one or more characters other than ASCII \
             alphanumerics, '.', '_' and '-'"
                .to_owned(),
        ),
        ("a_b", "Topic 'a_b' collides with existing topic: a.b".to_owned()),
    ] {
        refused(bench.create(NewTopic::named(name)), RefusalKind::InvalidTopic, &why);
    }
    let exists = bench.create(NewTopic::named("a.b"));
    refused(exists, RefusalKind::TopicAlreadyExists, "Topic 'a.b' already exists.");
    // Within one request the first of two that collide wins.
    let topics = vec![NewTopic::named("c.d"), NewTopic::named("c_d"), NewTopic::named("c.d")];
    let outcomes = bench.submit(CreateTopics { topics, validate_only: false });
    let kinds: Vec<_> = outcomes.into_iter().map(|o| o.map(drop).map_err(|r| r.kind)).collect();
    let expected = [Ok(()), Err(RefusalKind::InvalidTopic), Err(RefusalKind::TopicAlreadyExists)];
    assert_eq!(kinds, expected);
}

#[test]
fn counts_are_refused_in_kafkas_words() {
    let mut bench = Bench::new();
    let mut create = |partitions, replication_factor| {
        bench.create(NewTopic { partitions, replication_factor, ..NewTopic::named("t") })
    };
    let message = "Number of partitions was set to an invalid non-positive value.";
    refused(create(0, 1), RefusalKind::InvalidPartitions, message);
    refused(create(-2, 1), RefusalKind::InvalidPartitions, message);
    let message = "Replication factor must be larger than 0, or -1 to use the default value.";
    refused(create(1, 0), RefusalKind::InvalidReplicationFactor, message);
    let message = "Unable to replicate the partition 3 time(s): The target replication factor of \
                   3 cannot be reached because only 2 broker(s) are registered.";
    refused(create(1, 3), RefusalKind::InvalidReplicationFactor, message);
    let message = "Excessively large number of partitions per request.";
    refused(create(10_001, 1), RefusalKind::PolicyViolation, message);
    refused(create(i32::MAX, 1), RefusalKind::PolicyViolation, message);
    let created = create(10_000, 2).unwrap();
    assert_eq!((created.partitions, created.replication_factor), (10_000, 2));
}

#[test]
fn replicas_by_hand_are_checked() {
    let mut bench = Bench::new();
    let mut create = |assignments: &[(i32, &[i32])]| {
        let assignments = assignments
            .iter()
            .map(|(partition, nodes)| Assignment {
                partition: *partition,
                replicas: nodes.iter().map(|node| NodeId(*node)).collect(),
            })
            .collect();
        bench.create(NewTopic { assignments, ..NewTopic::named("t") })
    };
    let kind = RefusalKind::InvalidReplicaAssignment;
    let message = "partitions should be a consecutive 0-based integer sequence";
    refused(create(&[(0, &[1]), (2, &[1])]), kind, message);
    let message = "Found multiple manual partition assignments for partition 0";
    refused(create(&[(0, &[1]), (0, &[2])]), kind, message);
    for wrong in [&[][..], &[1, 1], &[7]] {
        assert_eq!(create(&[(0, wrong)]).unwrap_err().kind, kind);
    }
    assert_eq!(create(&[(0, &[1, 2]), (1, &[1])]).unwrap_err().kind, kind);
    assert_eq!(create(&[(1, &[2]), (0, &[1])]).unwrap().partitions, 2);
    let topic = bench.image.topic("t").unwrap();
    let leaders: Vec<_> = bench.image.partitions_of(topic).map(|p| p.leader.0).collect();
    assert_eq!(leaders, [1, 2]);
}

#[test]
fn checking_only_changes_nothing() {
    let mut bench = Bench::new();
    let topics = vec![NewTopic::named("t")];
    let outcome = bench.submit(CreateTopics { topics, validate_only: true });
    assert!(outcome[0].is_ok());
    assert_eq!(bench.image.topic_count(), 0);
}

#[test]
fn limits_are_policy_violations() {
    let mut bench = Bench::new();
    bench.limits = Limits { topics: 2, partitions: 5, ..bench.limits };
    let topic = |name: &str, partitions| NewTopic { partitions, ..NewTopic::named(name) };
    bench.create(topic("a", 3)).unwrap();
    assert_eq!(bench.create(topic("b", 3)).unwrap_err().kind, RefusalKind::PolicyViolation);
    bench.create(topic("b", 1)).unwrap();
    assert_eq!(bench.create(topic("c", 1)).unwrap_err().kind, RefusalKind::PolicyViolation);
    let more = |count| MorePartitions { name: "b".into(), count, assignments: None };
    let mut grow = |count| {
        bench.submit(CreatePartitions { topics: vec![more(count)], validate_only: false }).remove(0)
    };
    assert_eq!(grow(3).unwrap_err().kind, RefusalKind::PolicyViolation);
    grow(2).unwrap();
}

#[test]
fn growth_is_refused_in_kafkas_words() {
    let mut bench = Bench::new();
    bench.create(NewTopic { partitions: 2, ..NewTopic::named("t") }).unwrap();
    let mut grow = |name: &str, count, assignments| {
        let topics = vec![MorePartitions { name: name.into(), count, assignments }];
        bench.submit(CreatePartitions { topics, validate_only: false }).remove(0)
    };
    let kind = RefusalKind::InvalidPartitions;
    refused(grow("t", 2, None), kind, "Topic already has 2 partition(s).");
    let message = "The topic t currently has 2 partition(s); 1 would not be an increase.";
    refused(grow("t", 1, None), kind, message);
    let message = "Attempted to add 2 additional partition(s), but only 1 assignment(s) were \
                   specified.";
    let one = Some(vec![vec![NodeId(1)]]);
    refused(grow("t", 4, one), RefusalKind::InvalidReplicaAssignment, message);
    let unknown = grow("u", 4, None).unwrap_err().kind;
    assert_eq!(unknown, RefusalKind::UnknownTopicOrPartition);
    grow("t", 4, Some(vec![vec![NodeId(2)], vec![NodeId(1)]])).unwrap();
    assert_eq!(bench.image.topic("t").unwrap().partition_count(), 4);
}

/// Where groups live is computed from this topic's count.
#[test]
fn the_offsets_topic_neither_grows_nor_goes() {
    let mut bench = Bench::new();
    bench.create(NewTopic::named(crate::names::OFFSETS_TOPIC)).unwrap();
    let name = crate::names::OFFSETS_TOPIC.to_owned();
    let topics = vec![MorePartitions { name: name.clone(), count: 60, assignments: None }];
    let grown = bench.submit(CreatePartitions { topics, validate_only: false }).remove(0);
    assert_eq!(grown.unwrap_err().kind, RefusalKind::InvalidRequest);
    let topics = vec![TopicRef::Name(name)];
    let deleted = bench.submit(DeleteTopics { topics }).remove(0);
    assert_eq!(deleted.unwrap_err().kind, RefusalKind::InvalidRequest);
}

#[test]
fn incremental_changes_follow_kafka() {
    let mut bench = Bench::new();
    bench.create(NewTopic::named("t")).unwrap();
    let mut edit = |steps: Vec<(&str, ConfigOp)>| {
        let steps = steps.into_iter().map(|(name, op)| (name.to_owned(), op)).collect();
        let resource = ConfigResource::topic("t");
        let changes = vec![ConfigChange { resource, edit: ConfigEdit::Edit(steps) }];
        let outcome = bench.submit(AlterConfigs { changes, validate_only: false }).remove(0);
        let now = bench.image.topic("t").unwrap().overrides.clone();
        outcome.map(|()| now.iter().map(|(n, v)| format!("{n}={v}")).collect::<Vec<_>>())
    };
    let append = edit(vec![("cleanup.policy", ConfigOp::Append("compact,delete".into()))]);
    assert_eq!(append.unwrap(), ["cleanup.policy=delete,compact"]);
    let subtract = edit(vec![("cleanup.policy", ConfigOp::Subtract("delete".into()))]);
    assert_eq!(subtract.unwrap(), ["cleanup.policy=compact"]);
    let message = "Can't APPEND to key retention.ms because its type is not LIST.";
    let wrong = edit(vec![("retention.ms", ConfigOp::Append("1".into()))]);
    refused(wrong, RefusalKind::InvalidConfig, message);
    // One bad step and nothing of the resource changes.
    let steps = vec![("retention.ms", ConfigOp::Set("5".into())), ("x", ConfigOp::Set("5".into()))];
    refused(edit(steps), RefusalKind::InvalidConfig, "Unknown topic config name: x");
    let gone = edit(vec![("cleanup.policy", ConfigOp::Delete)]).unwrap();
    assert!(gone.is_empty());
}

#[test]
fn replacing_settings_drops_those_not_named() {
    let mut bench = Bench::new();
    bench.create(NewTopic::named("t")).unwrap();
    let mut replace = |name: &str, values: &[(&str, Option<&str>)]| {
        let values = values
            .iter()
            .map(|(name, value)| ((*name).to_owned(), value.map(str::to_owned)))
            .collect();
        let resource = ConfigResource::topic(name);
        let changes = vec![ConfigChange { resource, edit: ConfigEdit::Replace(values) }];
        bench.submit(AlterConfigs { changes, validate_only: false }).remove(0)
    };
    replace("t", &[("retention.ms", Some("1")), ("segment.ms", Some("2"))]).unwrap();
    replace("t", &[("segment.ms", Some("3"))]).unwrap();
    let message = "Null value not supported for topic configs: segment.ms";
    refused(replace("t", &[("segment.ms", None)]), RefusalKind::InvalidConfig, message);
    let message = "The topic 'u' does not exist.";
    refused(replace("u", &[]), RefusalKind::UnknownTopicOrPartition, message);
    let overrides = &bench.image.topic("t").unwrap().overrides;
    assert_eq!(overrides.get("segment.ms").map(String::as_str), Some("3"));
    assert_eq!(overrides.len(), 1);
}

#[test]
fn broker_settings_keep_their_scope() {
    let mut bench = Bench::new();
    let mut set = |resource, name: &str, value: &str| {
        let steps = vec![(name.to_owned(), ConfigOp::Set(value.into()))];
        let changes = vec![ConfigChange { resource, edit: ConfigEdit::Edit(steps) }];
        bench.submit(AlterConfigs { changes, validate_only: false }).remove(0)
    };
    let kind = RefusalKind::InvalidRequest;
    let every = ConfigResource::every_broker;
    let fixed = set(every(), "num.partitions", "3");
    refused(fixed, kind, "Cannot update these configs dynamically: [num.partitions]");
    let message = "Invalid value x for configuration log.retention.ms: Not a number of type LONG";
    refused(set(every(), "log.retention.ms", "x"), kind, message);
    set(ConfigResource::broker(NodeId(1)), "log.retention.ms", "4").unwrap();
    set(every(), "log.retention.ms", "3").unwrap();
    let resource = ConfigResource { kind: crate::record::ResourceKind::Broker, name: "x".into() };
    let message = "Unable to parse broker name as a base 10 number.";
    refused(set(resource, "log.retention.ms", "3"), kind, message);
}

/// KIP-584.
#[test]
fn features_rise_freely_and_fall_on_demand() {
    let mut bench = Bench::new();
    let mut update = |level, may_fall| {
        let name = "group.version".to_owned();
        let changes = vec![FeatureChange { name, level, may_fall, supported: Some((0, 1)) }];
        bench.submit(UpdateFeatures { changes, validate_only: false }).map_err(|r| r.kind)
    };
    assert_eq!(update(2, false), Err(RefusalKind::InvalidUpdateVersion));
    assert_eq!(update(1, false), Ok(()));
    assert_eq!(update(0, false), Err(RefusalKind::InvalidUpdateVersion));
    assert_eq!(update(0, true), Ok(()));
    assert_eq!(bench.image.feature("group.version"), None);
}

/// Random commands against a plain picture of what they should amount to.
#[derive(Clone, Debug)]
enum Move {
    Create(u8, i32),
    Delete(u8),
    Grow(u8, i32),
    Raise(u8, i32),
    Set(u8, i64),
    Claim(i32, u64),
    Finish(u8),
}

fn moves() -> impl Strategy<Value = Vec<Move>> {
    let one = prop_oneof![
        (0..4_u8, -1..5_i32).prop_map(|(topic, n)| Move::Create(topic, n)),
        (0..4_u8).prop_map(Move::Delete),
        (0..4_u8, 0..8_i32).prop_map(|(topic, n)| Move::Grow(topic, n)),
        (0..4_u8, 0..8_i32).prop_map(|(topic, n)| Move::Raise(topic, n)),
        (0..4_u8, -3..100_i64).prop_map(|(topic, n)| Move::Set(topic, n)),
        (0..3_i32, 1..3_u64).prop_map(|(shard, session)| Move::Claim(shard, session)),
        (0..4_u8).prop_map(Move::Finish),
    ];
    prop::collection::vec(one, 1..60)
}

fn play(bench: &mut Bench, step: &Move) {
    let name = |topic: &u8| format!("t{topic}");
    match step {
        Move::Create(topic, partitions) => {
            let topic = NewTopic { partitions: *partitions, ..NewTopic::named(name(topic)) };
            let _ = bench.create(topic);
        }
        Move::Delete(topic) => {
            bench.submit(DeleteTopics { topics: vec![TopicRef::Name(name(topic))] });
        }
        Move::Grow(topic, count) => {
            let more = MorePartitions { name: name(topic), count: *count, assignments: None };
            bench.submit(CreatePartitions { topics: vec![more], validate_only: false });
        }
        Move::Raise(topic, partition) => {
            if let Some(id) = bench.image.topic(&name(topic)).map(|topic| topic.id) {
                let partition = ottla_model::PartitionId(*partition);
                let partitions = vec![(id, partition, ottla_model::LeaderEpoch(0))];
                bench.submit(RaiseLeaderEpochs { node: NodeId(1), partitions });
            }
        }
        Move::Set(topic, value) => {
            let op = ConfigOp::Set(value.to_string());
            let resource = ConfigResource::topic(name(topic));
            let edit = ConfigEdit::Edit(vec![("retention.ms".into(), op)]);
            let changes = vec![ConfigChange { resource, edit }];
            bench.submit(AlterConfigs { changes, validate_only: false });
        }
        Move::Claim(shard, session) => {
            let session = SessionId(*session);
            let partitions = vec![ottla_model::PartitionId(*shard)];
            bench.submit(ClaimShards { node: NodeId(1), session, partitions });
        }
        Move::Finish(nth) => {
            let topic = bench.image.deleted().nth((*nth).into()).map(|(id, _)| id);
            for node in [NodeId(1), NodeId(2)] {
                let topic = topic.unwrap_or(TopicId([9; 16]));
                while bench.submit(FinishDeletion { topic, node }) {}
            }
        }
    }
}

/// What must hold of two images that follow each other.
fn check_step(before: &Image, after: &Image) -> Result<(), TestCaseError> {
    let count: usize = after.topics().map(|topic| topic.partition_count() as usize).sum();
    prop_assert_eq!(after.partition_count(), count);
    prop_assert_eq!(after.view().topics().count(), after.topic_count());
    for topic in after.topics() {
        prop_assert_eq!(&after.topic_by_id(topic.id).unwrap().name, &topic.name);
        prop_assert!(after.deleted_topic(topic.id).is_none(), "a deleted id came back");
        prop_assert_eq!(
            after.view().topic_by_id(topic.id).unwrap().partitions.len(),
            topic.partition_count() as usize
        );
        let Some(old) = before.topic_by_id(topic.id) else { continue };
        prop_assert!(topic.partition_count() >= old.partition_count());
        for (now, then) in after.partitions_of(topic).zip(before.partitions_of(old)) {
            prop_assert!(now.leader_epoch >= then.leader_epoch);
        }
    }
    for shard in (0..3).map(ottla_model::PartitionId) {
        let (now, then) = (after.shard(shard), before.shard(shard));
        prop_assert!(now.map(|shard| shard.epoch) >= then.map(|shard| shard.epoch));
    }
    Ok(())
}

proptest! {
    /// Ids never return, reigns and counts never fall, and the image of all changes one by one is
    /// the image of everything at once.
    #[test]
    fn any_sequence_of_commands_keeps_the_rules(moves in moves()) {
        let mut bench = Bench::new();
        for step in &moves {
            let before = bench.image.clone();
            play(&mut bench, step);
            check_step(&before, &bench.image)?;
        }
    }

    /// A broker that follows every change and one that reads everything see the same cluster.
    #[test]
    fn following_and_reading_anew_come_to_the_same(moves in moves()) {
        let mut bench = Bench::new();
        for step in &moves {
            play(&mut bench, step);
        }
        let revision = bench.image.revision();
        let snapshot = Snapshot { revision, entries: bench.entries.values().cloned().collect() };
        let registry = bench.image.registry().clone();
        let anew = Image::load(NodeId(1), registry, snapshot).unwrap();
        prop_assert_eq!(format!("{:#?}", anew), format!("{:#?}", bench.image));
    }
}
