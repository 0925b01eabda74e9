//! JoinGroup, SyncGroup, Heartbeat, LeaveGroup.

use std::time::Duration;

use ottla_group::message::GroupError;
use ottla_group::message::classic::{
    Heartbeat, Join, JoinRefused, Joined, JoinedMember, Leave, Leaver, Left, Protocol, Sync, Synced,
};
use ottla_model::Generation;

use super::{assert_same, through};
use crate::convert::{heartbeat, join, leave, sync};
use crate::generated::{
    HeartbeatRequest, HeartbeatResponse, JoinGroupRequest, JoinGroupResponse, LeaveGroupRequest,
    LeaveGroupResponse, SyncGroupRequest, SyncGroupResponse,
};
use crate::{ErrorCode, Message};

fn join_of(version: i16) -> Join<'static> {
    Join {
        group: "g",
        member: "m",
        instance: (version >= 5).then_some("i"),
        protocol_type: "consumer",
        protocols: vec![
            Protocol { name: "range", metadata: b"\0\x01" },
            Protocol { name: "sticky", metadata: b"" },
        ],
        session_timeout: Duration::from_millis(10_000),
        rebalance_timeout: Duration::from_millis(300_000),
        requires_known_id: version >= 4,
        can_skip_assignment: version >= 9,
        reason: Some("because"),
    }
}

#[test]
fn join_arrives_in_every_version() {
    for version in JoinGroupRequest::VERSIONS.iter() {
        let sent = join_of(version);
        let bytes;
        let request: JoinGroupRequest<'_> = through!(bytes, join::request(&sent), version);
        let mut expected = sent.clone();
        if version == 0 {
            // The only timeout there is.
            expected.rebalance_timeout = sent.session_timeout;
        }
        expected.reason = sent.reason.filter(|_| version >= 8);
        assert_same(&join::ask(&request, version), &expected, version);
    }
}

/// A negative timeout is one that the coordinator's bounds refuse, not one of 49 days.
#[test]
fn join_with_negative_timeouts_asks_for_none() {
    let request =
        JoinGroupRequest { session_timeout_ms: -5, rebalance_timeout_ms: -1, ..Default::default() };
    let ask = join::ask(&request, 5);
    assert_eq!((ask.session_timeout, ask.rebalance_timeout), (Duration::ZERO, Duration::ZERO));
}

fn joined() -> Joined {
    Joined {
        generation: Generation(4),
        protocol_type: "consumer".into(),
        protocol: "range".into(),
        leader: "l".into(),
        member: "m".into(),
        skip_assignment: true,
        members: vec![JoinedMember {
            member: "m".into(),
            instance: Some("i".into()),
            metadata: b"\x02"[..].into(),
        }],
    }
}

#[test]
fn a_join_is_answered_in_every_version() {
    for version in JoinGroupResponse::VERSIONS.iter() {
        let reply = Ok(joined());
        let bytes;
        let response: JoinGroupResponse<'_> =
            through!(bytes, join::response(&reply, version), version);
        let mut expected = joined();
        if version < 5 {
            expected.members[0].instance = None;
        }
        if version < 7 {
            expected.protocol_type = "".into();
        }
        expected.skip_assignment = version >= 9;
        assert_eq!(join::reply(&response), Ok(Ok(expected)), "version {version}");
    }
}

/// KIP-394: the refusal brings the id to come back with.
#[test]
fn a_refused_join_keeps_its_member_id_in_every_version() {
    for version in JoinGroupResponse::VERSIONS.iter() {
        let refused = JoinRefused::new(GroupError::MemberIdRequired, "fresh");
        let reply = Err(refused.clone());
        let bytes;
        let response: JoinGroupResponse<'_> =
            through!(bytes, join::response(&reply, version), version);
        assert_eq!(response.generation_id, -1);
        // KIP-559: null where it can be.
        let protocol = if version >= 7 { None } else { Some("") };
        assert_eq!(response.protocol_name, protocol, "version {version}");
        assert_eq!(join::reply(&response), Ok(Err(refused)), "version {version}");
    }
}

#[test]
fn sync_arrives_in_every_version() {
    for version in SyncGroupRequest::VERSIONS.iter() {
        let sent = Sync {
            group: "g",
            generation: Generation(4),
            member: "m",
            instance: (version >= 3).then_some("i"),
            protocol_type: Some("consumer"),
            protocol: Some("range"),
            assignments: vec![("m", b"\x01"), ("n", b"")],
        };
        let bytes;
        let request: SyncGroupRequest<'_> = through!(bytes, sync::request(&sent), version);
        let mut expected = sent.clone();
        if version < 5 {
            (expected.protocol_type, expected.protocol) = (None, None);
        }
        let ask = sync::ask(&request, version).expect("a protocol where one is needed");
        assert_same(&ask, &expected, version);
    }
}

/// KIP-559: a request that can name its protocol must.
#[test]
fn sync_from_version_5_on_must_name_its_protocol() {
    let half = SyncGroupRequest { protocol_type: Some("consumer"), ..Default::default() };
    for request in [SyncGroupRequest::default(), half] {
        let refused = sync::ask(&request, 5).map(drop);
        assert_eq!(refused, Err(GroupError::InconsistentGroupProtocol));
        assert!(sync::ask(&request, 4).is_ok());
    }
}

#[test]
fn a_sync_is_answered_in_every_version() {
    for version in SyncGroupResponse::VERSIONS.iter() {
        let synced = Synced {
            protocol_type: "consumer".into(),
            protocol: "range".into(),
            assignment: b"\x01"[..].into(),
        };
        let reply = Ok(synced.clone());
        let bytes;
        let response: SyncGroupResponse<'_> = through!(bytes, sync::response(&reply), version);
        let mut expected = synced;
        if version < 5 {
            (expected.protocol_type, expected.protocol) = ("".into(), "".into());
        }
        assert_eq!(sync::reply(&response), Ok(Ok(expected)));

        let refused = Err(GroupError::RebalanceInProgress);
        let bytes;
        let response: SyncGroupResponse<'_> = through!(bytes, sync::response(&refused), version);
        assert_eq!(sync::reply(&response), Ok(refused));
    }
}

#[test]
fn heartbeats_go_there_and_back_in_every_version() {
    for version in HeartbeatRequest::VERSIONS.iter() {
        let instance = (version >= 3).then_some("i");
        let sent = Heartbeat { group: "g", generation: Generation(4), member: "m", instance };
        let bytes;
        let request: HeartbeatRequest<'_> = through!(bytes, heartbeat::request(&sent), version);
        assert_same(&heartbeat::ask(&request), &sent, version);
        for reply in [Ok(()), Err(GroupError::IllegalGeneration)] {
            let bytes;
            let response: HeartbeatResponse = through!(bytes, heartbeat::response(&reply), version);
            assert_eq!(heartbeat::reply(&response), Ok(reply));
        }
    }
}

/// A member that calls itself static must not be taken for a dynamic one by an old version.
#[test]
fn a_static_member_does_not_fit_an_old_version() {
    let ask = join_of(5);
    assert!(join::request(&ask).to_vec(4).is_err());
    let beat =
        Heartbeat { group: "g", generation: Generation(1), member: "m", instance: Some("i") };
    assert!(heartbeat::request(&beat).to_vec(2).is_err());
}

const DYNAMIC: Leaver<'_> = Leaver { member: "m", instance: None, reason: None };
const STATIC: Leaver<'_> = Leaver { member: "", instance: Some("i"), reason: Some("because") };

#[test]
fn leave_arrives_in_every_version() {
    for version in LeaveGroupRequest::VERSIONS.iter() {
        let members = if version >= 3 { vec![DYNAMIC, STATIC] } else { vec![DYNAMIC] };
        let sent = Leave { group: "g", members };
        let request = leave::request(&sent, version).expect("one member below version 3");
        let bytes;
        let request: LeaveGroupRequest<'_> = through!(bytes, request, version);
        let mut expected = sent;
        if version < 5 {
            expected.members.iter_mut().for_each(|leaver| leaver.reason = None);
        }
        assert_same(&leave::ask(&request, version), &expected, version);
    }
}

#[test]
fn leave_below_version_3_names_one_dynamic_member() {
    for members in [vec![], vec![STATIC], vec![DYNAMIC, DYNAMIC]] {
        let refused = leave::request(&Leave { group: "g", members }, 2).map(drop);
        assert_eq!(refused, Err(GroupError::InvalidRequest));
    }
}

#[test]
fn a_leave_is_answered_in_every_version() {
    let unknown = Err(GroupError::UnknownMemberId);
    let members = vec![("m".into(), None, unknown), ("n".into(), Some("i".into()), Ok(()))];
    let left = Left { members };
    for version in LeaveGroupResponse::VERSIONS.iter() {
        let reply = Ok(left.clone());
        let bytes;
        let response: LeaveGroupResponse<'_> =
            through!(bytes, leave::response(&reply, version), version);
        // The one member's outcome is the whole's.
        let expected = if version < 3 { Err(GroupError::UnknownMemberId) } else { reply };
        assert_eq!(leave::reply(&response), Ok(expected), "version {version}");

        let refused = Err(GroupError::NotCoordinator);
        let bytes;
        let response: LeaveGroupResponse<'_> =
            through!(bytes, leave::response(&refused, version), version);
        assert_eq!(response.error_code, ErrorCode::NotCoordinator.number());
        assert_eq!(leave::reply(&response), Ok(refused));
    }
}
