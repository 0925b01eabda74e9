//! The 61 bytes in front of every batch, read where they lie.
//!
//! Layout and meaning of the fixed fields, nothing about the records behind them. The byte map is
//! Kafka's record batch, magic 2 (KIP-98):
//!
//! ```text
//!  0 base offset i64          17 crc u32 (of 21..end)       43 producer id i64
//!  8 batch length i32         21 attributes i16             51 producer epoch i16
//! 12 leader epoch i32         23 last offset delta i32      53 base sequence i32
//! 16 magic i8                 27 base timestamp i64         57 record count i32
//!                             35 max timestamp i64          61 records
//! ```

use ottla_model::{LeaderEpoch, Offset, ProducerEpoch, ProducerId, Timestamp};

use crate::Attributes;

/// Bytes of a batch in front of its records.
pub const HEADER_LEN: usize = 61;
/// Bytes of a batch that its batch length does not count: base offset and the length itself.
pub const LOG_OVERHEAD: usize = 12;
/// The only batch format that Kafka 4 writes (KIP-724).
pub const MAGIC: i8 = 2;

/// Where the bytes that the checksum covers begin.
pub(crate) const CRC_FROM: usize = at::ATTRIBUTES;

/// A batch's fixed fields, decoded on demand from the bytes of the batch.
///
/// Holding one says only that 61 bytes are there: the values are the sender's claims until
/// [`crate::Batch::verify_crc`] has passed.
/// No accessor panics or overflows, whatever the bytes are.
#[derive(Clone, Copy)]
pub struct Header<'a>(&'a [u8; HEADER_LEN]);

impl<'a> Header<'a> {
    /// The header at the start of `bytes`; none if there are fewer than [`HEADER_LEN`].
    pub fn new(bytes: &'a [u8]) -> Option<Self> {
        bytes.first_chunk().map(Self)
    }

    /// Offset of the batch's first record (of the first one it was written with, if compacted).
    pub fn base_offset(self) -> Offset {
        Offset(i64::from_be_bytes(self.field(at::BASE_OFFSET)))
    }

    /// The length field as it stands: bytes after itself. See [`Header::size`] for the whole batch.
    pub fn batch_length(self) -> i32 {
        i32::from_be_bytes(self.field(at::BATCH_LENGTH))
    }

    /// Bytes of the whole batch, header included; none if the length field cannot be true.
    pub fn size(self) -> Option<usize> {
        let size = usize::try_from(self.batch_length()).ok()?.checked_add(LOG_OVERHEAD)?;
        (size >= HEADER_LEN).then_some(size)
    }

    /// Epoch of the leader that appended the batch; `-1` in a produced batch.
    pub fn leader_epoch(self) -> LeaderEpoch {
        LeaderEpoch(i32::from_be_bytes(self.field(at::LEADER_EPOCH)))
    }

    /// The format, [`MAGIC`] in every batch that [`crate::Batches`] yields.
    pub fn magic(self) -> i8 {
        i8::from_be_bytes(self.field(at::MAGIC))
    }

    /// The stored CRC-32C of everything from the attributes to the end of the batch.
    pub fn crc(self) -> u32 {
        u32::from_be_bytes(self.field(at::CRC))
    }

    /// Compression and flags.
    pub fn attributes(self) -> Attributes {
        Attributes::from_bits(i16::from_be_bytes(self.field(at::ATTRIBUTES)))
    }

    /// Last offset less base offset; compaction keeps it though it may remove the last record.
    pub fn last_offset_delta(self) -> i32 {
        i32::from_be_bytes(self.field(at::LAST_OFFSET_DELTA))
    }

    /// Offset of the batch's last record, saturating.
    pub fn last_offset(self) -> Offset {
        Offset(self.base_offset().0.saturating_add(i64::from(self.last_offset_delta())))
    }

    /// The offset after the batch's last one, saturating: where the next batch begins.
    pub fn next_offset(self) -> Offset {
        Offset(self.last_offset().0.saturating_add(1))
    }

    /// What record timestamps count from: usually the first record's own timestamp. The delete
    /// horizon, in a batch that has one.
    pub fn base_timestamp(self) -> Timestamp {
        Timestamp(i64::from_be_bytes(self.field(at::BASE_TIMESTAMP)))
    }

    /// The greatest timestamp of its records, or when the broker appended it, by
    /// [`Attributes::timestamp_type`].
    pub fn max_timestamp(self) -> Timestamp {
        Timestamp(i64::from_be_bytes(self.field(at::MAX_TIMESTAMP)))
    }

    /// When compaction may drop the batch's tombstones and markers (KIP-534), once that is fixed.
    pub fn delete_horizon(self) -> Option<Timestamp> {
        self.attributes().has_delete_horizon().then(|| self.base_timestamp())
    }

    /// The idempotent producer's id; none if the field says `-1`.
    pub fn producer_id(self) -> Option<ProducerId> {
        let id = i64::from_be_bytes(self.field(at::PRODUCER_ID));
        (id >= 0).then_some(ProducerId(id))
    }

    /// The producer's epoch; `-1` without a producer id.
    pub fn producer_epoch(self) -> ProducerEpoch {
        ProducerEpoch(i16::from_be_bytes(self.field(at::PRODUCER_EPOCH)))
    }

    /// Sequence number of the first record; `-1` without a producer id and in control batches.
    pub fn base_sequence(self) -> i32 {
        i32::from_be_bytes(self.field(at::BASE_SEQUENCE))
    }

    /// Sequence number of the last record: after `i32::MAX` comes 0. `-1` without a sequence.
    pub fn last_sequence(self) -> i32 {
        match self.base_sequence() {
            base if base < 0 => base,
            base => base.wrapping_add(self.last_offset_delta()) & i32::MAX,
        }
    }

    /// How many records the batch claims to hold; zero after compaction emptied it.
    pub fn record_count(self) -> i32 {
        i32::from_be_bytes(self.field(at::RECORD_COUNT))
    }

    fn field<const N: usize>(self, from: usize) -> [u8; N] {
        let mut field = [0; N];
        field.copy_from_slice(&self.0[from..from + N]);
        field
    }
}

impl std::fmt::Debug for Header<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Header")
            .field("base_offset", &self.base_offset())
            .field("batch_length", &self.batch_length())
            .field("leader_epoch", &self.leader_epoch())
            .field("magic", &self.magic())
            .field("crc", &self.crc())
            .field("attributes", &self.attributes())
            .field("last_offset_delta", &self.last_offset_delta())
            .field("base_timestamp", &self.base_timestamp())
            .field("max_timestamp", &self.max_timestamp())
            .field("producer_id", &self.producer_id())
            .field("producer_epoch", &self.producer_epoch())
            .field("base_sequence", &self.base_sequence())
            .field("record_count", &self.record_count())
            .finish()
    }
}

/// Where each field begins.
pub(crate) mod at {
    pub(crate) const BASE_OFFSET: usize = 0;
    pub(crate) const BATCH_LENGTH: usize = 8;
    pub(crate) const LEADER_EPOCH: usize = 12;
    pub(crate) const MAGIC: usize = 16;
    pub(crate) const CRC: usize = 17;
    pub(crate) const ATTRIBUTES: usize = 21;
    pub(crate) const LAST_OFFSET_DELTA: usize = 23;
    pub(crate) const BASE_TIMESTAMP: usize = 27;
    pub(crate) const MAX_TIMESTAMP: usize = 35;
    pub(crate) const PRODUCER_ID: usize = 43;
    pub(crate) const PRODUCER_EPOCH: usize = 51;
    pub(crate) const BASE_SEQUENCE: usize = 53;
    pub(crate) const RECORD_COUNT: usize = 57;
}
