//! The HTTP side, as monitoring meets it.

use crate::harness::{TestBroker, create_topic};
use ottla_wire::generated::{MetadataRequest, MetadataResponse};
use std::io::{Read, Write};
use std::net::TcpStream;

pub(crate) fn get(broker: &TestBroker, path: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(broker.http_address()).expect("it listens");
    let request = format!("GET {path} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("it reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok());
    (status.expect("a status"), answer)
}

#[test]
fn health_and_readiness_are_told() {
    let broker = TestBroker::with(&[("http.listen", "127.0.0.1:0")]);
    assert_eq!(get(&broker, "/healthz").0, 200);
    assert_eq!(get(&broker, "/readyz").0, 200);
    assert_eq!(get(&broker, "/nosuch").0, 404);
}

#[test]
fn metrics_show_requests_errors_connections_and_logs() {
    let broker = TestBroker::with(&[("http.listen", "127.0.0.1:0")]);
    let mut client = broker.connect();
    create_topic(&mut client, "orders", 2);
    let answer = client.ask(1, &MetadataRequest::default());
    let _: MetadataResponse<'_> = answer.read();
    // An answer is counted once it has gone to the socket: perhaps after it was read here.
    while !get(&broker, "/metrics").1.contains("{api=\"Metadata\"} 1") {
        std::thread::yield_now();
    }
    let (status, text) = get(&broker, "/metrics");
    assert_eq!(status, 200);
    for line in [
        "ottla_request_duration_seconds_count{api=\"CreateTopics\"} 1",
        "ottla_request_duration_seconds_count{api=\"Metadata\"} 1",
        "ottla_connections 1",
        "ottla_log_size_bytes{topic=\"orders\",partition=\"1\"} 0",
        "ottla_groups{state=\"Stable\"} 0",
        "ottla_received_bytes_total ",
        "# EOF",
    ] {
        assert!(text.contains(line), "no '{line}' in {text}");
    }
}
