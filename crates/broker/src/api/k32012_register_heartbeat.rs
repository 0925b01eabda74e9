//! Key 32012, Heartbeat (register protocol), version 0: a consumer is alive and knows its
//! generation.

use super::groups::{self, expect_reply};
use super::{Answer, Context};
use ottla_group::message::Ask;
use ottla_wire::convert::register_heartbeat;
use ottla_wire::generated::RegisterHeartbeatRequest;

/// Beats.
pub(super) fn handle(cx: &mut Context<'_>, request: RegisterHeartbeatRequest<'_>) -> Answer {
    let ask = Ask::RegisterHeartbeat(register_heartbeat::ask(&request));
    let asked = groups::ask(cx, request.group_id, ask);
    let (group, member) = (request.group_id.to_owned(), request.consumer_id.to_owned());
    groups::answer(cx, asked, move |to, buffer, reply| {
        let answer = expect_reply!(reply, RegisterHeartbeat);
        to.encode_into(&register_heartbeat::response(&answer, &group, &member), buffer)
    })
}
