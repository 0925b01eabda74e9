//! Key 13, LeaveGroup, versions 0-5: members go, or are removed by an administrator.
//!
//! What each version has is told where it is converted: [`ottla_wire::convert::leave`].

use super::groups::{self, expect_reply};
use super::{Answer, Context};
use ottla_group::message::Ask;
use ottla_wire::convert::leave;
use ottla_wire::generated::LeaveGroupRequest;

/// Leaves.
pub(super) fn handle(cx: &mut Context<'_>, request: LeaveGroupRequest<'_>) -> Answer {
    let ask = Ask::Leave(leave::ask(&request, cx.version()));
    let asked = groups::ask(cx, request.group_id, ask);
    groups::answer(cx, asked, |to, buffer, reply| {
        let reply = expect_reply!(reply, Leave);
        to.encode_into(&leave::response(&reply, to.version), buffer)
    })
}
