//! Held heartbeats over the wire (issue 4): a client that bears it hears of a rebalance in the
//! answer to the heartbeat it has already sent, and nothing it wants meanwhile waits.

mod consumer;

use crate::groups::{commit, find, join, joined};
use crate::harness::{Client, TestBroker, create_topic, framed};
use ottla_wire::generated::*;
use ottla_wire::{ApiKey, ErrorCode};

/// Longer than any test waits: a hold that ends ends for a reason.
const LONG: &[(&str, &str)] =
    &[("group.heartbeat.hold.max.ms", "patient=60000"), ("group.initial.rebalance.delay.ms", "0")];

/// A connection of a client of this name.
fn connect(broker: &TestBroker, name: &str) -> Client {
    let mut client = broker.connect();
    let request = ApiVersionsRequest {
        client_software_name: name,
        client_software_version: "1",
        ..Default::default()
    };
    let answer = client.ask(3, &request);
    let response: ApiVersionsResponse<'_> = answer.read();
    assert_eq!(response.error_code, 0);
    client
}

/// A broker with one stable member of a patient client.
fn member(broker: &TestBroker) -> (Client, String, i32) {
    let mut client = connect(broker, "patient");
    create_topic(&mut client, "t", 1);
    find(&mut client, "g");
    let (member, generation) = joined(&mut client, "g");
    (client, member, generation)
}

fn beat(client: &mut Client, member: &str, generation: i32) {
    let request = HeartbeatRequest {
        group_id: "g",
        generation_id: generation,
        member_id: member,
        ..Default::default()
    };
    client.send(3, &request);
}

fn answer(client: &mut Client) -> ErrorCode {
    let answer = client.receive(ApiKey::Heartbeat, 3);
    let response: HeartbeatResponse = answer.read();
    ErrorCode::from_number(response.error_code).expect("a code")
}

#[test]
fn a_held_heartbeat_is_answered_when_somebody_joins() {
    let broker = TestBroker::with(LONG);
    let (mut client, member, generation) = member(&broker);
    beat(&mut client, &member, generation);
    let mut other = broker.connect();
    other.send(2, &join("g", ""));
    assert_eq!(answer(&mut client), ErrorCode::RebalanceInProgress);
}

/// Commits, fetches and leaves come first, and answers keep the order of their requests.
#[test]
fn whatever_comes_behind_a_held_heartbeat_releases_it() {
    let broker = TestBroker::with(LONG);
    let (mut client, member, generation) = member(&broker);
    beat(&mut client, &member, generation);
    client.send(7, &commit("other", 5));
    assert_eq!(answer(&mut client), ErrorCode::None);
    client.receive(ApiKey::OffsetCommit, 7);
    beat(&mut client, &member, generation);
    let leave = LeaveGroupRequest { group_id: "g", member_id: &member, ..Default::default() };
    client.send(2, &leave);
    assert_eq!(answer(&mut client), ErrorCode::None);
    client.receive(ApiKey::LeaveGroup, 2);
}

#[test]
fn a_second_heartbeat_releases_the_first() {
    let broker = TestBroker::with(LONG);
    let (mut client, member, generation) = member(&broker);
    beat(&mut client, &member, generation);
    beat(&mut client, &member, generation);
    assert_eq!(answer(&mut client), ErrorCode::None);
}

#[test]
fn a_client_that_is_not_known_is_answered_at_once() {
    let broker = TestBroker::with(LONG);
    let (_, member, generation) = member(&broker);
    for mut client in [broker.connect(), connect(&broker, "somebody")] {
        beat(&mut client, &member, generation);
        assert_eq!(answer(&mut client), ErrorCode::None);
    }
}

/// SIGTERM: nobody is kept, and the drain does not wait.
#[test]
fn a_shutdown_releases_held_heartbeats() {
    let mut broker = TestBroker::with(LONG);
    let (mut client, member, generation) = member(&broker);
    beat(&mut client, &member, generation);
    while broker.held_heartbeats() == 0 {
        std::thread::yield_now();
    }
    assert!(broker.stop(), "in time");
    assert_eq!(answer(&mut client), ErrorCode::NotCoordinator);
}

/// The first byte of what comes next releases it: whoever has begun to write waits for an answer.
#[test]
fn the_first_byte_of_a_request_releases_it() {
    let broker = TestBroker::with(LONG);
    let (mut client, member, generation) = member(&broker);
    beat(&mut client, &member, generation);
    let frame = framed(1, &MetadataRequest::default());
    client.send_raw(&frame[..1]);
    assert_eq!(answer(&mut client), ErrorCode::None);
    client.send_raw(&frame[1..]);
    client.receive(ApiKey::Metadata, 1);
}

/// A connection that ends takes its hold along: the member goes on by another one.
#[test]
fn a_member_whose_connection_ends_goes_on_by_another() {
    let broker = TestBroker::with(LONG);
    let (mut client, member, generation) = member(&broker);
    beat(&mut client, &member, generation);
    // Else it might be read only after the one below, which would then give way to it.
    while broker.held_heartbeats() == 0 {
        std::thread::yield_now();
    }
    drop(client);
    let mut next = connect(&broker, "patient");
    beat(&mut next, &member, generation);
    let mut other = broker.connect();
    other.send(2, &join("g", ""));
    assert_eq!(answer(&mut next), ErrorCode::RebalanceInProgress);
}
