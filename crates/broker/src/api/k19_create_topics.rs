//! Key 19, CreateTopics, versions 2-7: topics with their partitions, replicas and settings.
//!
//! - v4 lets the broker choose partitions and replicas (-1), v5 is flexible and tells the settings
//!   the topic got (KIP-525), v7 its id (KIP-516).
//!
//! Topics are created together, but each is judged by itself. The reply is sent when the logs of
//! those that were created are open, so that a Produce right after it finds them. A name that
//! stands more than once in a request is refused, once, as Kafka does it.
//!
//! Left out: waiting no longer than the request's timeout. Creation takes one transaction.

use super::error_map::{change_error, refusal};
use super::outcome::{in_time, settled};
use super::settings_words::source_number;
use super::{Answer, Context};
use crate::broker::Broker;
use ottla_cluster::command::{Assignment, CreatedTopic, NewTopic, Refusal};
use ottla_cluster::config::Resolved;
use ottla_model::NodeId;
use ottla_wire::ErrorCode;
use ottla_wire::generated::create_topics_request::{CreatableReplicaAssignment, CreatableTopic};
use ottla_wire::generated::create_topics_response::{CreatableTopicConfigs, CreatableTopicResult};
use ottla_wire::generated::{CreateTopicsRequest, CreateTopicsResponse};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Creates the topics and answers when their logs are open.
pub(super) fn handle(cx: &mut Context<'_>, request: CreateTopicsRequest<'_>) -> Answer {
    let (topics, twice) = once_each(&request.topics);
    let (validate_only, timeout_ms) = (request.validate_only, request.timeout_ms);
    let (broker, to) = (Arc::clone(cx.broker), cx.to);
    Answer::Later(Box::pin(async move {
        let names: Vec<String> = topics.iter().map(|topic| topic.name.clone()).collect();
        let outcomes =
            match in_time(timeout_ms, broker.cluster.create_topics(topics, validate_only)).await {
                Ok(outcomes) => outcomes.into_iter().map(|outcome| outcome.map_err(Refused::from)),
                Err(error) => {
                    let refused =
                        Refused { code: change_error(&error), message: error.to_string() };
                    let all = names.iter().map(|_| Err(refused.clone()));
                    return to.encode(&response(&told(
                        &broker,
                        names.clone(),
                        all.collect(),
                        twice,
                    )));
                }
            };
        let told = told(&broker, names, outcomes.collect(), twice);
        settled(&broker, timeout_ms).await;
        for topic in &told {
            broker.metrics.errors.count(to.key, topic.code());
        }
        to.encode(&response(&told))
    }))
}

/// The request's topics without those named more than once, and the names of the latter.
fn once_each(topics: &[CreatableTopic<'_>]) -> (Vec<NewTopic>, Vec<String>) {
    let mut times: BTreeMap<&str, usize> = BTreeMap::new();
    for topic in topics {
        *times.entry(topic.name).or_default() += 1;
    }
    let single = topics.iter().filter(|topic| times[topic.name] == 1).map(wish).collect();
    let twice = times.iter().filter(|(_, times)| **times > 1).map(|(name, _)| (*name).to_owned());
    (single, twice.collect())
}

fn wish(topic: &CreatableTopic<'_>) -> NewTopic {
    let assignment = |given: &CreatableReplicaAssignment| {
        let replicas = given.broker_ids.iter().map(|id| NodeId(*id)).collect();
        Assignment { partition: given.partition_index, replicas }
    };
    let owned = |text: &str| text.to_owned();
    NewTopic {
        name: topic.name.to_owned(),
        partitions: topic.num_partitions,
        replication_factor: topic.replication_factor,
        assignments: topic.assignments.iter().map(assignment).collect(),
        configs: topic.configs.iter().map(|c| (c.name.to_owned(), c.value.map(owned))).collect(),
    }
}

/// Why a topic is not created.
#[derive(Clone)]
struct Refused {
    code: ErrorCode,
    message: String,
}

impl From<Refusal> for Refused {
    fn from(why: Refusal) -> Self {
        Self { code: refusal(why.kind), message: why.message }
    }
}

/// One topic of the reply.
struct Told {
    name: String,
    outcome: Result<(CreatedTopic, Vec<Resolved>), Refused>,
}

impl Told {
    fn code(&self) -> ErrorCode {
        self.outcome.as_ref().map_or_else(|refused| refused.code, |_| ErrorCode::None)
    }
}

fn told(
    broker: &Broker,
    names: Vec<String>,
    outcomes: Vec<Result<CreatedTopic, Refused>>,
    twice: Vec<String>,
) -> Vec<Told> {
    let judged = names.into_iter().zip(outcomes).map(|(name, outcome)| {
        let with_settings = |topic| {
            let settings = settings(broker, &topic);
            (topic, settings)
        };
        Told { name, outcome: outcome.map(with_settings) }
    });
    let message = "Duplicate topic name.".to_owned();
    let refused = Refused { code: ErrorCode::InvalidRequest, message };
    let twice = twice.into_iter().map(|name| Told { name, outcome: Err(refused.clone()) });
    judged.chain(twice).collect()
}

/// Every setting the topic has, with where each comes from.
fn settings(broker: &Broker, created: &CreatedTopic) -> Vec<Resolved> {
    let image = broker.cluster.image();
    let (layers, registry) = (image.layers(), image.registry());
    let all = registry.topic_settings();
    all.map(|setting| layers.topic(setting, &created.overrides, registry)).collect()
}

fn response(told: &[Told]) -> CreateTopicsResponse<'_> {
    CreateTopicsResponse { topics: told.iter().map(result).collect(), ..Default::default() }
}

fn result(told: &Told) -> CreatableTopicResult<'_> {
    match &told.outcome {
        Ok((topic, settings)) => CreatableTopicResult {
            name: &told.name,
            topic_id: topic.id.into(),
            error_message: None,
            num_partitions: topic.partitions,
            replication_factor: topic.replication_factor,
            configs: Some(settings.iter().map(config).collect()),
            ..Default::default()
        },
        Err(refused) => CreatableTopicResult {
            name: &told.name,
            error_code: refused.code.number(),
            error_message: Some(&refused.message),
            configs: Some(Vec::new()),
            ..Default::default()
        },
    }
}

fn config(resolved: &Resolved) -> CreatableTopicConfigs<'_> {
    CreatableTopicConfigs {
        name: resolved.setting.name,
        value: resolved.value.as_deref(),
        read_only: false,
        config_source: source_number(resolved.source),
        is_sensitive: false,
    }
}
