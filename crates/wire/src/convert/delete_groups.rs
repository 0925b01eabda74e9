//! DeleteGroups (key 42), versions 0-3. One request names many groups and asks each coordinator
//! shard about its own; the response collects the outcomes. 3 adds an error message.

use ottla_group::message::GroupError;
use ottla_group::message::admin::DeleteGroup;

use super::code_of;
use crate::generated::delete_groups_request::DeleteGroupsRequest;
use crate::generated::delete_groups_response::DeletableGroupResult;

/// What the request asks, one for each group it names.
pub fn asks<'a>(request: &DeleteGroupsRequest<'a>) -> impl Iterator<Item = DeleteGroup<'a>> {
    request.groups_names.iter().map(|group| DeleteGroup { group })
}

/// What the response says of one group.
pub fn deleted<'a>(group_id: &'a str, reply: &Result<(), GroupError>) -> DeletableGroupResult<'a> {
    DeletableGroupResult { group_id, error_code: code_of(reply), ..Default::default() }
}
