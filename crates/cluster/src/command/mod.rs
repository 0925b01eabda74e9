//! Changes to the cluster, as values: one file per kind.
//!
//! A command *decides*: a pure function of the image that yields what to write and what to answer
//! once that is durable, or refuses. It never touches the store. The driver adds an expectation
//! for every key a plan writes or relies on, so a plan made from an outdated image does not
//! happen; it is then decided again from a newer one. Texts of refusals are Kafka's where Kafka
//! has the case, because tools print them and people search for them.

mod assign;
mod brokers;
mod configs;
mod create_partitions;
mod create_topics;
mod delete_topics;
mod features;
mod leaders;
mod producer_ids;
mod shards;

pub use assign::Assignment;
pub use brokers::Register;
pub use configs::{AlterConfigs, ConfigChange, ConfigEdit, ConfigOp};
pub use create_partitions::{CreatePartitions, MorePartitions};
pub use create_topics::{CreateTopics, CreatedTopic, NewTopic};
pub use delete_topics::{DeleteTopics, DeletedTopic, FinishDeletion, TopicRef};
pub use features::{FeatureChange, UpdateFeatures};
pub use leaders::RaiseLeaderEpochs;
pub use producer_ids::TakeProducerIds;
pub use shards::ClaimShards;

pub(crate) use configs::AT_ONCE as ALTER_AT_ONCE;
pub(crate) use create_partitions::AT_ONCE as GROW_AT_ONCE;
pub(crate) use create_topics::AT_ONCE as CREATE_AT_ONCE;
pub(crate) use delete_topics::AT_ONCE as DELETE_AT_ONCE;
pub(crate) use leaders::AT_ONCE as RAISE_AT_ONCE;
pub(crate) use shards::AT_ONCE as CLAIM_AT_ONCE;

use crate::image::Image;
use crate::store::{Key, Op};

/// A change to the cluster.
pub trait Command: Send + 'static {
    /// What it is answered with once it is durable.
    type Reply: Send + 'static;

    /// Decides from the image. Called again with a newer image if the plan did not happen, so it
    /// must not depend on earlier calls.
    fn decide(&mut self, image: &Image, means: &mut Means<'_>) -> Plan<Self::Reply>;
}

/// What a command may use besides the image.
pub struct Means<'a> {
    /// Bounds.
    pub limits: &'a Limits,
    /// Draws 128 random bits.
    pub fresh: &'a mut (dyn FnMut() -> [u8; 16] + Send),
}

/// What to write, and what to answer when it is durable. Nothing to write is answered at once.
#[derive(Debug)]
pub struct Plan<R> {
    /// What to write: one transaction.
    pub ops: Vec<Op>,
    /// Keys that must be as they are in the image although they are not written.
    pub relies_on: Vec<Key>,
    /// The answer.
    pub reply: R,
}

impl<R> Plan<R> {
    /// Answers without writing.
    pub fn answer(reply: R) -> Self {
        Self { ops: Vec::new(), relies_on: Vec::new(), reply }
    }

    /// Writes, then answers.
    pub fn write(ops: Vec<Op>, reply: R) -> Self {
        Self { ops, relies_on: Vec::new(), reply }
    }
}

/// Why a command, or one item of it, is refused: nothing of it happened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    /// Which of Kafka's errors it is.
    pub kind: RefusalKind,
    /// Why, for the client.
    pub message: String,
}

/// Kafka's errors for refused changes; the broker maps each to its code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusalKind {
    /// INVALID_TOPIC_EXCEPTION: the name is not legal, or collides.
    InvalidTopic,
    /// TOPIC_ALREADY_EXISTS.
    TopicAlreadyExists,
    /// UNKNOWN_TOPIC_OR_PARTITION.
    UnknownTopicOrPartition,
    /// UNKNOWN_TOPIC_ID.
    UnknownTopicId,
    /// INVALID_PARTITIONS.
    InvalidPartitions,
    /// INVALID_REPLICATION_FACTOR.
    InvalidReplicationFactor,
    /// INVALID_REPLICA_ASSIGNMENT.
    InvalidReplicaAssignment,
    /// INVALID_CONFIG.
    InvalidConfig,
    /// INVALID_REQUEST.
    InvalidRequest,
    /// POLICY_VIOLATION: one of our [`Limits`].
    PolicyViolation,
    /// INVALID_UPDATE_VERSION.
    InvalidUpdateVersion,
    /// NOT_LEADER_OR_FOLLOWER or NOT_COORDINATOR: this broker is not in charge.
    NotInCharge,
}

impl Refusal {
    pub(crate) fn new(kind: RefusalKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }

    pub(crate) fn unknown_topic() -> Self {
        let message = "This server does not host this topic-partition.";
        Self::new(RefusalKind::UnknownTopicOrPartition, message)
    }
}

/// Bounds on what the cluster holds. Each is answered with POLICY_VIOLATION.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Topics in the cluster.
    pub topics: usize,
    /// Partitions in the cluster.
    pub partitions: usize,
    /// Partitions one request may create. In Kafka the bound is 10,000 metadata records.
    pub partitions_per_request: usize,
    /// Bytes of all settings of one resource together.
    pub config_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            topics: 50_000,
            partitions: 200_000,
            partitions_per_request: 10_000,
            config_bytes: 8 * 1024,
        }
    }
}

#[cfg(test)]
mod tests;
