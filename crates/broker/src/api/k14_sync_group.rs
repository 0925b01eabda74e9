//! Key 14, SyncGroup, versions 0-5: hand in the assignment, or pick one's part up.
//!
//! What each version has is told where it is converted: [`ottla_wire::convert::sync`]. The reply
//! waits for the leader's assignment, and until that is safe.

use super::groups::{self, expect_reply};
use super::{Answer, Context};
use ottla_group::message::Ask;
use ottla_wire::convert::sync;
use ottla_wire::generated::SyncGroupRequest;

/// Syncs.
pub(super) fn handle(cx: &mut Context<'_>, request: SyncGroupRequest<'_>) -> Answer {
    let ask = match sync::ask(&request, cx.version()) {
        Ok(ask) => ask,
        Err(error) => {
            cx.count(ottla_wire::convert::code(error));
            return cx.reply(&sync::response(&Err(error)));
        }
    };
    let asked = groups::ask(cx, request.group_id, Ask::Sync(ask));
    groups::answer(cx, asked, |to, buffer, reply| {
        let reply = expect_reply!(reply, Sync);
        to.encode_into(&sync::response(&reply), buffer)
    })
}
