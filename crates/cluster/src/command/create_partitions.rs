//! Give topics more partitions.

use super::create_topics::{check_request, fitting};
use super::{Command, Means, Plan, Refusal, RefusalKind, assign};
use crate::image::Image;
use crate::names;
use crate::record::{put, topic_key};
use crate::store::Op;
use ottla_model::NodeId;
use std::collections::BTreeSet;

/// Give some topics more partitions. [`crate::Cluster::create_partitions`] splits what does not
/// fit one transaction.
#[derive(Clone, Debug)]
pub struct CreatePartitions {
    /// Which; a topic named twice is refused the second time.
    pub topics: Vec<MorePartitions>,
    /// Check only.
    pub validate_only: bool,
}

/// One topic's wish.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MorePartitions {
    /// The topic.
    pub name: String,
    /// How many it shall have in all.
    pub count: i32,
    /// Replicas of the new ones, by hand.
    pub assignments: Option<Vec<Vec<NodeId>>>,
}

impl Command for CreatePartitions {
    /// Per topic, in the request's order.
    type Reply = Vec<Result<(), Refusal>>;

    fn decide(&mut self, image: &Image, means: &mut Means<'_>) -> Plan<Self::Reply> {
        let mut ops = Vec::new();
        let mut added = 0;
        let mut seen = BTreeSet::new();
        let mut grow = |topic: &MorePartitions| {
            if !seen.insert(topic.name.clone()) {
                return Err(Refusal::new(RefusalKind::InvalidRequest, "Duplicate topic name."));
            }
            ops.push(decide_one(image, means, topic, &mut added)?);
            Ok(())
        };
        let reply = self.topics.iter().map(&mut grow).collect();
        if self.validate_only { Plan::answer(reply) } else { Plan::write(ops, reply) }
    }
}

fn decide_one(
    image: &Image,
    means: &Means<'_>,
    wish: &MorePartitions,
    added: &mut usize,
) -> Result<Op, Refusal> {
    let topic = image.topic(&wish.name).ok_or_else(Refusal::unknown_topic)?;
    let more = additional(wish, topic.partition_count())?;
    // Groups are placed by this topic's count, so another count would lose every commit.
    if wish.name == names::OFFSETS_TOPIC {
        let message = format!("The number of partitions of {} is fixed.", wish.name);
        return Err(Refusal::new(RefusalKind::InvalidRequest, message));
    }
    check_request(means, *added + more, "additional partitions")?;
    let all = means.limits.partitions;
    if image.partition_count() + *added + more > all {
        let message = format!("The cluster may hold at most {all} partitions.");
        return Err(Refusal::new(RefusalKind::PolicyViolation, message));
    }
    let mut record = (**topic.record()).clone();
    let replication = topic.replication_factor();
    match &wish.assignments {
        Some(assignments) => {
            for replicas in assignments {
                assign::check(image, replicas, Some(replication))?;
            }
            record.replicas.extend(assignments.iter().cloned());
        }
        None => {
            let start = record.replicas.len();
            record.replicas.extend(assign::choose(image, more, replication, start)?);
        }
    }
    *added += more;
    fitting(put(topic_key(&wish.name), &record))
}

fn additional(wish: &MorePartitions, now: i32) -> Result<usize, Refusal> {
    let refuse = |why: String| Err(Refusal::new(RefusalKind::InvalidPartitions, why));
    if wish.count == now {
        return refuse(format!("Topic already has {now} partition(s)."));
    }
    if wish.count < now {
        return refuse(format!(
            "The topic {} currently has {now} partition(s); {} would not be an increase.",
            wish.name, wish.count
        ));
    }
    let more = usize::try_from(wish.count - now).unwrap_or_default();
    match &wish.assignments {
        Some(assignments) if assignments.len() != more => Err(Refusal::new(
            RefusalKind::InvalidReplicaAssignment,
            format!(
                "Attempted to add {more} additional partition(s), but only {} assignment(s) were \
                 specified.",
                assignments.len()
            ),
        )),
        _ => Ok(more),
    }
}

/// Topics of one transaction: each may be as large as a value can be.
pub(crate) const AT_ONCE: usize = 1;
