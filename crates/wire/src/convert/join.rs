//! JoinGroup (key 11), versions 0-9.
//!
//! - 0 has no rebalance timeout: the session timeout counts.
//! - 4 lets a first join be sent back for its member id (KIP-394).
//! - 5 adds static membership (KIP-345).
//! - 7 answers the protocol type, and null for the protocol of a refused join (KIP-559).
//! - 8 adds the reason (KIP-800).
//! - 9 lets the leader be told to skip the assignment (KIP-814).

use ottla_group::message::classic::{Join, JoinRefused, Joined, JoinedMember, Protocol};
use ottla_model::{Generation, InstanceId, MemberId};

use super::{Told, code, duration, error, millis};
use crate::generated::join_group_request::{JoinGroupRequest, JoinGroupRequestProtocol};
use crate::generated::join_group_response::{JoinGroupResponse, JoinGroupResponseMember};

/// What the request asks.
pub fn ask<'a>(request: &JoinGroupRequest<'a>, version: i16) -> Join<'a> {
    let protocol =
        |p: &JoinGroupRequestProtocol<'a>| Protocol { name: p.name, metadata: p.metadata };
    let rebalance_timeout_ms =
        if version >= 1 { request.rebalance_timeout_ms } else { request.session_timeout_ms };
    Join {
        group: request.group_id,
        member: request.member_id,
        instance: request.group_instance_id,
        protocol_type: request.protocol_type,
        protocols: request.protocols.iter().map(protocol).collect(),
        session_timeout: duration(request.session_timeout_ms),
        rebalance_timeout: duration(rebalance_timeout_ms),
        requires_known_id: version >= 4,
        can_skip_assignment: version >= 9,
        reason: request.reason,
    }
}

/// The response that tells of `reply`.
pub fn response(reply: &Result<Joined, JoinRefused>, version: i16) -> JoinGroupResponse<'_> {
    match reply {
        Ok(joined) => joined_response(joined, version),
        Err(refused) => JoinGroupResponse {
            error_code: code(refused.error).number(),
            generation_id: NO_GENERATION,
            protocol_name: if version >= 7 { None } else { Some("") },
            member_id: &refused.member,
            ..Default::default()
        },
    }
}

fn joined_response(joined: &Joined, version: i16) -> JoinGroupResponse<'_> {
    JoinGroupResponse {
        generation_id: joined.generation.0,
        protocol_type: Some(&joined.protocol_type),
        protocol_name: Some(&joined.protocol),
        leader: &joined.leader,
        // Whoever asked in an older version was not told to skip.
        skip_assignment: joined.skip_assignment && version >= 9,
        member_id: &joined.member,
        members: joined.members.iter().map(response_member).collect(),
        ..Default::default()
    }
}

fn response_member(member: &JoinedMember) -> JoinGroupResponseMember<'_> {
    JoinGroupResponseMember {
        member_id: &member.member,
        group_instance_id: member.instance.as_deref(),
        metadata: &member.metadata,
    }
}

/// The request that asks it. A version that lacks a field loses it; one below 5 cannot carry a
/// static member and refuses to be encoded.
pub fn request<'a>(ask: &Join<'a>) -> JoinGroupRequest<'a> {
    let protocol =
        |p: &Protocol<'a>| JoinGroupRequestProtocol { name: p.name, metadata: p.metadata };
    JoinGroupRequest {
        group_id: ask.group,
        session_timeout_ms: millis(ask.session_timeout),
        rebalance_timeout_ms: millis(ask.rebalance_timeout),
        member_id: ask.member,
        group_instance_id: ask.instance,
        protocol_type: ask.protocol_type,
        protocols: ask.protocols.iter().map(protocol).collect(),
        reason: ask.reason,
    }
}

/// What the response tells the member.
///
/// # Errors
/// If its code is no refusal of a coordinator.
pub fn reply(response: &JoinGroupResponse<'_>) -> Told<Result<Joined, JoinRefused>> {
    let result = error::result(response.error_code, || Joined {
        generation: Generation(response.generation_id),
        protocol_type: response.protocol_type.unwrap_or_default().into(),
        protocol: response.protocol_name.unwrap_or_default().into(),
        leader: MemberId::from(response.leader),
        member: MemberId::from(response.member_id),
        skip_assignment: response.skip_assignment,
        members: response.members.iter().map(joined_member).collect(),
    })?;
    Ok(result.map_err(|error| JoinRefused::new(error, response.member_id)))
}

fn joined_member(member: &JoinGroupResponseMember<'_>) -> JoinedMember {
    JoinedMember {
        member: MemberId::from(member.member_id),
        instance: member.group_instance_id.map(InstanceId::from),
        metadata: member.metadata.into(),
    }
}

const NO_GENERATION: i32 = -1;
