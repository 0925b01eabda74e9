//! Create topics: names, counts, replicas and settings are checked per topic; those that pass are
//! created together, in one transaction.

use super::{Assignment, Command, Means, Plan, Refusal, RefusalKind, assign};
use crate::config::{Overrides, resolve};
use crate::image::Image;
use crate::names;
use crate::record::{ConfigResource, TopicRecord, configs_key, put, random_uuid, topic_key};
use crate::store::{Op, VALUE_BYTES_MAX};
use ottla_model::{NodeId, TopicId, TopicName};
use std::collections::{BTreeMap, BTreeSet};

/// Create some topics. [`crate::Cluster::create_topics`] splits what does not fit one transaction.
#[derive(Clone, Debug)]
pub struct CreateTopics {
    /// Which; of two with one name the second is refused.
    pub topics: Vec<NewTopic>,
    /// Check only.
    pub validate_only: bool,
}

/// A topic to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewTopic {
    /// Its name.
    pub name: String,
    /// How many partitions; -1 for `num.partitions`, and where replicas are given by hand.
    pub partitions: i32,
    /// How many replicas of each; -1 for `default.replication.factor`, and where they are given.
    pub replication_factor: i16,
    /// Replicas by hand; empty to have them chosen.
    pub assignments: Vec<Assignment>,
    /// Settings; a value of `None` is refused.
    pub configs: Vec<(String, Option<String>)>,
}

/// A topic that was created, or would have been.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreatedTopic {
    /// Its name.
    pub name: TopicName,
    /// Its id.
    pub id: TopicId,
    /// How many partitions it has.
    pub partitions: i32,
    /// How many replicas of each.
    pub replication_factor: i16,
    /// Its own settings, for [`crate::config::Layers::topic`].
    pub overrides: Overrides,
}

impl NewTopic {
    /// A topic with defaults for everything.
    pub fn named(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            partitions: -1,
            replication_factor: -1,
            assignments: Vec::new(),
            configs: Vec::new(),
        }
    }
}

impl Command for CreateTopics {
    /// Per topic, in the request's order.
    type Reply = Vec<Result<CreatedTopic, Refusal>>;

    fn decide(&mut self, image: &Image, means: &mut Means<'_>) -> Plan<Self::Reply> {
        let mut ops = Vec::new();
        let mut batch = Batch::default();
        let mut create = |topic: &NewTopic| {
            let (created, record) = decide_one(image, means, topic, &mut batch)?;
            ops.extend(write(&created, &record)?);
            Ok(created)
        };
        let reply = self.topics.iter().map(&mut create).collect();
        if self.validate_only { Plan::answer(reply) } else { Plan::write(ops, reply) }
    }
}

/// What the topics before this one in the same request add.
#[derive(Default)]
struct Batch {
    names: BTreeSet<String>,
    /// Their names with `.` as `_`.
    unified: BTreeMap<String, String>,
    partitions: usize,
}

fn decide_one(
    image: &Image,
    means: &mut Means<'_>,
    topic: &NewTopic,
    batch: &mut Batch,
) -> Result<(CreatedTopic, TopicRecord), Refusal> {
    check_name(image, &topic.name, batch)?;
    let overrides = overrides(image, means, topic)?;
    let replicas = replicas(image, means, topic)?;
    check_limits(image, means, batch, replicas.len())?;
    batch.names.insert(topic.name.clone());
    batch.unified.insert(topic.name.replace('.', "_"), topic.name.clone());
    batch.partitions += replicas.len();
    let id = TopicId(random_uuid(means.fresh));
    let created = CreatedTopic {
        name: topic.name.as_str().into(),
        id,
        partitions: replicas.len() as i32,
        replication_factor: replicas.first().map_or(0, Vec::len) as i16,
        overrides,
    };
    Ok((created, TopicRecord { id, replicas }))
}

fn check_name(image: &Image, name: &str, batch: &Batch) -> Result<(), Refusal> {
    let invalid = |why: String| Refusal::new(RefusalKind::InvalidTopic, why);
    names::check(name).map_err(|why| invalid(format!("Topic name is invalid: {why}")))?;
    if name == names::METADATA_TOPIC {
        let message = format!("Creation of internal topic {name} is prohibited.");
        return Err(Refusal::new(RefusalKind::InvalidRequest, message));
    }
    if image.topic(name).is_some() || batch.names.contains(name) {
        let message = format!("Topic '{name}' already exists.");
        return Err(Refusal::new(RefusalKind::TopicAlreadyExists, message));
    }
    let earlier = batch.unified.get(&name.replace('.', "_")).map(String::as_str);
    match names::collision(image, name).or(earlier) {
        Some(other) => {
            Err(invalid(format!("Topic '{name}' collides with existing topic: {other}")))
        }
        None => Ok(()),
    }
}

fn overrides(image: &Image, means: &Means<'_>, topic: &NewTopic) -> Result<Overrides, Refusal> {
    let invalid = |why: String| Refusal::new(RefusalKind::InvalidConfig, why);
    let without = topic.configs.iter().filter(|(_, value)| value.is_none());
    let nulls: Vec<_> = without.map(|(name, _)| name.as_str()).collect();
    if !nulls.is_empty() {
        let nulls = nulls.join(",");
        return Err(invalid(format!("Null value not supported for topic configs: {nulls}")));
    }
    let given = topic.configs.iter().cloned();
    let overrides: Overrides = given.filter_map(|(name, value)| Some((name, value?))).collect();
    resolve::check_topic(&overrides, image.layers()).map_err(invalid)?;
    super::configs::check_size(&overrides, means.limits)?;
    Ok(overrides)
}

fn replicas(
    image: &Image,
    means: &Means<'_>,
    topic: &NewTopic,
) -> Result<Vec<Vec<NodeId>>, Refusal> {
    if !topic.assignments.is_empty() {
        return by_hand(image, topic);
    }
    if topic.replication_factor < -1 || topic.replication_factor == 0 {
        return Err(Refusal::new(
            RefusalKind::InvalidReplicationFactor,
            "Replication factor must be larger than 0, or -1 to use the default value.",
        ));
    }
    if topic.partitions < -1 || topic.partitions == 0 {
        return Err(Refusal::new(
            RefusalKind::InvalidPartitions,
            "Number of partitions was set to an invalid non-positive value.",
        ));
    }
    let or_default = |given: i64, name: &str| {
        let number = if given == -1 { image.broker_number(name) } else { given };
        usize::try_from(number).unwrap_or_default()
    };
    let partitions = or_default(topic.partitions.into(), "num.partitions");
    let replication = or_default(topic.replication_factor.into(), "default.replication.factor");
    check_request(means, partitions, "partitions")?;
    // Leaders of different topics start at different brokers.
    assign::choose(image, partitions, replication, image.partition_count())
}

fn by_hand(image: &Image, topic: &NewTopic) -> Result<Vec<Vec<NodeId>>, Refusal> {
    let request = |why: &str| Err(Refusal::new(RefusalKind::InvalidRequest, why));
    let refuse = |why: String| Err(Refusal::new(RefusalKind::InvalidReplicaAssignment, why));
    if topic.replication_factor != -1 {
        return request(
            "A manual partition assignment was specified, but replication factor was not set to \
             -1.",
        );
    }
    if topic.partitions != -1 {
        return request(
            "A manual partition assignment was specified, but numPartitions was not set to -1.",
        );
    }
    let mut replicas = BTreeMap::new();
    let mut replication = None;
    for assignment in &topic.assignments {
        let partition = assignment.partition;
        if replicas.contains_key(&partition) {
            return refuse(format!(
                "Found multiple manual partition assignments for partition {partition}"
            ));
        }
        assign::check(image, &assignment.replicas, replication)?;
        replication = Some(assignment.replicas.len());
        replicas.insert(partition, assignment.replicas.clone());
    }
    if !replicas.keys().copied().eq(0..replicas.len() as i32) {
        return refuse("partitions should be a consecutive 0-based integer sequence".into());
    }
    Ok(replicas.into_values().collect())
}

pub(super) fn check_request(
    means: &Means<'_>,
    partitions: usize,
    what: &str,
) -> Result<(), Refusal> {
    if partitions > means.limits.partitions_per_request {
        let message = format!("Excessively large number of {what} per request.");
        return Err(Refusal::new(RefusalKind::PolicyViolation, message));
    }
    Ok(())
}

fn check_limits(
    image: &Image,
    means: &Means<'_>,
    batch: &Batch,
    partitions: usize,
) -> Result<(), Refusal> {
    let violation = |message| Err(Refusal::new(RefusalKind::PolicyViolation, message));
    check_request(means, batch.partitions + partitions, "partitions")?;
    let (topics, all) = (means.limits.topics, means.limits.partitions);
    if image.topic_count() + batch.names.len() >= topics {
        return violation(format!("The cluster may hold at most {topics} topics."));
    }
    if image.partition_count() + batch.partitions + partitions > all {
        return violation(format!("The cluster may hold at most {all} partitions."));
    }
    Ok(())
}

fn write(created: &CreatedTopic, record: &TopicRecord) -> Result<Vec<Op>, Refusal> {
    let mut ops = vec![fitting(put(topic_key(&created.name), record))?];
    if !created.overrides.is_empty() {
        let resource = ConfigResource::topic(&*created.name);
        ops.push(put(configs_key(&resource), &created.overrides));
    }
    Ok(ops)
}

/// A topic is one value of the store, and a value has a bound.
pub(super) fn fitting(op: Op) -> Result<Op, Refusal> {
    match &op {
        Op::Put { value, .. } if value.len() > VALUE_BYTES_MAX => {
            let message = "A topic cannot have that many replicas.";
            Err(Refusal::new(RefusalKind::PolicyViolation, message))
        }
        _ => Ok(op),
    }
}

/// Topics of one transaction: two entries each, and the bound on a transaction's operations.
pub(crate) const AT_ONCE: usize = 50;
