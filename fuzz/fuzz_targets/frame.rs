//! Frames from a peer: cut the same however the bytes arrive, and no room made for bytes that have
//! only been announced.

#![no_main]

use bytes::{Bytes, BytesMut};
use libfuzzer_sys::fuzz_target;
use ottla_wire::Reader;
use ottla_wire::frame::{FrameError, split};
use ottla_wire::header::RequestHeader;

const FRAME_BYTES_MAX: usize = 1 << 26;
const ROOM_BYTES_MAX: usize = 1 << 20;

fuzz_target!(|input: (u8, &[u8])| {
    let (step, bytes) = input;
    let (at_once, end) = frames(bytes, bytes.len().max(1));
    let (in_steps, same_end) = frames(bytes, usize::from(step).max(1));
    assert_eq!((&at_once, end), (&in_steps, same_end));
    for frame in &at_once {
        let mut reader = Reader::new(frame);
        if let Ok(header) = RequestHeader::decode(&mut reader) {
            assert_eq!(header.is_accepted(), header.key.api().accepted.contains(header.version));
        }
    }
});

/// The frames of bytes that arrive in pieces of `step`, and the error they end with.
fn frames(bytes: &[u8], step: usize) -> (Vec<Bytes>, Option<FrameError>) {
    let mut arrived = BytesMut::new();
    let mut frames = Vec::new();
    for piece in bytes.chunks(step) {
        arrived.extend_from_slice(piece);
        loop {
            match split(&mut arrived, FRAME_BYTES_MAX) {
                Ok(Some(frame)) => frames.push(frame),
                Ok(None) => break,
                Err(error) => return (frames, Some(error)),
            }
        }
        assert!(arrived.capacity() <= bytes.len() * 2 + ROOM_BYTES_MAX);
    }
    (frames, None)
}
