//! Key 32011, RegisterConsumer (register protocol), version 0: into a group, or into its next
//! generation.
//!
//! The reply waits until the group's members have registered and the generation is safe; then the
//! consumer's failure detection starts.

use super::groups::{self, expect_reply};
use super::{Answer, Context};
use ottla_group::message::Ask;
use ottla_wire::convert::register_consumer;
use ottla_wire::generated::RegisterConsumerRequest;

/// Registers.
pub(super) fn handle(cx: &mut Context<'_>, request: RegisterConsumerRequest<'_>) -> Answer {
    let asked = groups::ask(cx, request.group_id, Ask::Register(register_consumer::ask(&request)));
    let waits_at = asked.waits_at();
    let (group, member) = (request.group_id.to_owned(), request.consumer_id.to_owned());
    groups::answer(cx, asked, move |to, buffer, reply| {
        let reply = expect_reply!(reply, Register);
        if let (Some(shard), Ok(registered)) = (waits_at, &reply) {
            shard.answered(&registered.group, &registered.member);
        }
        to.encode_into(&register_consumer::response(&reply, &group, &member), buffer)
    })
}
