//! The administrator: topics, settings, groups, offsets and the cluster itself.
//!
//! Calls about several things answer for each of them, in the order they were named: one that
//! fails keeps no other from being done. Nothing here holds state beside the connections.

mod configs;
mod group_offsets;
mod groups;
mod journal;
mod records;
mod topics;

pub use configs::{ConfigEntry, ConfigOp, ConfigResource, ConfigSource, ResourceKind};
pub use group_offsets::CommittedOffset;
pub use groups::{GroupDescription, GroupFilter, GroupListing, GroupMember, MemberToRemove};
pub use journal::{Blocking, GroupJournal, Migration};
pub use ottla_group::coordinator::{
    Caller, Cause, JournalEntry, MemberTimes, Move, Outcome, Trigger, Who,
};
pub use topics::{CreatedTopic, NewTopic};

use crate::cluster::{Broker, Cluster, Purpose};
use crate::connection::{Answer, Connection};
use crate::{AdminConfig, Error, Result};
use ottla_model::{NodeId, TopicPartition};
use ottla_wire::Request;
use ottla_wire::generated::MetadataResponse;

/// What became of each of several things, in the order they were named.
pub type Outcomes<K, V> = Vec<(K, Result<V>)>;

/// An administrator of a cluster. Cheap to clone; clones share their connections.
///
/// Every call tries for `default.api.timeout.ms`: what only reads is asked again whatever went
/// wrong on the way; what changes something is sent again only if it surely was not carried out,
/// and is `TimedOut` otherwise. All calls are cancel safe in that sense: a dropped call may or may
/// not have been carried out.
///
/// ```no_run
/// use ottla_client::{Admin, AdminConfig, NewTopic};
///
/// # async fn example() -> ottla_client::Result<()> {
/// let admin = Admin::new(AdminConfig::new("localhost:9092"))?;
/// admin.create_topic(NewTopic::new("events", 6)).await?;
/// for group in admin.list_groups(Default::default()).await? {
///     println!("{} is {}", group.group, group.state);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Admin {
    cluster: Cluster,
}

/// The cluster as its brokers describe it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ClusterDescription {
    /// Its id, if it has one.
    pub cluster_id: Option<String>,
    /// Who controls it, if anybody does.
    pub controller: Option<NodeId>,
    /// Its brokers, by id.
    pub brokers: Vec<Broker>,
}

impl Admin {
    /// An administrator; connections are made when first needed. Within a tokio runtime only.
    ///
    /// # Errors
    /// `Config`, if the settings make no sense.
    pub fn new(config: AdminConfig) -> Result<Self> {
        config.client.check()?;
        Ok(Self { cluster: Cluster::new(config.client) })
    }

    /// The cluster, its brokers and its controller.
    ///
    /// # Errors
    /// `Retriable`, if no broker answers in time.
    pub async fn describe_cluster(&self) -> Result<ClusterDescription> {
        let snapshot = self.cluster.refreshed(&self.cluster.retry()).await?;
        Ok(ClusterDescription {
            cluster_id: snapshot.cluster_id.clone(),
            controller: snapshot.controller,
            brokers: snapshot.brokers.values().cloned().collect(),
        })
    }

    /// Asks any broker what changes nothing.
    async fn read<'a, R: Request<'a>>(&self, request: &R) -> Result<Answer> {
        self.cluster.retry().run(|| async { self.cluster.any().await?.call(request).await }).await
    }

    /// Asks one broker what changes nothing.
    async fn read_from<'a, R: Request<'a>>(&self, id: i32, request: &R) -> Result<Answer> {
        let mut retry = self.cluster.retry();
        if self.cluster.snapshot().answered == 0 {
            self.cluster.refreshed(&retry).await?;
        }
        let tried = || async {
            self.cluster.connection(NodeId(id), Purpose::General).await?.call(request).await
        };
        retry.run(tried).await
    }

    /// Has the controller, or whoever forwards to it, change something.
    async fn change<'a, R: Request<'a>>(&self, request: impl Fn(i16) -> R) -> Result<Answer> {
        let mut retry = self.cluster.retry();
        let asked = self.cluster.retry();
        let connection = retry.run(|| async { self.cluster.controller(&asked).await }).await?;
        let version = connection.version(R::KEY)?;
        retry.bound(connection.call_at(version, &request(version))).await
    }

    /// A connection to the coordinator of a group, for one try.
    async fn coordinator(&self, group: &str) -> Result<Connection> {
        let node = self.cluster.coordinator(group).await?;
        self.cluster.connection(node, Purpose::General).await
    }

    /// Metadata of these topics (all of them, if none is named), without creating any.
    async fn metadata(&self, names: Option<&[String]>) -> Result<Answer> {
        use crate::cluster::Interest;
        let interest = match names {
            None => Interest::All,
            Some(names) => Interest::Topics(names.iter().map(|name| (&**name).into()).collect()),
        };
        let answer = self.read(&interest.request(false)).await?;
        let response: MetadataResponse<'_> = answer.read()?;
        Error::check(response.error_code, || "cannot learn of the topics".into())?;
        Ok(answer)
    }

    /// Time for a broker to do what it is asked, in the unit of requests.
    fn timeout_ms(&self) -> i32 {
        i32::try_from(self.cluster.config().request_timeout.as_millis()).unwrap_or(i32::MAX)
    }
}

/// The error of one thing, with the broker's own words where it has some.
fn outcome(code: i16, message: Option<&str>, what: impl FnOnce() -> String) -> Result<()> {
    Error::check(code, || match message {
        Some(message) if !message.is_empty() => format!("{}: {message}", what()),
        _ => what(),
    })
}

/// The partitions of a list, topic by topic: what requests are made of.
fn by_topic<T>(items: &[(TopicPartition, T)]) -> Vec<(&str, Vec<(i32, &T)>)> {
    let mut topics: Vec<(&str, Vec<(i32, &T)>)> = Vec::new();
    for (partition, item) in items {
        let entry = (partition.partition.0, item);
        match topics.iter_mut().find(|(topic, _)| *topic == partition.topic.as_str()) {
            Some((_, entries)) => entries.push(entry),
            None => topics.push((&partition.topic, vec![entry])),
        }
    }
    topics
}
