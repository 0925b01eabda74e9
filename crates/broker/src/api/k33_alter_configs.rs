//! Key 33, AlterConfigs, versions 0-2: settings that replace all that were set (KIP-133).
//!
//! - v1 changes nothing, v2 is flexible.
//!
//! Old tools use it; IncrementalAlterConfigs does not lose what it does not name. What it shares
//! with that one is here: which resources can be changed at all, and the order of the answer.

use super::outcome::{NO_LIMIT, Outcome, count, of_each, settled};
use super::settings_words::{Resource, resource};
use super::{Answer, Context};
use crate::broker::Broker;
use ottla_cluster::command::{ConfigChange, ConfigEdit};
use ottla_cluster::record::{ConfigResource, ResourceKind};
use ottla_model::NodeId;
use ottla_wire::ErrorCode;
use ottla_wire::generated::alter_configs_response::AlterConfigsResourceResponse;
use ottla_wire::generated::{AlterConfigsRequest, AlterConfigsResponse};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Replaces settings.
pub(super) fn handle(cx: &mut Context<'_>, request: AlterConfigsRequest<'_>) -> Answer {
    let node = cx.broker.node;
    let names = request.resources.iter().map(|r| (r.resource_type, r.resource_name));
    let twice = named_twice(names);
    let change =
        |given: &ottla_wire::generated::alter_configs_request::AlterConfigsResource<'_>| {
            let at = (given.resource_type, given.resource_name);
            let keys = given.configs.iter().map(|config| (config.name, config.value.is_none()));
            let resource = changeable(node, at, &twice, keys)?;
            let values = given.configs.iter();
            let values = values.map(|c| (c.name.to_owned(), c.value.map(str::to_owned)));
            Ok(ConfigChange { resource, edit: ConfigEdit::Replace(values.collect()) })
        };
    let asked = request.resources.iter().map(|given| {
        let asked = Asked { kind: given.resource_type, name: given.resource_name.to_owned() };
        (asked, change(given))
    });
    let asked: Vec<_> = asked.collect();
    let (broker, to, validate_only) = (Arc::clone(cx.broker), cx.to, request.validate_only);
    Answer::Later(Box::pin(async move {
        let lines = alter(&broker, asked, validate_only).await;
        let responses = lines.iter().map(|(asked, outcome)| AlterConfigsResourceResponse {
            error_code: outcome.number(),
            error_message: outcome.text(),
            resource_type: asked.kind,
            resource_name: &asked.name,
        });
        let responses: Vec<_> = responses.collect();
        count(&broker, to.key, responses.iter().map(|response| response.error_code));
        to.encode(&AlterConfigsResponse { responses, ..Default::default() })
    }))
}

/// A resource as the request names it.
pub(super) struct Asked {
    /// The number of its kind.
    pub(super) kind: i8,
    /// Its name.
    pub(super) name: String,
}

/// The resources that a request names more than once: none of those is changed.
pub(super) fn named_twice<'a>(
    names: impl Iterator<Item = (i8, &'a str)>,
) -> BTreeMap<(i8, &'a str), usize> {
    let mut times = BTreeMap::new();
    for name in names {
        *times.entry(name).or_default() += 1;
    }
    times.retain(|_, times| *times > 1);
    times
}

/// Whether this resource can be changed, here and by these keys, each with whether its value is
/// missing. Texts are Kafka's.
pub(super) fn changeable<'a>(
    node: NodeId,
    (kind, name): (i8, &str),
    twice: &BTreeMap<(i8, &str), usize>,
    keys: impl Iterator<Item = (&'a str, bool)>,
) -> Result<ConfigResource, Outcome> {
    let invalid = |message: String| Err(Outcome::failed(ErrorCode::InvalidRequest, message));
    if twice.contains_key(&(kind, name)) {
        return invalid("Each resource must appear at most once.".into());
    }
    let mut seen = std::collections::BTreeSet::new();
    let mut nulls = Vec::new();
    for (key, null) in keys {
        if !seen.insert(key) {
            return invalid("Error due to duplicate config keys".into());
        }
        if null {
            nulls.push(key);
        }
    }
    if !nulls.is_empty() {
        return invalid(format!("Null value not supported for : {}", nulls.join(", ")));
    }
    match Resource::of(kind) {
        Some(Resource::Kept(ResourceKind::Broker)) if !name.is_empty() => match name.parse() {
            Ok(id) if NodeId(id) == node => Ok(resource(ResourceKind::Broker, name)),
            Ok(_) => invalid(format!("Unexpected broker id, expected {node}, but received {name}")),
            Err(_) => invalid(format!("Node id must be an integer, but it is: {name}")),
        },
        Some(Resource::Kept(kept)) => Ok(resource(kept, name)),
        Some(Resource::BrokerLogger) => invalid("Loggers cannot be changed here.".into()),
        Some(Resource::ClientMetrics) => invalid("Client metrics are not collected here.".into()),
        None => invalid(format!("Unknown resource type {kind}")),
    }
}

/// Changes what can be changed; every resource with its outcome, in the request's order.
pub(super) async fn alter(
    broker: &Broker,
    asked: Vec<(Asked, Result<ConfigChange, Outcome>)>,
    validate_only: bool,
) -> Vec<(Asked, Outcome)> {
    let sound = asked.iter().filter_map(|(_, change)| change.clone().ok());
    let changes: Vec<_> = sound.collect();
    let count = changes.len();
    let outcomes = broker.cluster.alter_configs(changes, validate_only).await;
    settled(broker, NO_LIMIT).await;
    let mut outcomes = of_each(count, outcomes).into_iter();
    asked
        .into_iter()
        .map(|(asked, change)| match change {
            Ok(_) => (asked, outcomes.next().unwrap_or(Outcome::FINE)),
            Err(refused) => (asked, refused),
        })
        .collect()
}
