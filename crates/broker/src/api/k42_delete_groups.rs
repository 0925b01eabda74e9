//! Key 42, DeleteGroups, versions 0-3: groups without members and all they remember (KIP-229).
//!
//! - v2 is flexible, v3 has error messages, of which there are none.

use super::groups::{self, expect_reply};
use super::lookup::once;
use super::{Answer, Context};
use ottla_group::message::Ask;
use ottla_wire::convert::delete_groups;
use ottla_wire::generated::{DeleteGroupsRequest, DeleteGroupsResponse};

/// Asks the shard of each group, once; answers when it is safe.
pub(super) fn handle(cx: &mut Context<'_>, mut request: DeleteGroupsRequest<'_>) -> Answer {
    once(&mut request.groups_names, |name| *name);
    let asks: Vec<_> = delete_groups::asks(&request).collect();
    let asked = asks.into_iter().map(|ask| groups::ask(cx, ask.group, Ask::DeleteGroup(ask)));
    let asked = asked.collect();
    let names: Vec<String> = request.groups_names.iter().map(|name| (*name).to_owned()).collect();
    groups::answer_all(cx, asked, move |to, buffer, replies| {
        let replies = replies.into_iter().map(|reply| expect_reply!(reply, DeleteGroup));
        let results = names.iter().zip(replies);
        let results = results.map(|(name, reply)| delete_groups::deleted(name, &reply)).collect();
        to.encode_into(&DeleteGroupsResponse { results, ..Default::default() }, buffer)
    })
}
