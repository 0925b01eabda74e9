//! Key 15, DescribeGroups, versions 0-6: groups and their members, from outside.
//!
//! What each version has is told where it is converted: [`ottla_wire::convert::describe`]. Every
//! client may do everything, and is told so from version 3 on if it asks.

use super::groups::{self, ALL_OPERATIONS, expect_reply};
use super::lookup::once;
use super::{Answer, Context};
use ottla_group::message::Ask;
use ottla_wire::convert::describe;
use ottla_wire::generated::{DescribeGroupsRequest, DescribeGroupsResponse};

/// Asks the shard of each group, once.
pub(super) fn handle(cx: &mut Context<'_>, mut request: DescribeGroupsRequest<'_>) -> Answer {
    once(&mut request.groups, |name| *name);
    let asks: Vec<_> = describe::asks(&request).collect();
    let asked = asks.into_iter().map(|ask| groups::ask(cx, ask.group, Ask::Describe(ask)));
    let asked = asked.collect();
    let names: Vec<String> = request.groups.iter().map(|name| (*name).to_owned()).collect();
    let operations = request.include_authorized_operations;
    groups::answer_all(cx, asked, move |to, buffer, replies| {
        let replies = replies.into_iter().map(|reply| expect_reply!(reply, Describe));
        let replies: Vec<_> = replies.collect();
        let groups = names.iter().zip(&replies).map(|(name, reply)| {
            let mut group = describe::described(name, reply, to.version);
            if operations && reply.is_ok() {
                group.authorized_operations = ALL_OPERATIONS;
            }
            group
        });
        let groups = groups.collect();
        to.encode_into(&DescribeGroupsResponse { groups, ..Default::default() }, buffer)
    })
}
