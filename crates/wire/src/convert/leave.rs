//! LeaveGroup (key 13), versions 0-5.
//!
//! - 0-2 name one member, and its outcome is the response's only error.
//! - 3 names several, each perhaps static, each with its own outcome (KIP-345).
//! - 5 adds the reason (KIP-800).

use ottla_group::message::GroupError;
use ottla_group::message::classic::{Leave, Leaver, Leaving, Left};
use ottla_model::{InstanceId, MemberId};

use super::{Told, code_of, error};
use crate::generated::leave_group_request::{LeaveGroupRequest, MemberIdentity};
use crate::generated::leave_group_response::{LeaveGroupResponse, MemberResponse};

/// What the request asks.
pub fn ask<'a>(request: &LeaveGroupRequest<'a>, version: i16) -> Leave<'a> {
    let members = if version >= 3 {
        request.members.iter().map(leaver).collect()
    } else {
        vec![Leaver { member: request.member_id, instance: None, reason: None }]
    };
    Leave { group: request.group_id, members }
}

fn leaver<'a>(member: &MemberIdentity<'a>) -> Leaver<'a> {
    Leaver { member: member.member_id, instance: member.group_instance_id, reason: member.reason }
}

/// The response that tells of `reply`.
pub fn response(reply: &Result<Left, GroupError>, version: i16) -> LeaveGroupResponse<'_> {
    let Ok(left) = reply else {
        return LeaveGroupResponse { error_code: code_of(reply), ..Default::default() };
    };
    if version < 3 {
        let error_code = left.members.first().map_or(0, |(_, _, outcome)| code_of(outcome));
        return LeaveGroupResponse { error_code, ..Default::default() };
    }
    let members = left.members.iter().map(response_member).collect();
    LeaveGroupResponse { members, ..Default::default() }
}

fn response_member((member, instance, outcome): &Leaving) -> MemberResponse<'_> {
    MemberResponse {
        member_id: member,
        group_instance_id: instance.as_deref(),
        error_code: code_of(outcome),
    }
}

/// The request that asks it.
///
/// # Errors
/// [`GroupError::InvalidRequest`] if the version, below 3, names exactly one dynamic member and
/// the ask does not.
pub fn request<'a>(ask: &Leave<'a>, version: i16) -> Result<LeaveGroupRequest<'a>, GroupError> {
    let group_id = ask.group;
    if version >= 3 {
        let members = ask.members.iter().map(identity).collect();
        return Ok(LeaveGroupRequest { group_id, members, ..Default::default() });
    }
    match *ask.members {
        [Leaver { member: member_id, instance: None, .. }] => {
            Ok(LeaveGroupRequest { group_id, member_id, ..Default::default() })
        }
        _ => Err(GroupError::InvalidRequest),
    }
}

fn identity<'a>(leaver: &Leaver<'a>) -> MemberIdentity<'a> {
    MemberIdentity {
        member_id: leaver.member,
        group_instance_id: leaver.instance,
        reason: leaver.reason,
    }
}

/// What the response tells whoever asked; in a version below 3 a refusal of the one member is one
/// of the whole, and its success names nobody.
///
/// # Errors
/// If a code in it is no refusal of a coordinator.
pub fn reply(response: &LeaveGroupResponse<'_>) -> Told<Result<Left, GroupError>> {
    let leaving = |member: &MemberResponse<'_>| {
        let outcome = error::result(member.error_code, || ())?;
        let instance = member.group_instance_id.map(InstanceId::from);
        Ok((MemberId::from(member.member_id), instance, outcome))
    };
    let members = response.members.iter().map(leaving).collect::<Told<Vec<Leaving>>>()?;
    error::result(response.error_code, || Left { members })
}
