//! A batch's attribute bits: compression and flags. Knows no codec, only their numbers.

/// The 16 attribute bits of a batch. Bits that Kafka has not given a meaning are kept as they are.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Attributes(i16);

/// How a batch's records are compressed. The numbers are Kafka's and stand in stored batches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Compression {
    /// The records stand as they are.
    #[default]
    None = 0,
    /// RFC 1952.
    Gzip = 1,
    /// Snappy, in the Java library's framing or as one raw block.
    Snappy = 2,
    /// LZ4's frame format.
    Lz4 = 3,
    /// RFC 8878 (KIP-110).
    Zstd = 4,
}

/// Whose clock a batch's timestamps are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum TimestampType {
    /// The producer's, one for each record.
    #[default]
    Create,
    /// The broker's, one for the whole batch.
    LogAppend,
}

/// A compression number that no codec has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown compression {0}: Kafka has 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd")]
pub struct UnknownCompression(pub u8);

impl Compression {
    /// Every codec, `None` included.
    pub const ALL: [Self; 5] = [Self::None, Self::Gzip, Self::Snappy, Self::Lz4, Self::Zstd];

    /// The name that Kafka's `compression.type` has for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Gzip => "gzip",
            Self::Snappy => "snappy",
            Self::Lz4 => "lz4",
            Self::Zstd => "zstd",
        }
    }
}

impl Attributes {
    /// The attributes whose wire form is `bits`.
    pub const fn from_bits(bits: i16) -> Self {
        Self(bits)
    }

    /// The wire form.
    pub const fn bits(self) -> i16 {
        self.0
    }

    /// The codec, unless the number is one that nobody has.
    pub fn compression(self) -> Result<Compression, UnknownCompression> {
        let number = (self.0 & COMPRESSION) as u8;
        Compression::ALL.get(usize::from(number)).copied().ok_or(UnknownCompression(number))
    }

    /// Whose clock the timestamps are.
    pub fn timestamp_type(self) -> TimestampType {
        if self.0 & LOG_APPEND_TIME == 0 { TimestampType::Create } else { TimestampType::LogAppend }
    }

    /// Whether the batch is part of a transaction.
    pub fn is_transactional(self) -> bool {
        self.0 & TRANSACTIONAL != 0
    }

    /// Whether its one record is a marker of the log, not a user's record.
    pub fn is_control(self) -> bool {
        self.0 & CONTROL != 0
    }

    /// Whether the base timestamp is the time after which tombstones may go (KIP-534).
    pub fn has_delete_horizon(self) -> bool {
        self.0 & DELETE_HORIZON != 0
    }

    /// These attributes with this codec.
    #[must_use]
    pub fn with_compression(self, compression: Compression) -> Self {
        Self(self.0 & !COMPRESSION | compression as i16)
    }

    /// These attributes with this clock.
    #[must_use]
    pub fn with_timestamp_type(self, of: TimestampType) -> Self {
        self.with(LOG_APPEND_TIME, of == TimestampType::LogAppend)
    }

    /// These attributes, in a transaction or not.
    #[must_use]
    pub fn with_transactional(self, on: bool) -> Self {
        self.with(TRANSACTIONAL, on)
    }

    /// These attributes, of a control batch or not.
    #[must_use]
    pub fn with_control(self, on: bool) -> Self {
        self.with(CONTROL, on)
    }

    /// These attributes, with or without a delete horizon.
    #[must_use]
    pub fn with_delete_horizon(self, on: bool) -> Self {
        self.with(DELETE_HORIZON, on)
    }

    fn with(self, bit: i16, on: bool) -> Self {
        Self(if on { self.0 | bit } else { self.0 & !bit })
    }
}

impl std::fmt::Debug for Attributes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Attributes")
            .field("compression", &self.compression())
            .field("timestamp_type", &self.timestamp_type())
            .field("transactional", &self.is_transactional())
            .field("control", &self.is_control())
            .field("delete_horizon", &self.has_delete_horizon())
            .finish()
    }
}

const COMPRESSION: i16 = 0b111;
const LOG_APPEND_TIME: i16 = 1 << 3;
const TRANSACTIONAL: i16 = 1 << 4;
const CONTROL: i16 = 1 << 5;
const DELETE_HORIZON: i16 = 1 << 6;
