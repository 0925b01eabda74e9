//! Key 11, JoinGroup, versions 0-9: into a group, or into its next generation.
//!
//! What each version has is told where it is converted: [`ottla_wire::convert::join`]. The reply
//! waits until the group's members have come, and until the generation is safe.

use super::groups::{self, expect_reply};
use super::{Answer, Context};
use ottla_group::message::Ask;
use ottla_wire::convert::join;
use ottla_wire::generated::JoinGroupRequest;

/// Joins.
pub(super) fn handle(cx: &mut Context<'_>, request: JoinGroupRequest<'_>) -> Answer {
    let ask = Ask::Join(join::ask(&request, cx.version()));
    let asked = groups::ask(cx, request.group_id, ask);
    groups::answer(cx, asked, |to, buffer, reply| {
        let reply = expect_reply!(reply, Join);
        to.encode_into(&join::response(&reply, to.version), buffer)
    })
}
