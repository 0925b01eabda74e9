//! Frames: cutting them out of what arrives, and writing them.

use super::*;
use crate::generated::{HeartbeatRequest, HeartbeatResponse};
use crate::{Message, Reader};

fn asked() -> HeartbeatRequest<'static> {
    HeartbeatRequest { group_id: "g", member_id: "m", generation_id: 3, ..Default::default() }
}

#[test]
fn frames_come_out_whole_however_their_bytes_arrive() {
    let mut out = Output::new();
    for correlation_id in 0..3 {
        write_request(&mut out, 4, correlation_id, Some("me"), &asked()).expect("fits");
    }
    let bytes = out.into_vec();
    for step in [1, 3, bytes.len()] {
        let mut arrived = BytesMut::new();
        let mut ids = Vec::new();
        for piece in bytes.chunks(step) {
            arrived.extend_from_slice(piece);
            while let Some(frame) = split(&mut arrived, 1000).expect("small frames") {
                let mut reader = Reader::new(&frame);
                let header = RequestHeader::decode(&mut reader).expect("a header");
                let body = HeartbeatRequest::decode(&mut reader, header.version);
                assert_eq!(body, Ok(asked()));
                assert_eq!(reader.finish("body"), Ok(()));
                ids.push(header.correlation_id);
            }
        }
        assert_eq!(ids, [0, 1, 2]);
        assert!(arrived.is_empty());
    }
}

#[test]
fn a_length_is_judged_before_room_is_made_for_it() {
    let mut negative = BytesMut::from(&b"\xff\xff\xff\xff"[..]);
    assert_eq!(split(&mut negative, 10), Err(FrameError::Negative(-1)));
    let mut large = BytesMut::from(&b"\0\0\0\x0b"[..]);
    assert_eq!(split(&mut large, 10), Err(FrameError::TooLarge { length: 11, max: 10 }));
    let mut announced = BytesMut::from(&b"\x06\0\0\0"[..]);
    assert_eq!(split(&mut announced, REQUEST_BYTES_MAX), Ok(None));
    assert!(announced.capacity() <= 2 * RESERVE_MAX, "{}", announced.capacity());
}

#[test]
fn an_empty_frame_is_a_frame() {
    let mut arrived = BytesMut::from(&b"\0\0\0\0\0"[..]);
    assert_eq!(split(&mut arrived, 10), Ok(Some(Bytes::new())));
    assert_eq!(&arrived[..], b"\0");
}

#[test]
fn a_response_that_cannot_be_written_leaves_no_trace() {
    let mut out = Output::new();
    let response = HeartbeatResponse { error_code: 27, ..Default::default() };
    write_response(&mut out, ApiKey::Heartbeat, 4, 7, &response).expect("fits");
    let before = out.clone().into_vec();
    assert_eq!(before, b"\0\0\0\x0c\0\0\0\x07\0\0\0\0\0\0\x1b\0");
    let named = HeartbeatRequest { group_instance_id: Some("i"), ..asked() };
    write_request(&mut out, 0, 8, None, &named).expect_err("version 0 has no instances");
    assert_eq!(out.into_vec(), before);
}
