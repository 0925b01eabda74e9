//! DescribeGroups (key 15), versions 0-6. One request names many groups and asks each coordinator
//! shard about its own; the response collects them.
//!
//! - 3 adds the operations the asker may do.
//! - 4 adds static members (KIP-345).
//! - 6 calls an absent group absent (KIP-1043); before, it is a group in state `Dead`.

use ottla_group::message::GroupError;
use ottla_group::message::admin::{Describe, DescribedMember, Description, GroupState};

use super::code_of;
use crate::ErrorCode;
use crate::generated::describe_groups_request::DescribeGroupsRequest;
use crate::generated::describe_groups_response::{DescribedGroup, DescribedGroupMember};

/// What the request asks, one for each group it names.
pub fn asks<'a>(request: &DescribeGroupsRequest<'a>) -> impl Iterator<Item = Describe<'a>> {
    request.groups.iter().map(|group| Describe { group })
}

/// What the response says of one group. The operations that the asker may do on it, a bit set, are
/// the caller's to fill in where the request wants them.
pub fn described<'a>(
    group_id: &'a str,
    reply: &'a Result<Description, GroupError>,
    version: i16,
) -> DescribedGroup<'a> {
    match reply {
        Ok(group) => DescribedGroup {
            group_id,
            group_state: group.state.name(),
            protocol_type: &group.protocol_type,
            protocol_data: &group.protocol,
            members: group.members.iter().map(member).collect(),
            ..Default::default()
        },
        Err(GroupError::GroupIdNotFound) => absent(group_id, version),
        Err(_) => DescribedGroup { group_id, error_code: code_of(reply), ..Default::default() },
    }
}

fn absent(group_id: &str, version: i16) -> DescribedGroup<'_> {
    let dead =
        DescribedGroup { group_id, group_state: GroupState::Dead.name(), ..Default::default() };
    if version < 6 {
        return dead;
    }
    let error_code = ErrorCode::GroupIdNotFound.number();
    DescribedGroup { error_code, error_message: Some("There is no such group."), ..dead }
}

fn member(member: &DescribedMember) -> DescribedGroupMember<'_> {
    DescribedGroupMember {
        member_id: &member.member,
        group_instance_id: member.instance.as_deref(),
        client_id: &member.client_id,
        client_host: &member.client_host,
        member_metadata: &member.metadata,
        member_assignment: &member.assignment,
    }
}
