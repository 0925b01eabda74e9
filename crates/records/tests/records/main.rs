//! Tests of the crate from outside: against Kafka's own batches, round trips, hostile bytes, and
//! what a broker refuses.

mod damage;
mod java;
mod produced;
mod round_trip;

use ottla_model::{Offset, Timestamp};
use ottla_records::{Batch, Builder, Compression, NewRecord, RecordHeader};
use proptest::prelude::*;

/// No test's records unpack to more.
const PLENTY: usize = 1 << 24;

/// A record that owns what it says.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Plain {
    timestamp: i64,
    key: Option<Vec<u8>>,
    value: Option<Vec<u8>>,
    headers: Vec<(Vec<u8>, Option<Vec<u8>>)>,
}

fn arbitrary_record() -> impl Strategy<Value = Plain> {
    let bytes = || proptest::collection::vec(any::<u8>(), 0..40);
    let value = prop_oneof![
        9 => proptest::collection::vec(any::<u8>(), 0..200),
        1 => proptest::collection::vec(0u8..3, 0..20_000),
    ];
    let header = (bytes(), proptest::option::of(bytes()));
    let headers = proptest::collection::vec(header, 0..4);
    let timestamp = prop_oneof![3 => 0..2_000_000_000_000i64, 1 => any::<i64>()];
    let (key, value) = (proptest::option::of(bytes()), proptest::option::of(value));
    (timestamp, key, value, headers).prop_map(|(timestamp, key, value, headers)| Plain {
        timestamp,
        key,
        value,
        headers,
    })
}

fn arbitrary_records() -> impl Strategy<Value = Vec<Plain>> {
    proptest::collection::vec(arbitrary_record(), 1..30)
}

fn arbitrary_codec() -> impl Strategy<Value = Compression> {
    proptest::sample::select(&Compression::ALL[..])
}

/// The batch that `builder` makes of `records`.
fn build(mut builder: Builder, records: &[Plain]) -> Vec<u8> {
    for record in records {
        let headers: Vec<_> = record
            .headers
            .iter()
            .map(|(key, value)| RecordHeader { key, value: value.as_deref() })
            .collect();
        builder
            .append(&NewRecord {
                timestamp: Timestamp(record.timestamp),
                key: record.key.as_deref(),
                value: record.value.as_deref(),
                headers: &headers,
            })
            .expect("room for the record");
    }
    builder.build().expect("packing into memory")
}

/// The records of `batch`, each with its offset.
fn read(batch: &Batch<'_>) -> Vec<(Offset, Plain)> {
    let records = batch.records(PLENTY).expect("a readable body");
    let plain = records.iter().map(|record| {
        let record = record.expect("a readable record");
        let headers = record.headers();
        let headers = headers.map(|h| (h.key.to_vec(), h.value.map(<[u8]>::to_vec))).collect();
        let plain = Plain {
            timestamp: record.timestamp.0,
            key: record.key.map(<[u8]>::to_vec),
            value: record.value.map(<[u8]>::to_vec),
            headers,
        };
        (record.offset, plain)
    });
    plain.collect()
}

fn record(timestamp: i64, key: Option<&str>, value: Option<&str>) -> Plain {
    let bytes = |text: &str| text.as_bytes().to_vec();
    Plain { timestamp, key: key.map(bytes), value: value.map(bytes), headers: Vec::new() }
}
