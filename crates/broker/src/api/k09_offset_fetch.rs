//! Key 9, OffsetFetch, versions 1-10: how far groups have got.
//!
//! What each version has is told where it is converted: [`ottla_wire::convert::fetch_offsets`].
//! While a shard loads, or is elsewhere, its groups are refused; an offset is never said to be
//! absent because it has not been read yet.

use super::groups::{self, expect_reply};
use super::{Answer, Context};
use ottla_group::message::Ask;
use ottla_wire::convert::{fetch_offsets, known_topics};
use ottla_wire::generated::OffsetFetchRequest;
use std::collections::BTreeSet;

/// Asks the shard of each group; once for a group that is to tell all it has. Topics and partitions
/// that are named twice are answered twice, in the request's order, as Kafka does.
pub(super) fn handle(cx: &mut Context<'_>, mut request: OffsetFetchRequest<'_>) -> Answer {
    let mut told_all = BTreeSet::new();
    request.groups.retain(|group| group.topics.is_some() || told_all.insert(group.group_id));
    let image = cx.broker.cluster.image();
    let asks = fetch_offsets::asks(&request, cx.version(), known_topics(image.view()));
    let mut plans = Vec::with_capacity(asks.len());
    let mut asked = Vec::with_capacity(asks.len());
    for (ask, plan) in asks {
        asked.push(groups::ask(cx, ask.group, Ask::FetchOffsets(ask)));
        plans.push(plan);
    }
    let image = std::sync::Arc::clone(&image);
    groups::answer_all(cx, asked, move |to, buffer, replies| {
        let replies = replies.into_iter().map(|reply| expect_reply!(reply, FetchOffsets));
        let told: Vec<_> = plans.into_iter().zip(replies).collect();
        let id = |name: &str| image.topic(name).map(|topic| topic.id);
        to.encode_into(&fetch_offsets::response(&told, to.version, id), buffer)
    })
}
