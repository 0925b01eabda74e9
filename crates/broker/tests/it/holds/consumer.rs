//! The same in the consumer protocol, where an answer also says what to own.

use super::connect;
use crate::consumers::Member;
use crate::groups::find;
use crate::harness::{Client, TestBroker, create_topic, framed};
use ottla_wire::generated::*;
use ottla_wire::{ApiKey, ErrorCode};

/// Intervals longer than any test waits: a hold that ends ends for a reason.
const LONG: &[(&str, &str)] = &[
    ("group.heartbeat.hold.max.ms", "patient=60000"),
    ("group.consumer.heartbeat.interval.ms", "120000"),
    ("group.consumer.session.timeout.ms", "3600000"),
];

/// A broker with one member that owns the topic and whose next heartbeat is kept.
fn kept(broker: &TestBroker) -> (Client, Member) {
    kept_by(broker, "patient")
}

fn kept_by(broker: &TestBroker, software: &str) -> (Client, Member) {
    let mut client = connect(broker, software);
    create_topic(&mut client, "orders", 2);
    find(&mut client, "billing");
    let mut member = Member::new("one");
    assert_eq!(member.beat(&mut client), 0);
    assert_eq!(member.partitions(), [0, 1]);
    keep(broker, &mut client, &member);
    (client, member)
}

fn keep(broker: &TestBroker, client: &mut Client, member: &Member) {
    client.send(1, &member.says());
    while broker.held_heartbeats() == 0 {
        assert!(client.is_quiet(), "it is not kept");
        std::thread::yield_now();
    }
}

fn error_of(client: &mut Client) -> ErrorCode {
    let answer = client.receive(ApiKey::ConsumerGroupHeartbeat, 1);
    let response: ConsumerGroupHeartbeatResponse<'_> = answer.read();
    ErrorCode::from_number(response.error_code).expect("a code")
}

/// KIP-848: a revocation reaches its owner in the answer it is already waiting for.
#[test]
fn a_held_heartbeat_tells_of_a_revocation() {
    let broker = TestBroker::with(LONG);
    let (mut client, mut member) = kept(&broker);
    let mut other = broker.connect();
    let mut joiner = Member::new("two");
    assert_eq!(joiner.beat(&mut other), 0);
    member.take(&client.receive(ApiKey::ConsumerGroupHeartbeat, 1));
    assert_eq!(member.partitions().len(), 1);
}

/// SIGTERM: nobody is kept, the drain does not wait, and the answer says to look elsewhere.
#[test]
fn a_shutdown_releases_it() {
    let mut broker = TestBroker::with(LONG);
    let (mut client, _) = kept(&broker);
    assert!(broker.stop(), "in time");
    assert_eq!(error_of(&mut client), ErrorCode::NotCoordinator);
}

/// A commit, a fetch or a leave comes right behind it, each in its order.
#[test]
fn it_delays_nothing_that_comes_behind_it() {
    let broker = TestBroker::with(LONG);
    let (mut client, member) = kept(&broker);
    client.send(9, &OffsetCommitRequest { group_id: "billing", ..Default::default() });
    assert_eq!(error_of(&mut client), ErrorCode::None);
    client.receive(ApiKey::OffsetCommit, 9);
    keep(&broker, &mut client, &member);
    client.send(4, &FetchRequest { max_bytes: 1, ..Default::default() });
    assert_eq!(error_of(&mut client), ErrorCode::None);
    client.receive(ApiKey::Fetch, 4);
    keep(&broker, &mut client, &member);
    let leave = ConsumerGroupHeartbeatRequest { member_epoch: -1, ..member.says() };
    client.send(1, &leave);
    assert_eq!(error_of(&mut client), ErrorCode::None);
    assert_eq!(error_of(&mut client), ErrorCode::None, "it has left");
}

/// Whoever has begun to write waits for an answer, however long the rest takes: the first byte
/// of a frame releases what is kept, so that the answer has left when the frame is whole.
#[test]
fn the_first_bytes_of_a_request_release_it() {
    let broker = TestBroker::with(LONG);
    let (mut client, member) = kept(&broker);
    let frame = framed(1, &MetadataRequest::default());
    for part in [1, 3, 4, frame.len() / 2] {
        client.send_raw(&frame[..part]);
        assert_eq!(error_of(&mut client), ErrorCode::None, "{part} bytes are here");
        client.send_raw(&frame[part..]);
        client.receive(ApiKey::Metadata, 1);
        keep(&broker, &mut client, &member);
    }
}

/// A leave by another connection is answered at once, and so is what is kept by the first.
#[test]
fn a_leave_by_another_connection_does_not_wait() {
    let broker = TestBroker::with(LONG);
    let (mut client, member) = kept(&broker);
    let mut other = connect(&broker, "patient");
    other.send(1, &ConsumerGroupHeartbeatRequest { member_epoch: -1, ..member.says() });
    assert_eq!(error_of(&mut other), ErrorCode::None);
    error_of(&mut client);
    assert_eq!(broker.held_heartbeats(), 0);
}

/// It ends well before the session: whoever beats again then is still a member, over and over.
/// franz-go's is bound by nothing else, for it rests after an answer.
#[test]
fn it_never_outlives_the_session() {
    for software in ["patient", "kgo"] {
        let broker = TestBroker::with(&[
            ("group.heartbeat.hold.max.ms", &format!("{software}=60000")),
            ("group.consumer.heartbeat.interval.ms", "1000"),
            ("group.consumer.session.timeout.ms", "3000"),
        ]);
        let (mut client, member) = kept_by(&broker, software);
        for _ in 0..3 {
            assert_eq!(error_of(&mut client), ErrorCode::None, "{software}");
            keep(&broker, &mut client, &member);
        }
    }
}
