//! What is built is what is read, and edits change what they say and nothing else.

use ottla_model::{LeaderEpoch, Offset, ProducerEpoch, ProducerId, Timestamp};
use ottla_records::{
    Batch, BatchMut, Batches, BatchesMut, BuildError, Builder, Compression, Iter, NewRecord,
};
use proptest::prelude::*;

use crate::{PLENTY, arbitrary_codec, arbitrary_records, build, read, record};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn records_come_back_as_they_were_appended(
        records in arbitrary_records(),
        codec in arbitrary_codec(),
        base in 0..i64::MAX - 100,
        sequence in 0..i32::MAX,
    ) {
        let builder = Builder::new(codec)
            .base_offset(Offset(base))
            .producer(ProducerId(9), ProducerEpoch(1), sequence);
        let bytes = build(builder, &records);
        let batch = Batch::first(&bytes).expect("a whole batch");
        prop_assert!(batch.verify_crc().is_ok());
        prop_assert_eq!(batch.header().record_count() as usize, records.len());
        prop_assert_eq!(batch.header().base_sequence(), sequence);
        let latest = records.iter().map(|record| record.timestamp).max();
        prop_assert_eq!(Some(batch.header().max_timestamp().0), latest.map(|max| max.max(-1)));
        let expected: Vec<_> = (base..).map(Offset).zip(records).collect();
        prop_assert_eq!(read(&batch), expected);
    }

    /// Compaction: whichever records stay, they and the batch's place in the log are as before.
    #[test]
    fn a_compacted_batch_keeps_offsets_sequence_and_the_records_left(
        records in arbitrary_records(),
        codec in arbitrary_codec(),
        stays in proptest::collection::vec(any::<bool>(), 30),
    ) {
        let builder = Builder::new(codec)
            .base_offset(Offset(500))
            .leader_epoch(LeaderEpoch(3))
            .producer(ProducerId(9), ProducerEpoch(1), 40);
        let before = build(builder, &records);
        let before = Batch::first(&before).expect("a whole batch");
        let mut after = Builder::like(before.header(), codec);
        let kept = before.records(PLENTY).expect("a readable body");
        for (record, _) in kept.iter().zip(&stays).filter(|(_, stays)| **stays) {
            after.append_kept(&record.expect("a readable record")).expect("room");
        }
        let after = after.build().expect("a batch");
        let after = Batch::first(&after).expect("a whole batch");

        prop_assert!(after.verify_crc().is_ok());
        let (old, new) = (before.header(), after.header());
        prop_assert_eq!(old.base_offset(), new.base_offset());
        prop_assert_eq!(old.last_offset(), new.last_offset());
        prop_assert_eq!(old.leader_epoch(), new.leader_epoch());
        prop_assert_eq!(old.last_sequence(), new.last_sequence());
        let pairs = read(&before).into_iter().zip(stays);
        let expected: Vec<_> = pairs.filter_map(|(r, stays)| stays.then_some(r)).collect();
        if expected.is_empty() {
            prop_assert_eq!(new.max_timestamp(), old.max_timestamp());
        }
        prop_assert_eq!(read(&after), expected);
    }

    #[test]
    fn batches_end_where_they_began(
        records in proptest::collection::vec((arbitrary_records(), arbitrary_codec()), 1..5),
    ) {
        let batches: Vec<_> = records.iter().map(|(r, c)| build(Builder::new(*c), r)).collect();
        let run = batches.concat();
        let mut read = Batches::new(&run);
        for batch in &batches {
            let next = read.next().expect("a batch").expect("a whole batch");
            prop_assert_eq!(next.bytes(), &batch[..]);
        }
        prop_assert!(read.next().is_none());
        prop_assert_eq!(read.position(), run.len());
    }
}

/// Decision 2: a leader assigns offsets without computing a checksum.
#[test]
fn base_offset_and_leader_epoch_lie_outside_the_checksum() {
    let one = build(Builder::new(Compression::Lz4), &[record(7, None, Some("a"))]);
    let mut run = [&one[..], &one[..]].concat();
    let mut next = Offset(1000);
    for batch in BatchesMut::new(&mut run) {
        let mut batch = batch.expect("a whole batch");
        batch.set_base_offset(next);
        batch.set_leader_epoch(LeaderEpoch(8));
        next = batch.header().next_offset();
    }
    assert_eq!(next, Offset(1002));
    let offsets: Vec<_> = Batches::new(&run)
        .map(|batch| {
            let batch = batch.expect("a whole batch");
            batch.verify_crc().expect("the checksum of before");
            assert_eq!(batch.header().leader_epoch(), LeaderEpoch(8));
            read(&batch)[0].0
        })
        .collect();
    assert_eq!(offsets, [Offset(1000), Offset(1001)]);
}

#[test]
fn log_append_time_is_set_in_place_and_sealed() {
    let mut bytes = build(Builder::new(Compression::Zstd), &[record(7, None, Some("a"))]);
    BatchMut::first(&mut bytes).expect("a whole batch").set_log_append_time(Timestamp(99));
    let batch = Batch::first(&bytes).expect("a whole batch");
    batch.verify_crc().expect("sealed again");
    assert_eq!(read(&batch)[0].1.timestamp, 99);
}

#[test]
fn a_wrong_max_timestamp_is_corrected_and_a_right_one_left_alone() {
    let mut bytes = build(Builder::new(Compression::None), &[record(7, None, Some("a"))]);
    let before = bytes.clone();
    BatchMut::first(&mut bytes).expect("a whole batch").set_max_create_time(Timestamp(7));
    assert_eq!(bytes, before);
    BatchMut::first(&mut bytes).expect("a whole batch").set_max_create_time(Timestamp(8));
    let batch = Batch::first(&bytes).expect("a whole batch");
    batch.verify_crc().expect("sealed again");
    assert_eq!(batch.header().max_timestamp(), Timestamp(8));
    assert_eq!(read(&batch)[0].1.timestamp, 7);
}

/// KIP-534: the horizon takes the base timestamp's place, and the records' times stand.
#[test]
fn a_delete_horizon_survives_and_moves_no_timestamp() {
    let horizon = Timestamp(123_456);
    let builder = Builder::new(Compression::None).delete_horizon(horizon);
    let bytes = build(builder, &[record(7, Some("k"), None), record(9, Some("l"), None)]);
    let batch = Batch::first(&bytes).expect("a whole batch");
    assert_eq!(batch.header().delete_horizon(), Some(horizon));
    let records = batch.records(PLENTY).expect("a readable body");
    let mut again = Builder::like(batch.header(), Compression::None);
    for record in &records {
        again.append_kept(&record.expect("a readable record")).expect("room");
    }
    assert_eq!(again.build().expect("a batch"), bytes);
    let times: Vec<_> = read(&batch).iter().map(|(_, record)| record.timestamp).collect();
    assert_eq!(times, [7, 9]);
}

#[test]
fn records_out_of_order_are_not_appended() {
    let bytes = build(Builder::new(Compression::None), &[record(7, None, None)]);
    let batch = Batch::first(&bytes).expect("a whole batch");
    let records = batch.records(PLENTY).expect("a readable body");
    let first = records.iter().next().expect("a record").expect("a readable record");
    let mut builder = Builder::new(Compression::None);
    builder.append(&NewRecord::new(Timestamp(1), None, None)).expect("room");
    let refused = builder.append_kept(&first);
    assert!(matches!(refused, Err(BuildError::Order { offset: Offset(0) })));
}

/// Sequence numbers of an idempotent producer wrap to 0, not to a negative number.
#[test]
fn sequence_numbers_wrap() {
    let builder = Builder::new(Compression::None);
    let builder = builder.producer(ProducerId(1), ProducerEpoch(0), i32::MAX - 1);
    let three = [record(1, None, None), record(1, None, None), record(1, None, None)];
    let bytes = build(builder, &three);
    assert_eq!(Batch::first(&bytes).expect("a whole batch").header().last_sequence(), 0);
}

proptest! {
    /// A consumer hands records out in portions: any cut gives the same records.
    #[test]
    fn records_in_two_parts_are_the_same_records(count in 1_usize..20, cut in 0_usize..20) {
        let mut builder = Builder::new(Compression::Lz4);
        for value in 0..count {
            let value = [value as u8; 5];
            builder.append(&NewRecord::new(Timestamp(7), None, Some(&value))).unwrap();
        }
        let bytes = builder.build().unwrap();
        let batch = Batch::first(&bytes).unwrap();
        let whole = batch.records(1 << 20).unwrap();
        let all: Vec<_> = whole.iter().map(Result::unwrap).collect();
        let mut first = whole.iter();
        let mut parts: Vec<_> = first.by_ref().take(cut).map(Result::unwrap).collect();
        let (done, left) = (parts.len(), count - parts.len());
        let rest = Iter::part(batch.header(), first.rest(), done as i32, left as i32);
        parts.extend(rest.map(Result::unwrap));
        prop_assert_eq!(&parts, &all);
        prop_assert_eq!(whole.clone().into_body().len(), whole.body().len());
    }
}
