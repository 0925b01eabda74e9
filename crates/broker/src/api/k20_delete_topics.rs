//! Key 20, DeleteTopics, versions 1-6: topics and all their records, for good.
//!
//! - v4 is flexible, v5 adds messages (KIP-599), v6 lets a topic be named by its id (KIP-516).
//!
//! A topic is gone as soon as the change is durable: nobody can write to it or read it, its
//! committed offsets are forgotten, and its name is free. Its files are removed afterwards.
//!
//! Left out: waiting no longer than the request's timeout. Deletion takes one transaction.

use super::error_map::{change_error, refusal};
use super::{Answer, Context};
use ottla_cluster::command::{DeletedTopic, Refusal, TopicRef};
use ottla_wire::generated::delete_topics_response::DeletableTopicResult;
use ottla_wire::generated::{DeleteTopicsRequest, DeleteTopicsResponse};
use ottla_wire::{ErrorCode, Uuid};
use std::sync::Arc;

/// Deletes the topics and answers when their logs are closed.
pub(super) fn handle(cx: &mut Context<'_>, request: DeleteTopicsRequest<'_>) -> Answer {
    let topics = wanted(&request, cx.version());
    let (broker, to) = (Arc::clone(cx.broker), cx.to);
    Answer::Later(Box::pin(async move {
        let results = match broker.cluster.delete_topics(topics.clone()).await {
            Ok(outcomes) => topics
                .into_iter()
                .zip(outcomes)
                .map(|(topic, it)| Told::judged(topic, it))
                .collect(),
            Err(error) => {
                let code = change_error(&error);
                let message = error.to_string();
                let failed =
                    |topic| Told { topic, code, message: Some(message.clone()), gone: None };
                topics.into_iter().map(failed).collect::<Vec<_>>()
            }
        };
        broker.partitions.applied(broker.cluster.image().revision()).await;
        for told in &results {
            broker.metrics.errors.count(to.key, told.code);
        }
        let responses = results.iter().map(Told::result).collect();
        to.encode(&DeleteTopicsResponse { responses, ..Default::default() })
    }))
}

fn wanted(request: &DeleteTopicsRequest<'_>, version: i16) -> Vec<TopicRef> {
    if version < FIRST_BY_ID {
        return request.topic_names.iter().map(|name| TopicRef::Name((*name).into())).collect();
    }
    let by_either = request.topics.iter().map(|topic| match topic.name {
        Some(name) => TopicRef::Name(name.into()),
        None => TopicRef::Id(topic.topic_id.into()),
    });
    by_either.collect()
}

/// One topic of the reply.
struct Told {
    topic: TopicRef,
    code: ErrorCode,
    message: Option<String>,
    gone: Option<DeletedTopic>,
}

impl Told {
    fn judged(topic: TopicRef, outcome: Result<DeletedTopic, Refusal>) -> Self {
        match outcome {
            Ok(gone) => Self { topic, code: ErrorCode::None, message: None, gone: Some(gone) },
            Err(why) => {
                Self { topic, code: refusal(why.kind), message: Some(why.message), gone: None }
            }
        }
    }

    fn result(&self) -> DeletableTopicResult<'_> {
        let (asked_name, asked_id) = match &self.topic {
            TopicRef::Name(name) => (Some(name.as_str()), Uuid::ZERO),
            TopicRef::Id(id) => (None, (*id).into()),
        };
        DeletableTopicResult {
            name: self.gone.as_ref().map_or(asked_name, |gone| Some(&gone.name)),
            topic_id: self.gone.as_ref().map_or(asked_id, |gone| gone.id.into()),
            error_code: self.code.number(),
            error_message: self.message.as_deref(),
        }
    }
}

/// The first version whose request may name topics by id.
const FIRST_BY_ID: i16 = 6;
