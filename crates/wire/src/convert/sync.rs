//! SyncGroup (key 14), versions 0-5.
//!
//! - 3 adds static membership (KIP-345).
//! - 5 has protocol type and name both ways; a request of that version must have both (KIP-559).

use ottla_group::message::GroupError;
use ottla_group::message::classic::{Sync, Synced};
use ottla_model::Generation;

use super::{Told, code_of, error};
use crate::generated::sync_group_request::{SyncGroupRequest, SyncGroupRequestAssignment};
use crate::generated::sync_group_response::SyncGroupResponse;

/// What the request asks.
///
/// # Errors
/// [`GroupError::InconsistentGroupProtocol`] if it names no protocol though its version must.
pub fn ask<'a>(request: &SyncGroupRequest<'a>, version: i16) -> Result<Sync<'a>, GroupError> {
    let named = request.protocol_type.is_some() && request.protocol_name.is_some();
    if version >= 5 && !named {
        return Err(GroupError::InconsistentGroupProtocol);
    }
    let assignment = |of: &SyncGroupRequestAssignment<'a>| (of.member_id, of.assignment);
    Ok(Sync {
        group: request.group_id,
        generation: Generation(request.generation_id),
        member: request.member_id,
        instance: request.group_instance_id,
        protocol_type: request.protocol_type,
        protocol: request.protocol_name,
        assignments: request.assignments.iter().map(assignment).collect(),
    })
}

/// The response that tells of `reply`.
pub fn response(reply: &Result<Synced, GroupError>) -> SyncGroupResponse<'_> {
    let Ok(synced) = reply else {
        return SyncGroupResponse { error_code: code_of(reply), ..Default::default() };
    };
    SyncGroupResponse {
        protocol_type: Some(&synced.protocol_type),
        protocol_name: Some(&synced.protocol),
        assignment: &synced.assignment,
        ..Default::default()
    }
}

/// The request that asks it. A version that lacks a field loses it; one below 3 cannot carry a
/// static member and refuses to be encoded.
pub fn request<'a>(ask: &Sync<'a>) -> SyncGroupRequest<'a> {
    let assignment =
        |&(member_id, assignment): &_| SyncGroupRequestAssignment { member_id, assignment };
    SyncGroupRequest {
        group_id: ask.group,
        generation_id: ask.generation.0,
        member_id: ask.member,
        group_instance_id: ask.instance,
        protocol_type: ask.protocol_type,
        protocol_name: ask.protocol,
        assignments: ask.assignments.iter().map(assignment).collect(),
    }
}

/// What the response tells the member.
///
/// # Errors
/// If its code is no refusal of a coordinator.
pub fn reply(response: &SyncGroupResponse<'_>) -> Told<Result<Synced, GroupError>> {
    error::result(response.error_code, || Synced {
        protocol_type: response.protocol_type.unwrap_or_default().into(),
        protocol: response.protocol_name.unwrap_or_default().into(),
        assignment: response.assignment.into(),
    })
}
