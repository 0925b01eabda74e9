//! Key 18, ApiVersions, versions 0-5: what the broker speaks.
//!
//! - v1 adds the throttle time, v2 changes nothing.
//! - v3 (KIP-511) takes the client software's name and version, and tells features (KIP-584).
//! - v4 allows features whose lowest version is 0 (KIP-1022).
//! - v5 lets the client name the cluster and node it expects; where another answers, the address
//!   has changed hands, and the client is told to bootstrap anew (KIP-1242).
//!
//! A version we do not know is answered in version 0 with UNSUPPORTED_VERSION and the versions we
//! do know, so that the client can try again. The response header is the old one in every
//! version.

use super::{Answer, Context};
use ottla_wire::generated::api_versions_response::{
    ApiVersion, FinalizedFeatureKey, SupportedFeatureKey,
};
use ottla_wire::generated::{ApiVersionsRequest, ApiVersionsResponse};
use ottla_wire::{APIS, Api, ApiKey, ErrorCode};

/// Answers with the table, unless the client took us for somebody else.
pub(super) fn handle(cx: &mut Context<'_>, request: ApiVersionsRequest<'_>) -> Answer {
    if cx.version() >= 3 {
        let (name, version) = (request.client_software_name, request.client_software_version);
        if !is_software_name(name) || !is_software_name(version) {
            return refuse(cx, ErrorCode::InvalidRequest);
        }
        cx.session.patience = Some(cx.broker.patiences.of(name, version));
        tracing::debug!(peer = %cx.session.peer, name, version, "client software");
    }
    if let Some(cluster) = request.cluster_id {
        let image = cx.broker.cluster.image();
        if cluster != &**image.cluster_id() || request.node_id != image.node().0 {
            return refuse(cx, ErrorCode::RebootstrapRequired);
        }
    }
    cx.reply(&ApiVersionsResponse {
        api_keys: APIS.iter().filter(|api| api.served).map(line).collect(),
        supported_features: FEATURES.iter().map(supported).collect(),
        finalized_features_epoch: 0,
        finalized_features: FEATURES.iter().map(finalized).collect(),
        ..Default::default()
    })
}

/// Features that the broker has, each in one version, and so finalized ever since it exists.
/// `group.version` 1 is the consumer protocol.
pub(super) const FEATURES: &[(&str, i16)] = &[("group.version", 1)];

/// Answers a version we do not know.
pub(super) fn refuse_version(cx: &mut Context<'_>) -> Answer {
    cx.to.version = 0;
    refuse(cx, ErrorCode::UnsupportedVersion)
}

fn refuse(cx: &mut Context<'_>, code: ErrorCode) -> Answer {
    let error_code = cx.count(code).number();
    let api_keys = vec![line(ApiKey::ApiVersions.api())];
    cx.reply(&ApiVersionsResponse { error_code, api_keys, ..Default::default() })
}

fn line(api: &Api) -> ApiVersion {
    let (min_version, max_version) = (api.advertised.min, api.advertised.max);
    ApiVersion { api_key: api.key.number(), min_version, max_version }
}

fn supported(&(name, version): &(&'static str, i16)) -> SupportedFeatureKey<'static> {
    SupportedFeatureKey { name, min_version: version, max_version: version }
}

fn finalized(&(name, version): &(&'static str, i16)) -> FinalizedFeatureKey<'static> {
    FinalizedFeatureKey { name, max_version_level: version, min_version_level: version }
}

/// KIP-511: letters, digits, dots and dashes, neither first nor last a dot or dash.
fn is_software_name(text: &str) -> bool {
    let outer = |byte: &u8| byte.is_ascii_alphanumeric();
    let bytes = text.as_bytes();
    bytes.first().is_some_and(outer)
        && bytes.last().is_some_and(outer)
        && bytes.iter().all(|byte| outer(byte) || matches!(byte, b'-' | b'.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// KIP-511, with the example names of librdkafka and franz-go among the good ones.
    #[test]
    fn software_names_are_checked() {
        for good in ["librdkafka", "apache-kafka-java", "kgo", "2.8.0", "a", "v1.20.6-11"] {
            assert!(is_software_name(good), "{good}");
        }
        for bad in ["", "-a", "a-", ".", "a b", "ä"] {
            assert!(!is_software_name(bad), "{bad}");
        }
    }
}
