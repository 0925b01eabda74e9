//! What the APIs of groups share: putting questions to the groups' shards and answering with what
//! comes back, at once or later.

use super::{Answer, Context, ReplyTo};
use crate::broker::Broker;
use crate::entropy;
use crate::shards::Asked;
use ottla_group::message::{Ask, Client, GroupError, Reply};
use ottla_wire::ApiKey;
use ottla_wire::convert::code;
use std::sync::Arc;

/// Puts a question to the shard of `group`.
pub(super) fn ask(cx: &mut Context<'_>, group: &str, body: Ask<'_>) -> Asked {
    let Some(shard) = cx.broker.shards.of(group) else {
        // Without an offsets topic nobody coordinates; whoever looks for the coordinator makes it.
        return Asked::Now(body.refused(GroupError::NotCoordinator));
    };
    let fresh = match &body {
        Ask::Join(_) => {
            cx.session.shards.insert(shard.id().0);
            entropy::bits()
        }
        // Nothing else needs a new name.
        _ => [0; 16],
    };
    let client = Client { id: cx.client_id, host: &cx.session.host };
    shard.ask(cx.session.id, client, fresh, cx.now, body)
}

/// Answers with one reply; `encode` is given a free buffer.
pub(super) fn answer(
    cx: &mut Context<'_>,
    asked: Asked,
    encode: impl FnOnce(ReplyTo, Vec<u8>, Reply) -> super::Reply + Send + 'static,
) -> Answer {
    let to = cx.to;
    match asked {
        Asked::Now(reply) => {
            count(cx.broker, to.key, &reply);
            Answer::Now(encode(to, std::mem::take(cx.scratch), reply))
        }
        Asked::Later(delivery) => {
            let broker = Arc::clone(cx.broker);
            Answer::Later(Box::pin(async move {
                let reply = delivery.reply().await;
                count(&broker, to.key, &reply);
                encode(to, Vec::new(), reply)
            }))
        }
    }
}

/// Answers with several replies, in the order of the questions.
pub(super) fn answer_all(
    cx: &mut Context<'_>,
    asked: Vec<Asked>,
    encode: impl FnOnce(ReplyTo, Vec<u8>, Vec<Reply>) -> super::Reply + Send + 'static,
) -> Answer {
    let to = cx.to;
    if asked.iter().all(|asked| matches!(asked, Asked::Now(_))) {
        let replies = asked.into_iter().filter_map(Asked::now);
        let replies: Vec<Reply> =
            replies.inspect(|reply| count(cx.broker, to.key, reply)).collect();
        return Answer::Now(encode(to, std::mem::take(cx.scratch), replies));
    }
    let broker = Arc::clone(cx.broker);
    Answer::Later(Box::pin(async move {
        let mut replies = Vec::with_capacity(asked.len());
        for asked in asked {
            let reply = match asked {
                Asked::Now(reply) => reply,
                Asked::Later(delivery) => delivery.reply().await,
            };
            count(&broker, to.key, &reply);
            replies.push(reply);
        }
        encode(to, Vec::new(), replies)
    }))
}

/// A shard answers what it was asked; anything else is our own mistake.
macro_rules! expect_reply {
    ($reply:expr, $variant:ident) => {
        match $reply {
            ottla_group::message::Reply::$variant(reply) => reply,
            other => unreachable!("asked for {}, answered {other:?}", stringify!($variant)),
        }
    };
}

pub(super) use expect_reply;

fn count(broker: &Broker, key: ApiKey, reply: &Reply) {
    let error = match reply {
        Reply::Join(reply) => reply.as_ref().err().map(|refused| refused.error),
        Reply::Sync(reply) => reply.as_ref().err().copied(),
        Reply::Heartbeat(reply) => reply.err(),
        Reply::Leave(reply) => reply.as_ref().err().copied(),
        Reply::Commit(reply) => reply.as_ref().err().copied(),
        Reply::FetchOffsets(reply) => reply.as_ref().err().copied(),
        Reply::DeleteOffsets(reply) => reply.as_ref().err().copied(),
        Reply::Describe(reply) => reply.as_ref().err().copied(),
        Reply::List(reply) => reply.as_ref().err().copied(),
        Reply::DeleteGroup(reply) => reply.err(),
    };
    if let Some(error) = error {
        broker.metrics.errors.count(key, code(error));
    }
}
