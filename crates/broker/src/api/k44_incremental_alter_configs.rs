//! Key 44, IncrementalAlterConfigs, versions 0-1: settings set, unset, or changed as lists
//! (KIP-339).
//!
//! - v1 is flexible.
//!
//! Each resource changes as a whole or not at all. Left out: loggers of a broker.

use super::k33_alter_configs::{Asked, alter, changeable, named_twice};
use super::outcome::{Outcome, count};
use super::{Answer, Context};
use ottla_cluster::command::{ConfigChange, ConfigEdit, ConfigOp};
use ottla_wire::ErrorCode;
use ottla_wire::generated::incremental_alter_configs_request::{
    AlterConfigsResource, AlterableConfig,
};
use ottla_wire::generated::incremental_alter_configs_response::AlterConfigsResourceResponse;
use ottla_wire::generated::{IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse};
use std::sync::Arc;

/// Changes settings.
pub(super) fn handle(cx: &mut Context<'_>, request: IncrementalAlterConfigsRequest<'_>) -> Answer {
    let node = cx.broker.node;
    let names = request.resources.iter().map(|r| (r.resource_type, r.resource_name));
    let twice = named_twice(names);
    let change = |given: &AlterConfigsResource<'_>| {
        let at = (given.resource_type, given.resource_name);
        let needs_value = |config: &AlterableConfig<'_>| config.config_operation != DELETE;
        let keys = given.configs.iter();
        let keys = keys.map(|config| (config.name, needs_value(config) && config.value.is_none()));
        let resource = changeable(node, at, &twice, keys)?;
        let steps = given.configs.iter().map(step).collect::<Result<_, _>>()?;
        Ok(ConfigChange { resource, edit: ConfigEdit::Edit(steps) })
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
        to.encode(&IncrementalAlterConfigsResponse { responses, ..Default::default() })
    }))
}

fn step(config: &AlterableConfig<'_>) -> Result<(String, ConfigOp), Outcome> {
    let value = config.value.unwrap_or_default().to_owned();
    let op = match config.config_operation {
        SET => ConfigOp::Set(value),
        DELETE => ConfigOp::Delete,
        APPEND => ConfigOp::Append(value),
        SUBTRACT => ConfigOp::Subtract(value),
        other => {
            let message = format!("Unknown operations type {other}");
            return Err(Outcome::failed(ErrorCode::InvalidRequest, message));
        }
    };
    Ok((config.name.to_owned(), op))
}

const SET: i8 = 0;
const DELETE: i8 = 1;
const APPEND: i8 = 2;
const SUBTRACT: i8 = 3;
