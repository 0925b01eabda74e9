//! Frames: four bytes of length, then that many bytes. No socket here: bytes that have arrived go
//! in, whole frames come out.

use crate::header::{self, RequestHeader};
use crate::{ApiKey, EncodeError, Message, Output, Request};
use bytes::{Buf, Bytes, BytesMut};
use thiserror::Error;

/// Kafka's default for `socket.request.max.bytes`.
pub const REQUEST_BYTES_MAX: usize = 100 << 20;

/// Bytes of a frame's length.
pub const PREFIX: usize = 4;

/// Room that is made at once for a frame of which little has arrived yet: a peer that announces
/// much and sends nothing costs no more.
const RESERVE_MAX: usize = 256 << 10;

/// A length that no frame may have. The peer is at fault and the stream cannot be resumed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum FrameError {
    /// Below zero.
    #[error("a frame announces {0} bytes")]
    Negative(i32),
    /// More than the limit.
    #[error("a frame announces {length} bytes, {max} are allowed")]
    TooLarge {
        /// Announced.
        length: usize,
        /// Allowed.
        max: usize,
    },
}

/// Takes the first frame, without its length, out of the bytes that have arrived; `None` if it is
/// not complete yet, and then `arrived` has room for more of it. Nothing is copied, and a length
/// above `max` is refused before any room is made for it.
///
/// # Errors
/// If the announced length is negative or above `max`.
pub fn split(arrived: &mut BytesMut, max: usize) -> Result<Option<Bytes>, FrameError> {
    split_with_room(arrived, max, RESERVE_MAX)
}

/// As [`split`], for whoever trusts the peer with `room` bytes before they have come: a frame that
/// fits is read without moving what came before.
///
/// # Errors
/// As [`split`].
pub fn split_with_room(
    arrived: &mut BytesMut,
    max: usize,
    room: usize,
) -> Result<Option<Bytes>, FrameError> {
    let Some(prefix) = arrived.first_chunk::<PREFIX>() else {
        arrived.reserve(PREFIX);
        return Ok(None);
    };
    let length = i32::from_be_bytes(*prefix);
    let length = usize::try_from(length).map_err(|_| FrameError::Negative(length))?;
    if length > max {
        return Err(FrameError::TooLarge { length, max });
    }
    let missing = (PREFIX + length).saturating_sub(arrived.len());
    if missing > 0 {
        arrived.reserve(missing.min(room));
        return Ok(None);
    }
    arrived.advance(PREFIX);
    Ok(Some(arrived.split_to(length).freeze()))
}

/// Appends a whole frame: length, response header, body. On an error the output is as before.
///
/// # Errors
/// If the version has no codec or cannot carry a value, or the frame is longer than 2 GiB.
pub fn write_response<'a, M: Message<'a>>(
    out: &mut Output,
    key: ApiKey,
    version: i16,
    correlation_id: i32,
    body: &M,
) -> Result<(), EncodeError> {
    let length = header::response_size(key, version) + body.size(version);
    write(out, length, M::NAME, |out| {
        header::encode_response(correlation_id, key, version, out)?;
        body.encode(version, out)
    })
}

/// Appends a whole frame: length, request header, body. On an error the output is as before.
///
/// # Errors
/// As [`write_response`].
pub fn write_request<'a, R: Request<'a>>(
    out: &mut Output,
    version: i16,
    correlation_id: i32,
    client_id: Option<&str>,
    body: &R,
) -> Result<(), EncodeError> {
    let header = RequestHeader { key: R::KEY, version, correlation_id, client_id };
    write(out, header.size() + body.size(version), R::NAME, |out| {
        header.encode(out)?;
        body.encode(version, out)
    })
}

fn write(
    out: &mut Output,
    length: usize,
    name: &'static str,
    content: impl FnOnce(&mut Output) -> Result<(), EncodeError>,
) -> Result<(), EncodeError> {
    let mark = out.mark();
    let prefix = i32::try_from(length).map_err(|_| EncodeError::too_long(name, length))?;
    out.reserve(PREFIX + length.min(RESERVE_MAX));
    out.i32(prefix);
    let result = content(out);
    if result.is_err() {
        out.rewind(mark);
    }
    result
}

#[cfg(test)]
mod tests;
