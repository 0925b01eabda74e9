//! Key 32, DescribeConfigs, versions 1-4: the settings of topics, brokers and groups, with where
//! each value comes from (KIP-133, KIP-226).
//!
//! - v1 tells sources and synonyms, v2 changes nothing, v3 adds types and documentation (KIP-569),
//!   v4 is flexible.
//!
//! Every setting listed takes effect; a Kafka setting that is not listed is refused by the APIs
//! that change settings. A broker is asked for its own settings, or with an empty name for those
//! that were set on all brokers while they ran.
//!
//! Left out: loggers of a broker and client metrics, which are empty here.

use super::outcome::{Outcome, count};
use super::settings_words::{Resource, source_number, type_number};
use super::{Answer, Context};
use ottla_cluster::config::{Overrides, Resolved, Scope, Setting};
use ottla_cluster::image::Image;
use ottla_cluster::names;
use ottla_cluster::record::{ConfigResource, ResourceKind};
use ottla_wire::ErrorCode;
use ottla_wire::generated::describe_configs_request::DescribeConfigsResource;
use ottla_wire::generated::describe_configs_response::{
    DescribeConfigsResourceResult, DescribeConfigsResult, DescribeConfigsSynonym,
};
use ottla_wire::generated::{DescribeConfigsRequest, DescribeConfigsResponse};
use std::collections::{BTreeMap, BTreeSet};

/// Answers from the image.
pub(super) fn handle(cx: &mut Context<'_>, request: DescribeConfigsRequest<'_>) -> Answer {
    let image = cx.broker.cluster.image();
    // A resource named twice is answered once: its answer is longer than its question.
    let asked: BTreeMap<_, _> = request
        .resources
        .iter()
        .map(|asked| ((asked.resource_type, asked.resource_name), asked))
        .collect();
    let looked_up: Vec<_> =
        asked.into_values().map(|asked| (asked, settings(&image, asked))).collect();
    let told =
        Told { synonyms: request.include_synonyms, documentation: request.include_documentation };
    let results = looked_up.iter().map(|(asked, outcome)| told.result(asked, outcome));
    let results: Vec<_> = results.collect();
    count(cx.broker, cx.to.key, results.iter().map(|result| result.error_code));
    cx.reply(&DescribeConfigsResponse { results, ..Default::default() })
}

/// The settings of one resource that are asked for, in the order of their names.
fn settings(image: &Image, asked: &DescribeConfigsResource<'_>) -> Result<Vec<Resolved>, Outcome> {
    let invalid = |message: &str| Err(Outcome::failed(ErrorCode::InvalidRequest, message));
    let name = asked.resource_name;
    let mut all = match Resource::of(asked.resource_type) {
        Some(Resource::Kept(ResourceKind::Topic)) => of_topic(image, name)?,
        Some(Resource::Kept(ResourceKind::Broker)) => of_broker(image, name)?,
        Some(Resource::Kept(ResourceKind::Group)) if name.is_empty() => {
            return invalid("Group name must not be empty");
        }
        Some(Resource::Kept(ResourceKind::Group)) => of_group(image, name),
        Some(Resource::BrokerLogger | Resource::ClientMetrics) => Vec::new(),
        None => return invalid(&format!("Unknown resource type {}", asked.resource_type)),
    };
    if let Some(keys) = asked.configuration_keys.as_ref().filter(|keys| !keys.is_empty()) {
        let keys: BTreeSet<_> = keys.iter().copied().collect();
        all.retain(|resolved| keys.contains(resolved.setting.name));
    }
    Ok(all)
}

fn of_topic(image: &Image, name: &str) -> Result<Vec<Resolved>, Outcome> {
    names::check(name).map_err(|why| {
        let message = format!("Topic name is invalid: {why}");
        Outcome::failed(ErrorCode::InvalidTopicException, message)
    })?;
    let absent = Outcome { code: ErrorCode::UnknownTopicOrPartition, message: None };
    let topic = image.topic(name).ok_or(absent)?;
    let (layers, registry) = (image.layers(), image.registry());
    let all = registry.topic_settings();
    Ok(all.map(|setting| layers.topic(setting, &topic.overrides, registry)).collect())
}

fn of_broker(image: &Image, name: &str) -> Result<Vec<Resolved>, Outcome> {
    let (layers, registry) = (image.layers(), image.registry());
    if name.is_empty() {
        let set = image.overrides(&ConfigResource::every_broker());
        let of_all = |setting: &&'static Setting| set.is_some_and(|s| s.contains_key(setting.name));
        let all = registry.broker_settings().filter(of_all);
        return Ok(all.map(|setting| layers.every_broker(setting)).collect());
    }
    let node = image.node();
    if name.parse() != Ok(node.0) {
        let message = format!("Unexpected broker id, expected {node}, but received {name}");
        return Err(Outcome::failed(ErrorCode::InvalidRequest, message));
    }
    Ok(registry.broker_settings().map(|setting| layers.broker(setting)).collect())
}

fn of_group(image: &Image, name: &str) -> Vec<Resolved> {
    let none = Overrides::new();
    let own = image.overrides(&ConfigResource::group(name)).map_or(&none, |own| &**own);
    let all = image.registry().group_settings();
    all.map(|setting| image.layers().group(setting, own)).collect()
}

/// What the answer tells besides values.
struct Told {
    synonyms: bool,
    documentation: bool,
}

impl Told {
    fn result<'a>(
        &self,
        asked: &DescribeConfigsResource<'a>,
        outcome: &'a Result<Vec<Resolved>, Outcome>,
    ) -> DescribeConfigsResult<'a> {
        let (settings, refused) = match outcome {
            Ok(settings) => (settings.as_slice(), None),
            Err(refused) => (&[][..], Some(refused)),
        };
        let is_broker = asked.resource_type == BROKER;
        DescribeConfigsResult {
            error_code: refused.map_or(0, Outcome::number),
            error_message: refused.and_then(Outcome::text),
            resource_type: asked.resource_type,
            resource_name: asked.resource_name,
            configs: settings.iter().map(|resolved| self.setting(resolved, is_broker)).collect(),
        }
    }

    fn setting<'a>(
        &self,
        resolved: &'a Resolved,
        is_broker: bool,
    ) -> DescribeConfigsResourceResult<'a> {
        let setting = resolved.setting;
        let synonyms = resolved.synonyms.iter().filter(|_| self.synonyms);
        DescribeConfigsResourceResult {
            name: setting.name,
            value: resolved.value.as_deref(),
            read_only: is_broker && setting.scope == Scope::ReadOnly,
            config_source: source_number(resolved.source),
            is_sensitive: false,
            synonyms: synonyms
                .map(|synonym| DescribeConfigsSynonym {
                    name: synonym.name,
                    value: Some(&synonym.value),
                    source: source_number(synonym.source),
                })
                .collect(),
            config_type: type_number(setting.kind),
            documentation: self.documentation.then_some(setting.doc),
        }
    }
}

const BROKER: i8 = 4;
