//! Control records: the log's own marks among the users' records. Only their two fields are read
//! here; what a marker means to a transaction is for the log and the consumer.

use crate::Record;

/// What a control batch's record says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ControlRecord {
    /// The producer's transaction ends here (KIP-98).
    EndTransaction {
        /// Whether its records count.
        committed: bool,
        /// Epoch of the transaction coordinator that wrote the marker.
        coordinator_epoch: i32,
    },
    /// A mark of a kind that is none of a partition's business, such as the quorum's.
    Other {
        /// Its type number in Kafka.
        number: i16,
    },
}

impl ControlRecord {
    /// Reads `record` of a control batch; none if its fields are cut off. Later versions may
    /// append fields, so longer ones are fine.
    pub fn of(record: &Record<'_>) -> Option<Self> {
        let key = record.key?.first_chunk::<KEY_LEN>()?;
        let number = i16::from_be_bytes([key[2], key[3]]);
        if number != ABORT && number != COMMIT {
            return Some(Self::Other { number });
        }
        let [_, _, epoch @ ..] = record.value?.first_chunk::<END_VALUE_LEN>()?;
        let coordinator_epoch = i32::from_be_bytes(*epoch);
        Some(Self::EndTransaction { committed: number == COMMIT, coordinator_epoch })
    }

    /// The key and value of an end-of-transaction marker, as a control batch carries them.
    pub fn end_transaction(
        committed: bool,
        coordinator_epoch: i32,
    ) -> ([u8; KEY_LEN], [u8; END_VALUE_LEN]) {
        let [_, number] = if committed { COMMIT } else { ABORT }.to_be_bytes();
        let [a, b, c, d] = coordinator_epoch.to_be_bytes();
        ([0, 0, 0, number], [0, 0, a, b, c, d])
    }
}

/// Version and type.
const KEY_LEN: usize = 4;
/// Version and coordinator epoch.
const END_VALUE_LEN: usize = 6;
const ABORT: i16 = 0;
const COMMIT: i16 = 1;
