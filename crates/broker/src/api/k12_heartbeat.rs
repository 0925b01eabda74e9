//! Key 12, Heartbeat, versions 0-4: a member is alive.
//!
//! - v3 has static members (KIP-345), v4 is flexible.

use super::groups::{self, expect_reply};
use super::{Answer, Context};
use ottla_group::message::Ask;
use ottla_wire::convert::heartbeat;
use ottla_wire::generated::HeartbeatRequest;

/// Beats.
pub(super) fn handle(cx: &mut Context<'_>, request: HeartbeatRequest<'_>) -> Answer {
    let asked = groups::ask(cx, request.group_id, Ask::Heartbeat(heartbeat::ask(&request)));
    groups::answer(cx, asked, |to, buffer, reply| {
        let reply = expect_reply!(reply, Heartbeat);
        to.encode_into(&heartbeat::response(&reply), buffer)
    })
}
