//! What a broker refuses of a producer, each rule by the change that breaks it.

use ottla_model::{Offset, ProducerEpoch, ProducerId, Timestamp};
use ottla_records::{
    BatchError, BatchMut, Builder, Compression, HEADER_LEN, InvalidBatch, ProduceError,
    ProduceRules, RecordFault, RecordFaultReason, RecordsError, TimestampType, validate_produced,
};
use proptest::prelude::*;

use crate::{Plain, arbitrary_codec, arbitrary_records, build, record};

const RULES: ProduceRules = ProduceRules {
    batch_bytes_max: 1 << 20,
    unpacked_bytes_max: 1 << 22,
    compacted: false,
    timestamp_type: TimestampType::Create,
    timestamp_before_max_ms: i64::MAX,
    timestamp_after_max_ms: 3_600_000,
    now: Timestamp(1_700_000_000_000),
    zstd_allowed: true,
    transactional_allowed: true,
};

fn check(bytes: &[u8], rules: &ProduceRules) -> Result<Timestamp, ProduceError> {
    validate_produced(bytes, rules, &mut Vec::new()).map(|produced| produced.max_timestamp)
}

fn two() -> Vec<u8> {
    build(Builder::new(Compression::None), &[record(5, Some("k"), None), record(4, None, None)])
}

/// `two()` with `field` written at `at`, its checksum right.
fn sealed(at: usize, field: &[u8]) -> Vec<u8> {
    let mut bytes = two();
    bytes[at..at + field.len()].copy_from_slice(field);
    BatchMut::first(&mut bytes).expect("a whole batch").seal();
    bytes
}

fn refused(bytes: &[u8]) -> InvalidBatch {
    match check(bytes, &RULES) {
        Err(ProduceError::Batch(invalid)) => invalid,
        other => panic!("expected an invalid batch, got {other:?}"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn whatever_is_built_is_taken(mut records in arbitrary_records(), codec in arbitrary_codec()) {
        for record in &mut records {
            record.timestamp = record.timestamp.rem_euclid(RULES.now.0);
        }
        let latest = records.iter().map(|record| record.timestamp).max();
        let bytes = build(Builder::new(codec), &records);
        prop_assert_eq!(check(&bytes, &RULES).map(|max| Some(max.0)), Ok(latest));
    }

    /// A packed body that is damaged under a right checksum must not reach the log (Kafka 4 would
    /// answer INVALID_RECORD or UNKNOWN_SERVER_ERROR).
    #[test]
    fn a_taken_batch_can_be_read(
        records in arbitrary_records(),
        codec in arbitrary_codec(),
        at in any::<proptest::sample::Index>(),
        byte in any::<u8>(),
    ) {
        let mut bytes = build(Builder::new(codec), &records);
        let at = HEADER_LEN + at.index(bytes.len() - HEADER_LEN);
        bytes[at] = byte;
        BatchMut::first(&mut bytes).expect("a whole batch").seal();
        let mut scratch = Vec::new();
        if let Ok(produced) = validate_produced(&bytes, &RULES, &mut scratch) {
            let read = produced.batch.records(RULES.unpacked_bytes_max).expect("unpacks again");
            prop_assert!(read.iter().all(|record| record.is_ok()));
        }
    }
}

#[test]
fn a_checksum_that_is_wrong_is_told_apart_from_a_wrong_batch() {
    let mut bytes = two();
    *bytes.last_mut().expect("a body") ^= 1;
    assert!(matches!(check(&bytes, &RULES), Err(ProduceError::Crc(_))));
}

#[test]
fn exactly_one_whole_batch_is_taken() {
    assert_eq!(refused(&[]), InvalidBatch::Missing);
    assert_eq!(refused(&[two(), two()].concat()), InvalidBatch::Several);
    assert_eq!(refused(&[two(), vec![0; 3]].concat()), InvalidBatch::Several);
    let whole = two();
    let torn = BatchError::Torn { position: 0, present: whole.len() - 1, needed: whole.len() };
    assert_eq!(refused(&whole[..whole.len() - 1]), InvalidBatch::Framing(torn));
    let magic = BatchError::Magic { position: 0, magic: 1 };
    assert_eq!(refused(&sealed_magic(1)), InvalidBatch::Framing(magic));
}

fn sealed_magic(magic: u8) -> Vec<u8> {
    let mut bytes = two();
    bytes[16] = magic;
    bytes
}

#[test]
fn the_header_must_agree_with_itself() {
    let base = refused(&sealed(0, &7i64.to_be_bytes()));
    assert_eq!(base, InvalidBatch::BaseOffset(Offset(7)));
    let last = refused(&sealed(23, &5i32.to_be_bytes()));
    assert_eq!(last, InvalidBatch::Count { count: 2, last_offset_delta: 5 });
    let none = refused(&sealed(57, &0i32.to_be_bytes()));
    assert_eq!(none, InvalidBatch::Count { count: 0, last_offset_delta: 1 });
    let control = refused(&sealed(21, &(1i16 << 5).to_be_bytes()));
    assert_eq!(control, InvalidBatch::Control);
    let builder = Builder::new(Compression::None);
    let builder = builder.producer(ProducerId(1), ProducerEpoch(0), -1);
    let sequence = refused(&build(builder, &[record(1, None, None)]));
    assert_eq!(sequence, InvalidBatch::Sequence(-1));
}

/// KAFKA-4514 and the like: what is declared must be there, no more and no less.
#[test]
fn as_many_records_as_declared_must_be_there() {
    let mut short = two();
    short[23..27].copy_from_slice(&0i32.to_be_bytes());
    short[57..61].copy_from_slice(&1i32.to_be_bytes());
    BatchMut::first(&mut short).expect("a whole batch").seal();
    let trailing = refused(&short);
    assert!(matches!(trailing, InvalidBatch::Records(RecordsError::Trailing { .. })));
}

#[test]
fn records_are_numbered_one_by_one() {
    // The second record's offset delta: its length, attributes and timestamp go before it.
    let mut bytes = two();
    let at = bytes.len() - 4;
    assert_eq!(bytes[at], 2, "zigzag of 1");
    bytes[at] = 0;
    BatchMut::first(&mut bytes).expect("a whole batch").seal();
    assert_eq!(refused(&bytes), InvalidBatch::Offset { index: 1, offset: Offset(0) });
}

#[test]
fn size_is_bounded_before_and_after_unpacking() {
    let zeros = record(1, None, Some(&"0".repeat(100_000)));
    let bytes = build(Builder::new(Compression::Zstd), &[zeros]);
    let small = ProduceRules { batch_bytes_max: bytes.len() - 1, ..RULES };
    let too_large = ProduceError::TooLarge { size: bytes.len(), bytes_max: bytes.len() - 1 };
    assert_eq!(check(&bytes, &small), Err(too_large));
    let tight = ProduceRules { unpacked_bytes_max: 99_999, ..RULES };
    let unpacks = ProduceError::UnpacksTooLarge { bytes_max: 99_999 };
    assert_eq!(check(&bytes, &tight), Err(unpacks));
    assert_eq!(check(&bytes, &RULES), Ok(Timestamp(1)));
}

/// KIP-110: an older Produce version promised its consumers that they can unpack.
#[test]
fn zstd_needs_a_request_that_knows_it() {
    let old = ProduceRules { zstd_allowed: false, ..RULES };
    let one = [record(1, None, None)];
    let bytes = build(Builder::new(Compression::Zstd), &one);
    assert_eq!(check(&bytes, &old), Err(ProduceError::ZstdNotAllowed));
    assert!(check(&build(Builder::new(Compression::Lz4), &one), &old).is_ok());
}

#[test]
fn a_transaction_that_nobody_can_end_is_not_begun() {
    let none = ProduceRules { transactional_allowed: false, ..RULES };
    let builder = Builder::new(Compression::None).transactional();
    let bytes =
        build(builder.producer(ProducerId(1), ProducerEpoch(0), 0), &[record(1, None, None)]);
    assert_eq!(check(&bytes, &none), Err(ProduceError::Transactional));
    assert!(check(&bytes, &RULES).is_ok());
}

#[test]
fn a_compacted_topic_takes_no_record_without_a_key() {
    let compacted = ProduceRules { compacted: true, ..RULES };
    let fault = RecordFault { index: 1, reason: RecordFaultReason::KeyMissing };
    assert_eq!(check(&two(), &compacted), Err(ProduceError::Records(vec![fault])));
}

/// `message.timestamp.{before,after}.max.ms`, and every record that breaks them is named.
#[test]
fn timestamps_keep_to_the_brokers_clock() {
    let at = |timestamp| record(timestamp, Some("k"), None);
    let now = RULES.now.0;
    let of = |records: &[Plain]| build(Builder::new(Compression::Gzip), records);
    let bytes = of(&[at(now), at(now + 3_600_001), at(-1), at(now - 11)]);
    let rules = ProduceRules { timestamp_before_max_ms: 10, ..RULES };
    let (earliest, latest) = (Timestamp(now - 10), Timestamp(now + 3_600_000));
    let fault = |index, timestamp| RecordFault {
        index,
        reason: RecordFaultReason::Timestamp { timestamp: Timestamp(timestamp), earliest, latest },
    };
    let faults = vec![fault(1, now + 3_600_001), fault(3, now - 11)];
    assert_eq!(check(&bytes, &rules), Err(ProduceError::Records(faults)));
    let by_append = ProduceRules { timestamp_type: TimestampType::LogAppend, ..rules };
    assert_eq!(check(&bytes, &by_append), Ok(Timestamp(now + 3_600_001)));
}

#[test]
fn the_brokers_clock_is_not_the_producers_to_claim() {
    let builder = Builder::new(Compression::None).log_append_time(Timestamp(5));
    let bytes = build(builder, &[record(1, None, None)]);
    assert_eq!(check(&bytes, &RULES), Err(ProduceError::TimestampType));
}
