//! What the reader refuses, with the field and the place it names.

use crate::generated::HeartbeatRequest;
use crate::{DecodeErrorKind, Message};

/// As long as Kafka allows and one byte longer, in the old form and in the compact one.
#[test]
fn text_is_as_long_as_kafka_allows() {
    for version in [0, 4] {
        let text = "x".repeat(32_768);
        let longest = HeartbeatRequest { group_id: &text[1..], ..Default::default() };
        let bytes = longest.to_vec(version).expect("as long as allowed");
        assert_eq!(HeartbeatRequest::decode_all(&bytes, version), Ok(longest));
        let longer = HeartbeatRequest { group_id: &text, ..Default::default() };
        assert!(longer.to_vec(version).is_err());
    }
    let mut compact = vec![0x81, 0x80, 0x02];
    compact.resize(33_000, b'x');
    let refused = HeartbeatRequest::decode_all(&compact, 4).expect_err("too long");
    assert_eq!(refused.kind, DecodeErrorKind::TooLong(32_768));
}
