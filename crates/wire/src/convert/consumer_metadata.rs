//! ConsumerMetadata (key 32010, the register protocol), version 0: where a group's coordinator is
//! and which generation the group is in.
//!
//! Only the generation is the coordinator's to tell; the rest the broker knows of the cluster, and
//! a [`Place`] carries it.

use ottla_group::message::register::{ConsumerMetadata, NO_GENERATION};
use ottla_model::{Generation, NodeId, OwnershipEpoch};

use crate::ErrorCode;
use crate::generated::consumer_metadata_request::ConsumerMetadataRequest;
use crate::generated::consumer_metadata_response::{ConsumerMetadataResponse, Coordinator};

/// Where a group's coordinator is, as one listener tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place<'a> {
    /// The broker.
    pub node: NodeId,
    /// Where it is reached.
    pub host: &'a str,
    /// Likewise.
    pub port: u16,
    /// The ownership epoch of the group's offsets partition: of two answers the higher one is
    /// right (decision 3).
    pub epoch: OwnershipEpoch,
}

/// What the request asks.
pub fn ask<'a>(request: &ConsumerMetadataRequest<'a>) -> ConsumerMetadata<'a> {
    ConsumerMetadata { group: request.group_id }
}

/// The response: the place where there is one, and the generation where its coordinator was
/// asked; -1 where it was not, or knows none yet.
pub fn response<'a>(
    code: ErrorCode,
    place: Option<Place<'a>>,
    generation: Option<Generation>,
) -> ConsumerMetadataResponse<'a> {
    let nowhere = Coordinator { node_id: -1, host: "", port: -1 };
    let at = |place: Place<'a>| Coordinator {
        node_id: place.node.0,
        host: place.host,
        port: place.port.into(),
    };
    ConsumerMetadataResponse {
        error_code: code.number(),
        coordinator: place.map_or(nowhere, at),
        coordinator_epoch: place.map_or(-1, |place| place.epoch.0),
        group_generation_id: generation.unwrap_or(NO_GENERATION).0,
    }
}

/// The request that asks it.
pub fn request<'a>(ask: &ConsumerMetadata<'a>) -> ConsumerMetadataRequest<'a> {
    ConsumerMetadataRequest { group_id: ask.group }
}

/// What the response tells: the coordinator's place, and the generation where it knows one. `None`
/// without a place to go to.
pub fn place<'a>(response: &ConsumerMetadataResponse<'a>) -> Option<(Place<'a>, Generation)> {
    let Coordinator { node_id, host, port } = response.coordinator;
    let place = Place {
        node: NodeId(node_id),
        host,
        port: u16::try_from(port).ok()?,
        epoch: OwnershipEpoch(response.coordinator_epoch),
    };
    (node_id >= 0).then_some((place, Generation(response.group_generation_id)))
}
