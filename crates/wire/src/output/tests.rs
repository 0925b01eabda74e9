//! Where shared chunks end up, and what is refused on the way out.

use super::*;

fn long(byte: u8) -> Bytes {
    Bytes::from(vec![byte; SHARE_MIN])
}

fn sample() -> Output {
    let mut out = Output::new();
    out.i16(1);
    out.records(false, &Records::Shared(long(2)), "a").expect("fits");
    out.records(true, &Records::Chunks(vec![long(3), Bytes::from_static(b"short"), long(4)]), "b")
        .expect("fits");
    out.i8(5);
    out
}

fn expected() -> Vec<u8> {
    let mut bytes = vec![0, 1];
    bytes.extend((SHARE_MIN as i32).to_be_bytes());
    bytes.extend_from_slice(&long(2));
    let mut length = Output::new();
    length.varint(2 * SHARE_MIN as u32 + 5 + 1);
    bytes.extend(length.into_vec());
    bytes.extend_from_slice(&long(3));
    bytes.extend_from_slice(b"short");
    bytes.extend_from_slice(&long(4));
    bytes.push(5);
    bytes
}

#[test]
fn shared_chunks_lie_where_they_belong() {
    let out = sample();
    assert_eq!(out.len(), expected().len());
    assert_eq!(out.chunks().collect::<Vec<_>>().concat(), expected());
    assert_eq!(out.into_vec(), expected());
}

#[test]
fn long_chunks_are_shared_and_short_ones_copied() {
    let chunk = long(9);
    let mut out = Output::new();
    out.records(true, &Records::Shared(chunk.clone()), "a").expect("fits");
    out.records(true, &Records::Shared(chunk.slice(1..)), "b").expect("fits");
    let shared = out.chunks().filter(|piece| piece.as_ptr() == chunk.as_ptr()).count();
    assert_eq!((shared, out.chunks().count()), (1, 3));
}

#[test]
fn a_write_may_stop_anywhere() {
    for step in [1, 7, SHARE_MIN, expected().len()] {
        let mut buf = sample().into_buf();
        let mut written = Vec::new();
        while buf.has_remaining() {
            let mut slices = [IoSlice::new(&[]); 3];
            let used = buf.chunks_vectored(&mut slices);
            let seen: Vec<u8> = slices[..used].iter().flat_map(|slice| slice.to_vec()).collect();
            let taken = step.min(seen.len());
            written.extend_from_slice(&seen[..taken]);
            buf.advance(taken);
        }
        assert_eq!(written, expected());
    }
}

#[test]
fn what_was_written_since_a_mark_can_be_forgotten() {
    let mut out = sample();
    let mark = out.mark();
    out.records(false, &Records::Shared(long(8)), "c").expect("fits");
    out.rewind(mark);
    assert_eq!(out.len(), expected().len());
    assert_eq!(out.clone().into_vec(), expected());
    out.clear();
    assert!(out.is_empty());
}

#[test]
fn lengths_that_do_not_fit_are_refused() {
    let text = "x".repeat(40_000);
    for flexible in [false, true] {
        let refused = Output::new().string(flexible, &text, "Some.Field").expect_err("too long");
        assert_eq!(refused, EncodeError::too_long("Some.Field", 40_000));
    }
}
