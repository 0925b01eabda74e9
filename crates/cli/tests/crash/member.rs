//! A member of a classic group that lives through every restart and must never notice a rebalance.

use crate::link::Link;
use crate::world::{Progress, World};
use ottla_wire::generated::join_group_request::JoinGroupRequestProtocol;
use ottla_wire::generated::sync_group_request::SyncGroupRequestAssignment;
use ottla_wire::generated::{
    HeartbeatRequest, HeartbeatResponse, JoinGroupRequest, JoinGroupResponse, SyncGroupRequest,
    SyncGroupResponse,
};
use std::io;
use std::time::Duration;

const GROUP: &str = "lives-on";

struct Membership {
    member: String,
    generation: i32,
}

/// Joins once, then beats until the world stops.
pub(crate) fn run(world: &World) {
    let Some(membership) = join_until_done(world) else { return };
    while let Some(mut link) = world.connect() {
        while !world.is_stopping() {
            match beat(&mut link, &membership) {
                Ok(0) => world.count(Progress::Heartbeat),
                // Loading, not available, not coordinator: what a restarting broker may say.
                Ok(14..=16) => {}
                Ok(code) => world.violation(format!("a live member's heartbeat got error {code}")),
                Err(_) => break,
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

fn join_until_done(world: &World) -> Option<Membership> {
    let mut member = String::new();
    loop {
        let mut link = world.connect()?;
        if let Ok(Some(membership)) = join(&mut link, &mut member) {
            return Some(membership);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// One attempt; the id that the coordinator gives is kept for the next.
fn join(link: &mut Link, member: &mut String) -> io::Result<Option<Membership>> {
    let known = member.clone();
    let request = JoinGroupRequest {
        group_id: GROUP,
        session_timeout_ms: 30_000,
        rebalance_timeout_ms: 30_000,
        member_id: &known,
        protocol_type: "consumer",
        protocols: vec![JoinGroupRequestProtocol { name: "range", metadata: b"" }],
        ..Default::default()
    };
    let answer = link.ask(5, &request)?;
    let response: JoinGroupResponse<'_> = answer.read();
    response.member_id.clone_into(member);
    if response.error_code != 0 {
        return Ok(None);
    }
    let generation = response.generation_id;
    sync(link, member, generation)
}

fn sync(link: &mut Link, member: &str, generation: i32) -> io::Result<Option<Membership>> {
    let request = SyncGroupRequest {
        group_id: GROUP,
        generation_id: generation,
        member_id: member,
        assignments: vec![SyncGroupRequestAssignment { member_id: member, assignment: b"all" }],
        ..Default::default()
    };
    let answer = link.ask(3, &request)?;
    let response: SyncGroupResponse<'_> = answer.read();
    let done = response.error_code == 0;
    Ok(done.then(|| Membership { member: member.to_owned(), generation }))
}

fn beat(link: &mut Link, membership: &Membership) -> io::Result<i16> {
    let request = HeartbeatRequest {
        group_id: GROUP,
        generation_id: membership.generation,
        member_id: &membership.member,
        ..Default::default()
    };
    let answer = link.ask(3, &request)?;
    let response: HeartbeatResponse = answer.read();
    Ok(response.error_code)
}
