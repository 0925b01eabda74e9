//! Key 68, ConsumerGroupHeartbeat (KIP-848), versions 0-1: a member of the consumer protocol joins,
//! stays, gives partitions up, or leaves.
//!
//! - v1 adds the pattern a member subscribes to (KIP-1053), and members name themselves (KIP-1082).

use super::groups::{self, expect_reply};
use super::{Answer, Context};
use ottla_group::message::{Ask, Reply};
use ottla_wire::convert::consumer_heartbeat;
use ottla_wire::generated::ConsumerGroupHeartbeatRequest;

/// Beats.
pub(super) fn handle(cx: &mut Context<'_>, request: ConsumerGroupHeartbeatRequest<'_>) -> Answer {
    let asked = match consumer_heartbeat::ask(&request, cx.to.version) {
        Ok(ask) => groups::ask(cx, request.group_id, Ask::ConsumerHeartbeat(ask)),
        Err(refusal) => groups::refused(Reply::ConsumerHeartbeat(Err(refusal))),
    };
    groups::answer(cx, asked, |to, buffer, reply| {
        let reply = expect_reply!(reply, ConsumerHeartbeat);
        to.encode_into(&consumer_heartbeat::response(&reply), buffer)
    })
}
