//! Batches from outside: no panic, no memory beyond the bounds, and what a broker takes can be
//! read again and rewritten without a change.

#![no_main]

use libfuzzer_sys::fuzz_target;
use ottla_model::Timestamp;
use ottla_records::{
    Batch, BatchMut, Batches, BatchesMut, Builder, Compression, ProduceRules, TimestampType,
    validate_produced,
};

const UNPACKED_BYTES_MAX: usize = 1 << 20;
const RULES: ProduceRules = ProduceRules {
    batch_bytes_max: 1 << 20,
    unpacked_bytes_max: UNPACKED_BYTES_MAX,
    compacted: false,
    timestamp_type: TimestampType::Create,
    timestamp_before_max_ms: i64::MAX,
    timestamp_after_max_ms: i64::MAX,
    now: Timestamp(1_700_000_000_000),
    zstd_allowed: true,
    transactional_allowed: true,
};

fuzz_target!(|bytes: &[u8]| {
    let mut whole = 0;
    for batch in Batches::new(bytes).flatten() {
        whole += batch.bytes().len();
        walk(&batch);
    }
    assert!(whole <= bytes.len());

    // Behind the checksum: what a hostile producer, who can compute one, may send.
    let mut produced = bytes.to_vec();
    let edited = BatchesMut::new(&mut produced).flatten().map(|mut batch| batch.seal()).count();
    assert_eq!(edited, Batches::new(bytes).flatten().count());
    let mut scratch = Vec::new();
    if let Ok(taken) = validate_produced(&produced, &RULES, &mut scratch) {
        rewrite(&taken.batch);
    }
    assert!(scratch.len() <= UNPACKED_BYTES_MAX);
    if let Ok(mut batch) = BatchMut::first(&mut produced) {
        batch.set_log_append_time(Timestamp(5));
    }
});

fn walk(batch: &Batch<'_>) {
    let _ = batch.verify_crc();
    let header = batch.header();
    let _ = (header.next_offset(), header.last_sequence(), header.delete_horizon());
    let Ok(records) = batch.records(UNPACKED_BYTES_MAX) else { return };
    assert!(records.body().len() <= UNPACKED_BYTES_MAX.max(batch.body().len()));
    let mut read = 0;
    for record in records.iter().flatten() {
        read += 1;
        let headers = record.headers();
        assert_eq!(headers.count(), headers.count_left(), "every header was walked before");
    }
    assert!(read <= records.len());
}

/// Compaction of everything: each record stays as it is, whatever the codec.
fn rewrite(batch: &Batch<'_>) {
    let records = batch.records(UNPACKED_BYTES_MAX).expect("it was unpacked before");
    for codec in [Compression::None, Compression::Lz4] {
        let mut builder = Builder::like(batch.header(), codec);
        for record in &records {
            builder.append_kept(&record.expect("it was read before")).expect("it fitted before");
        }
        let again = builder.build().expect("it fitted before");
        let again = Batch::first(&again).expect("a whole batch");
        again.verify_crc().expect("its own checksum");
        // A batch is rewritten with shorter or longer numbers where the producer wasted bytes.
        let again = again.records(2 * UNPACKED_BYTES_MAX).expect("a readable body");
        let same = again.iter().zip(&records).all(|(a, b)| same(a, b));
        assert!(same && again.len() == records.len());
    }
}

type Read<'a> = Result<ottla_records::Record<'a>, ottla_records::RecordsError>;

fn same(a: Read<'_>, b: Read<'_>) -> bool {
    let (a, b) = (a.expect("just written"), b.expect("read before"));
    let fields = (a.offset, a.timestamp, a.key, a.value) == (b.offset, b.timestamp, b.key, b.value);
    fields && a.headers().eq(b.headers())
}
