//! ListGroups (key 16), versions 0-5. Every coordinator shard of the broker lists its own groups;
//! the response collects them.
//!
//! - 4 adds the groups' states, and a filter by them (KIP-518).
//! - 5 adds the groups' types, and a filter by them (KIP-848).

use ottla_group::message::GroupError;
use ottla_group::message::admin::{List, Listing};

use super::code;
use crate::generated::list_groups_request::ListGroupsRequest;
use crate::generated::list_groups_response::{ListGroupsResponse, ListedGroup};

/// What the request asks of every shard.
pub fn ask<'a>(request: &ListGroupsRequest<'a>) -> List<'a> {
    List { states: request.states_filter.clone(), types: request.types_filter.clone() }
}

/// The response that tells of all shards' replies. A shard that is not this broker's (any more)
/// has nothing to list here; any other refusal is one of the whole, since part of a list looks
/// like all of it.
pub fn response<'a>(
    replies: impl IntoIterator<Item = &'a Result<Vec<Listing>, GroupError>>,
) -> ListGroupsResponse<'a> {
    let mut groups = Vec::new();
    for reply in replies {
        match reply {
            Ok(listings) => groups.extend(listings.iter().map(listed)),
            Err(GroupError::NotCoordinator) => {}
            Err(error) => {
                let error_code = code(*error).number();
                return ListGroupsResponse { error_code, ..Default::default() };
            }
        }
    }
    ListGroupsResponse { groups, ..Default::default() }
}

fn listed(listing: &Listing) -> ListedGroup<'_> {
    ListedGroup {
        group_id: &listing.group,
        protocol_type: &listing.protocol_type,
        group_state: listing.state.name(),
        group_type: listing.kind.kafka_name(),
    }
}
