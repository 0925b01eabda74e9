//! OffsetFetch (key 9), versions 1-10.
//!
//! - 1 has no error for the whole: a refusal is one of every partition.
//! - 2 may ask for all partitions that have an offset; 5 adds leader epochs (KIP-320).
//! - 7 may ask to wait for open transactions, of which there are none.
//! - 8 asks about several groups, each with its own refusal (KIP-709).
//! - 9 tells the reader's membership, 10 names topics by id (KIP-848).
//!
//! A topic that is not there (any more) has no offsets; that is no error where it is named.

use ottla_group::message::GroupError;
use ottla_group::message::offsets::{CommittedOffset, Fetch, Fetched, PartitionsOf};
use ottla_model::{
    Generation, GroupId, LeaderEpoch, Offset, PartitionId, Timestamp, Topic, TopicId, TopicName,
};

use super::plan::{Answers, PlannedTopic};
use super::{Foreign, Plan, Told, TopicRef, code, error};
use crate::ErrorCode;
use crate::generated::offset_fetch_request::{
    OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopic, OffsetFetchRequestTopics,
};
use crate::generated::offset_fetch_response::{
    OffsetFetchResponse, OffsetFetchResponseGroup, OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions, OffsetFetchResponseTopic, OffsetFetchResponseTopics,
};

/// What one request asks about one group; kept until the coordinator has replied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchPlan {
    group: GroupId,
    /// None for all partitions that have an offset.
    topics: Option<Plan>,
}

/// What the request asks, group by group, each with the plan to make the response from.
pub fn asks<'a>(
    request: &OffsetFetchRequest<'a>,
    version: i16,
    topic: impl Fn(TopicRef<'_>) -> Result<&'a Topic, ErrorCode>,
) -> Vec<(Fetch<'a>, FetchPlan)> {
    if version >= 8 {
        let groups = request.groups.iter();
        return groups.map(|group| ask_of_group(group, version, &topic)).collect();
    }
    let topics = request.topics.as_ref().map(|topics| {
        let named = topics.iter().map(|t| (TopicRef::Name(t.name), &t.partition_indexes[..]));
        plan_topics(named, &topic)
    });
    vec![ask_of(request.group_id, None, topics)]
}

fn ask_of_group<'a>(
    group: &OffsetFetchRequestGroup<'a>,
    version: i16,
    topic: &impl Fn(TopicRef<'_>) -> Result<&'a Topic, ErrorCode>,
) -> (Fetch<'a>, FetchPlan) {
    let named = |topic: &OffsetFetchRequestTopics<'a>| match version {
        ..=9 => TopicRef::Name(topic.name),
        _ => TopicRef::Id(topic.topic_id.into()),
    };
    let topics = group.topics.as_ref().map(|topics| {
        plan_topics(topics.iter().map(|t| (named(t), &t.partition_indexes[..])), topic)
    });
    let claims = group.member_id.is_some() || group.member_epoch >= 0;
    let member = (group.member_id.unwrap_or_default(), Generation(group.member_epoch));
    ask_of(group.group_id, claims.then_some(member), topics)
}

fn ask_of<'a>(
    group: &'a str,
    member: Option<(&'a str, Generation)>,
    topics: Option<(PartitionsOf<'a>, Plan)>,
) -> (Fetch<'a>, FetchPlan) {
    let (topics, plan) = topics.unzip();
    (Fetch { group, member, topics }, FetchPlan { group: GroupId::from(group), topics: plan })
}

fn plan_topics<'a, 'r>(
    asked: impl Iterator<Item = (TopicRef<'a>, &'r [i32])>,
    topic: &impl Fn(TopicRef<'_>) -> Result<&'a Topic, ErrorCode>,
) -> (PartitionsOf<'a>, Plan) {
    let (mut topics, mut plan) = (Vec::new(), Plan::default());
    for (named, partitions) in asked {
        let found = topic(named);
        plan.add_whole(named, found, partitions);
        let name = match (named, found) {
            (TopicRef::Name(name), _) => name,
            (TopicRef::Id(_), Ok(topic)) => &topic.name,
            (TopicRef::Id(_), Err(_)) => continue,
        };
        topics.push((name, partitions.iter().copied().map(PartitionId).collect()));
    }
    (topics, plan)
}

/// The response that tells of every group's reply, in the order of [`asks`]. `id` finds the id
/// of a topic by its name, where version 10 answers for all topics of a group.
pub fn response<'p>(
    groups: &'p [(FetchPlan, Result<Fetched, GroupError>)],
    version: i16,
    id: impl Fn(&str) -> Option<TopicId>,
) -> OffsetFetchResponse<'p> {
    if version >= 8 {
        let group = |(plan, reply): &'p _| group_response(plan, reply, version, &id);
        let groups = groups.iter().map(group).collect();
        return OffsetFetchResponse { groups, ..Default::default() };
    }
    let Some((plan, reply)) = groups.first() else { return OffsetFetchResponse::default() };
    let error_code = match reply {
        Err(error) if version >= 2 => code(*error).number(),
        _ => 0,
    };
    let topics = if error_code == 0 { topics(plan, reply, version, &id) } else { Vec::new() };
    let topics = topics.into_iter().map(AnsweredTopic::single).collect();
    OffsetFetchResponse { topics, error_code, ..Default::default() }
}

fn group_response<'p>(
    plan: &'p FetchPlan,
    reply: &'p Result<Fetched, GroupError>,
    version: i16,
    id: &impl Fn(&str) -> Option<TopicId>,
) -> OffsetFetchResponseGroup<'p> {
    let group_id = plan.group.as_str();
    if let Err(error) = reply {
        let error_code = code(*error).number();
        return OffsetFetchResponseGroup { group_id, error_code, ..Default::default() };
    }
    let topics = topics(plan, reply, version, id);
    let topics = topics.into_iter().map(|topic| topic.batched(version)).collect();
    OffsetFetchResponseGroup { group_id, topics, ..Default::default() }
}

/// A topic of a response, in neither of the two shapes that responses have for it.
struct AnsweredTopic<'p> {
    name: &'p str,
    id: TopicId,
    partitions: Vec<(PartitionId, Result<Option<&'p CommittedOffset>, ErrorCode>)>,
}

fn topics<'p>(
    plan: &'p FetchPlan,
    reply: &'p Result<Fetched, GroupError>,
    version: i16,
    id: &impl Fn(&str) -> Option<TopicId>,
) -> Vec<AnsweredTopic<'p>> {
    let Some(plan) = &plan.topics else {
        let all = reply.iter().flat_map(|fetched| &fetched.topics);
        return all.filter_map(|topic| found_topic(topic, version, id)).collect();
    };
    let reply = reply.as_ref().map(|fetched| &fetched.topics).map_err(|error| *error);
    let mut answers = Answers::new(reply);
    plan.topics.iter().map(|topic| planned_topic(topic, &mut answers)).collect()
}

/// A topic that was asked for.
fn planned_topic<'p>(
    topic: &'p PlannedTopic,
    answers: &mut Answers<'p, Option<CommittedOffset>>,
) -> AnsweredTopic<'p> {
    let partitions = topic.partitions.iter().map(|planned| {
        let answer = answers.next(planned);
        let offset = answer.map(|offset| offset.as_ref().filter(|of| is_of(of, topic.id)));
        (planned.partition, offset)
    });
    AnsweredTopic { name: &topic.name, id: topic.id, partitions: partitions.collect() }
}

/// A topic that has offsets, where all such were asked for. Without an id it has no place in a
/// version that has no names: then it was deleted, and its offsets are about to be.
fn found_topic<'p>(
    (name, partitions): &'p (TopicName, Vec<(PartitionId, Option<CommittedOffset>)>),
    version: i16,
    id: &impl Fn(&str) -> Option<TopicId>,
) -> Option<AnsweredTopic<'p>> {
    let id = if version >= 10 { id(name)? } else { TopicId::ZERO };
    let of_topic = |offset: &'p Option<CommittedOffset>| offset.as_ref().filter(|o| is_of(o, id));
    let partitions = partitions.iter().map(|(p, offset)| (*p, Ok(of_topic(offset)))).collect();
    Some(AnsweredTopic { name, id, partitions })
}

/// Whether an offset was committed for the topic of this id, as far as either is known: a
/// recreated topic inherits nothing.
fn is_of(offset: &CommittedOffset, id: TopicId) -> bool {
    offset.topic_id.is_zero() || id.is_zero() || offset.topic_id == id
}

impl<'p> AnsweredTopic<'p> {
    /// As versions up to 7 have it.
    fn single(self) -> OffsetFetchResponseTopic<'p> {
        let partitions = self.partitions.into_iter().map(|(partition, offset)| {
            let (offset, error_code) = known(offset);
            OffsetFetchResponsePartition {
                partition_index: partition.0,
                committed_offset: offset.map_or(NO_OFFSET, |of| of.offset.0),
                committed_leader_epoch: leader_epoch(offset),
                metadata: Some(offset.map_or("", |of| &of.metadata)),
                error_code,
            }
        });
        OffsetFetchResponseTopic { name: self.name, partitions: partitions.collect() }
    }

    /// As versions from 8 on have it.
    fn batched(self, version: i16) -> OffsetFetchResponseTopics<'p> {
        let partitions = self.partitions.into_iter().map(|(partition, offset)| {
            let (offset, error_code) = known(offset);
            OffsetFetchResponsePartitions {
                partition_index: partition.0,
                committed_offset: offset.map_or(NO_OFFSET, |of| of.offset.0),
                committed_leader_epoch: leader_epoch(offset),
                metadata: Some(offset.map_or("", |of| &of.metadata)),
                error_code,
            }
        });
        let (name, id) = if version >= 10 { ("", self.id) } else { (self.name, TopicId::ZERO) };
        OffsetFetchResponseTopics { name, topic_id: id.into(), partitions: partitions.collect() }
    }
}

fn known(offset: Result<Option<&CommittedOffset>, ErrorCode>) -> (Option<&CommittedOffset>, i16) {
    match offset {
        Ok(offset) => (offset, 0),
        Err(code) => (None, code.number()),
    }
}

fn leader_epoch(offset: Option<&CommittedOffset>) -> i32 {
    offset.and_then(|of| of.leader_epoch).map_or(-1, |epoch| epoch.0)
}

/// The request that asks it. `id` finds the id of a topic by its name for version 10; a topic it
/// does not find is asked for by no id, which no broker knows.
///
/// # Errors
/// [`GroupError::InvalidRequest`] if the version, below 8, takes one group and these are not one.
/// Version 1 cannot ask for all partitions; the request then refuses to be encoded.
pub fn request<'a>(
    asks: &[Fetch<'a>],
    version: i16,
    id: impl Fn(&str) -> Option<TopicId>,
) -> Result<OffsetFetchRequest<'a>, GroupError> {
    if version >= 8 {
        let groups = asks.iter().map(|ask| request_group(ask, &id)).collect();
        return Ok(OffsetFetchRequest { topics: Some(Vec::new()), groups, ..Default::default() });
    }
    let [ask] = asks else { return Err(GroupError::InvalidRequest) };
    let topic = |(name, partitions): &(&'a str, Vec<PartitionId>)| OffsetFetchRequestTopic {
        name,
        partition_indexes: partitions.iter().map(|partition| partition.0).collect(),
    };
    let topics = ask.topics.as_ref().map(|topics| topics.iter().map(topic).collect());
    Ok(OffsetFetchRequest { group_id: ask.group, topics, ..Default::default() })
}

fn request_group<'a>(
    ask: &Fetch<'a>,
    id: &impl Fn(&str) -> Option<TopicId>,
) -> OffsetFetchRequestGroup<'a> {
    let topic = |(name, partitions): &(&'a str, Vec<PartitionId>)| OffsetFetchRequestTopics {
        name,
        topic_id: id(name).unwrap_or_default().into(),
        partition_indexes: partitions.iter().map(|partition| partition.0).collect(),
    };
    OffsetFetchRequestGroup {
        group_id: ask.group,
        member_id: ask.member.map(|(member, _)| member),
        member_epoch: ask.member.map_or(-1, |(_, epoch)| epoch.0),
        topics: ask.topics.as_ref().map(|topics| topics.iter().map(topic).collect()),
    }
}

/// What a response tells of one group; which one, if it says.
pub type GroupReply = (Option<GroupId>, Result<Fetched, GroupError>);

/// What the response tells, group by group; below version 8 it names none, and the one it is about
/// is the one that was asked for. `name` finds the name of a topic by its id for version 10; a
/// topic it does not find is left out.
///
/// # Errors
/// If a code in it is no refusal of a coordinator; a refusal of single partitions is one of these.
pub fn reply(
    response: &OffsetFetchResponse<'_>,
    version: i16,
    name: impl Fn(TopicId) -> Option<TopicName>,
) -> Told<Vec<GroupReply>> {
    if version < 8 {
        return Ok(vec![(None, single_reply(response)?)]);
    }
    let group = |group: &OffsetFetchResponseGroup<'_>| {
        Ok((Some(GroupId::from(group.group_id)), batched_reply(group, version, &name)?))
    };
    response.groups.iter().map(group).collect()
}

fn single_reply(response: &OffsetFetchResponse<'_>) -> Told<Result<Fetched, GroupError>> {
    let mut refused = error::group_error(response.error_code)?;
    let mut topics = Vec::with_capacity(response.topics.len());
    for topic in &response.topics {
        let mut partitions = Vec::with_capacity(topic.partitions.len());
        for of in &topic.partitions {
            // In version 1 the only place for a refusal of the whole.
            refused = refused.or(error::group_error(of.error_code)?);
            let told = (of.committed_offset, of.committed_leader_epoch, of.metadata);
            partitions.push((PartitionId(of.partition_index), committed(told, TopicId::ZERO)));
        }
        topics.push((TopicName::from(topic.name), partitions));
    }
    Ok(refused.map_or(Ok(Fetched { topics }), Err))
}

fn batched_reply(
    group: &OffsetFetchResponseGroup<'_>,
    version: i16,
    name: &impl Fn(TopicId) -> Option<TopicName>,
) -> Told<Result<Fetched, GroupError>> {
    if let Some(refused) = error::group_error(group.error_code)? {
        return Ok(Err(refused));
    }
    let mut topics = Vec::with_capacity(group.topics.len());
    for topic in &group.topics {
        let id = TopicId::from(topic.topic_id);
        let known = if version >= 10 { name(id) } else { Some(TopicName::from(topic.name)) };
        let partition = |of: &OffsetFetchResponsePartitions<'_>| {
            if of.error_code != 0 {
                return Err(Foreign(of.error_code));
            }
            let told = (of.committed_offset, of.committed_leader_epoch, of.metadata);
            Ok((PartitionId(of.partition_index), committed(told, id)))
        };
        let partitions = topic.partitions.iter().map(partition).collect::<Told<Vec<_>>>()?;
        topics.extend(known.map(|name| (name, partitions)));
    }
    Ok(Ok(Fetched { topics }))
}

/// What a response tells of a partition. It tells no times.
fn committed(
    (offset, leader_epoch, metadata): (i64, i32, Option<&str>),
    topic_id: TopicId,
) -> Option<CommittedOffset> {
    (offset >= 0).then(|| CommittedOffset {
        offset: Offset(offset),
        leader_epoch: (leader_epoch >= 0).then_some(LeaderEpoch(leader_epoch)),
        metadata: metadata.unwrap_or_default().into(),
        committed_at: Timestamp::NONE,
        expires_at: None,
        topic_id,
    })
}

const NO_OFFSET: i64 = -1;
