//! Key 69, ConsumerGroupDescribe (KIP-848), versions 0-1: groups of the consumer protocol and
//! their members, from outside.
//!
//! - v1 tells members of the classic protocol from the others (KIP-1099).

use super::groups::{self, ALL_OPERATIONS, expect_reply};
use super::lookup::once;
use super::{Answer, Context};
use ottla_group::message::Ask;
use ottla_wire::convert::consumer_describe;
use ottla_wire::generated::{ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse};

/// Asks the shard of each group, once.
pub(super) fn handle(
    cx: &mut Context<'_>,
    mut request: ConsumerGroupDescribeRequest<'_>,
) -> Answer {
    once(&mut request.group_ids, |name| *name);
    let asks: Vec<_> = consumer_describe::asks(&request).collect();
    let asked = asks.into_iter().map(|ask| groups::ask(cx, ask.group, Ask::ConsumerDescribe(ask)));
    let asked = asked.collect();
    let names: Vec<String> = request.group_ids.iter().map(|name| (*name).to_owned()).collect();
    let operations = request.include_authorized_operations;
    groups::answer_all(cx, asked, move |to, buffer, replies| {
        let replies = replies.into_iter().map(|reply| expect_reply!(reply, ConsumerDescribe));
        let replies: Vec<_> = replies.collect();
        let groups = names.iter().zip(&replies).map(|(name, reply)| {
            let mut group = consumer_describe::described(name, reply);
            if operations && reply.is_ok() {
                group.authorized_operations = ALL_OPERATIONS;
            }
            group
        });
        let groups = groups.collect();
        to.encode_into(&ConsumerGroupDescribeResponse { groups, ..Default::default() }, buffer)
    })
}
