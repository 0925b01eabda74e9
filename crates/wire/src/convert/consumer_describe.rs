//! ConsumerGroupDescribe (key 69, KIP-848), versions 0-1: groups of the consumer protocol with
//! their members, what these own and what they should own.
//!
//! - 1 tells which members speak the classic protocol (KIP-1099).

use ottla_group::message::GroupError;
use ottla_group::message::consumer::{Describe, DescribedMember, Description, NamedPartitions};

use super::code_of;
use crate::generated::consumer_group_describe_request::ConsumerGroupDescribeRequest;
use crate::generated::consumer_group_describe_response::{
    Assignment, DescribedGroup, Member, TopicPartitions,
};

/// What the request asks, one for each group it names.
pub fn asks<'a>(request: &ConsumerGroupDescribeRequest<'a>) -> impl Iterator<Item = Describe<'a>> {
    request.group_ids.iter().map(|group| Describe { group })
}

/// What the response says of one group. The operations that the asker may do on it, a bit set, are
/// the caller's to fill in where the request wants them.
pub fn described<'a>(
    group_id: &'a str,
    reply: &'a Result<Description, GroupError>,
) -> DescribedGroup<'a> {
    match reply {
        Ok(group) => DescribedGroup {
            group_id,
            group_state: group.state.name(),
            group_epoch: group.epoch.0,
            assignment_epoch: group.assignment_epoch.0,
            assignor_name: &group.assignor,
            members: group.members.iter().map(member).collect(),
            ..Default::default()
        },
        Err(refusal) => DescribedGroup {
            group_id,
            error_code: code_of(reply),
            error_message: absence(*refusal),
            ..Default::default()
        },
    }
}

fn absence(refusal: GroupError) -> Option<&'static str> {
    let absent = refusal == GroupError::GroupIdNotFound;
    absent.then_some("There is no group of the consumer protocol by that name.")
}

fn member(member: &DescribedMember) -> Member<'_> {
    Member {
        member_id: &member.member,
        instance_id: member.instance.as_deref(),
        rack_id: member.rack.as_deref(),
        member_epoch: member.epoch.0,
        client_id: &member.client_id,
        client_host: &member.client_host,
        subscribed_topic_names: member.topics.iter().map(|topic| &**topic).collect(),
        subscribed_topic_regex: member.regex.as_deref(),
        assignment: assignment(&member.assignment),
        target_assignment: assignment(&member.target),
        member_type: if member.is_classic { CLASSIC } else { CONSUMER },
    }
}

const CLASSIC: i8 = 0;
const CONSUMER: i8 = 1;

fn assignment(topics: &[NamedPartitions]) -> Assignment<'_> {
    Assignment { topic_partitions: topics.iter().map(partitions).collect() }
}

fn partitions(topic: &NamedPartitions) -> TopicPartitions<'_> {
    TopicPartitions {
        topic_id: topic.id.into(),
        topic_name: &topic.topic,
        partitions: topic.partitions.iter().map(|partition| partition.0).collect(),
    }
}
