//! Key 47, OffsetDelete, version 0: forget how far a group has got in some topics (KIP-496).

use super::groups::{self, expect_reply};
use super::{Answer, Context};
use ottla_group::message::Ask;
use ottla_wire::convert::{delete_offsets, known_topics};
use ottla_wire::generated::OffsetDeleteRequest;

/// Forgets; answers when it is safe.
pub(super) fn handle(cx: &mut Context<'_>, request: OffsetDeleteRequest<'_>) -> Answer {
    let image = cx.broker.cluster.image();
    let (ask, plan) = delete_offsets::ask(&request, known_topics(image.view()));
    let Some(ask) = ask else {
        return cx.reply(&delete_offsets::response(&plan, None));
    };
    let asked = groups::ask(cx, request.group_id, Ask::DeleteOffsets(ask));
    groups::answer(cx, asked, move |to, buffer, reply| {
        let reply = expect_reply!(reply, DeleteOffsets);
        to.encode_into(&delete_offsets::response(&plan, Some(&reply)), buffer)
    })
}
