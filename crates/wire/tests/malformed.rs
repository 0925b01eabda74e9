//! Bytes that no honest peer sends: each is refused with the field, the offset and the reason, and
//! nothing is allocated for what is only announced (issue 3, "Bounds").

#![allow(clippy::unwrap_used)]

mod support;

use ottla_wire::generated::{
    FetchRequest, HeartbeatRequest, JoinGroupResponse, MetadataRequest, OffsetCommitRequest,
    ShareFetchResponse,
};
use ottla_wire::header::RequestHeader;
use ottla_wire::{DecodeError, DecodeErrorKind, Limits, Message, Reader, generated};
use support::{Random, sample, schema};

/// The refusal of these bytes, as `(field, offset, kind)`.
fn refused<'a, M: Message<'a>>(
    bytes: &'a [u8],
    version: i16,
) -> (&'static str, usize, DecodeErrorKind) {
    let Err(DecodeError { field, offset, kind }) = M::decode_all(bytes, version) else {
        panic!("{} was not refused", M::NAME)
    };
    (field, offset, kind)
}

#[test]
fn a_field_that_ends_early() {
    let (field, offset, kind) = refused::<HeartbeatRequest>(b"\0\x05abc", 0);
    assert_eq!((field, offset), ("HeartbeatRequest.GroupId", 2));
    assert_eq!(kind, DecodeErrorKind::Truncated { needed: 5, left: 3 });
    let (field, offset, kind) = refused::<HeartbeatRequest>(b"\0\x01a\0\0", 0);
    assert_eq!((field, offset), ("HeartbeatRequest.GenerationId", 3));
    assert_eq!(kind, DecodeErrorKind::Truncated { needed: 4, left: 2 });
}

#[test]
fn null_where_it_is_not_allowed() {
    let old = refused::<HeartbeatRequest>(b"\xff\xff", 0);
    assert_eq!(old, ("HeartbeatRequest.GroupId", 2, DecodeErrorKind::Null));
    let compact = refused::<HeartbeatRequest>(b"\0", 4);
    assert_eq!(compact, ("HeartbeatRequest.GroupId", 1, DecodeErrorKind::Null));
    let array = refused::<MetadataRequest>(b"\xff\xff\xff\xff", 0);
    assert_eq!(array, ("MetadataRequest.Topics", 4, DecodeErrorKind::Null));
    assert_eq!(MetadataRequest::decode_all(b"\xff\xff\xff\xff", 1).unwrap().topics, None);
}

#[test]
fn negative_lengths() {
    let text = refused::<HeartbeatRequest>(b"\xff\xfe", 0);
    assert_eq!(text, ("HeartbeatRequest.GroupId", 2, DecodeErrorKind::NegativeLength(-2)));
    let array = refused::<MetadataRequest>(b"\x80\0\0\0", 1);
    assert_eq!(array.2, DecodeErrorKind::NegativeLength(i32::MIN));
}

/// A length of two billion is refused for what is really there, before room is made for it.
#[test]
fn a_count_beyond_what_is_there() {
    let (field, offset, kind) = refused::<MetadataRequest>(b"\x7f\xff\xff\xff\0\0", 0);
    assert_eq!((field, offset), ("MetadataRequest.Topics", 4));
    assert!(matches!(kind, DecodeErrorKind::Truncated { needed: 2_147_483_647.., left: 2 }));
}

/// Many tiny elements: each is there, and still they are too many.
#[test]
fn a_count_beyond_the_limits() {
    let mut bytes = b"\0\0\0\x64".to_vec();
    bytes.resize(4 + 2 * 100, 0);
    let decode = |elements, memory| {
        let limits = Limits { elements, memory };
        MetadataRequest::decode(&mut Reader::with_limits(&bytes, limits), 0)
    };
    assert_eq!(decode(100, 1 << 20).unwrap().topics.unwrap().len(), 100);
    for limited in [decode(99, 1 << 20), decode(100, 99)] {
        assert_eq!(limited.unwrap_err().kind, DecodeErrorKind::TooMany(100));
    }
}

#[test]
fn overlong_variable_length_integers() {
    // 2 as two bytes, 2 as five bytes, and more than 32 bits.
    for bytes in [&b"\x82\0a"[..], b"\x82\x80\x80\x80\0a", b"\xff\xff\xff\xff\x1f"] {
        let (field, _, kind) = refused::<HeartbeatRequest>(bytes, 4);
        assert_eq!((field, kind), ("HeartbeatRequest.GroupId", DecodeErrorKind::Varint));
    }
}

#[test]
fn text_that_is_not_utf8() {
    // Alone, cut short, overlong, a surrogate.
    for text in [&b"\0\x01\xff"[..], b"\0\x02\xe8\xaa", b"\0\x02\xc0\xaf", b"\0\x03\xed\xa0\x80"] {
        let (field, offset, kind) = refused::<HeartbeatRequest>(text, 0);
        assert_eq!((field, kind), ("HeartbeatRequest.GroupId", DecodeErrorKind::Utf8));
        assert_eq!(offset, text.len());
    }
}

#[test]
fn values_that_are_none() {
    // allow_auto_topic_creation of MetadataRequest v4, after a null array.
    let (field, _, kind) = refused::<MetadataRequest>(b"\xff\xff\xff\xff\x02", 4);
    assert_eq!((field, kind), ("MetadataRequest.AllowAutoTopicCreation", DecodeErrorKind::Bool(2)));
    // Whether an assignment follows in ConsumerGroupHeartbeatResponse.
    let absent = generated::ConsumerGroupHeartbeatResponse::default();
    let mut bytes = absent.to_vec(0).unwrap();
    let mark = bytes.len() - 2;
    assert_eq!(bytes[mark], 0xff);
    bytes[mark] = 7;
    let (field, _, kind) = refused::<generated::ConsumerGroupHeartbeatResponse>(&bytes, 0);
    assert_eq!(field, "ConsumerGroupHeartbeatResponse.Assignment");
    assert_eq!(kind, DecodeErrorKind::Presence(7));
}

/// The tags of a FetchRequest, behind its untagged fields.
fn fetch_with_tags(tags: &[u8]) -> Vec<u8> {
    let mut bytes = FetchRequest::default().to_vec(17).unwrap();
    assert_eq!(bytes.pop(), Some(0));
    bytes.extend(tags);
    bytes
}

#[test]
fn tagged_fields() {
    let refused = |tags: &[u8]| {
        let bytes = fetch_with_tags(tags);
        FetchRequest::decode_all(&bytes, 17).unwrap_err().kind
    };
    // The tag 0 is the cluster id, a string; tag 9 is nobody's.
    assert_eq!(refused(b"\x02\0\x02\x02a\0\x02\x02a"), DecodeErrorKind::TagOrder(0));
    assert_eq!(refused(b"\x02\x09\0\0\x02\x02a"), DecodeErrorKind::TagOrder(0));
    assert_eq!(refused(b"\x02\x09\0\x09\0"), DecodeErrorKind::TagOrder(9));
    assert_eq!(refused(b"\x01\0\x03\x02ab"), DecodeErrorKind::TagSize(1));
    let beyond = DecodeErrorKind::Truncated { needed: 2, left: 1 };
    assert_eq!(refused(b"\x01\0\x02\x03ab"), beyond, "a field ends with its tag");
    assert_eq!(refused(b"\x01\x09\x05ab"), DecodeErrorKind::Truncated { needed: 5, left: 2 });
    // An unknown tag is skipped, and the offsets behind it are right.
    let skipped = fetch_with_tags(b"\x02\0\x02\x02a\x09\x02xy");
    assert_eq!(FetchRequest::decode_all(&skipped, 17).unwrap().cluster_id, Some("a"));
}

#[test]
fn bytes_after_the_end() {
    let mut bytes = HeartbeatRequest::default().to_vec(4).unwrap();
    let len = bytes.len();
    bytes.extend(b"xyz");
    let trailing = refused::<HeartbeatRequest>(&bytes, 4);
    assert_eq!(trailing, ("HeartbeatRequest", len, DecodeErrorKind::Trailing(3)));
}

#[test]
fn versions_and_keys_that_do_not_exist() {
    assert_eq!(refused::<HeartbeatRequest>(b"", 5).2, DecodeErrorKind::Version(5));
    assert_eq!(refused::<OffsetCommitRequest>(b"", 1).2, DecodeErrorKind::Version(1));
    let unknown = RequestHeader::decode(&mut Reader::new(b"\x03\xe7\0\0\0\0\0\x01\xff\xff"));
    assert_eq!(unknown.unwrap_err().kind, DecodeErrorKind::ApiKey(999));
    // A known key in an unknown version is a header, because ApiVersions answers it.
    let future = RequestHeader::decode(&mut Reader::new(b"\0\x12\0\x63\0\0\0\x01\xff\xff\0"));
    assert!(!future.unwrap().is_accepted());
}

/// Whatever is cut off the end, the rest is refused; whatever byte is changed, nothing panics and
/// what is still decoded can be encoded.
#[test]
fn every_cut_and_every_changed_byte() {
    cut_and_change("OffsetCommitRequest", 9, |bytes, version| {
        recodes::<OffsetCommitRequest>(bytes, version)
    });
    cut_and_change("FetchRequest", 17, |bytes, version| recodes::<FetchRequest>(bytes, version));
    cut_and_change("JoinGroupResponse", 9, |bytes, version| {
        recodes::<JoinGroupResponse>(bytes, version)
    });
    cut_and_change("ShareFetchResponse", 1, |bytes, version| {
        recodes::<ShareFetchResponse>(bytes, version)
    });
}

fn cut_and_change(name: &str, version: i16, recodes: fn(&[u8], i16) -> bool) {
    let schema = schema(name);
    for seed in 0..20 {
        let bytes = sample(&schema, version, &mut Random(seed));
        assert!(recodes(&bytes, version));
        for len in 0..bytes.len() {
            assert!(!recodes(&bytes[..len], version), "{name} cut to {len}");
        }
        for at in 0..bytes.len() {
            for flip in [0x01, 0x80, 0xff] {
                let mut changed = bytes.clone();
                changed[at] ^= flip;
                recodes(&changed, version);
            }
        }
    }
}

/// Whether the bytes are such a message; if so it can be encoded again.
fn recodes<'a, M: Message<'a>>(bytes: &'a [u8], version: i16) -> bool {
    let Ok(message) = M::decode_all(bytes, version) else { return false };
    message.to_vec(version).unwrap();
    true
}
