//! The cluster through its handle, on the embedded store, with the driver on a thread.

use super::*;
use crate::command::{
    ConfigChange, ConfigEdit, ConfigOp, CreateTopics, MorePartitions, NewTopic, TopicRef,
};
use crate::record::{ConfigResource, ListenerRecord};
use crate::store::embedded::Embedded;
use ottla_model::Instant;
use pollster::block_on;
use redb::backends::InMemoryBackend;
use std::thread::JoinHandle;

/// A running cluster of one broker, joined.
pub(crate) struct Rig {
    pub(crate) cluster: Cluster,
    pub(crate) tenure: Tenure,
    driver: JoinHandle<Result<(), crate::DriverError>>,
}

impl Rig {
    pub(crate) fn start(store: Arc<dyn Store>) -> Self {
        Self::start_as(1, store)
    }

    pub(crate) fn start_as(node: i32, store: Arc<dyn Store>) -> Self {
        let mut drawn = 0_u128;
        let fresh = move || {
            drawn += 1;
            (drawn << 64 | node as u128).to_be_bytes()
        };
        let setup = Setup {
            node: NodeId(node),
            registry: Registry::new(&[], &[], Default::default()).unwrap(),
            limits: Limits::default(),
            fresh: Box::new(fresh),
        };
        let (cluster, driver) = block_on(Cluster::open(store, setup)).unwrap();
        let driver = std::thread::spawn(move || block_on(driver.run()));
        let tenure = block_on(cluster.join(record(), TTL, Instant::ZERO)).unwrap();
        Self { cluster, tenure, driver }
    }

    pub(crate) fn stop(self) -> Result<(), crate::DriverError> {
        drop(self.cluster);
        self.driver.join().unwrap()
    }
}

fn record() -> BrokerRecord {
    let listener = ListenerRecord { name: "PLAINTEXT".into(), host: "h".into(), port: 9092 };
    BrokerRecord { listeners: vec![listener], rack: Some("r1".into()) }
}

fn memory() -> Arc<dyn Store> {
    Arc::new(Embedded::open_backend(InMemoryBackend::new()).unwrap())
}

const TTL: Duration = Duration::from_secs(10);

#[test]
fn what_is_created_is_seen_at_once() {
    let rig = Rig::start(memory());
    let cluster = &rig.cluster;
    let mut changes = cluster.changes(&cluster.image());
    let topic = NewTopic { partitions: 3, ..NewTopic::named("orders") };
    let created = block_on(cluster.create_topics(vec![topic], false)).unwrap();
    let created = created[0].as_ref().unwrap();
    let image = cluster.image();
    let orders = image.topic("orders").unwrap();
    assert_eq!((orders.id, orders.partition_count()), (created.id, 3));
    assert_eq!(image.topic_by_id(created.id).unwrap().name, orders.name);
    let view = image.view().topic("orders").unwrap();
    assert_eq!(view.partitions.len(), 3);
    assert_eq!(&*view.partitions[0].racks[0], "r1");
    assert_eq!(block_on(changes.next()).unwrap().revision(), image.revision());
    rig.stop().unwrap();
}

/// A cluster's id, topics, settings and reigns outlive the process; brokers and owners do not.
#[test]
fn a_restart_keeps_what_is_durable_and_forgets_who_lived() {
    let dir = tempfile::tempdir().unwrap();
    let open = || {
        let lock = crate::store::DirLock::acquire(dir.path()).unwrap();
        Arc::new(Embedded::open(lock).unwrap())
    };
    let rig = Rig::start(open());
    let cluster = &rig.cluster;
    block_on(cluster.ensure_offsets_topic()).unwrap().unwrap();
    let grants = block_on(cluster.claim_shards(&rig.tenure, vec![PartitionId(7)])).unwrap();
    assert_eq!(grants[0].as_ref().unwrap().epoch.0, 1);
    let offsets = cluster.image().topic(names::OFFSETS_TOPIC).unwrap().clone();
    assert_eq!(offsets.partition_count(), 50);
    assert!(offsets.settings.cleanup_policy.compact && !offsets.settings.cleanup_policy.delete);
    let raised = [(offsets.id, PartitionId(7), LeaderEpoch(4))];
    let raised = block_on(cluster.raise_leader_epochs(raised.to_vec())).unwrap();
    assert_eq!(raised, [Ok(LeaderEpoch(5))]);
    let first_id = block_on(cluster.next_producer_id()).unwrap();
    let before = cluster.image();
    rig.stop().unwrap();

    let rig = Rig::start(open());
    let cluster = &rig.cluster;
    let image = cluster.image();
    assert_eq!(image.cluster_id(), before.cluster_id());
    assert_eq!(image.cluster_id().len(), 22);
    assert_eq!(image.topic(names::OFFSETS_TOPIC).unwrap().id, offsets.id);
    let partition = image.partition_of(&offsets, PartitionId(7)).unwrap();
    assert_eq!(partition.leader_epoch, LeaderEpoch(5));
    assert_eq!(image.shard(PartitionId(7)).unwrap().owner, None);
    let grants = block_on(cluster.claim_shards(&rig.tenure, vec![PartitionId(7)])).unwrap();
    assert_eq!(grants[0].as_ref().unwrap().epoch.0, 2);
    assert!(block_on(cluster.next_producer_id()).unwrap().0 >= first_id.0 + 1000);
    assert!(image.broker(NodeId(1)).unwrap().epoch > before.broker(NodeId(1)).unwrap().epoch);
    rig.stop().unwrap();
}

/// Issue 3: a recreated topic inherits nothing.
#[test]
fn a_recreated_topic_is_another_one() {
    let rig = Rig::start(memory());
    let cluster = &rig.cluster;
    let configs = vec![("retention.ms".to_owned(), Some("5".to_owned()))];
    let topic = NewTopic { configs, ..NewTopic::named("t") };
    let first = block_on(cluster.create_topics(vec![topic], false)).unwrap().remove(0).unwrap();
    block_on(cluster.raise_leader_epochs(vec![(first.id, PartitionId(0), LeaderEpoch(0))]))
        .unwrap();
    let deleted = block_on(cluster.delete_topics(vec![TopicRef::Name("t".into())])).unwrap();
    assert_eq!(deleted[0].as_ref().unwrap().id, first.id);
    assert!(cluster.image().topic("t").is_none());
    assert!(cluster.image().deleted_topic(first.id).is_some());

    let again = NewTopic::named("t");
    let second = block_on(cluster.create_topics(vec![again], false)).unwrap().remove(0).unwrap();
    let image = cluster.image();
    assert_ne!(second.id, first.id);
    let topic = image.topic("t").unwrap();
    assert_eq!(topic.settings.retention, Some(Duration::from_millis(604_800_000)));
    assert_eq!(image.partition_of(topic, PartitionId(0)).unwrap().leader_epoch, LeaderEpoch(0));

    block_on(cluster.finish_deletion(first.id)).unwrap();
    let image = cluster.image();
    assert!(image.deleted().next().is_none());
    assert_eq!(image.reigns_of(first.id).count(), 0);
    assert!(image.topic("t").is_some());
    rig.stop().unwrap();
}

/// One transaction holds 128 operations: longer lists are split, and many at once is no trouble.
#[test]
fn a_thousand_topics_in_one_call() {
    let rig = Rig::start(memory());
    let topics = (0..1000).map(|n| NewTopic::named(format!("t-{n}"))).collect();
    let created = block_on(rig.cluster.create_topics(topics, false)).unwrap();
    assert!(created.iter().all(Result::is_ok));
    assert_eq!(rig.cluster.image().topic_count(), 1000);
    let all = (0..1000).map(|n| TopicRef::Name(format!("t-{n}"))).collect();
    let deleted = block_on(rig.cluster.delete_topics(all)).unwrap();
    assert!(deleted.iter().all(Result::is_ok));
    assert_eq!(
        (rig.cluster.image().topic_count(), rig.cluster.image().deleted().count()),
        (0, 1000)
    );
    rig.stop().unwrap();
}

#[test]
fn settings_of_all_brokers_reach_topics_without_their_own() {
    let rig = Rig::start(memory());
    let cluster = &rig.cluster;
    let own = vec![("retention.ms".to_owned(), Some("7000".to_owned()))];
    let topics =
        vec![NewTopic::named("plain"), NewTopic { configs: own, ..NewTopic::named("own") }];
    block_on(cluster.create_topics(topics, false)).unwrap();
    let set = ConfigOp::Set("2".into());
    let change = ConfigChange {
        resource: ConfigResource::every_broker(),
        edit: ConfigEdit::Edit(vec![("log.retention.hours".into(), set)]),
    };
    assert_eq!(block_on(cluster.alter_configs(vec![change], false)).unwrap(), [Ok(())]);
    let image = cluster.image();
    let retention = |name: &str| image.topic(name).unwrap().settings.retention.unwrap();
    assert_eq!(retention("plain"), Duration::from_secs(7200));
    assert_eq!(retention("own"), Duration::from_secs(7));
    rig.stop().unwrap();
}

/// Two brokers over one store change the same things at once: nothing is lost, nothing doubled.
#[test]
fn rivals_over_one_store_both_succeed_in_turn() {
    let store = memory();
    let one = Rig::start(store.clone());
    let two = Rig::start_as(2, store);
    let grow = |rig: &Rig, count| {
        let more = MorePartitions { name: "t".into(), count, assignments: None };
        block_on(rig.cluster.create_partitions(vec![more], false)).unwrap().remove(0)
    };
    block_on(one.cluster.create_topics(vec![NewTopic::named("t")], false)).unwrap();
    let take = |rig: &Rig| loop {
        match block_on(rig.cluster.submit(crate::command::TakeProducerIds)) {
            Err(ChangeError::Contended) => {}
            taken => return taken.unwrap(),
        }
    };
    std::thread::scope(|scope| {
        for rig in [&one, &two] {
            scope.spawn(move || {
                let blocks: Vec<_> = (0..50).map(|_| take(rig)).collect();
                assert!(blocks.windows(2).all(|pair| pair[0].end <= pair[1].start));
            });
        }
    });
    assert_eq!(block_on(one.cluster.next_producer_id()).unwrap(), ProducerId(100_000));
    assert_eq!(grow(&one, 4), Ok(()));
    // The second's image may lag behind; its plan then conflicts and is decided again.
    assert_eq!(grow(&two, 8), Ok(()));
    assert_eq!(two.cluster.image().topic("t").unwrap().partition_count(), 8);
    drop(two.stop());
    one.stop().unwrap();
}

/// While another session holds a shard nobody else gets it; when that ends, the reign rises.
#[test]
fn a_shard_has_one_owner_and_each_reign_is_higher() {
    let rig = Rig::start(memory());
    let claim = |tenure: &Tenure| {
        let mut grants = block_on(rig.cluster.claim_shards(tenure, vec![PartitionId(0)])).unwrap();
        grants.remove(0).map(|grant| grant.epoch.0)
    };
    assert_eq!(claim(&rig.tenure), Ok(1));
    let other = block_on(rig.cluster.join(record(), TTL, Instant::ZERO)).unwrap();
    assert_eq!(claim(&other).unwrap_err().kind, RefusalKind::NotInCharge);
    block_on(rig.cluster.leave(rig.tenure.session())).unwrap();
    // The end of the session is seen with the next change at the latest.
    block_on(rig.cluster.create_topics(vec![NewTopic::named("t")], false)).unwrap();
    assert_eq!(claim(&other), Ok(2));
    let ended = block_on(rig.cluster.claim_shards(&rig.tenure, vec![PartitionId(1)]));
    assert_eq!(ended, Err(ChangeError::SessionEnded(rig.tenure.session())));
    rig.stop().unwrap();
}

#[test]
fn a_newer_format_is_not_opened() {
    let store = memory();
    let record = ClusterRecord { format: FORMAT + 1, id: "x".into() };
    let ops = vec![record::put(record::cluster_key(), &record)];
    block_on(store.commit(Txn { expects: Vec::new(), ops })).unwrap();
    let setup = Setup {
        node: NodeId(1),
        registry: Registry::new(&[], &[], Default::default()).unwrap(),
        limits: Limits::default(),
        fresh: Box::new(|| [7; 16]),
    };
    let refused = block_on(Cluster::open(store, setup)).err().unwrap().to_string();
    assert!(refused.contains("use a newer one"), "{refused}");
}

/// A bound that clones of the handle do not widen.
#[test]
fn too_many_changes_at_once_are_refused() {
    let setup = Setup {
        node: NodeId(1),
        registry: Registry::new(&[], &[], Default::default()).unwrap(),
        limits: Limits::default(),
        fresh: Box::new(|| [7; 16]),
    };
    // Nobody drives it.
    let (cluster, _driver) = block_on(Cluster::open(memory(), setup)).unwrap();
    let mut waiting = Vec::new();
    let refused = loop {
        let cluster = cluster.clone();
        let mut change =
            Box::pin(async move { cluster.submit(crate::command::TakeProducerIds).await });
        let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
        match change.as_mut().poll(&mut cx) {
            std::task::Poll::Pending => waiting.push(change),
            std::task::Poll::Ready(refused) => break refused,
        }
        assert!(waiting.len() <= TASKS_MAX + 1);
    };
    assert_eq!(refused, Err(ChangeError::Busy));
}

#[test]
fn after_the_driver_every_change_is_refused() {
    let rig = Rig::start(memory());
    let cluster = rig.cluster.clone();
    let mut changes = cluster.changes(&cluster.image());
    // A second handle keeps the driver alive; losing its future does not.
    let setup_gone = CreateTopics { topics: vec![NewTopic::named("t")], validate_only: false };
    assert!(block_on(cluster.submit(setup_gone)).unwrap()[0].is_ok());
    assert!(block_on(changes.next()).is_some());
    drop(cluster);
    rig.stop().unwrap();
    assert!(block_on(changes.next()).is_none());
}
