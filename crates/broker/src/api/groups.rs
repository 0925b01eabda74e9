//! What the APIs of groups share: putting questions to the groups' shards and answering with what
//! comes back, at once or later.

use super::{Answer, Context, Held, ReplyTo};
use crate::broker::Broker;
use crate::entropy;
use crate::shards::{Asked, Cell};
use ottla_group::message::consumer::{self, Standing};
use ottla_group::message::{Ask, Client, GroupError, Reply};
use ottla_wire::ApiKey;
use ottla_wire::convert::code;
use std::sync::Arc;

/// A question that was put to a shard.
pub(super) struct Question {
    asked: Asked,
    /// The shard; none where there was nobody to ask.
    shard: Option<Arc<Cell>>,
}

impl Question {
    /// The shard, where it has not answered yet or its answer must wait.
    pub(super) fn waits_at(&self) -> Option<Arc<Cell>> {
        self.shard.clone().filter(|_| !matches!(self.asked, Asked::Now(_)))
    }
}

/// Puts a question to the shard of `group`.
pub(super) fn ask(cx: &mut Context<'_>, group: &str, body: Ask<'_>) -> Question {
    match cx.broker.shards.of(group) {
        Some(shard) => ask_shard(cx, shard, body),
        // Without an offsets topic nobody coordinates; whoever looks for the coordinator makes it.
        None => refused(body.refused(GroupError::NotCoordinator)),
    }
}

/// A question that nobody needs to be asked.
pub(super) fn refused(reply: Reply) -> Question {
    Question { asked: Asked::Now(reply), shard: None }
}

/// Puts a question to a shard.
pub(super) fn ask_shard(cx: &mut Context<'_>, shard: Arc<Cell>, body: Ask<'_>) -> Question {
    let fresh = match &body {
        Ask::Join(_)
        | Ask::Register(_)
        | Ask::ConsumerHeartbeat(consumer::Heartbeat { standing: Standing::Joining, .. }) => {
            cx.session.shards.insert(shard.id().0);
            entropy::bits()
        }
        // Nothing else needs a new name.
        _ => [0; 16],
    };
    let broker = cx.broker;
    let patience = *cx.session.patience.get_or_insert_with(|| broker.patiences.of("", ""));
    let client = Client { id: cx.client_id, host: &cx.session.host, patience };
    let asked = shard.ask(cx.session.id, client, fresh, cx.now, body);
    Question { asked, shard: Some(shard) }
}

/// Answers with one reply; `encode` is given a free buffer.
pub(super) fn answer(
    cx: &mut Context<'_>,
    question: Question,
    encode: impl FnOnce(ReplyTo, Vec<u8>, Reply) -> super::Reply + Send + 'static,
) -> Answer {
    let to = cx.to;
    let (delivery, held) = match question.asked {
        Asked::Now(reply) => {
            count(cx.broker, to.key, &reply);
            return Answer::Now(encode(to, std::mem::take(cx.scratch), reply));
        }
        Asked::Later(delivery) => (delivery, None),
        Asked::Held(delivery, token) => {
            let told = question.shard.map(|shard| Held::new(move || shard.waiting_behind(token)));
            (delivery, told)
        }
    };
    let broker = Arc::clone(cx.broker);
    let later = Box::pin(async move {
        let reply = delivery.reply().await;
        count(&broker, to.key, &reply);
        encode(to, Vec::new(), reply)
    });
    match held {
        Some(held) => Answer::Held(later, held),
        None => Answer::Later(later),
    }
}

/// Answers with several replies, in the order of the questions.
pub(super) fn answer_all(
    cx: &mut Context<'_>,
    questions: Vec<Question>,
    encode: impl FnOnce(ReplyTo, Vec<u8>, Vec<Reply>) -> super::Reply + Send + 'static,
) -> Answer {
    let to = cx.to;
    let asked: Vec<Asked> = questions.into_iter().map(|question| question.asked).collect();
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
                Asked::Later(delivery) | Asked::Held(delivery, _) => delivery.reply().await,
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

/// What everyone may do to a group until there is authorization: read, delete, describe, and
/// describe and alter its settings, as bits (KIP-430).
pub(super) const ALL_OPERATIONS: i32 = 1 << 3 | 1 << 6 | 1 << 8 | 1 << 10 | 1 << 11;

fn count(broker: &Broker, key: ApiKey, reply: &Reply) {
    let error = match reply {
        Reply::Join(reply) => reply.as_ref().err().map(|refused| refused.error),
        Reply::Sync(reply) => reply.as_ref().err().copied(),
        Reply::Heartbeat(reply) => reply.err(),
        Reply::Leave(reply) => reply.as_ref().err().copied(),
        Reply::ConsumerHeartbeat(reply) => reply.as_ref().err().copied(),
        Reply::ConsumerDescribe(reply) => reply.as_ref().err().copied(),
        Reply::ConsumerMetadata(reply) => reply.as_ref().err().copied(),
        Reply::Register(reply) => reply.as_ref().err().copied(),
        Reply::RegisterHeartbeat(reply) => reply.outcome.err(),
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
