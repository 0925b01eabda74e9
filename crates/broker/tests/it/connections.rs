//! Connections: order, bounds, time limits, hostile peers, drain.

use crate::harness::{Client, TestBroker, batch, bomb, create_topic, framed, produce};
use ottla_wire::ApiKey;
use ottla_wire::generated::{
    ApiVersionsRequest, ApiVersionsResponse, MetadataRequest, MetadataResponse, ProduceResponse,
};
use std::time::Duration;

fn ask_anything(client: &mut Client) {
    let answer = client.ask(0, &ApiVersionsRequest::default());
    assert_eq!(answer.read::<ApiVersionsResponse<'_>>().error_code, 0);
}

fn base_offset(client: &mut Client) -> i64 {
    let answer = client.receive(ApiKey::Produce, 9);
    let response: ProduceResponse<'_> = answer.read();
    let part = &response.responses[0].partition_responses[0];
    assert_eq!(part.error_code, 0);
    part.base_offset
}

#[test]
fn pipelined_requests_are_answered_in_order() {
    let broker = TestBroker::with(&[("connection.in.flight.requests.max", "4")]);
    let mut client = broker.connect();
    for _ in 0..100 {
        client.send(0, &ApiVersionsRequest::default());
    }
    for wanted in 1..=100 {
        assert_eq!(client.receive(ApiKey::ApiVersions, 0).correlation_id(), wanted);
    }
}

/// A request may arrive in any number of pieces.
#[test]
fn a_request_in_single_bytes_is_understood() {
    let broker = TestBroker::start();
    let mut client = broker.connect();
    for byte in [0, 0, 0, 10, 0, 18, 0, 0, 0, 0, 0, 5, 0xff, 0xff] {
        client.send_raw(&[byte]);
        std::thread::yield_now();
    }
    assert_eq!(client.receive(ApiKey::ApiVersions, 0).correlation_id(), 5);
}

/// Hostile bytes close their own connection and touch no other.
#[test]
fn malformed_bytes_close_their_connection_only() {
    let broker = TestBroker::start();
    let mut bystander = broker.connect();
    for bytes in [
        &b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"[..],
        &[0xff; 64],
        &[0, 0, 0, 0],
        &[0x7f, 0xff, 0xff, 0xff, 0, 18, 0, 0],
        // Metadata version 0 with an array of 2^31 - 1 topics.
        &[0, 0, 0, 14, 0, 3, 0, 0, 0, 0, 0, 1, 0xff, 0xff, 0x7f, 0xff, 0xff, 0xff],
        // A key nobody has, a version nobody has.
        &[0, 0, 0, 10, 0x70, 0, 0, 0, 0, 0, 0, 1, 0xff, 0xff],
        &[0, 0, 0, 10, 0, 3, 0x70, 0, 0, 0, 0, 1, 0xff, 0xff],
        // ApiVersions with a byte too many.
        &[0, 0, 0, 11, 0, 18, 0, 0, 0, 0, 0, 1, 0xff, 0xff, 9],
    ] {
        let mut hostile = broker.connect();
        hostile.send_raw(bytes);
        assert!(hostile.is_closed(), "{bytes:?}");
        ask_anything(&mut bystander);
    }
}

/// A first request that announces much must begin like a request to be waited for.
#[test]
fn a_large_first_frame_needs_a_valid_header() {
    let broker = TestBroker::start();
    let mut client = broker.connect();
    client.send_raw(&[0, 0x10, 0, 0, 0x70, 0, 0, 0]);
    assert!(client.is_closed());
}

#[test]
fn a_peer_that_stops_in_the_middle_of_a_request_is_cut() {
    let broker = TestBroker::with(&[("connection.transfer.grace.ms", "150")]);
    let mut client = broker.connect();
    client.send_raw(&[0, 0, 0, 10, 0, 18]);
    assert!(client.is_closed());
}

/// The limit is on the request, not on the pause between two bytes of it.
#[test]
fn trickling_bytes_does_not_extend_the_limit() {
    let broker = TestBroker::with(&[("connection.transfer.grace.ms", "300")]);
    let mut client = broker.connect();
    client.send_raw(&[0, 0, 0x0f, 0xff, 0, 18, 0, 0]);
    let refused = (0..100).any(|_| {
        std::thread::sleep(Duration::from_millis(50));
        !client.try_send_raw(&[0])
    });
    assert!(refused, "5 s of trickling are more than 300 ms");
}

/// Requests that take long, more than there are threads, are nobody's business but their senders'.
#[test]
fn whoever_sends_what_unpacks_to_much_waits_alone() {
    let broker = TestBroker::start();
    let mut bystander = broker.connect();
    create_topic(&mut bystander, "t", 1);
    let bytes = bomb(64 << 20);
    let mut senders: Vec<Client> = (0..2).map(|_| broker.connect()).collect();
    for sender in &mut senders {
        (0..2).for_each(|_| sender.send(9, &produce("t", 0, -1, &bytes)));
    }
    for _ in 0..20 {
        ask_anything(&mut bystander);
    }
    assert!(senders.iter().all(Client::is_quiet), "they were answered before the bystander");
    let mut offsets: Vec<i64> = Vec::new();
    for sender in &mut senders {
        for _ in 0..2 {
            offsets.push(base_offset(sender));
        }
    }
    assert!(offsets.chunks(2).all(|both| both[0] < both[1]), "in order: {offsets:?}");
    offsets.sort_unstable();
    assert_eq!(offsets, [0, 1, 2, 3]);
}

/// Half a large request holds memory that others need; its time limit gives it back to them.
#[test]
fn large_requests_wait_for_memory_and_get_it() {
    let broker = TestBroker::with(&[
        ("socket.request.max.bytes", "400000"),
        ("queued.max.request.bytes", "400000"),
        ("connection.transfer.grace.ms", "2000"),
    ]);
    let mut bystander = broker.connect();
    create_topic(&mut bystander, "t", 1);
    let large = batch(&[&"x".repeat(300_000)]);
    let frame = framed(9, &produce("t", 0, -1, &large));
    let mut hostile = broker.connect();
    ask_anything(&mut hostile);
    hostile.send_raw(&frame[..frame.len() / 2]);
    (0..100).for_each(|_| ask_anything(&mut bystander));
    let mut sender = broker.connect();
    ask_anything(&mut sender);
    sender.send_raw(&frame);
    (0..100).for_each(|_| ask_anything(&mut bystander));
    let small = batch(&["x"]);
    bystander.send(9, &produce("t", 0, -1, &small));
    assert_eq!(base_offset(&mut bystander), 0, "small requests do not wait for memory");
    assert_eq!(base_offset(&mut sender), 1, "it waited");
    assert!(hostile.is_closed());
}

#[test]
fn an_idle_connection_is_closed() {
    let broker = TestBroker::with(&[("connections.max.idle.ms", "1000")]);
    let mut client = broker.connect();
    ask_anything(&mut client);
    assert!(client.is_closed());
}

#[test]
fn connections_beyond_the_bound_are_closed_at_once() {
    let broker = TestBroker::with(&[("max.connections.per.ip", "2")]);
    let mut first = broker.connect();
    let mut second = broker.connect();
    ask_anything(&mut first);
    ask_anything(&mut second);
    assert!(broker.connect().is_closed());
    drop(first);
    // The broker notices the end in its own time.
    let admitted = (0..200).any(|_| {
        std::thread::sleep(Duration::from_millis(10));
        broker.connect().is_open()
    });
    assert!(admitted);
}

#[test]
fn a_drained_broker_closes_connections_and_stops_in_time() {
    let mut broker = TestBroker::start();
    let address = broker.address();
    let mut client = broker.connect();
    ask_anything(&mut client);
    assert!(broker.stop());
    assert!(client.is_closed());
    assert!(std::net::TcpStream::connect(address).is_err());
}

/// A peer that sends and never reads is cut; meanwhile it costs a bounded queue, no more.
#[test]
fn a_peer_that_does_not_read_its_replies_is_cut() {
    let broker = TestBroker::with(&[("connection.transfer.grace.ms", "300")]);
    let mut client = broker.connect();
    let request = [0, 0, 0, 10, 0, 18, 0, 0, 0, 0, 0, 1, 0xff, 0xff];
    let flood = request.repeat(1_000);
    // The sockets' own buffers take some megabytes; then the broker stops reading, and in the end
    // it closes. Without the limit this would block until the test's own time is up.
    let cut = (0..100_000).any(|_| !client.try_send_raw(&flood));
    assert!(cut);
    let mut bystander = broker.connect();
    ask_anything(&mut bystander);
}

#[test]
fn many_connections_at_once_are_all_served() {
    let broker = TestBroker::start();
    let mut clients: Vec<Client> = (0..300).map(|_| broker.connect()).collect();
    for client in &mut clients {
        client.send(0, &ApiVersionsRequest::default());
    }
    for client in &mut clients {
        assert_eq!(client.receive(ApiKey::ApiVersions, 0).correlation_id(), 1);
    }
}

/// Containers need it: whoever comes in by one listener is told that listener's address.
#[test]
fn each_listener_advertises_its_own_address() {
    let broker = TestBroker::with(&[
        ("listeners", "INSIDE://127.0.0.1:0,OUTSIDE://127.0.0.1:0"),
        ("advertised.listeners", "OUTSIDE://broker.example:19092"),
    ]);
    let addresses = broker.addresses();
    let inside = addresses[0].port();
    for (address, host, port) in
        [(addresses[0], "127.0.0.1", inside), (addresses[1], "broker.example", 19_092)]
    {
        let answer = Client::connect(address).ask(1, &MetadataRequest::default());
        let response: MetadataResponse<'_> = answer.read();
        let broker = &response.brokers[0];
        assert_eq!((broker.host, broker.port), (host, i32::from(port)));
    }
}

#[test]
fn a_second_broker_on_the_same_data_is_refused() {
    let broker = TestBroker::start();
    let refusal = broker.rival().expect_err("the directory is taken");
    assert!(refusal.contains("in use"), "{refusal}");
    ask_anything(&mut broker.connect());
}
