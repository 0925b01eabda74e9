//! Bytes that are no request of the register protocol: they close their connection with one log
//! line and touch nothing else (decision 23).

use crate::Stage;
use crate::broker::Broker;
use crate::member::Member;
use crate::wire::Wire;
use std::fs::File;

/// A frame: key, version 0, correlation id 7, a client id, then this body.
fn frame(key: i16, version: i16, body: &[u8]) -> Vec<u8> {
    let mut frame = Vec::new();
    frame.extend(key.to_be_bytes());
    frame.extend(version.to_be_bytes());
    frame.extend(7_i32.to_be_bytes());
    frame.extend(b"\0\x07hostile");
    frame.extend(body);
    [&u32::try_from(frame.len()).expect("short").to_be_bytes()[..], &frame].concat()
}

/// A registration with this for the count of its topics.
fn topics_counted(count: i32) -> Vec<u8> {
    let mut body = b"\0\x01g\0\0\0\0\0\0\x03\xe8\0\0\0\x03\0\0\0\x03".to_vec();
    body.extend(count.to_be_bytes());
    body
}

#[test]
fn d23_malformed_requests_close_their_connection_and_nothing_else() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let log = folder.path().join("log.txt");
    let data = folder.path().join("data");
    let broker = Broker::logging_to(&data, File::create(&log).expect("a file").into());
    let mut wire = Wire::open(broker.address());
    wire.create_topic("t", 1);
    wire.metadata("any");
    let mut member = Member::patient("g", &["t"]);
    assert_eq!(member.register(&mut wire), 0);

    let cases: &[(&str, Vec<u8>)] = &[
        ("a null array of topics", frame(32011, 0, &topics_counted(-1))),
        ("a negative array of topics", frame(32011, 0, &topics_counted(i32::MIN))),
        ("more topics than bytes", frame(32011, 0, &topics_counted(i32::MAX))),
        ("a null group", frame(32011, 0, b"\xff\xff\0\0\0\0")),
        ("a null group of metadata", frame(32010, 0, b"\xff\xff")),
        ("a null consumer id", frame(32012, 0, b"\0\x01g\0\0\0\x01\xff\xff")),
        ("a heartbeat cut off", frame(32012, 0, b"\0\x01g\0\0")),
        ("a heartbeat with more behind it", frame(32012, 0, b"\0\x01g\0\0\0\x01\0\x01c!")),
        ("a group that is no text", frame(32010, 0, b"\0\x02\xff\xfe")),
        ("a version that is not served", frame(32011, 1, &topics_counted(0))),
        ("a key that nobody has", frame(32013, 0, b"")),
    ];
    for (what, bytes) in cases {
        let mut hostile = Wire::open(broker.address());
        hostile.send_raw(bytes);
        assert!(hostile.is_broken(), "{what}");
        assert_eq!(member.beat(&mut wire).error, 0, "{what}: others are untouched");
    }
    let log = std::fs::read_to_string(&log).expect("its log");
    let lines = log.lines().filter(|line| line.contains("closed a connection")).count();
    assert!(lines <= cases.len(), "at most one line each:\n{log}");
    assert!(lines > 0, "it is said at all:\n{log}");
    assert!(!log.contains("panicked"), "{log}");
}

/// Bounded, and said plainly: a group takes only so much.
#[test]
fn d23_what_is_well_formed_and_absurd_is_answered() {
    let stage = Stage::new();
    let wire = &mut stage.wire();
    let name = "n".repeat(30_000);
    let mut large = Member::patient(&name, &["t"]);
    large.topics = (0..2000).map(|index| format!("{index:0>250}")).collect();
    assert_eq!(large.register(wire), 0, "topics that do not exist are no error");
    assert!(large.owned.is_empty());
    let mut larger = Member::patient("larger", &["t"]);
    larger.topics = (0..20_000).map(|index| format!("{index:0>250}")).collect();
    assert_eq!(larger.register(wire), 81, "more than a group may say of itself");
    assert!(wire.is_open());
}
