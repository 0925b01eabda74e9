//! Finding a group's coordinator, by Kafka's question or by the register protocol's.

use super::{Broker, Cluster};
use crate::{Error, Result};
use ottla_group::message::register::ConsumerMetadata;
use ottla_model::{NodeId, OwnershipEpoch};
use ottla_wire::generated::{
    ConsumerMetadataResponse, FindCoordinatorRequest, FindCoordinatorResponse,
};
use ottla_wire::{ApiKey, ErrorCode, convert};

impl Cluster {
    /// Asks any broker who coordinates a group.
    ///
    /// # Errors
    /// `Retriable` while none does; whatever the broker refuses.
    pub(crate) async fn coordinator(&self, group: &str) -> Result<NodeId> {
        let connection = self.any().await?;
        let version = connection.version(ApiKey::FindCoordinator)?;
        let (key, coordinator_keys) =
            if version >= 4 { ("", vec![group]) } else { (group, Vec::new()) };
        let request = FindCoordinatorRequest { key, key_type: GROUP, coordinator_keys };
        let answer = connection.call_at(version, &request).await?;
        let response: FindCoordinatorResponse<'_> = answer.read()?;
        let what = || format!("cannot find the coordinator of group `{group}`");
        let (node, host, port, code) = match response.coordinators.as_slice() {
            [found, ..] => (found.node_id, found.host, found.port, found.error_code),
            [] => (response.node_id, response.host, response.port, response.error_code),
        };
        Error::check(code, what)?;
        let (id, Ok(port)) = (NodeId(node), u16::try_from(port)) else {
            return Err(Error::of(ErrorCode::CoordinatorNotAvailable, what()));
        };
        let broker = Broker { id, host: host.to_owned(), port, rack: None };
        self.state.learn(broker);
        Ok(id)
    }

    /// Asks any broker who coordinates a group of the register protocol, and since which epoch of
    /// the ownership. Of two answers the one with the higher epoch is right (decision 3), so one
    /// below `known` is no answer.
    ///
    /// # Errors
    /// `Unsupported`, if the broker lacks the protocol; `Retriable` while none coordinates.
    pub(crate) async fn register_coordinator(
        &self,
        group: &str,
        known: OwnershipEpoch,
    ) -> Result<(NodeId, OwnershipEpoch)> {
        let connection = self.any().await?;
        let version = connection.version(ApiKey::ConsumerMetadata)?;
        let request = convert::consumer_metadata::request(&ConsumerMetadata { group });
        let answer = connection.call_at(version, &request).await?;
        let response: ConsumerMetadataResponse<'_> = answer.read()?;
        let what = || format!("cannot find the coordinator of group `{group}`");
        Error::check(response.error_code, what)?;
        let place = convert::consumer_metadata::place(&response).map(|(place, _)| place);
        let Some(place) = place.filter(|place| place.epoch >= known) else {
            return Err(Error::of(ErrorCode::CoordinatorNotAvailable, what()));
        };
        let (id, host) = (place.node, place.host.to_owned());
        self.state.learn(Broker { id, host, port: place.port, rack: None });
        Ok((id, place.epoch))
    }
}

/// The kind of key that names a group.
const GROUP: i8 = 0;
