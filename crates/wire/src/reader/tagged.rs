//! What may be absent: structs that may be null, and the tagged fields of flexible versions.

use super::{Reader, Result};
use crate::DecodeErrorKind;

impl<'a> Reader<'a> {
    /// Whether a struct that may be null follows: one byte, 1 or -1.
    #[inline]
    pub fn present(&mut self, field: &'static str) -> Result<bool> {
        match self.i8(field)? {
            1 => Ok(true),
            -1 => Ok(false),
            other => Err(self.error(field, DecodeErrorKind::Presence(other))),
        }
    }

    /// Whether a struct that may be null follows in a tagged field: one byte, 1 or 0.
    #[inline]
    pub fn tag_present(&mut self, field: &'static str) -> Result<bool> {
        match self.i8(field)? {
            1 => Ok(true),
            0 => Ok(false),
            other => Err(self.error(field, DecodeErrorKind::Presence(other))),
        }
    }

    /// The tagged fields at the end of a flexible struct. `read` is given each tag with the reader
    /// narrowed to its field and says whether it knows the tag; unknown ones are skipped.
    pub fn tags(
        &mut self,
        message: &'static str,
        mut read: impl FnMut(&mut Self, u32) -> Result<bool>,
    ) -> Result<()> {
        let count = self.varint(message)?;
        let mut lowest = 0;
        for _ in 0..count {
            let tag = self.varint(message)?;
            if tag < lowest {
                return Err(self.error(message, DecodeErrorKind::TagOrder(tag)));
            }
            lowest = tag.saturating_add(1);
            let size = self.varint(message)? as usize;
            self.tag(message, size, |reader| read(reader, tag))?;
        }
        Ok(())
    }

    fn tag(
        &mut self,
        message: &'static str,
        size: usize,
        read: impl FnOnce(&mut Self) -> Result<bool>,
    ) -> Result<()> {
        let (end, whole) = (self.end, self.rest);
        let Some((body, rest)) = whole.split_at_checked(size) else {
            return Err(self.truncated(message, size));
        };
        self.end -= rest.len();
        self.rest = body;
        if read(self)? && !self.rest.is_empty() {
            return Err(self.error(message, DecodeErrorKind::TagSize(self.rest.len())));
        }
        (self.end, self.rest) = (end, rest);
        Ok(())
    }

    /// The tagged fields of a struct that has none of its own.
    #[inline]
    pub fn skip_tags(&mut self, message: &'static str) -> Result<()> {
        if let [0, rest @ ..] = self.rest {
            self.rest = rest;
            return Ok(());
        }
        self.tags(message, |_, _| Ok(false))
    }
}
