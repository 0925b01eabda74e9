//! Heartbeat of the register protocol (key 32012), version 0.
//!
//! The response echoes group and consumer id, and tells the group's generation also beside an
//! error (decision 14).

use ottla_group::message::register::{Heartbeat, HeartbeatAnswer};
use ottla_model::Generation;

use super::{Told, code_of, error};
use crate::generated::register_heartbeat_request::RegisterHeartbeatRequest;
use crate::generated::register_heartbeat_response::RegisterHeartbeatResponse;

/// What the request asks.
pub fn ask<'a>(request: &RegisterHeartbeatRequest<'a>) -> Heartbeat<'a> {
    Heartbeat {
        group: request.group_id,
        generation: Generation(request.group_generation_id),
        member: request.consumer_id,
    }
}

/// The response that tells of `answer` to whoever asked as consumer `member` of `group`.
pub fn response<'a>(
    answer: &HeartbeatAnswer,
    group: &'a str,
    member: &'a str,
) -> RegisterHeartbeatResponse<'a> {
    RegisterHeartbeatResponse {
        group_id: group,
        group_generation_id: answer.generation.0,
        consumer_id: member,
        error_code: code_of(&answer.outcome),
    }
}

/// The request that asks it.
pub fn request<'a>(ask: &Heartbeat<'a>) -> RegisterHeartbeatRequest<'a> {
    RegisterHeartbeatRequest {
        group_id: ask.group,
        group_generation_id: ask.generation.0,
        consumer_id: ask.member,
    }
}

/// What the response tells the consumer.
///
/// # Errors
/// If its code is no refusal of a coordinator.
pub fn reply(response: &RegisterHeartbeatResponse<'_>) -> Told<HeartbeatAnswer> {
    let outcome = error::result(response.error_code, || ())?;
    Ok(HeartbeatAnswer { generation: Generation(response.group_generation_id), outcome })
}
