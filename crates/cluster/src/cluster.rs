//! The handle everyone holds, and how a cluster is opened.

use crate::changes::{Changes, Current};
use crate::command::{self, Command, Limits, Refusal, RefusalKind};
use crate::config::Registry;
use crate::driver::{Driver, Errand, Task};
use crate::image::Image;
use crate::lease::{Grant, Tenure};
use crate::names;
use crate::record::{self, BrokerRecord, ClusterRecord, Corrupt, FORMAT, Row};
use crate::store::{Outcome, SessionId, Snapshot, Store, StoreError, Txn};
use futures_channel::{mpsc, oneshot};
use ottla_model::{LeaderEpoch, NodeId, PartitionId, ProducerId, TopicId};
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// A handle on the cluster: the current image, and changes to it. Clones are cheap and share
/// everything.
///
/// Methods that change something answer once the change is durable and [`Cluster::image`] shows
/// it. Dropping such a future does not take the change back.
#[derive(Clone)]
pub struct Cluster {
    node: NodeId,
    current: Arc<Current>,
    /// One sender for all: each clone of it would add a place to the queue.
    tasks: Arc<Mutex<mpsc::Sender<Box<dyn Task>>>>,
    store: Arc<dyn Store>,
    producer_ids: Arc<Mutex<Range<i64>>>,
}

/// What a cluster is opened with.
pub struct Setup {
    /// This broker's id; not negative.
    pub node: NodeId,
    /// The settings it knows, with their static values.
    pub registry: Registry,
    /// Bounds on what the cluster holds.
    pub limits: Limits,
    /// Draws 128 random bits; deterministic in a simulation.
    pub fresh: Box<dyn FnMut() -> [u8; 16] + Send>,
}

impl Cluster {
    /// Reads the store, founding the cluster if it is empty, and returns the handle together with
    /// the [`Driver`], which must be run for anything to change.
    ///
    /// # Errors
    /// [`OpenError`]: see its variants.
    pub async fn open(
        store: Arc<dyn Store>,
        mut setup: Setup,
    ) -> Result<(Self, Driver), OpenError> {
        let snapshot = founded(&*store, &mut *setup.fresh).await?;
        let registry = Arc::new(setup.registry);
        let (tasks, inbox) = mpsc::channel(TASKS_MAX);
        let revisions = Driver::revisions(&snapshot);
        let watch = store.watch("", snapshot.revision);
        let image = Image::load(setup.node, registry, snapshot)?;
        let current = Arc::new(Current::new(image));
        let cluster = Self {
            node: setup.node,
            current: current.clone(),
            tasks: Arc::new(Mutex::new(tasks)),
            store: store.clone(),
            producer_ids: Arc::default(),
        };
        let driver =
            Driver::new(store, current, inbox, watch, revisions, setup.limits, setup.fresh);
        Ok((cluster, driver))
    }

    /// The cluster as it is now. Free of locks: ask for each request.
    pub fn image(&self) -> Arc<Image> {
        self.current.image()
    }

    /// Images from the one after `seen` on.
    pub fn changes(&self, seen: &Image) -> Changes {
        Changes::new(self.current.clone(), seen.revision())
    }

    /// Submits any command. The methods below are this with the usual arguments, and split what
    /// does not fit into one transaction.
    ///
    /// # Errors
    /// [`ChangeError`]; only [`ChangeError::OutcomeUnknown`] and [`ChangeError::Stopped`] leave it
    /// open whether it happened.
    pub async fn submit<C: Command>(&self, command: C) -> Result<C::Reply, ChangeError> {
        let (answer, reply) = oneshot::channel();
        let errand = Box::new(Errand::new(command, answer));
        let sent = self.tasks.lock().unwrap_or_else(PoisonError::into_inner).try_send(errand);
        sent.map_err(
            |refused| {
                if refused.is_full() { ChangeError::Busy } else { ChangeError::Stopped }
            },
        )?;
        reply.await.unwrap_or(Err(ChangeError::Stopped))
    }

    /// Creates topics; one outcome per topic, in order.
    ///
    /// # Errors
    /// As [`Cluster::submit`]; topics of earlier transactions may then exist.
    pub async fn create_topics(
        &self,
        topics: Vec<command::NewTopic>,
        validate_only: bool,
    ) -> Result<Vec<Result<command::CreatedTopic, Refusal>>, ChangeError> {
        let submit = |topics| self.submit(command::CreateTopics { topics, validate_only });
        in_turn(topics, command::CREATE_AT_ONCE, submit).await
    }

    /// Creates the offsets topic if there is none: compacted, `offsets.topic.num.partitions` of
    /// them. Its refusal says what is missing, such as enough brokers for its replicas.
    ///
    /// # Errors
    /// As [`Cluster::submit`].
    pub async fn ensure_offsets_topic(&self) -> Result<Result<(), Refusal>, ChangeError> {
        let image = self.image();
        if image.topic(names::OFFSETS_TOPIC).is_some() {
            return Ok(Ok(()));
        }
        let number = |name: &str| image.broker_number(name);
        let set = |name: &str, value: String| (name.to_owned(), Some(value));
        let topic = command::NewTopic {
            partitions: i32::try_from(number("offsets.topic.num.partitions")).unwrap_or(-1),
            replication_factor: i16::try_from(number("offsets.topic.replication.factor"))
                .unwrap_or(-1),
            configs: vec![
                set("cleanup.policy", "compact".into()),
                set("segment.bytes", number("offsets.topic.segment.bytes").to_string()),
            ],
            ..command::NewTopic::named(names::OFFSETS_TOPIC)
        };
        let created = self.create_topics(vec![topic], false).await?.pop();
        Ok(match created {
            Some(Err(refusal)) if refusal.kind != RefusalKind::TopicAlreadyExists => Err(refusal),
            _ => Ok(()),
        })
    }

    /// Deletes topics, first phase: they are gone for clients. See [`crate::logs`] for the rest.
    ///
    /// # Errors
    /// As [`Cluster::submit`].
    pub async fn delete_topics(
        &self,
        topics: Vec<command::TopicRef>,
    ) -> Result<Vec<Result<command::DeletedTopic, Refusal>>, ChangeError> {
        let submit = |topics| self.submit(command::DeleteTopics { topics });
        in_turn(topics, command::DELETE_AT_ONCE, submit).await
    }

    /// This broker has cleared away everything of a deleted topic: logs renamed, offsets gone.
    ///
    /// # Errors
    /// As [`Cluster::submit`]; say it again.
    pub async fn finish_deletion(&self, topic: TopicId) -> Result<(), ChangeError> {
        while self.submit(command::FinishDeletion { topic, node: self.node }).await? {}
        Ok(())
    }

    /// Gives topics more partitions; one outcome per topic, in order.
    ///
    /// # Errors
    /// As [`Cluster::submit`].
    pub async fn create_partitions(
        &self,
        topics: Vec<command::MorePartitions>,
        validate_only: bool,
    ) -> Result<Vec<Result<(), Refusal>>, ChangeError> {
        let submit = |topics| self.submit(command::CreatePartitions { topics, validate_only });
        in_turn(topics, command::GROW_AT_ONCE, submit).await
    }

    /// Changes dynamic settings; one outcome per resource, in order.
    ///
    /// # Errors
    /// As [`Cluster::submit`].
    pub async fn alter_configs(
        &self,
        changes: Vec<command::ConfigChange>,
        validate_only: bool,
    ) -> Result<Vec<Result<(), Refusal>>, ChangeError> {
        let submit = |changes| self.submit(command::AlterConfigs { changes, validate_only });
        in_turn(changes, command::ALTER_AT_ONCE, submit).await
    }

    /// Begins new reigns of partitions this broker leads, after their recovery cut something.
    /// Each is given with the last reign its log shows; the new one is above that.
    ///
    /// # Errors
    /// As [`Cluster::submit`].
    pub async fn raise_leader_epochs(
        &self,
        partitions: Vec<(TopicId, PartitionId, LeaderEpoch)>,
    ) -> Result<Vec<Result<LeaderEpoch, Refusal>>, ChangeError> {
        let node = self.node;
        let submit = |partitions| self.submit(command::RaiseLeaderEpochs { node, partitions });
        in_turn(partitions, command::RAISE_AT_ONCE, submit).await
    }

    /// Opens this broker's session and makes it known to clients for as long as that lives.
    ///
    /// `now` is read just before the call: the tenure counts from it.
    ///
    /// # Errors
    /// As [`Cluster::submit`]; a refusal names what is wrong with the record.
    pub async fn join(
        &self,
        record: BrokerRecord,
        ttl: Duration,
        now: ottla_model::Instant,
    ) -> Result<Tenure, JoinError> {
        let session = self.store.open_session(ttl).await.map_err(ChangeError::from)?;
        self.register(session.id, record).await?;
        Ok(Tenure::new(session, now))
    }

    /// Changes what this broker is known by.
    ///
    /// # Errors
    /// As [`Cluster::join`].
    pub async fn register(
        &self,
        session: SessionId,
        record: BrokerRecord,
    ) -> Result<(), JoinError> {
        Ok(self.submit(command::Register { node: self.node, session, record }).await??)
    }

    /// Renews the session; `now` is read just before the call.
    ///
    /// # Errors
    /// [`ChangeError::SessionEnded`]: this broker owns nothing any more and must join again.
    pub async fn renew(
        &self,
        tenure: &mut Tenure,
        now: ottla_model::Instant,
    ) -> Result<(), ChangeError> {
        let ttl = self.store.keep_alive(tenure.session()).await?;
        tenure.renewed(now, ttl);
        Ok(())
    }

    /// Ends the session: the broker disappears and its shards are free, at once.
    ///
    /// # Errors
    /// As [`Cluster::renew`].
    pub async fn leave(&self, session: SessionId) -> Result<(), ChangeError> {
        Ok(self.store.close_session(session).await?)
    }

    /// Takes coordinator shards, each in a new reign that is durable before it is returned; one
    /// outcome per shard, in order.
    ///
    /// # Errors
    /// As [`Cluster::submit`].
    pub async fn claim_shards(
        &self,
        tenure: &Tenure,
        partitions: Vec<PartitionId>,
    ) -> Result<Vec<Result<Grant, Refusal>>, ChangeError> {
        let (node, session) = (self.node, tenure.session());
        let submit = |partitions| self.submit(command::ClaimShards { node, session, partitions });
        let epochs = in_turn(partitions.clone(), command::CLAIM_AT_ONCE, submit).await?;
        let grant = |(partition, epoch): (PartitionId, Result<_, Refusal>)| {
            epoch.map(|epoch| tenure.grant(partition, epoch))
        };
        Ok(partitions.into_iter().zip(epochs).map(grant).collect())
    }

    /// A producer id nobody had before. Most calls are answered from a block in memory.
    ///
    /// # Errors
    /// As [`Cluster::submit`].
    pub async fn next_producer_id(&self) -> Result<ProducerId, ChangeError> {
        loop {
            if let Some(id) = self.producer_ids().next() {
                return Ok(ProducerId(id));
            }
            let block = self.submit(command::TakeProducerIds).await?;
            if block.is_empty() {
                return Err(ChangeError::Refused("all producer ids are taken".into()));
            }
            // Two callers may each have taken a block; the ids of one are then lost, which is
            // what ids are for.
            *self.producer_ids() = block;
        }
    }

    fn producer_ids(&self) -> std::sync::MutexGuard<'_, Range<i64>> {
        self.producer_ids.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Submits `items` in parts of `size`, one part after the other.
async fn in_turn<T, R, F>(
    items: Vec<T>,
    size: usize,
    submit: impl Fn(Vec<T>) -> F,
) -> Result<Vec<R>, ChangeError>
where
    F: Future<Output = Result<Vec<R>, ChangeError>>,
{
    let mut outcomes = Vec::with_capacity(items.len());
    let mut items = items.into_iter().peekable();
    while items.peek().is_some() {
        outcomes.extend(submit(items.by_ref().take(size).collect()).await?);
    }
    Ok(outcomes)
}

/// The store's content, with a cluster in it.
async fn founded(
    store: &dyn Store,
    fresh: &mut (dyn FnMut() -> [u8; 16] + Send),
) -> Result<Snapshot, OpenError> {
    for _ in 0..FOUNDING_ATTEMPTS {
        let snapshot = store.read("").await?;
        let key = record::cluster_key();
        if let Some(entry) = snapshot.entries.iter().find(|entry| entry.key == key) {
            return match Row::parse(&entry.key, &entry.value)? {
                Some(Row::Cluster(ClusterRecord { format, .. })) if format > FORMAT => {
                    Err(OpenError::Newer(format))
                }
                _ => Ok(snapshot),
            };
        }
        let id = TopicId(record::random_uuid(fresh)).to_string();
        let record = ClusterRecord { format: FORMAT, id };
        let ops = vec![record::put(key.clone(), &record)];
        let txn = Txn { expects: vec![(key, crate::store::Revision::NONE)], ops };
        // Whatever the outcome, what is there now is what counts.
        let _: Outcome = store.commit(txn).await?;
    }
    Err(OpenError::Store(StoreError::Unavailable("the cluster could not be founded".into())))
}

/// Why a cluster could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The store does not answer.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The store holds something that cannot be understood.
    #[error(transparent)]
    Corrupt(#[from] Corrupt),
    /// A newer version wrote the store: use that.
    #[error("the metadata has format {0}, this version reads up to {FORMAT}: use a newer one")]
    Newer(u32),
}

/// Why a change did not happen, or is not known to have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChangeError {
    /// Too many changes are waiting: try again shortly.
    #[error("too many changes of the cluster are waiting")]
    Busy,
    /// Others changed the same things each time it was tried: try again.
    #[error("others keep changing the same part of the cluster")]
    Contended,
    /// The store cannot be reached: try again later.
    #[error("{0}")]
    Unavailable(String),
    /// It may have happened, or may yet: look before trying again.
    #[error("it is not known whether the change happened: {0}")]
    OutcomeUnknown(String),
    /// This broker's session has ended: join again.
    #[error("session {0} has ended")]
    SessionEnded(SessionId),
    /// It can never happen: too large for a transaction, say.
    #[error("{0}")]
    Refused(String),
    /// The driver has ended: the broker is stopping or its store is lost. Of what was waiting at
    /// that moment it is not known whether it happened.
    #[error("the broker is stopping")]
    Stopped,
}

impl From<StoreError> for ChangeError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Unavailable(_) => Self::Unavailable(error.to_string()),
            StoreError::SessionEnded(session) => Self::SessionEnded(session),
            StoreError::Refused(_) => Self::Refused(error.to_string()),
        }
    }
}

/// Why a broker could not join.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JoinError {
    /// The change did not happen.
    #[error(transparent)]
    Change(#[from] ChangeError),
    /// Its record is refused.
    #[error(transparent)]
    Refused(#[from] Refusal),
}

/// Changes that may wait; more are refused as [`ChangeError::Busy`].
const TASKS_MAX: usize = 1024;

/// Brokers that start at the same moment may found one cluster between them.
const FOUNDING_ATTEMPTS: usize = 3;

#[cfg(test)]
pub(crate) mod tests;
