//! What the broker speaks, against what we do.

use ottla_wire::generated::ApiVersionsResponse;
use ottla_wire::{ApiKey, Versions};
use std::collections::HashMap;

/// The broker's versions of each API.
#[derive(Clone, Debug, Default)]
pub(super) struct Negotiated(HashMap<i16, Versions>);

impl Negotiated {
    pub(super) fn new(response: &ApiVersionsResponse<'_>) -> Self {
        let range = |api: &ottla_wire::generated::api_versions_response::ApiVersion| {
            (api.api_key, Versions::new(api.min_version, api.max_version))
        };
        Self(response.api_keys.iter().map(range).collect())
    }

    /// What every use needs and this broker does not have: either it is none that a client can use,
    /// or its answer is damaged, and the next connection may hear a better one.
    pub(super) fn missing(&self) -> Option<ApiKey> {
        ESSENTIAL.iter().copied().find(|key| self.newest(*key).is_none())
    }

    /// The newest version both sides have.
    pub(super) fn newest(&self, key: ApiKey) -> Option<i16> {
        let (theirs, ours) = (self.0.get(&key.number())?, key.api().accepted);
        let newest = theirs.max.min(ours.max);
        (newest >= theirs.min && newest >= ours.min).then_some(newest)
    }
}

/// What every use needs: nothing is read, written or administered without knowing the brokers. What
/// else a broker lacks is told to whoever calls for it.
pub(super) const ESSENTIAL: [ApiKey; 1] = [ApiKey::Metadata];
