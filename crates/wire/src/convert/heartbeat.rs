//! Heartbeat (key 12), versions 0-4: 3 adds static membership (KIP-345).

use ottla_group::message::GroupError;
use ottla_group::message::classic::Heartbeat;
use ottla_model::Generation;

use super::{Told, code_of, error};
use crate::generated::heartbeat_request::HeartbeatRequest;
use crate::generated::heartbeat_response::HeartbeatResponse;

/// What the request asks.
pub fn ask<'a>(request: &HeartbeatRequest<'a>) -> Heartbeat<'a> {
    Heartbeat {
        group: request.group_id,
        generation: Generation(request.generation_id),
        member: request.member_id,
        instance: request.group_instance_id,
    }
}

/// The response that tells of `reply`.
pub fn response(reply: &Result<(), GroupError>) -> HeartbeatResponse {
    HeartbeatResponse { error_code: code_of(reply), ..Default::default() }
}

/// The request that asks it. A version below 3 cannot carry a static member and refuses to be
/// encoded.
pub fn request<'a>(ask: &Heartbeat<'a>) -> HeartbeatRequest<'a> {
    HeartbeatRequest {
        group_id: ask.group,
        generation_id: ask.generation.0,
        member_id: ask.member,
        group_instance_id: ask.instance,
    }
}

/// What the response tells the member.
///
/// # Errors
/// If its code is no refusal of a coordinator.
pub fn reply(response: &HeartbeatResponse) -> Told<Result<(), GroupError>> {
    error::result(response.error_code, || ())
}
