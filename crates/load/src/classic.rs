//! What a virtual member of the classic protocol says: it joins, is told who leads, is handed its
//! part by the leader, and beats.

use crate::Outcome;
use crate::link::{Answer, Link, check};
use ottla_wire::generated::consumer_protocol_assignment::TopicPartition;
use ottla_wire::generated::join_group_request::JoinGroupRequestProtocol;
use ottla_wire::generated::sync_group_request::SyncGroupRequestAssignment;
use ottla_wire::generated::{
    ConsumerProtocolAssignment, ConsumerProtocolSubscription, JoinGroupRequest, JoinGroupResponse,
    SyncGroupRequest, SyncGroupResponse,
};
use ottla_wire::{ErrorCode, Message, Output};

/// A member of a generation.
#[derive(Clone, Debug)]
pub(crate) struct Joined {
    /// Its id.
    pub(crate) member: String,
    /// The group's generation.
    pub(crate) generation: i32,
    /// All members, if it leads.
    pub(crate) followers: Vec<String>,
}

/// The bytes a member joins with: the topic it wants, in the protocol's version 1.
pub(crate) fn subscription(topic: &str) -> Outcome<Vec<u8>> {
    versioned(&ConsumerProtocolSubscription { topics: vec![topic], ..Default::default() })
}

/// Asks to join; the answer comes when all have joined.
pub(crate) fn join<'a>(
    group: &'a str,
    member: &'a str,
    metadata: &'a [u8],
) -> JoinGroupRequest<'a> {
    JoinGroupRequest {
        group_id: group,
        session_timeout_ms: 45_000,
        rebalance_timeout_ms: 300_000,
        member_id: member,
        protocol_type: "consumer",
        protocols: vec![JoinGroupRequestProtocol { name: "range", metadata }],
        ..Default::default()
    }
}

/// Whether a first join was only told its id.
pub(crate) fn must_come_again(response: &JoinGroupResponse<'_>) -> bool {
    response.error_code == ErrorCode::MemberIdRequired.number()
}

/// Reads the answer to a join.
pub(crate) fn joined(answer: &Answer) -> Outcome<Joined> {
    let response: JoinGroupResponse<'_> = answer.read()?;
    check(response.error_code, "JoinGroup")?;
    Ok(Joined {
        member: response.member_id.to_owned(),
        generation: response.generation_id,
        followers: response.members.iter().map(|one| one.member_id.to_owned()).collect(),
    })
}

/// The leader's assignment: the topic's partitions in turn.
pub(crate) fn assignment(joined: &Joined, topic: &str, partitions: i32) -> Outcome<Vec<Vec<u8>>> {
    let count = joined.followers.len().max(1);
    let part = |number: usize| {
        let first = i32::try_from(number).unwrap_or(i32::MAX);
        let partitions = (first..partitions).step_by(count).collect();
        let assigned = vec![TopicPartition { topic, partitions }];
        versioned(&ConsumerProtocolAssignment {
            assigned_partitions: assigned,
            ..Default::default()
        })
    };
    (0..joined.followers.len()).map(part).collect()
}

/// Asks for its part, and hands out all parts if it leads.
pub(crate) fn sync<'a>(
    group: &'a str,
    joined: &'a Joined,
    parts: &'a [Vec<u8>],
) -> SyncGroupRequest<'a> {
    let assignments = joined.followers.iter().zip(parts);
    SyncGroupRequest {
        group_id: group,
        generation_id: joined.generation,
        member_id: &joined.member,
        protocol_type: Some("consumer"),
        protocol_name: Some("range"),
        assignments: assignments
            .map(|(member_id, assignment)| SyncGroupRequestAssignment { member_id, assignment })
            .collect(),
        ..Default::default()
    }
}

/// Makes a group of one member.
pub(crate) async fn alone(link: &mut Link, group: &str, topic: &str) -> Outcome<Joined> {
    let metadata = subscription(topic)?;
    let mut member = String::new();
    let joined = loop {
        let answer = link.call(JOIN_VERSION, &join(group, &member, &metadata)).await?;
        let response: JoinGroupResponse<'_> = answer.read()?;
        if !must_come_again(&response) {
            break joined(&answer)?;
        }
        response.member_id.clone_into(&mut member);
    };
    let parts = assignment(&joined, topic, 1)?;
    let answer = link.call(SYNC_VERSION, &sync(group, &joined, &parts)).await?;
    check(answer.read::<SyncGroupResponse<'_>>()?.error_code, "SyncGroup")?;
    Ok(joined)
}

fn versioned<'a>(message: &impl Message<'a>) -> Outcome<Vec<u8>> {
    let mut out = Output::new();
    out.i16(PROTOCOL_VERSION);
    message.encode(PROTOCOL_VERSION, &mut out).map_err(|error| error.to_string())?;
    Ok(out.into_vec())
}

/// The newest of each.
pub(crate) const JOIN_VERSION: i16 = 9;
pub(crate) const SYNC_VERSION: i16 = 5;
pub(crate) const HEARTBEAT_VERSION: i16 = 4;
const PROTOCOL_VERSION: i16 = 1;
