//! The same records in another codec, for topics whose setting names one (`compression.type`).
//!
//! A batch's codec covers its body alone, so its header stays as it is but for length, codec and
//! checksum. Never looks at a record.

use crate::header::{CRC_FROM, HEADER_LEN, LOG_OVERHEAD, at};
use crate::{Batches, Compression, RecordsError, compression};

/// Why batches could not be put into another codec.
#[derive(Debug, thiserror::Error)]
pub enum RecodeError {
    /// The bytes are no batches, or a body cannot be unpacked: they were not validated.
    #[error(transparent)]
    Records(#[from] RecordsError),
    /// The framing is broken: the bytes were not validated.
    #[error(transparent)]
    Batch(#[from] crate::BatchError),
    /// The codec failed, or the batch became longer than a batch can be.
    #[error("cannot be packed with {codec}: {reason}")]
    Pack {
        /// The codec's name.
        codec: &'static str,
        /// What it says.
        reason: String,
    },
}

/// Valid batches with every body in `codec`, each unpacked to at most `bytes_max` on the way;
/// `None` if that is what they are in already.
///
/// # Errors
/// See [`RecodeError`].
pub fn recode(
    bytes: &[u8],
    codec: Compression,
    bytes_max: usize,
) -> Result<Option<Vec<u8>>, RecodeError> {
    let mut out = Vec::new();
    let mut changed = false;
    let mut plain = Vec::new();
    for batch in Batches::new(bytes) {
        let batch = batch?;
        let (from, header) = (out.len(), batch.header());
        let now = header.attributes().compression().map_err(RecordsError::from)?;
        if now == codec || header.record_count() == 0 {
            out.extend_from_slice(batch.bytes());
            continue;
        }
        changed = true;
        compression::unpack(now, batch.body(), bytes_max, &mut plain)?;
        out.extend_from_slice(&batch.bytes()[..HEADER_LEN]);
        let failed = |reason: String| RecodeError::Pack { codec: codec.name(), reason };
        compression::pack(codec, &plain, &mut out).map_err(|error| failed(error.to_string()))?;
        let length = i32::try_from(out.len() - from - LOG_OVERHEAD);
        let length = length.map_err(|_| failed("too long for a batch".into()))?;
        let attributes = header.attributes().with_compression(codec);
        let batch = &mut out[from..];
        batch[at::BATCH_LENGTH..][..4].copy_from_slice(&length.to_be_bytes());
        batch[at::ATTRIBUTES..][..2].copy_from_slice(&attributes.bits().to_be_bytes());
        let crc = crc32c::crc32c(&batch[CRC_FROM..]);
        batch[at::CRC..][..4].copy_from_slice(&crc.to_be_bytes());
    }
    Ok(changed.then_some(out))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Batch, Builder, NewRecord};
    use ottla_model::{Offset, ProducerEpoch, ProducerId, Timestamp};
    use proptest::prelude::*;

    const CODECS: [Compression; 5] = [
        Compression::None,
        Compression::Gzip,
        Compression::Snappy,
        Compression::Lz4,
        Compression::Zstd,
    ];

    fn batch(codec: Compression, values: &[Vec<u8>]) -> Vec<u8> {
        let mut builder = Builder::new(codec).base_offset(Offset(77)).producer(
            ProducerId(5),
            ProducerEpoch(2),
            9,
        );
        for value in values {
            builder.append(&NewRecord::new(Timestamp(1), None, Some(value))).unwrap();
        }
        builder.build().unwrap()
    }

    proptest! {
        /// From any codec to any other and back: the same records under the same header.
        #[test]
        fn records_and_header_survive_any_codec(
            values in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..80), 1..20),
            from in 0..5_usize,
            to in 0..5_usize,
        ) {
            let before = batch(CODECS[from], &values);
            let after = recode(&before, CODECS[to], 1 << 20).unwrap();
            prop_assert_eq!(after.is_none(), from == to);
            let after = after.unwrap_or_else(|| before.clone());
            let (old, new) = (Batch::first(&before).unwrap(), Batch::first(&after).unwrap());
            new.verify_crc().unwrap();
            prop_assert_eq!(new.header().size(), Some(after.len()));
            prop_assert_eq!(new.header().attributes().compression(), Ok(CODECS[to]));
            prop_assert_eq!(new.header().base_sequence(), old.header().base_sequence());
            prop_assert_eq!(new.header().next_offset(), old.header().next_offset());
            let (old, new) = (old.records(1 << 20).unwrap(), new.records(1 << 20).unwrap());
            prop_assert_eq!(old.body(), new.body());
        }
    }

    #[test]
    fn a_body_that_unpacks_too_far_is_refused() {
        let bomb = batch(Compression::Gzip, &[vec![0; 100_000]]);
        assert!(bomb.len() < 1000);
        assert!(recode(&bomb, Compression::None, 10_000).is_err());
    }
}
