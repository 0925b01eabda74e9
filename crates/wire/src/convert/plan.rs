//! What becomes of a request that names partitions: the edge answers some itself (unknown topics),
//! the coordinator the others, and the response has them all, in the request's order.

use ottla_group::message::GroupError;
use ottla_group::message::offsets::PerPartition;
use ottla_model::{PartitionId, Topic, TopicId, TopicName, TopicsView};

use super::code;
use crate::ErrorCode;

/// A topic as a request names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TopicRef<'a> {
    /// By name.
    Name(&'a str),
    /// By id (KIP-848's versions).
    Id(TopicId),
}

/// Looks topics up in `view`, and says what to answer for one that is not there. A broker that
/// authorizes wraps it.
pub fn known_topics<'v>(
    view: &'v TopicsView,
) -> impl Fn(TopicRef<'_>) -> Result<&'v Topic, ErrorCode> {
    |topic| match topic {
        TopicRef::Name(name) => view.topic(name).ok_or(ErrorCode::UnknownTopicOrPartition),
        TopicRef::Id(id) => view.topic_by_id(id).ok_or(ErrorCode::UnknownTopicId),
    }
}

/// A request's topics and partitions, and which of them the edge has refused already. It is kept
/// until the coordinator has replied, and turned into the response with the reply.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    pub(super) topics: Vec<PlannedTopic>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PlannedTopic {
    /// Empty if the request gave an id that no topic has.
    pub(super) name: TopicName,
    pub(super) id: TopicId,
    pub(super) partitions: Vec<PlannedPartition>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PlannedPartition {
    pub(super) partition: PartitionId,
    /// What the edge answers; if nothing, the coordinator was asked.
    pub(super) refused: Option<ErrorCode>,
}

impl Plan {
    /// Whether the coordinator is asked about any partition.
    pub(super) fn asks_nothing(&self) -> bool {
        let mut partitions = self.topics.iter().flat_map(|topic| &topic.partitions);
        partitions.all(|partition| partition.refused.is_some())
    }

    /// Notes a topic that was looked up, and refuses the partitions that it does not have.
    pub(super) fn add(
        &mut self,
        topic: TopicRef<'_>,
        found: Result<&Topic, ErrorCode>,
        partitions: impl Iterator<Item = i32>,
    ) {
        self.push(topic, found, partitions, |index| match found {
            Ok(topic) if has(topic, index) => None,
            Ok(_) => Some(ErrorCode::UnknownTopicOrPartition),
            Err(code) => Some(code),
        });
    }

    /// Notes a topic of which every partition may be asked about: all there ever were, whether it
    /// has them now or not.
    pub(super) fn add_whole(
        &mut self,
        topic: TopicRef<'_>,
        found: Result<&Topic, ErrorCode>,
        partitions: &[i32],
    ) {
        // One that is named needs no looking up.
        let refused = found.err().filter(|_| matches!(topic, TopicRef::Id(_)));
        self.push(topic, found, partitions.iter().copied(), |_| refused);
    }

    fn push(
        &mut self,
        topic: TopicRef<'_>,
        found: Result<&Topic, ErrorCode>,
        partitions: impl Iterator<Item = i32>,
        refused: impl Fn(i32) -> Option<ErrorCode>,
    ) {
        let (name, id) = match (found, topic) {
            (Ok(topic), _) => (topic.name.clone(), topic.id),
            (Err(_), TopicRef::Name(name)) => (TopicName::from(name), TopicId::ZERO),
            (Err(_), TopicRef::Id(id)) => (TopicName::from(""), id),
        };
        let planned =
            |index| PlannedPartition { partition: PartitionId(index), refused: refused(index) };
        let partitions = partitions.map(planned).collect();
        self.topics.push(PlannedTopic { name, id, partitions });
    }
}

/// Answers a plan's partitions from the coordinator's reply, which has those it was asked about
/// in the same order.
pub(super) struct Answers<'r, T> {
    answers: Result<std::vec::IntoIter<(PartitionId, &'r T)>, ErrorCode>,
}

impl<'r, T> Answers<'r, T> {
    /// Answers from `reply`, whose refusal is one of every partition.
    pub(super) fn new(reply: Result<&'r PerPartition<T>, GroupError>) -> Self {
        let flat = |topics: &'r PerPartition<T>| {
            let partitions = topics.iter().flat_map(|(_, partitions)| partitions);
            partitions.map(|(partition, answer)| (*partition, answer)).collect::<Vec<_>>()
        };
        Self { answers: reply.map(|topics| flat(topics).into_iter()).map_err(code) }
    }

    /// The answer for the next partition of the plan.
    pub(super) fn next(&mut self, planned: &PlannedPartition) -> Result<&'r T, ErrorCode> {
        if let Some(refused) = planned.refused {
            return Err(refused);
        }
        let answers = self.answers.as_mut().map_err(|code| *code)?;
        match answers.next() {
            Some((partition, answer)) if partition == planned.partition => Ok(answer),
            // A reply that is not this plan's: our mistake, and no client's.
            _ => Err(ErrorCode::UnknownServerError),
        }
    }
}

fn has(topic: &Topic, index: i32) -> bool {
    usize::try_from(index).is_ok_and(|index| index < topic.partitions.len())
}
