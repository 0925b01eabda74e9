//! What every generated message can do. The messages themselves are in `generated`.

use crate::{ApiKey, DecodeError, DecodeErrorKind, EncodeError, EncodeErrorKind, Output, Reader};

/// The versions from `min` to `max`, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Versions {
    /// The lowest.
    pub min: i16,
    /// The highest.
    pub max: i16,
}

impl Versions {
    /// From `min` to `max`, both included.
    pub const fn new(min: i16, max: i16) -> Self {
        Self { min, max }
    }

    /// Whether `version` is among them.
    pub const fn contains(self, version: i16) -> bool {
        self.min <= version && version <= self.max
    }

    /// Each of them, ascending.
    pub fn iter(self) -> impl Iterator<Item = i16> {
        self.min..=self.max
    }
}

/// A request, response, header or record body, decoded by borrowing from bytes that live for `'a`.
pub trait Message<'a>: Default {
    /// Kafka's name for it.
    const NAME: &'static str;
    /// The versions it has a codec for.
    const VERSIONS: Versions;
    /// The first version in compact form with tagged fields (KIP-482); `i16::MAX` if none is.
    const FLEXIBLE: i16;

    /// Fills a default message in place; `version` is one of [`Self::VERSIONS`]. Use
    /// [`Message::decode`].
    fn read(&mut self, reader: &mut Reader<'a>, version: i16) -> Result<(), DecodeError>;

    /// Writes the message; `version` is one of [`Self::VERSIONS`]. Use [`Message::encode`].
    fn write(&self, version: i16, out: &mut Output) -> Result<(), EncodeError>;

    /// How many bytes [`Message::encode`] writes in this version.
    fn size(&self, version: i16) -> usize;

    /// Reads the message and leaves the reader behind it.
    ///
    /// # Errors
    /// If the version has no codec or the bytes are not such a message.
    #[inline]
    fn decode(reader: &mut Reader<'a>, version: i16) -> Result<Self, DecodeError> {
        if !Self::VERSIONS.contains(version) {
            return Err(reader.error(Self::NAME, DecodeErrorKind::Version(version)));
        }
        let mut message = Self::default();
        message.read(reader, version)?;
        Ok(message)
    }

    /// Reads the message, which must fill all the bytes.
    ///
    /// # Errors
    /// As [`Message::decode`], and if bytes are left.
    #[inline]
    fn decode_all(bytes: &'a [u8], version: i16) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        let message = Self::decode(&mut reader, version)?;
        reader.finish(Self::NAME)?;
        Ok(message)
    }

    /// Appends the message to the output. What was appended before an error is to be thrown away.
    ///
    /// # Errors
    /// If the version has no codec or cannot carry a value.
    #[inline]
    fn encode(&self, version: i16, out: &mut Output) -> Result<(), EncodeError> {
        if !Self::VERSIONS.contains(version) {
            let kind = EncodeErrorKind::Version(version);
            return Err(EncodeError { field: Self::NAME, kind });
        }
        let before = out.len();
        self.write(version, out)?;
        debug_assert_eq!(out.len() - before, self.size(version), "size of {}", Self::NAME);
        Ok(())
    }

    /// The message as contiguous bytes.
    ///
    /// # Errors
    /// As [`Message::encode`].
    fn to_vec(&self, version: i16) -> Result<Vec<u8>, EncodeError> {
        let mut out = Output::reusing(Vec::with_capacity(self.size(version)));
        self.encode(version, &mut out)?;
        Ok(out.into_vec())
    }
}

/// A message that asks.
pub trait Request<'a>: Message<'a> {
    /// The key that names it in a request header.
    const KEY: ApiKey;
    /// The message that answers, in the same version.
    type Response<'r>: Message<'r>;
}
