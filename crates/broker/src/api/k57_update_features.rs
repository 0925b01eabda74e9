//! Key 57, UpdateFeatures, versions 0-2: agree on behaviours cluster-wide (KIP-584).
//!
//! - v1 names the kind of a downgrade and may only check, v2 drops the results per feature: one
//!   refusal refuses all.
//!
//! The features that Kafka 4.4 has concern its own metadata log, its transactions and its group
//! protocols' introduction. Those that ApiVersions names here have one version, which nobody can
//! leave; an update of any other is refused as that of a feature the broker does not know.

use super::k18_api_versions::FEATURES;
use super::outcome::{Outcome, count, in_time};
use super::{Answer, Context};
use ottla_cluster::command::{FeatureChange, UpdateFeatures};
use ottla_wire::generated::update_features_request::FeatureUpdateKey;
use ottla_wire::generated::update_features_response::UpdatableFeatureResult;
use ottla_wire::generated::{UpdateFeaturesRequest, UpdateFeaturesResponse};
use std::sync::Arc;

/// Updates all or none.
pub(super) fn handle(cx: &mut Context<'_>, request: UpdateFeaturesRequest<'_>) -> Answer {
    let version = cx.version();
    let change = |update: &FeatureUpdateKey<'_>| FeatureChange {
        name: update.feature.to_owned(),
        level: update.max_version_level,
        may_fall: update.allow_downgrade || update.upgrade_type != UPGRADE,
        supported: FEATURES
            .iter()
            .find(|known| **known == (update.feature, update.max_version_level))
            .map(|known| (known.1, known.1)),
    };
    let changes: Vec<_> = request.feature_updates.iter().map(change).collect();
    let (broker, to) = (Arc::clone(cx.broker), cx.to);
    let (validate_only, timeout_ms) = (request.validate_only, request.timeout_ms);
    Answer::Later(Box::pin(async move {
        let features: Vec<_> = changes.iter().map(|change| change.name.clone()).collect();
        let change = broker.cluster.submit(UpdateFeatures { changes, validate_only });
        let outcome = match in_time(timeout_ms, change).await {
            Ok(judged) => Outcome::from(&judged),
            Err(error) => Outcome::from(&error),
        };
        count(&broker, to.key, std::iter::once(outcome.number()));
        let results = features.iter().filter(|_| version < FIRST_WITHOUT_RESULTS);
        let results = results.map(|feature| UpdatableFeatureResult {
            feature,
            error_code: outcome.number(),
            error_message: outcome.text(),
        });
        to.encode(&UpdateFeaturesResponse {
            error_code: outcome.number(),
            error_message: outcome.text(),
            results: results.collect(),
            ..Default::default()
        })
    }))
}

const UPGRADE: i8 = 1;
const FIRST_WITHOUT_RESULTS: i16 = 2;
