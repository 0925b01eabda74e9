//! What can be wrong with bytes from outside, and with values on their way out. No Kafka error code
//! is chosen here: that is the broker's one map.

use thiserror::Error;

/// Bytes that are not what the protocol says they must be. The peer is at fault; a broker closes
/// the connection with one log line and touches nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("{field} at byte {offset}: {kind}")]
pub struct DecodeError {
    /// The field that was being read, as `Struct.Field` in Kafka's spelling.
    pub field: &'static str,
    /// Where it was being read, in bytes from the start of what the reader was given.
    pub offset: usize,
    /// What was wrong.
    pub kind: DecodeErrorKind,
}

/// What was wrong with the bytes of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum DecodeErrorKind {
    /// The bytes end before the field does.
    #[error("needs {needed} bytes, {left} are left")]
    Truncated {
        /// Bytes the field needs at least.
        needed: usize,
        /// Bytes that are left.
        left: usize,
    },
    /// Null where this version does not allow it.
    #[error("null is not allowed")]
    Null,
    /// A length below -1.
    #[error("negative length {0}")]
    NegativeLength(i32),
    /// More array elements than `Limits` allows, counting all arrays, or more memory.
    #[error("{0} elements are more than the limit")]
    TooMany(usize),
    /// A variable-length integer longer than its value needs, or than 32 bits.
    #[error("overlong variable-length integer")]
    Varint,
    /// Text that is not UTF-8.
    #[error("invalid UTF-8")]
    Utf8,
    /// Text longer than Kafka allows, in whichever form.
    #[error("text of {0} bytes is longer than 32767")]
    TooLong(usize),
    /// A boolean that is neither 0 nor 1.
    #[error("{0} is not a boolean")]
    Bool(u8),
    /// A mark of presence that is neither 1 nor -1.
    #[error("{0} does not say whether a struct follows")]
    Presence(i8),
    /// A tag that does not rise: repeated or out of order.
    #[error("tag {0} is repeated or out of order")]
    TagOrder(u32),
    /// A tagged field whose content is shorter than its stated size.
    #[error("tagged field ends {0} bytes early")]
    TagSize(usize),
    /// Bytes after the end of the message.
    #[error("{0} bytes after the end")]
    Trailing(usize),
    /// A version no codec exists for.
    #[error("unsupported version {0}")]
    Version(i16),
    /// An API key no codec exists for.
    #[error("unknown API key {0}")]
    ApiKey(i16),
}

/// A value that the chosen version cannot carry. The caller is at fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("{field}: {kind}")]
pub struct EncodeError {
    /// The field, as `Struct.Field` in Kafka's spelling.
    pub field: &'static str,
    /// Why it cannot be written.
    pub kind: EncodeErrorKind,
}

/// Why a field cannot be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum EncodeErrorKind {
    /// This version lacks the field, its value is not the default and must not get lost.
    #[error("version {0} cannot carry this value")]
    Absent(i16),
    /// Null where this version does not allow it.
    #[error("null is not allowed in version {0}")]
    Null(i16),
    /// Longer than the length prefix can say.
    #[error("length {0} is too long for its prefix")]
    TooLong(usize),
    /// A version no codec exists for.
    #[error("unsupported version {0}")]
    Version(i16),
}

impl EncodeError {
    /// `field` has a value that `version`, which lacks it, would lose.
    #[cold]
    pub fn absent(field: &'static str, version: i16) -> Self {
        Self { field, kind: EncodeErrorKind::Absent(version) }
    }

    /// `field` is null, which `version` does not allow.
    #[cold]
    pub fn null(field: &'static str, version: i16) -> Self {
        Self { field, kind: EncodeErrorKind::Null(version) }
    }

    /// `field` is longer than its prefix can say.
    #[cold]
    pub fn too_long(field: &'static str, len: usize) -> Self {
        Self { field, kind: EncodeErrorKind::TooLong(len) }
    }
}
