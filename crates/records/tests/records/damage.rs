//! Bytes that were cut off, flipped, or never were a batch.

use ottla_records::{Batch, BatchError, Batches, Builder, Compression, HEADER_LEN, RecordsError};
use proptest::prelude::*;

use crate::{PLENTY, arbitrary_codec, arbitrary_records, build, record};

/// Where the fields that the checksum covers begin, after base offset, length, epoch and magic.
const COVERED_FROM: usize = 21;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Any single byte that changes is noticed, save in the fields a leader assigns.
    #[test]
    fn a_flipped_byte_is_noticed(
        records in arbitrary_records(),
        codec in arbitrary_codec(),
        at in any::<proptest::sample::Index>(),
        flip in 1u8..,
    ) {
        let mut bytes = build(Builder::new(codec), &records);
        let at = at.index(bytes.len());
        bytes[at] ^= flip;
        let noticed = match Batch::first(&bytes) {
            Err(_) => true,
            Ok(batch) => batch.bytes().len() != bytes.len() || batch.verify_crc().is_err(),
        };
        prop_assert!(noticed || at < 8 || (12..16).contains(&at), "byte {at} of {}", bytes.len());
    }

    /// The same behind the checksum's back: no panic, no endless loop, whatever comes out.
    #[test]
    fn records_under_a_forged_checksum_are_read_or_refused(
        records in arbitrary_records(),
        codec in arbitrary_codec(),
        changes in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 1..6),
    ) {
        let mut bytes = build(Builder::new(codec), &records);
        for (at, byte) in changes {
            let at = COVERED_FROM + at.index(bytes.len() - COVERED_FROM);
            bytes[at] = byte;
        }
        let batch = Batch::first(&bytes).expect("framing is untouched");
        if let Ok(records) = batch.records(PLENTY) {
            let walked = records.iter().filter_map(Result::ok);
            let headers: usize = walked.map(|record| record.headers().count()).sum();
            prop_assert!(headers <= records.body().len());
        }
    }

    #[test]
    fn a_torn_tail_is_told_from_the_good_bytes_before_it(
        records in arbitrary_records(),
        codec in arbitrary_codec(),
        cut in any::<proptest::sample::Index>(),
    ) {
        let whole = build(Builder::new(codec), &records);
        let cut = 1 + cut.index(whole.len() - 1);
        let run = [&whole[..], &whole[..cut]].concat();
        let mut batches = Batches::new(&run);
        prop_assert!(batches.next().expect("a batch").is_ok());
        let torn = batches.next().expect("a torn batch").expect_err("a torn batch");
        let needed = if cut < 17 { 17 } else { whole.len() };
        let expected = BatchError::Torn { position: whole.len(), present: cut, needed };
        prop_assert_eq!(torn, expected);
        prop_assert!(batches.next().is_none(), "nothing follows an error");
        prop_assert_eq!(batches.position(), whole.len());
    }

    #[test]
    fn arbitrary_bytes_do_no_harm(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        for batch in Batches::new(&bytes).flatten() {
            let _ = batch.records(PLENTY).map(|records| records.iter().count());
        }
    }
}

fn batch_with(at: usize, field: &[u8]) -> Vec<u8> {
    let mut bytes = build(Builder::new(Compression::None), &[record(1, Some("k"), Some("v"))]);
    bytes[at..at + field.len()].copy_from_slice(field);
    bytes
}

/// KIP-724: Kafka 4 reads no message sets of magic 0 and 1. They are shorter than our header, and
/// must be called old, not torn.
#[test]
fn old_message_sets_are_named_as_such() {
    let mut old = vec![0; 30];
    old[16] = 1;
    assert_eq!(Batch::first(&old).unwrap_err(), BatchError::Magic { position: 0, magic: 1 });
}

#[test]
fn a_length_below_the_header_is_refused() {
    for length in [-1, 0, 48, i32::MIN] {
        let bytes = batch_with(8, &length.to_be_bytes());
        let refused = Batch::first(&bytes).unwrap_err();
        assert_eq!(refused, BatchError::Length { position: 0, length });
    }
}

/// A count is a claim: it must not size anything before the body has been asked.
#[test]
fn a_count_that_cannot_fit_the_body_is_refused_unread() {
    for count in [-1, 2, i32::MAX] {
        let bytes = batch_with(57, &count.to_be_bytes());
        let batch = Batch::first(&bytes).expect("a whole batch");
        let body = bytes.len() - HEADER_LEN;
        let refused = batch.records(PLENTY).expect_err("refused");
        assert_eq!(refused, RecordsError::Count { count, body });
    }
}

#[test]
fn bytes_behind_the_last_record_are_an_error() {
    let bytes = batch_with(57, &0i32.to_be_bytes());
    let batch = Batch::first(&bytes).expect("a whole batch");
    let records = batch.records(PLENTY).expect("a readable body");
    let left: Vec<_> = records.iter().collect();
    assert_eq!(left, [Err(RecordsError::Trailing { bytes: bytes.len() - HEADER_LEN })]);
}

#[test]
fn an_unknown_codec_is_named_by_its_number() {
    let bytes = batch_with(21, &6i16.to_be_bytes());
    let refused = Batch::first(&bytes).expect("a whole batch").records(PLENTY);
    assert!(refused.expect_err("refused").to_string().contains("unknown compression 6"));
}
