//! Bytes of one connection that wait for the socket.
//!
//! Small replies are copied together into one buffer, and their own buffer goes back to be used
//! for the next; record data and large replies are passed on as they are. One vectored write
//! takes all of it.

use bytes::Buf;
use ottla_wire::{Output, OutputBuf};
use std::collections::VecDeque;
use std::io::IoSlice;

/// The write side's queue: sealed pieces in order, then the tail that still grows.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    sealed: VecDeque<OutputBuf>,
    tail: Output,
    /// Bytes of the tail that the socket has already.
    tail_gone: usize,
    len: usize,
}

impl Outbox {
    /// Appends a reply. Returns its buffer if it is free to be used again.
    pub(super) fn push(&mut self, reply: Output) -> Option<Vec<u8>> {
        self.len += reply.len();
        if reply.len() <= COPY_MAX {
            reply.chunks().for_each(|chunk| self.tail.raw(chunk));
            // Short as it is, it has no shared chunks, so this hands over its own buffer.
            return Some(reply.into_vec());
        }
        self.seal();
        self.sealed.push_back(reply.into_buf());
        None
    }

    /// Bytes that wait.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Whether nothing waits.
    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Fills `slices` with what to write next and returns how many were filled.
    pub(super) fn slices<'a>(&'a self, slices: &mut [IoSlice<'a>]) -> usize {
        let mut used = 0;
        for piece in &self.sealed {
            used += piece.chunks_vectored(&mut slices[used..]);
        }
        if used < slices.len()
            && let Some(tail) = self.tail.chunks().next()
        {
            slices[used] = IoSlice::new(&tail[self.tail_gone..]);
            used += 1;
        }
        used
    }

    /// Drops the first `written` bytes: the socket has them.
    pub(super) fn advance(&mut self, written: usize) {
        self.len -= written;
        let mut left = written;
        while left > 0 {
            let Some(front) = self.sealed.front_mut() else {
                return self.advance_tail(left);
            };
            let taken = left.min(front.remaining());
            front.advance(taken);
            left -= taken;
            if !front.has_remaining() {
                self.sealed.pop_front();
            }
        }
    }

    fn advance_tail(&mut self, count: usize) {
        self.tail_gone += count;
        if self.tail_gone == self.tail.len() {
            self.tail_gone = 0;
            let buffer = std::mem::take(&mut self.tail).into_vec();
            if buffer.capacity() <= KEEP {
                self.tail = Output::reusing(buffer);
            }
        }
    }

    fn seal(&mut self) {
        if !self.tail.is_empty() {
            let mut tail = std::mem::take(&mut self.tail).into_buf();
            tail.advance(std::mem::take(&mut self.tail_gone));
            self.sealed.push_back(tail);
        }
    }
}

/// Replies up to this size are copied together. It is below the size from which replies share
/// record data, so what is copied is what was just encoded.
const COPY_MAX: usize = ottla_wire::SHARE_MIN;
/// An empty tail larger than this goes back to the allocator.
const KEEP: usize = 64 * 1024;

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use ottla_wire::Records;

    fn output(bytes: &[u8], shared: &[u8]) -> Output {
        let mut output = Output::new();
        output.raw(bytes);
        if !shared.is_empty() {
            let chunk = Records::Shared(Bytes::copy_from_slice(shared));
            output.records(false, &chunk, "Test.Records").expect("fits");
        }
        output
    }

    fn drained(outbox: &mut Outbox, step: usize) -> Vec<u8> {
        let mut out = Vec::new();
        while !outbox.is_empty() {
            let mut slices = [IoSlice::new(&[]); 2];
            let count = outbox.slices(&mut slices);
            let all: Vec<u8> = slices[..count].iter().flat_map(|s| s.to_vec()).collect();
            let taken = step.min(all.len());
            out.extend_from_slice(&all[..taken]);
            outbox.advance(taken);
        }
        out
    }

    /// Short writes at every boundary neither lose nor repeat a byte.
    #[test]
    fn bytes_leave_in_order_whatever_the_write_size() {
        let shared: Vec<u8> = (0..2 * COPY_MAX).map(|n| n as u8).collect();
        let mut wanted = b"abcdef".to_vec();
        wanted.extend_from_slice(b"head");
        wanted.extend_from_slice(&(shared.len() as u32).to_be_bytes());
        wanted.extend_from_slice(&shared);
        wanted.extend_from_slice(b"tail");
        for step in [1, 2, 3, 7, 511, COPY_MAX, COPY_MAX + 1, 1 << 20] {
            let mut outbox = Outbox::default();
            assert!(outbox.push(output(b"abc", b"")).is_some());
            assert!(outbox.push(output(b"def", b"")).is_some());
            assert!(outbox.push(output(b"head", &shared)).is_none());
            assert!(outbox.push(output(b"tail", b"")).is_some());
            assert_eq!(outbox.len(), wanted.len());
            assert_eq!(drained(&mut outbox, step), wanted, "step {step}");
        }
    }

    /// What follows a half-written tail is not written before its rest.
    #[test]
    fn a_half_written_tail_is_sealed_with_its_rest_only() {
        let mut outbox = Outbox::default();
        outbox.push(output(b"abcdef", b""));
        outbox.advance(4);
        outbox.push(output(b"", &vec![9; 2 * COPY_MAX]));
        let out = drained(&mut outbox, 1 << 20);
        assert_eq!(out[..2], *b"ef");
        assert_eq!(out.len(), 2 + 4 + 2 * COPY_MAX);
    }
}
