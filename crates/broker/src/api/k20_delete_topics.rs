//! Key 20, DeleteTopics, versions 1-6.
//!
//! - v3 has its own code for "deletion is disabled", v4 is flexible, v5 says why, v6 takes topics
//!   by id (KIP-516).
//!
//! A topic is gone for clients when the answer leaves; its logs and its groups' offsets follow,
//! also over a restart. Left out: `TimeoutMs`, as in CreateTopics.

use super::outcome::{Outcome, count, in_time, of_each, settled};
use super::{Answer, Context};
use ottla_cluster::command::TopicRef;
use ottla_cluster::image::Image;
use ottla_model::TopicId;
use ottla_wire::generated::delete_topics_response::DeletableTopicResult;
use ottla_wire::generated::{DeleteTopicsRequest, DeleteTopicsResponse};
use ottla_wire::{ErrorCode, Uuid};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Deletes what can be deleted.
pub(super) fn handle(cx: &mut Context<'_>, request: DeleteTopicsRequest<'_>) -> Answer {
    let image = cx.broker.cluster.image();
    let (mut lines, wanted) = sorted_out(&image, &request);
    if !image.broker_flag("delete.topic.enable") {
        return cx.reply(&disabled(cx, &request));
    }
    let (broker, to, timeout_ms) = (Arc::clone(cx.broker), cx.to, request.timeout_ms);
    Answer::Later(Box::pin(async move {
        let refs = wanted.iter().map(Line::wanted).collect();
        let outcomes = in_time(timeout_ms, broker.cluster.delete_topics(refs)).await;
        settled(&broker, timeout_ms).await;
        let outcomes = of_each(wanted.len(), outcomes);
        let told = wanted.into_iter().zip(outcomes);
        lines.extend(told.map(|(line, outcome)| Line { outcome, ..line }));
        let responses: Vec<_> = lines.iter().map(Line::result).collect();
        count(&broker, to.key, responses.iter().map(|line| line.error_code));
        to.encode(&DeleteTopicsResponse { responses, ..Default::default() })
    }))
}

/// One topic of the request: what it is called by, and what became of it.
struct Line {
    name: Option<String>,
    id: Uuid,
    outcome: Outcome,
}

impl Line {
    fn refused(name: Option<&str>, id: Uuid, message: &str) -> Self {
        let outcome = Outcome::failed(ErrorCode::InvalidRequest, message);
        Self { name: name.map(str::to_owned), id, outcome }
    }

    fn wanted(&self) -> TopicRef {
        match &self.name {
            Some(name) if self.id.is_zero() => TopicRef::Name(name.clone()),
            _ => TopicRef::Id(TopicId::from(self.id)),
        }
    }

    fn result(&self) -> DeletableTopicResult<'_> {
        DeletableTopicResult {
            name: self.name.as_deref(),
            topic_id: self.id,
            error_code: self.outcome.number(),
            error_message: self.outcome.text(),
        }
    }
}

/// Refuses what makes no sense and yields what to delete, each topic once, with both its names.
fn sorted_out(image: &Image, request: &DeleteTopicsRequest<'_>) -> (Vec<Line>, Vec<Line>) {
    let mut refused = Vec::new();
    let mut names = BTreeMap::<&str, usize>::new();
    let mut ids = BTreeMap::<Uuid, usize>::new();
    for name in &request.topic_names {
        *names.entry(name).or_default() += 1;
    }
    for topic in &request.topics {
        match topic.name {
            None if topic.topic_id.is_zero() => {
                let why = "Neither topic name nor id were specified.";
                refused.push(Line::refused(None, Uuid::ZERO, why));
            }
            None => *ids.entry(topic.topic_id).or_default() += 1,
            Some(name) if topic.topic_id.is_zero() => *names.entry(name).or_default() += 1,
            Some(name) => {
                let why = "You may not specify both topic name and topic id.";
                refused.push(Line::refused(Some(name), topic.topic_id, why));
            }
        }
    }
    let mut taken = BTreeSet::new();
    let mut wanted = Vec::new();
    for (id, times) in ids {
        let name = image.topic_by_id(id.into()).map(|topic| topic.name.to_string());
        taken.insert(id);
        if times > 1 {
            refused.push(Line::refused(None, id, "Duplicate topic id."));
        } else {
            wanted.push(Line { name, id, outcome: Outcome::FINE });
        }
    }
    for (name, times) in names {
        let id = image.topic(name).map_or(Uuid::ZERO, |topic| topic.id.into());
        if times > 1 {
            refused.push(Line::refused(Some(name), Uuid::ZERO, "Duplicate topic name."));
        } else if taken.contains(&id) {
            let why = "The provided topic name maps to an ID that was already supplied.";
            refused.push(Line::refused(Some(name), id, why));
        } else {
            wanted.push(Line { name: Some(name.to_owned()), id, outcome: Outcome::FINE });
        }
    }
    (refused, wanted)
}

fn disabled<'a>(cx: &Context<'_>, request: &DeleteTopicsRequest<'a>) -> DeleteTopicsResponse<'a> {
    let code = match cx.version() {
        ..3 => ErrorCode::InvalidRequest,
        _ => ErrorCode::TopicDeletionDisabled,
    };
    let line = |name, topic_id| DeletableTopicResult {
        name,
        topic_id,
        error_code: code.number(),
        error_message: Some("Topic deletion is disabled."),
    };
    let by_name = request.topic_names.iter().map(|name| line(Some(*name), Uuid::ZERO));
    let others = request.topics.iter().map(|topic| line(topic.name, topic.topic_id));
    let responses: Vec<_> = by_name.chain(others).collect();
    count(cx.broker, cx.to.key, responses.iter().map(|line| line.error_code));
    DeleteTopicsResponse { responses, ..Default::default() }
}
