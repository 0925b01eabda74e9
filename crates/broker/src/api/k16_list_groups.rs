//! Key 16, ListGroups, versions 0-5: every group this broker coordinates.
//!
//! What each version has is told where it is converted: [`ottla_wire::convert::list`]. While a
//! shard loads, the whole answer is COORDINATOR_LOAD_IN_PROGRESS: part of a list looks like all of
//! it.

use super::groups::{self, expect_reply};
use super::{Answer, Context};
use ottla_group::message::Ask;
use ottla_wire::convert::list;
use ottla_wire::generated::ListGroupsRequest;
use std::sync::Arc;

/// Asks every shard.
pub(super) fn handle(cx: &mut Context<'_>, request: ListGroupsRequest<'_>) -> Answer {
    let shards = cx.broker.shards.all();
    let asked = shards
        .iter()
        .map(|shard| groups::ask_shard(cx, Arc::clone(shard), Ask::List(list::ask(&request))));
    let asked = asked.collect();
    groups::answer_all(cx, asked, |to, buffer, replies| {
        let replies: Vec<_> = replies.into_iter().map(|reply| expect_reply!(reply, List)).collect();
        to.encode_into(&list::response(&replies), buffer)
    })
}
