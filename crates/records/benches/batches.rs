//! What a batch costs on its way: checksum, walking the records, a broker's checks, building.
//!
//! `cargo bench -p ottla-records`. One batch of 1,000 records with 8-byte keys, values of 100 B
//! that pack to about a third; bytes are those of the records unpacked.

use divan::Bencher;
use divan::counter::{BytesCount, ItemsCount};
use ottla_model::Timestamp;
use ottla_records::{
    Batch, Builder, Compression, NewRecord, ProduceRules, TimestampType, validate_produced,
};

fn main() {
    divan::main();
}

const RECORDS: usize = 1_000;
const PLENTY: usize = 1 << 24;
const RULES: ProduceRules = ProduceRules {
    batch_bytes_max: PLENTY,
    unpacked_bytes_max: PLENTY,
    compacted: false,
    timestamp_type: TimestampType::Create,
    timestamp_before_max_ms: i64::MAX,
    timestamp_after_max_ms: i64::MAX,
    now: Timestamp(1_700_000_000_000),
    zstd_allowed: true,
    transactional_allowed: true,
};

#[divan::bench]
fn checksum(bencher: Bencher) {
    let bytes = build(Compression::None);
    let batch = Batch::first(&bytes).expect("a whole batch");
    counted(bencher, &bytes).bench(|| batch.verify_crc());
}

#[divan::bench]
fn walk_records(bencher: Bencher) {
    let bytes = build(Compression::None);
    let batch = Batch::first(&bytes).expect("a whole batch");
    counted(bencher, &bytes).bench(|| {
        let records = batch.records(PLENTY).expect("a readable body");
        let sizes = records.iter().map(|record| {
            let record = record.expect("a readable record");
            record.key.map_or(0, <[u8]>::len) + record.value.map_or(0, <[u8]>::len)
        });
        sizes.sum::<usize>()
    });
}

#[divan::bench(args = Compression::ALL)]
fn judge_produced(bencher: Bencher, codec: Compression) {
    let bytes = build(codec);
    let mut scratch = Vec::new();
    counted(bencher, &build(Compression::None)).bench_local(|| {
        validate_produced(&bytes, &RULES, &mut scratch).expect("a good batch").max_timestamp
    });
}

/// Ten records: what a codec costs before the first byte.
#[divan::bench(args = Compression::ALL)]
fn judge_small(bencher: Bencher, codec: Compression) {
    let bytes = build_of(codec, &values()[..10]);
    let mut scratch = Vec::new();
    bencher.bench_local(|| {
        validate_produced(&bytes, &RULES, &mut scratch).expect("a good batch").max_timestamp
    });
}

#[divan::bench(args = Compression::ALL)]
fn build_small(bencher: Bencher, codec: Compression) {
    let values = values();
    bencher.bench(|| build_of(codec, &values[..10]));
}

#[divan::bench(args = Compression::ALL)]
fn build_batch(bencher: Bencher, codec: Compression) {
    let values = values();
    counted(bencher, &build(Compression::None)).bench(|| build_of(codec, &values));
}

fn counted<'a, 'b>(bencher: Bencher<'a, 'b>, plain: &[u8]) -> Bencher<'a, 'b> {
    bencher.counter(BytesCount::new(plain.len())).counter(ItemsCount::new(RECORDS))
}

fn build(codec: Compression) -> Vec<u8> {
    build_of(codec, &values())
}

fn build_of(codec: Compression, values: &[Vec<u8>]) -> Vec<u8> {
    let mut builder = Builder::new(codec);
    for (index, value) in (0..).zip(values) {
        let key = i64::to_be_bytes(index);
        let time = Timestamp(1_700_000_000_000 + index);
        builder.append(&NewRecord::new(time, Some(&key), Some(value))).expect("room");
    }
    builder.build().expect("packing into memory")
}

fn values() -> Vec<Vec<u8>> {
    let mut state = 1u32;
    let mut letter = |_| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        b'a' + (state >> 30) as u8
    };
    (0..RECORDS).map(|_| (0..100).map(&mut letter).collect()).collect()
}
