//! Bytes of one connection that have arrived and not been understood yet.
//!
//! Knows lengths, not meanings. Memory follows what really arrived: a length prefix alone makes
//! nothing grow.

use bytes::{Buf, BytesMut};
use thiserror::Error;

/// The read side's buffer. The caller reads into [`Inbox::room`] and takes frames by
/// [`Inbox::frame_len`] and [`Inbox::consume`].
#[derive(Debug, Default)]
pub(super) struct Inbox {
    buffer: BytesMut,
}

/// A length prefix no request can have: the peer speaks something else, or wants to be too big.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub(crate) enum BadLength {
    /// Below zero, or too short for a request header.
    #[error("a request of {0} bytes cannot hold a header{hint}", hint = hint(*.0))]
    TooShort(i32),
    /// Above the bound in force.
    #[error("a request of {len} bytes is larger than the {max} allowed here{}", hint(*.len))]
    TooLong {
        /// What the peer announced.
        len: i32,
        /// What it may announce.
        max: usize,
    },
}

impl Inbox {
    /// The first frame's body length if its prefix has arrived, checked against `max`.
    pub(super) fn announced(&self, max: usize) -> Result<Option<usize>, BadLength> {
        let Some(prefix) = self.buffer.first_chunk::<PREFIX>() else { return Ok(None) };
        let len = i32::from_be_bytes(*prefix);
        if len < HEADER_LEN_MIN {
            return Err(BadLength::TooShort(len));
        }
        if len as usize > max {
            return Err(BadLength::TooLong { len, max });
        }
        Ok(Some(len as usize))
    }

    /// The first frame's body, where all `len` bytes of it are here.
    pub(super) fn body(&self, len: usize) -> Option<&[u8]> {
        self.buffer.get(PREFIX..PREFIX + len)
    }

    /// What has arrived of the first frame's body.
    pub(super) fn start(&self) -> &[u8] {
        self.buffer.get(PREFIX..).unwrap_or_default()
    }

    /// Drops the first frame, whose body has `len` bytes.
    pub(super) fn consume(&mut self, len: usize) {
        self.buffer.advance(PREFIX + len);
    }

    /// Whether a frame has begun and not ended.
    pub(super) fn is_partial(&self) -> bool {
        !self.buffer.is_empty()
    }

    /// The buffer, with room to read more: as much as has arrived already, so that large frames
    /// grow by doubling, but never more than `missing` beyond the usual read.
    pub(super) fn room(&mut self, missing: usize) -> &mut BytesMut {
        if self.buffer.is_empty() && self.buffer.capacity() > KEEP {
            self.buffer = BytesMut::new();
        }
        let free = self.buffer.capacity() - self.buffer.len();
        if free < READ_MIN.max(missing.min(self.buffer.len())) {
            let wanted = missing.min(self.buffer.len()).max(READ);
            self.buffer.reserve(wanted);
        }
        &mut self.buffer
    }
}

/// What a length really is that is the beginning of another protocol.
fn hint(len: i32) -> &'static str {
    match &len.to_be_bytes() {
        b"GET " | b"HEAD" | b"POST" | b"PUT " | b"DELE" | b"OPTI" | b"CONN" | b"PRI " => {
            ": it speaks HTTP, which is served at http.listen"
        }
        [0x16, 3, 0..=4, _] => ": it speaks TLS, which is not served here",
        _ => "",
    }
}

/// Bytes of a frame's length prefix.
pub(super) const PREFIX: usize = 4;
/// API key, version, correlation id and an absent client id.
const HEADER_LEN_MIN: i32 = 8;
/// How much one read asks for at least when the buffer must grow.
const READ: usize = 16 * 1024;
/// With less free room than this a read is not worth its system call.
const READ_MIN: usize = 2 * 1024;
/// An empty buffer larger than this goes back to the allocator.
const KEEP: usize = 256 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    /// Whoever misdirects a browser or a TLS client reads why in the broker's log.
    #[test]
    fn other_protocols_are_called_by_their_names() {
        for (bytes, name) in [
            (&b"GET / HTTP/1.1"[..], Some("HTTP")),
            (&[0x16, 3, 1, 2, 0], Some("TLS")),
            (&[0x7f, 0xff, 0xff, 0xff], None),
        ] {
            let mut inbox = Inbox::default();
            inbox.room(0).extend_from_slice(bytes);
            let refused = inbox.announced(1 << 20).expect_err("no request").to_string();
            let hint = ["HTTP", "TLS"].into_iter().find(|name| refused.contains(name));
            assert_eq!(hint, name, "{refused}");
        }
    }
}
