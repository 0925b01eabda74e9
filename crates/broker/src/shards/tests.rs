//! A shard over a log that fails on request: nothing that was acknowledged is forgotten, nothing
//! that was lost is believed.

use super::*;
use crate::partitions::tests::{partition_of, sync_failure};
use ottla_group::message::offsets::{Commit, CommitPartition, CommitTopic, Fetch};
use ottla_group::message::{Ask, Client, GroupError, Reply};
use ottla_model::{Generation, Now, Offset, OwnershipEpoch, Topic, TopicId};
use ottla_storage::LogConfig;
use ottla_storage::fs::sim::SimFs;

struct World {
    fs: SimFs,
    partition: Arc<Partition>,
    shards: Arc<Shards>,
}

/// One shard over one log, loaded.
async fn world(seed: u64) -> World {
    let fs = SimFs::new(seed);
    let partition = partition_of(&fs, LogConfig::default());
    let shards = Arc::new(Shards::new(&Config::default()));
    shards.prepare(1);
    let until = clock::mono() + Duration::from_secs(3_600);
    let grant = Grant { partition: PartitionId(0), epoch: OwnershipEpoch(1), until };
    let topic = Topic {
        id: TopicId([9; 16]),
        name: "t".into(),
        partitions: vec![ottla_model::Partition::default()],
    };
    shards.begin(grant, Arc::clone(&partition), &Arc::new(TopicsView::new([topic])));
    shards.ready().await;
    World { fs, partition, shards }
}

impl World {
    fn ask(&self, body: Ask<'_>) -> Asked {
        let shard = self.shards.of("g").expect("prepared");
        let now: Now = clock::now();
        shard.ask(ConnectionId(1), Client::default(), [1; 16], now, body)
    }

    fn commit(&self, offset: i64) -> Asked {
        let partition = CommitPartition {
            partition: PartitionId(0),
            offset: Offset(offset),
            leader_epoch: None,
            metadata: "",
        };
        let topic = CommitTopic { topic: "t", id: TopicId([9; 16]), partitions: vec![partition] };
        self.ask(Ask::Commit(Commit {
            group: "g",
            generation: Generation(-1),
            member: "",
            instance: None,
            retention: None,
            knows_epochs: true,
            topics: vec![topic],
        }))
    }

    /// What is committed, asked until the shard is loaded.
    async fn committed(&self) -> Option<Offset> {
        loop {
            let topics = Some(vec![("t", vec![PartitionId(0)])]);
            let asked = self.ask(Ask::FetchOffsets(Fetch { group: "g", member: None, topics }));
            match reply(asked).await {
                Reply::FetchOffsets(Ok(fetched)) => {
                    return fetched.topics[0].1[0].1.as_ref().map(|committed| committed.offset);
                }
                Reply::FetchOffsets(Err(GroupError::LoadInProgress)) => {
                    tokio::task::yield_now().await;
                }
                other => panic!("{other:?}"),
            }
        }
    }
}

async fn reply(asked: Asked) -> Reply {
    match asked {
        Asked::Now(reply) => reply,
        Asked::Later(delivery) | Asked::Held(delivery, _) => delivery.reply().await,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_is_answered_when_it_is_safe() {
    let world = world(1).await;
    let asked = world.commit(5);
    assert!(matches!(asked, Asked::Later(_)));
    world.partition.sync();
    assert!(matches!(reply(asked).await, Reply::Commit(Ok(_))));
    assert_eq!(world.committed().await, Some(Offset(5)));
}

/// What the failed sync took back was never acknowledged, and is not remembered either.
#[tokio::test(flavor = "multi_thread")]
async fn a_failed_sync_reloads_the_shard_from_what_is_safe() {
    let world = world(2).await;
    let safe = world.commit(5);
    world.partition.sync();
    assert!(matches!(reply(safe).await, Reply::Commit(Ok(_))));
    let lost = world.commit(6);
    world.fs.inject(sync_failure());
    world.partition.sync();
    assert!(matches!(reply(lost).await, Reply::Commit(Err(GroupError::NotCoordinator))));
    assert!(world.partition.recover());
    // The first to enter finds out that memory is ahead of the log.
    let _ = reply(world.ask(Ask::List(Default::default()))).await;
    assert_eq!(world.committed().await, Some(Offset(5)));
    let next = world.commit(7);
    world.partition.sync();
    assert!(matches!(reply(next).await, Reply::Commit(Ok(_))));
    assert_eq!(world.committed().await, Some(Offset(7)));
}

/// Reading goes on beside a full disk; what would write is refused with an error that passes.
#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_refuses_commits_and_serves_reads() {
    let world = world(3).await;
    let safe = world.commit(5);
    world.partition.sync();
    reply(safe).await;
    world.fs.set_room(Some(0));
    // The first one finds out; the shard forgets what it had decided and reads its log again.
    assert!(matches!(reply(world.commit(6)).await, Reply::Commit(Err(_))));
    assert_eq!(world.committed().await, Some(Offset(5)));
    assert!(matches!(reply(world.commit(7)).await, Reply::Commit(Err(GroupError::StorageError))));
    assert_eq!(world.committed().await, Some(Offset(5)));
}

/// A panic in the middle of a decision poisons the lock: memory goes, the log stays.
#[tokio::test(flavor = "multi_thread")]
async fn a_panic_in_a_shard_reloads_it() {
    let world = world(4).await;
    let safe = world.commit(5);
    world.partition.sync();
    reply(safe).await;
    let shard = world.shards.of("g").expect("prepared");
    let panicked = std::thread::spawn(move || shard.observe(|_| -> ((), _) { panic!("a test's") }));
    assert!(panicked.join().is_err());
    let _ = reply(world.ask(Ask::List(Default::default()))).await;
    assert_eq!(world.committed().await, Some(Offset(5)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shard_that_resigned_refuses_what_it_held_and_what_comes() {
    let world = world(5).await;
    let held = world.commit(5);
    world.shards.resign();
    assert!(matches!(reply(world.commit(6)).await, Reply::Commit(Err(GroupError::NotCoordinator))));
    world.partition.sync();
    // It was decided before, and is safe.
    assert!(matches!(reply(held).await, Reply::Commit(Ok(_))));
}
