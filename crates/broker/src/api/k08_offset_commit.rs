//! Key 8, OffsetCommit, versions 2-10: how far a group has got.
//!
//! What each version has is told where it is converted: [`ottla_wire::convert::commit`]. A topic
//! that does not exist is refused here, partition by partition; the others are stored all or none.

use super::groups::{self, expect_reply};
use super::{Answer, Context};
use ottla_group::message::Ask;
use ottla_wire::convert::{commit, known_topics};
use ottla_wire::generated::OffsetCommitRequest;

/// Stores; answers when it is safe.
pub(super) fn handle(cx: &mut Context<'_>, request: OffsetCommitRequest<'_>) -> Answer {
    let image = cx.broker.cluster.image();
    let (ask, plan) = commit::ask(&request, cx.version(), known_topics(image.view()));
    let Some(ask) = ask else {
        return cx.reply(&commit::response(&plan, None, cx.version()));
    };
    let asked = groups::ask(cx, request.group_id, Ask::Commit(ask));
    groups::answer(cx, asked, move |to, buffer, reply| {
        let reply = expect_reply!(reply, Commit);
        to.encode_into(&commit::response(&plan, Some(&reply), to.version), buffer)
    })
}
