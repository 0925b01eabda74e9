//! Against batches that Kafka 4.4's own classes wrote (`fixtures/MakeBatches.java`).

use ottla_model::{LeaderEpoch, Offset, ProducerEpoch, ProducerId, Timestamp};
use ottla_records::{Batch, Builder, Compression, ControlRecord, NewRecord, TimestampType};

use crate::{Plain, build, read, record};

macro_rules! fixture {
    ($name:literal) => {
        include_bytes!(concat!("../../fixtures/batches/", $name, ".batch"))
    };
}

const NONE: &[u8] = fixture!("none");
const LOG_APPEND_TIME: &[u8] = fixture!("log-append-time");
const COMMIT: &[u8] = fixture!("commit");
const OF_CODECS: [(Compression, &[u8]); 5] = [
    (Compression::None, NONE),
    (Compression::Gzip, fixture!("gzip")),
    (Compression::Snappy, fixture!("snappy")),
    (Compression::Lz4, fixture!("lz4")),
    (Compression::Zstd, fixture!("zstd")),
];

fn written() -> Vec<Plain> {
    let headers = vec![(b"h".to_vec(), Some(b"x".to_vec())), (b"n".to_vec(), None)];
    vec![
        Plain { headers, ..record(1000, Some("k0"), Some("v0")) },
        record(999, None, Some("")),
        record(1_700_000_000_123, Some("k2"), None),
        record(1001, Some(""), Some(&"0123456789abcdef".repeat(5000))),
    ]
}

fn builder(compression: Compression) -> Builder {
    Builder::new(compression).base_offset(Offset(100)).leader_epoch(LeaderEpoch(5)).producer(
        ProducerId(4000),
        ProducerEpoch(3),
        17,
    )
}

#[test]
fn java_batches_are_read_in_every_codec() {
    for (codec, bytes) in OF_CODECS {
        let batch = Batch::first(bytes).expect("a whole batch");
        assert_eq!(batch.bytes().len(), bytes.len());
        batch.verify_crc().expect("Kafka's own checksum");
        let header = batch.header();
        assert_eq!(header.attributes().compression(), Ok(codec));
        assert_eq!(header.base_offset(), Offset(100));
        assert_eq!(header.last_offset(), Offset(103));
        assert_eq!(header.next_offset(), Offset(104));
        assert_eq!(header.leader_epoch(), LeaderEpoch(5));
        assert_eq!(header.base_timestamp(), Timestamp(1000));
        assert_eq!(header.max_timestamp(), Timestamp(1_700_000_000_123));
        assert_eq!(header.producer_id(), Some(ProducerId(4000)));
        assert_eq!(header.producer_epoch(), ProducerEpoch(3));
        assert_eq!((header.base_sequence(), header.last_sequence()), (17, 20));
        assert_eq!(header.record_count(), 4);
        let expected: Vec<_> = (100..).map(Offset).zip(written()).collect();
        assert_eq!(read(&batch), expected, "{codec:?}");
    }
}

/// Packed bytes differ between implementations of a codec; everything else must not.
#[test]
fn we_write_what_java_writes() {
    assert_eq!(build(builder(Compression::None), &written()), NONE);
}

#[test]
fn log_append_time_is_every_records_timestamp() {
    let batch = Batch::first(LOG_APPEND_TIME).expect("a whole batch");
    assert_eq!(batch.header().attributes().timestamp_type(), TimestampType::LogAppend);
    assert!(batch.header().attributes().is_transactional());
    assert_eq!(read(&batch), [(Offset(100), record(5000, Some("k"), Some("v")))]);
    let ours = builder(Compression::None).transactional().log_append_time(Timestamp(5000));
    // Kafka's builder keeps the producer's time as the base, where nobody reads it again.
    let ours = build(ours, &[record(1000, Some("k"), Some("v"))]);
    assert_eq!(ours, LOG_APPEND_TIME);
}

/// KIP-98: what a consumer that reads committed records looks for.
#[test]
fn an_end_of_transaction_marker_is_read_and_written() {
    let batch = Batch::first(COMMIT).expect("a whole batch");
    assert!(batch.header().attributes().is_control());
    let records = batch.records(100).expect("a readable body");
    let marker = records.iter().next().expect("one record").expect("a readable record");
    let committed = ControlRecord::EndTransaction { committed: true, coordinator_epoch: 9 };
    assert_eq!(ControlRecord::of(&marker), Some(committed));

    let (key, value) = ControlRecord::end_transaction(true, 9);
    let mut ours = builder(Compression::None)
        .producer(ProducerId(4000), ProducerEpoch(3), -1)
        .transactional()
        .control();
    ours.append(&NewRecord::new(Timestamp(2000), Some(&key), Some(&value))).expect("room");
    assert_eq!(ours.build().expect("a batch"), COMMIT);
}

/// For Kafka's eyes: leaves our batches where `MakeBatches.java read` can check them.
#[test]
#[ignore = "writes files for a check by hand"]
fn leave_our_batches_for_java() {
    let dir = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"));
    for codec in Compression::ALL {
        let bytes = build(builder(codec), &written());
        std::fs::write(dir.join(format!("{}.batch", codec.name())), bytes).expect("a file");
    }
}
