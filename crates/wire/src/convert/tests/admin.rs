//! DescribeGroups, ListGroups, DeleteGroups.

use ottla_group::message::GroupError;
use ottla_group::message::admin::{DescribedMember, Description, GroupKind, GroupState, Listing};

use super::through;
use crate::convert::{delete_groups, describe, list};
use crate::generated::{
    DeleteGroupsRequest, DeleteGroupsResponse, DescribeGroupsRequest, DescribeGroupsResponse,
    ListGroupsRequest, ListGroupsResponse,
};
use crate::{ErrorCode, Message};

fn description() -> Description {
    Description {
        group: "g".into(),
        state: GroupState::PreparingRebalance,
        protocol_type: "consumer".into(),
        protocol: "".into(),
        members: vec![DescribedMember {
            member: "m".into(),
            instance: Some("i".into()),
            client_id: "c".into(),
            client_host: "/h".into(),
            metadata: b"\x01"[..].into(),
            assignment: b"\x02"[..].into(),
        }],
    }
}

#[test]
fn a_group_is_described_in_every_version() {
    for version in DescribeGroupsResponse::VERSIONS.iter() {
        let reply = Ok(description());
        let groups = vec![describe::described("g", &reply, version)];
        let bytes;
        let response: DescribeGroupsResponse<'_> =
            through!(bytes, DescribeGroupsResponse { groups, ..Default::default() }, version);
        let [group] = &response.groups[..] else { panic!("one group") };
        assert_eq!((group.group_id, group.error_code), ("g", 0));
        assert_eq!((group.group_state, group.protocol_type), ("PreparingRebalance", "consumer"));
        let [member] = &group.members[..] else { panic!("one member") };
        assert_eq!((member.client_id, member.client_host), ("c", "/h"));
        assert_eq!(member.group_instance_id, (version >= 4).then_some("i"));
        assert_eq!(
            (member.member_metadata, member.member_assignment),
            (&b"\x01"[..], &b"\x02"[..])
        );
        // Kafka's "nobody asked".
        assert_eq!(group.authorized_operations, i32::MIN);
    }
}

/// KIP-1043: before version 6 an absent group is a dead one, and no error.
#[test]
fn an_absent_group_is_dead_or_not_found() {
    let reply = Err(GroupError::GroupIdNotFound);
    for version in DescribeGroupsResponse::VERSIONS.iter() {
        let group = describe::described("g", &reply, version);
        assert_eq!(group.group_state, "Dead");
        let not_found = ErrorCode::GroupIdNotFound.number();
        assert_eq!(group.error_code, if version >= 6 { not_found } else { 0 });
        assert_eq!(group.error_message.is_some(), version >= 6);
    }
}

#[test]
fn every_group_named_is_asked_for() {
    let request = DescribeGroupsRequest { groups: vec!["a", "b"], ..Default::default() };
    assert_eq!(describe::asks(&request).map(|ask| ask.group).collect::<Vec<_>>(), ["a", "b"]);
    let request = DeleteGroupsRequest { groups_names: vec!["a", "b"] };
    assert_eq!(delete_groups::asks(&request).map(|ask| ask.group).collect::<Vec<_>>(), ["a", "b"]);
}

fn listing(group: &str) -> Listing {
    Listing {
        group: group.into(),
        protocol_type: "consumer".into(),
        state: GroupState::Stable,
        kind: GroupKind::Classic,
    }
}

#[test]
fn shards_lists_are_one_list_in_every_version() {
    let shards = [
        Ok(vec![listing("a"), listing("b")]),
        Err(GroupError::NotCoordinator),
        Ok(vec![listing("c")]),
    ];
    for version in ListGroupsResponse::VERSIONS.iter() {
        let bytes;
        let response: ListGroupsResponse<'_> = through!(bytes, list::response(&shards), version);
        let ids: Vec<_> = response.groups.iter().map(|group| group.group_id).collect();
        assert_eq!((response.error_code, &ids[..]), (0, &["a", "b", "c"][..]));
        let group = response.groups[0];
        assert_eq!(group.group_state, if version >= 4 { "Stable" } else { "" });
        assert_eq!(group.group_type, if version >= 5 { "classic" } else { "" });
    }
}

/// A list that lacks a loading shard's groups would look complete.
#[test]
fn a_loading_shard_makes_the_list_fail() {
    let shards = [Ok(vec![listing("a")]), Err(GroupError::LoadInProgress)];
    let response = list::response(&shards);
    assert_eq!(response.error_code, ErrorCode::CoordinatorLoadInProgress.number());
    assert!(response.groups.is_empty());
}

#[test]
fn list_filters_are_handed_on() {
    let (states_filter, types_filter) = (vec!["Stable"], vec!["classic"]);
    let request = ListGroupsRequest { states_filter, types_filter };
    let ask = list::ask(&request);
    assert_eq!((ask.states, ask.types), (vec!["Stable"], vec!["classic"]));
}

#[test]
fn deletions_are_answered_one_by_one_in_every_version() {
    for version in DeleteGroupsResponse::VERSIONS.iter() {
        let results = vec![
            delete_groups::deleted("a", &Ok(())),
            delete_groups::deleted("b", &Err(GroupError::NonEmptyGroup)),
        ];
        let bytes;
        let response: DeleteGroupsResponse<'_> =
            through!(bytes, DeleteGroupsResponse { results, ..Default::default() }, version);
        let codes: Vec<_> = response.results.iter().map(|r| (r.group_id, r.error_code)).collect();
        assert_eq!(codes, [("a", 0), ("b", ErrorCode::NonEmptyGroup.number())]);
    }
}
